"""What waits for a smoke job: submissions with `after_id`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import exists, select, update
from sqlalchemy.orm import Session, aliased

from gateway.store.models import Event, Job, Submission

_FIRST, _FIRST_JOB = aliased(Submission), aliased(Job)
CANCELLED = "smoke_failed"  # the event that says so, once


@dataclass(frozen=True, slots=True)
class Waiting:
    """A submission that was not sent yet, and how far its smoke job's has come. `slurm_id` is
    that job's, as soon as there is one."""

    id: int
    request: dict[str, Any]
    script: str
    smoke_state: str
    slurm_id: int | None


@dataclass(frozen=True, slots=True)
class Stranded:
    """A job that waits for a smoke job that did not pass."""

    submission_id: int
    job_id: int
    slurm_id: int
    user: str
    smoke_state: str


def waiting(session: Session) -> list[Waiting]:
    query = (
        select(
            Submission.id,
            Submission.request,
            Submission.script,
            _FIRST.state,
            _FIRST_JOB.slurm_id,
        )
        .join(_FIRST, _FIRST.id == Submission.after_id)
        .outerjoin(_FIRST_JOB, _FIRST_JOB.id == _FIRST.job_id)
        .where(
            Submission.after_id.is_not(None),
            Submission.state == "queued",
            Submission.next_attempt_at.is_(None),
        )
    )
    return [Waiting(*row) for row in session.execute(query)]


def stranded(session: Session, *, since: datetime) -> list[Stranded]:
    """Those that nobody has cancelled yet, of smoke jobs that ended after `since`. One that goes
    back into the queue is active.

    Step by step, and whether a job is active is looked at here: else each turn would begin at all
    active jobs.
    """
    failed = _failed(session, since=since)
    told = exists().where(Event.submission_id == Submission.id, Event.kind == CANCELLED)
    columns: list[Any] = [Submission.id, Job.id, Job.slurm_id, Job.user, Submission.after_id]
    query = (
        select(*columns, Job.active, Job.start_time)
        .join(Job, Job.id == Submission.job_id)
        .where(Submission.after_id.in_(list(failed)), Submission.after_id.is_not(None), ~told)
    )
    rows = session.execute(query).all() if failed else []
    return [
        Stranded(*row[:4], smoke_state=failed[row[4]]) for row in rows if row[5] and row[6] is None
    ]


def _failed(session: Session, *, since: datetime) -> dict[int, str]:
    """The submissions of smoke jobs that did not pass, with the job's state."""
    ended = select(Job.id, Job.state, Job.active).where(
        Job.purpose.is_not(None), Job.end_time >= since
    )
    states = {
        job_id: state
        for job_id, state, active in session.execute(ended)
        if not active and state != "COMPLETED"
    }
    if not states:
        return {}
    query = select(Submission.job_id, Submission.id).where(Submission.job_id.in_(list(states)))
    return {row[1]: states[row[0] or 0] for row in session.execute(query)}


def send(
    session: Session, submission_id: int, *, request: dict[str, Any], script: str, at: datetime
) -> bool:
    """What it waited for is there: it may be sent from `at` on, as it is now."""
    return _change(session, submission_id, request=request, script=script, next_attempt_at=at)


def refuse(session: Session, submission_id: int, *, code: str) -> bool:
    """Its smoke job will never be: neither will it."""
    return _change(session, submission_id, state="refused", error_code=code)


def _change(session: Session, submission_id: int, **values: Any) -> bool:
    statement = (
        update(Submission)
        .where(
            Submission.id == submission_id,
            Submission.state == "queued",
            Submission.next_attempt_at.is_(None),
        )
        .values(**values)
        .execution_options(synchronize_session=False)
    )
    return bool(getattr(session.execute(statement), "rowcount", 0))
