"""What a poll keeps of why jobs wait: a row when the cause changes, none while it stays."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from gateway.brokerclient.port import Broker
from gateway.core.states import parse_state
from gateway.core.wait_causes import LOOK_S, cause_of
from gateway.core.wait_doubts import Around, is_in_doubt, told_apart
from gateway.errors import GatewayError
from gateway.store import wait_reasons
from gateway.store.jobs import KnownJob
from gateway.store.wait_reasons import Look

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_BLIND = timedelta(seconds=LOOK_S)
_ALWAYS = "JobHeldAdmin"  # the portal's own gate, or an administrator


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that waits for another cause than at the poll before."""

    slurm_id: int
    first_submit: datetime
    submit: datetime
    reason: str | None
    partition: str
    limit_minutes: int | None


def of_added(row: Mapping[str, Any]) -> Waiting | None:
    """Of a job that no poll has seen before; None: it does not wait."""
    if not _waits(row["state"], row["active"]):
        return None
    return Waiting(
        slurm_id=row["slurm_id"],
        first_submit=row["submit_time"],
        submit=row["last_submit_time"],
        reason=row["reason"],
        partition=row["partition"],
        limit_minutes=row["time_limit_minutes"],
    )


def of_changed(job: KnownJob, changes: Mapping[str, Any]) -> Waiting | None:
    """None: it does not wait, or for the same as before."""
    now = {name: changes.get(name, job.get(name)) for name in _READ}
    if not _waits(now["state"], now["active"]):
        return None
    goes_on = _waits(job.get("state"), job.get("active")) and (
        now["last_submit_time"] == job.get("last_submit_time")
    )
    if goes_on and _same(job.get("reason"), now["reason"]):
        return None
    return of_added(now | {"slurm_id": job.slurm_id, "submit_time": job.submit_time})


@dataclass(frozen=True, slots=True)
class Looker:
    """Keeps what a poll of this cluster saw that was taken at `at`. `around` None: nothing was in
    doubt, or Slurm told nothing of its nodes, and the doubt stays."""

    cluster: str
    at: datetime
    around: Around | None

    def tell(self, session: "Session", waiting: Iterable[Waiting | None]) -> None:
        """In the transaction that writes these jobs, after their rows."""
        looks = [self._look(one) for one in waiting if one is not None]
        wait_reasons.put(session, self.cluster, looks)

    def tell_gap(self, session: "Session", *, since: datetime | None, until: datetime) -> None:
        """`since`: the poll before. In the transaction that says that this one is stored."""
        if since is not None and until - since > _BLIND:
            wait_reasons.put_gap(session, self.cluster, since=since, until=until)

    def _look(self, one: Waiting) -> Look:
        reason = one.reason
        if self.around is not None:
            reason = told_apart(
                reason,
                partition=one.partition,
                limit_minutes=one.limit_minutes,
                around=self.around,
            )
        return Look(
            slurm_id=one.slurm_id,
            first_submit=one.first_submit,
            submit=int(one.submit.timestamp()),
            since=int(self.at.timestamp()),
            reason=reason,
        )


def looker(broker: Broker, reasons: Iterable[str | None], *, cluster: str, at: datetime) -> Looker:
    """Asks for the nodes of this moment only where one of `reasons` is in doubt."""
    around = None
    if any(map(is_in_doubt, reasons)):
        with suppress(GatewayError):
            around = Around(broker.nodes(), broker.reservations(), at)
    return Looker(cluster, at, around)


_READ = ("state", "active", "last_submit_time", "reason", "partition", "time_limit_minutes")


def _waits(state: str, active: bool) -> bool:
    return active and parse_state(state)[0].is_pending


def _same(before: str | None, now: str | None) -> bool:
    if before == now:
        return True
    if (before is None) != (now is None) or _ALWAYS in {before, now}:
        return False
    return cause_of(before) is cause_of(now) and not (is_in_doubt(before) or is_in_doubt(now))
