"""Events: who did what to a job, what Slurm said, and how a submission came about."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from gateway.store.models import Event
from gateway.store.upsert import chunks


@dataclass(frozen=True, slots=True)
class Denials:
    """Answers since the last call that positively denied the job, and when that call was."""

    count: int
    sent_at: datetime | None
    last_at: datetime | None


def add(
    session: Session,
    kind: str,
    *,
    at: datetime,
    person_id: int | None = None,
    job_id: int | None = None,
    submission_id: int | None = None,
    **detail: Any,
) -> None:
    row = {
        "kind": kind,
        "at": at,
        "person_id": person_id,
        "job_id": job_id,
        "submission_id": submission_id,
        "detail": detail,
    }
    session.execute(insert(Event).values(row))


def add_for_jobs(session: Session, kind: str, job_ids: list[int], *, at: datetime) -> None:
    rows = [{"kind": kind, "at": at, "job_id": job_id, "detail": {}} for job_id in job_ids]
    if rows:
        session.execute(insert(Event), rows)


def denials(session: Session, submission_id: int) -> Denials:
    """How often the token was denied since the submission was last sent."""
    sent = _last(session, submission_id, "sent")
    query = select(func.count(), func.max(Event.at, type_=Event.at.type)).where(
        Event.submission_id == submission_id, Event.kind == "denied"
    )
    if sent is not None:
        query = query.where(Event.id > sent[0])
    count, last_at = session.execute(query).one()
    return Denials(count, sent[1] if sent else None, last_at)


def latest_kind(session: Session, job_ids: list[int], kinds: tuple[str, ...]) -> dict[int, str]:
    """For each job the kind of its newest event among `kinds`."""
    newest: dict[int, str] = {}
    for part in chunks(job_ids):
        query = (
            select(Event.job_id, Event.kind)
            .where(Event.job_id.in_(part), Event.kind.in_(kinds))
            .order_by(Event.id)
        )
        newest |= {job_id: kind for job_id, kind in session.execute(query) if job_id is not None}
    return newest


def _last(session: Session, submission_id: int, kind: str) -> tuple[int, datetime] | None:
    query = (
        select(Event.id, Event.at)
        .where(Event.submission_id == submission_id, Event.kind == kind)
        .order_by(Event.id.desc())
        .limit(1)
    )
    found = session.execute(query).one_or_none()
    return (found[0], found[1]) if found else None
