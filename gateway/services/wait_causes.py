"""Where one job's wait went, as far as polls have seen it."""

from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core.wait_causes import Cause, split
from gateway.store import wait_reasons

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from gateway.store.queries.jobs import JobRow


def of_job(session: "Session", job: "JobRow", *, now: datetime) -> dict[Cause, int] | None:
    """Seconds by cause of the newest wait, until its end or `now`; None: no poll saw it wait."""
    found = wait_reasons.between(session, job.id, job.id + 1)
    if not found:
        return None
    submit = max(submit for _, submit in found)
    ends = (job.start_time, job.end_time, now)
    until = next(int(at.timestamp()) for at in ends if at is not None)
    eligible = None if job.eligible_time is None else int(job.eligible_time.timestamp())
    return split(
        submit,
        eligible,
        until,
        found[job.id, submit],
        gaps=wait_reasons.gaps(session).get(job.cluster, []),
    )
