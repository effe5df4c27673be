"""That a job went back into the queue: a line of its history for each restart, whether the poll or
accounting sees it first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gateway.store import events
from gateway.store.jobs import KnownJob

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Requeue:
    job_id: int
    restart: int
    at: datetime


def requeue_in(row: KnownJob, changes: Mapping[str, Any], *, seen_at: datetime) -> Requeue | None:
    """What these changes of a row say. While the old run still completes, Slurm counts the restart
    and moves the submit time only later: both say the same restart."""
    before = row.get("restarts")
    restart = changes.get("restarts", before)
    submit = changes.get("last_submit_time", row.get("last_submit_time"))
    is_moved = submit > row.get("last_submit_time")
    if restart <= before and not is_moved:
        return None
    return Requeue(row.id, max(restart, 1), submit if is_moved else seen_at)


def tell(session: "Session", requeues: Iterable[Requeue]) -> None:
    """Each restart once, however often it is seen. Call it after the jobs' rows are written: they
    are locked then, so that nobody beside this one tells the same."""
    wanted = {(one.job_id, one.restart): one for one in requeues}
    if not wanted:
        return
    told = events.restarts_told(session, sorted({job_id for job_id, _ in wanted}))
    for key, one in wanted.items():
        if key not in told:
            detail = {"restart": one.restart}
            events.add(session, "requeued", at=one.at, job_id=one.job_id, detail=detail)
