"""Events: who did what to a job, what Slurm said, and how a submission came about."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from gateway.store.models import Event, table_of
from gateway.store.upsert import chunks

_INSERT = insert(table_of(Event))
_IDS = 500  # a statement


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
    detail: dict[str, Any] | None = None,
) -> None:
    row = {
        "kind": kind,
        "at": at,
        "person_id": person_id,
        "job_id": job_id,
        "submission_id": submission_id,
        "detail": detail or {},
    }
    session.execute(_INSERT, row)


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


def first(session: Session, submission_id: int, kind: str) -> datetime | None:
    """When it happened to the submission for the first time."""
    query = select(func.min(Event.at, type_=Event.at.type)).where(
        Event.submission_id == submission_id, Event.kind == kind
    )
    return session.scalar(query)


def restarts_told(session: Session, job_ids: Sequence[int]) -> set[tuple[int, int]]:
    """Jobs and numbers of the restarts that stand in their histories."""
    query = select(Event.job_id, Event.detail)
    return {
        (job_id, detail.get("restart", 0))
        for part in chunks(job_ids, _IDS)
        for job_id, detail in session.execute(
            query.where(Event.kind == "requeued", Event.job_id.in_(part))
        )
        if job_id is not None
    }


def _last(session: Session, submission_id: int, kind: str) -> tuple[int, datetime] | None:
    query = (
        select(Event.id, Event.at)
        .where(Event.submission_id == submission_id, Event.kind == kind)
        .order_by(Event.id.desc())
        .limit(1)
    )
    found = session.execute(query).one_or_none()
    return (found[0], found[1]) if found else None
