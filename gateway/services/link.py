"""From a job that Slurm shows back to the submission that asked for it, by the token.

The comment that holds the token can be read and written by others in the cluster, so a job is
a submission's only when its user is the one who asked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.brokerclient.port import Broker
from gateway.core.identity import TOKEN_PREFIX
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.services.poll_plan import Sighting
from gateway.store import events, jobs, submissions
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

Seen = Mapping[str, Sequence[Sighting]]  # by token

# Two hosts' clocks: a job is not older than the wish for it by more than this.
_CLOCKS = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A second job with a submission's token, not started yet: it must not run."""

    submission_id: int
    slurm_id: int
    user: str


def is_ours(comment: str) -> bool:
    return comment.startswith(TOKEN_PREFIX)


def twice(seen: Seen) -> set[str]:
    """Tokens that more than one job carries. The tasks of an array are one job."""
    return {token for token, found in seen.items() if len({one.id_of_all for one in found}) > 1}


def link(session: "Session", seen: Seen, *, cluster: str, now: datetime) -> tuple[Duplicate, ...]:
    """Join jobs to submissions; answers the second ones that can still be stopped."""
    duplicates: list[Duplicate] = []
    for row in submissions.by_tokens(session, sorted(seen)):
        mine = [s for s in seen[row.token] if _fits(s, row)]
        first = _first(session, mine, row)
        if first is None:
            continue
        if row.job_id is None:
            _accept(session, row, first, cluster=cluster, now=now)
        if any(s.id_of_all == first.id_of_all and s.slurm_id != first.slurm_id for s in mine):
            told = {"template": row.template, "purpose": row.purpose}
            jobs.tell_tasks(
                session, first.id_of_all, cluster=cluster, user=row.user, token=row.token, told=told
            )
        for other in mine:
            if other.id_of_all != first.id_of_all and other.open and not other.started:
                duplicates.append(Duplicate(row.id, other.slurm_id, other.user))
    return tuple(duplicates)


def cancel_duplicates(
    found: Iterable[Duplicate], *, begin: Begin, broker: Broker, now: datetime
) -> int:
    """Cancel second jobs that have not started, and say so in the submission's history."""
    cancelled = 0
    for duplicate in found:
        try:
            broker.cancel(duplicate.slurm_id, user=duplicate.user)
        except (BrokerRefused, BrokerUnreachable, BrokerSilent):
            continue  # the next poll shows it again, if it is still there
        with begin() as session:
            events.add(
                session,
                "duplicate_cancelled",
                at=now,
                submission_id=duplicate.submission_id,
                detail={"slurm_id": duplicate.slurm_id},
            )
        cancelled += 1
    return cancelled


def _fits(seen: Sighting, row: submissions.TokenRow) -> bool:
    return seen.user == row.user and seen.submit_time >= row.created_at - _CLOCKS


def _first(session: "Session", mine: list[Sighting], row: submissions.TokenRow) -> Sighting | None:
    """The job that counts: the linked one, else one that has started, else the oldest."""
    if row.job_id is not None:
        owner = jobs.owner(session, row.job_id)
        linked = [s for s in mine if owner is not None and s.slurm_id == owner.slurm_id]
        if linked or owner is None or not mine:
            return linked[0] if linked else None
        # The linked job is no longer listed; it counts all the same.
        return Sighting(
            row.token,
            row.user,
            owner.slurm_id,
            owner.slurm_id,
            mine[0].submit_time,
            started=True,
            open=False,
        )
    return min(mine, key=lambda s: (not s.started, s.submit_time, s.slurm_id), default=None)


def _accept(
    session: "Session",
    row: submissions.TokenRow,
    seen: Sighting,
    *,
    cluster: str,
    now: datetime,
) -> None:
    job_id = jobs.id_of(
        session, cluster=cluster, slurm_id=seen.slurm_id, submit_time=seen.submit_time
    )
    if job_id is None:
        return
    # The broker cancelled it for a difference: the page goes on to say so.
    stays_refused = row.error_code == "accepted_differs"
    keep = submissions.attach if stays_refused else submissions.accept
    if not keep(session, row.id, job_id=job_id):
        return
    told = {"template": row.template, "purpose": row.purpose, "token": row.token}
    jobs.change(session, [{"id": job_id, **told}])
    events.add(session, "found", at=now, submission_id=row.id, job_id=job_id)
