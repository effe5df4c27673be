"""Why this job stands behind that one, as far as the reader may know."""

from typing import TYPE_CHECKING

from gateway.core import standing as rules
from gateway.core.access import Viewer, job_rights
from gateway.core.standing import Other, Standing
from gateway.store import snapshot
from gateway.store.queries import waiting
from gateway.wire import policy as p

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from gateway.store.queries.jobs import JobRow


def standing(
    session: "Session", job: "JobRow", *, viewer: Viewer, compare: int | None = None
) -> Standing | None:
    """None while Slurm gives the job no points: held, not eligible yet, or read too long ago.

    `compare`: Slurm's number of another job. `compared` stays None for one that does not wait, and
    for one that the reader may not see: nobody learns which."""
    own = _points(session, job)
    if own is None:
        return None
    before, everyone = waiting.standing_before(session, own)
    following = waiting.next_before(session, own)
    named = None if compare is None else _named(session, job.cluster, compare)
    other = None if named is None else _other(session, job.cluster, own, named, viewer)
    return Standing(
        partition=own.partition,
        priority=own.priority,
        factors=rules.factors(own, snapshot.weights(session)),
        before=before,
        waiting=everyone,
        next=_other(session, job.cluster, own, following, viewer) if following else None,
        compared=other if other is not None and other.id is not None else None,
    )


def _named(session: "Session", cluster: str, number: int) -> p.PriorityFactors | None:
    row = waiting.named(session, cluster, number)
    if row is None:
        return None
    found = [row.slurm_id, *([] if row.array_job_id is None else [row.array_job_id])]
    points = [one for slurm_id in found for one in snapshot.priority_of(session, slurm_id)]
    return points[0] if points else None


def _points(session: "Session", job: "JobRow") -> p.PriorityFactors | None:
    """A task of an array that still waits is part of the array's one record."""
    for number in (job.slurm_id, job.array_job_id):
        rows = () if number is None else snapshot.priority_of(session, number)
        fit = [one for one in rows if one.partition == job.partition] or list(rows)
        if fit:
            return fit[0]
    return None


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
