"""Slurm's numbers as our exceptions. `slurm_errno` goes to the caller in the Failure."""

from gateway.core import slurm_errors
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable, GatewayError


class SlurmRefused(BrokerRefused):
    """Slurm said no, with its own number."""

    def __init__(self, message: str, *, code: str, slurm_errno: int) -> None:
        super().__init__(message, code=code)
        self.slurm_errno = slurm_errno


class NotAllowed(GatewayError):
    """The caller is not one of ours, or asks for what is no verb. Nothing was read or done."""

    def __init__(self, code: str, status: int) -> None:
        super().__init__(code, code=code)
        self.status = status


def from_errno(errno: int, message: str, detail: str = "") -> GatewayError:
    """The exception that says what is known after Slurm's `errno`."""
    text = f"{message} ({errno})"
    if limit := slurm_errors.limit_name(detail):
        text = f"{limit}: {text}"
    match slurm_errors.outcome(errno):
        case slurm_errors.Outcome.NOTHING_HAPPENED:
            return BrokerUnreachable(text)
        case slurm_errors.Outcome.UNKNOWN:
            return BrokerSilent(text)
        case slurm_errors.Outcome.REFUSED:
            code = slurm_errors.code(errno, detail)
            return SlurmRefused(text, code=code, slurm_errno=errno)
