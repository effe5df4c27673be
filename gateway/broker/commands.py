"""Slurm's own programs: by argument vector, with a small environment, bounded in time."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.broker.accounts import Account
from gateway.errors import BrokerSilent, BrokerUnreachable


@dataclass(frozen=True, slots=True)
class Output:
    status: int
    stdout: bytes
    stderr: str


@dataclass(frozen=True, slots=True)
class Commands:
    """`slurm_conf` is the one variable of ours that Slurm's programs need, and only if set."""

    timeout_seconds: float
    slurm_conf: str | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    def run(
        self,
        argv: Sequence[str],
        *,
        person: Account | None = None,
        stdin: str = "",
        environment: Mapping[str, str] | None = None,
        acts: bool = False,
    ) -> Output:
        """Run to the end; BrokerUnreachable when it takes too long or is not installed.

        Times are printed in UTC. One that `acts` and takes too long may have acted: BrokerSilent.
        """
        person_arguments: dict[str, object] = {}
        if person is not None and os.geteuid() != person.uid:
            person_arguments = {
                "user": person.uid,
                "group": person.gid,
                "extra_groups": list(person.groups),
            }
        try:
            done = subprocess.run(  # type: ignore[call-overload]  # noqa: S603  # a vector, no shell
                list(argv),
                input=stdin.encode(),
                capture_output=True,
                timeout=self.timeout_seconds,
                check=False,
                cwd="/",
                env={**self._environment(), **(environment or {})},
                **person_arguments,
            )
        except subprocess.TimeoutExpired as error:
            if acts:
                raise BrokerSilent(f"{argv[0]} did not answer") from error
            raise BrokerUnreachable(f"{argv[0]} did not answer") from error
        except OSError as error:
            raise BrokerUnreachable(f"{argv[0]}: {error}") from error
        return Output(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"))

    def _environment(self) -> dict[str, str]:
        base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC"}
        if self.slurm_conf:
            base["SLURM_CONF"] = self.slurm_conf
        return {**base, **self.extra}
