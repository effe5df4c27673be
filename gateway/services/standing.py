"""Why this job stands behind that one, as far as the reader may know."""

from typing import TYPE_CHECKING

from gateway.core import standing as rules
from gateway.core.access import Viewer, job_rights
from gateway.core.standing import Other, Standing
from gateway.errors import NotFound
from gateway.store import snapshot
from gateway.store.queries import job as reads
from gateway.store.queries import waiting
from gateway.wire import policy as p

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from gateway.store.queries.jobs import JobRow


def standing(
    session: "Session", job: "JobRow", *, viewer: Viewer, compare: int | None = None
) -> Standing | None:
    """None while Slurm gives the job no points: held, not eligible yet, or read too long ago.

    `compare`: another job, which must wait too; NotFound when the reader may not see it."""
    own = _points(session, job)
    if own is None:
        return None
    before, everyone = waiting.standing_before(session, own)
    following = waiting.next_before(session, own)
    return Standing(
        partition=own.partition,
        priority=own.priority,
        factors=rules.factors(own, snapshot.weights(session)),
        before=before,
        waiting=everyone,
        next=_other(session, job.cluster, own, following, viewer) if following else None,
        compared=_compared(session, own, compare, viewer) if compare is not None else None,
    )


def _points(session: "Session", job: "JobRow") -> p.PriorityFactors | None:
    """A task of an array that still waits is part of the array's one record."""
    for number in (job.slurm_id, job.array_job_id):
        rows = () if number is None else snapshot.priority_of(session, number)
        fit = [one for one in rows if one.partition == job.partition] or list(rows)
        if fit:
            return fit[0]
    return None


def _compared(
    session: "Session", own: p.PriorityFactors, job_id: int, viewer: Viewer
) -> Other | None:
    found = reads.job(session, job_id)
    if found is None or not _sees(viewer, found.row.user, found.row.group):
        raise NotFound(f"job {job_id}")
    other = _points(session, found.row)
    return None if other is None else _other(session, found.row.cluster, own, other, viewer)


def _other(
    session: "Session",
    cluster: str,
    own: p.PriorityFactors,
    other: p.PriorityFactors,
    viewer: Viewer,
) -> Other:
    """Whom the reader may not see stays without a name."""
    differences, points = rules.differences(own, other), other.priority
    row = waiting.named(session, cluster, other.job_id)
    if row is None or not _sees(viewer, row.user, row.group):
        return Other(None, "", "", other.qos, points, differences)
    return Other(row.id, str(other.job_id), row.user, other.qos, points, differences)


def _sees(viewer: Viewer, user: str, group: str) -> bool:
    return job_rights(viewer, user=user, group=group).see
