"""One tree of errors: the class says what may be done about it, `code` is API."""


class GatewayError(Exception):
    """Root of all we raise on purpose. The message is for the log, never for a page."""

    code = "internal"
    status = 500

    def __init__(self, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class BadConfiguration(GatewayError):
    """A setting is missing or wrong; the message lists every problem at once."""

    code = "bad_configuration"


class BadMessage(GatewayError):
    """A broker message has an unknown, missing or mistyped field. Nothing was done."""

    code, status = "bad_message", 400


class BrokerRefused(GatewayError):
    """Slurm, or the broker, said no. Nothing was started or changed. `code` says why."""

    code, status = "slurm_refused", 422


class BrokerUnreachable(GatewayError):
    """The broker or slurmctld was not there to ask. Nothing happened: try again later."""

    code, status = "slurm_unreachable", 503


class BrokerSilent(GatewayError):
    """No answer. The act may have happened: look for the token, never submit anew."""

    code, status = "slurm_unknown", 503


class Refused(GatewayError):
    """A rule of the portal says no. `code` is a message key; `fields` are form fields."""

    code, status = "refused", 422

    def __init__(self, code: str, *, field: str | None = None, **facts: str | int) -> None:
        super().__init__(code, code=code)
        self.field = field
        self.facts = facts


class NotFound(GatewayError):
    """There is no such thing, or this person may not know of it."""

    code, status = "not_found", 404


class Busy(GatewayError):
    """The database is locked or full. Nothing was kept of this request: try again."""

    code, status = "busy", 503
