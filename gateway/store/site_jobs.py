"""The portal's own jobs: each step is an UPDATE that names the state it leaves."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from gateway.store.environment_models import SiteJob
from gateway.store.models import Job, Person, Submission, table_of
from gateway.store.upsert import insert_if_new

_S = SiteJob


@dataclass(frozen=True, slots=True)
class SiteJobRow:
    """`job_id` is that of the portal's job page, as soon as Slurm has one."""

    id: int
    kind: str
    subject: str
    state: str
    code: str | None
    facts: dict[str, Any]
    result: dict[str, Any] | None
    created_at: datetime
    ended_at: datetime | None
    person_id: int
    submission_id: int | None
    job_id: int | None


@dataclass(frozen=True, slots=True)
class Collected:
    """An open one and how far its submission and its job have come."""

    row: SiteJobRow
    form_key: str
    user: str
    submission_state: str | None
    error_code: str | None
    folder: str
    slurm_id: int | None
    job_state: str | None
    active: bool
    end_time: datetime | None


def reserve(
    session: Session,
    *,
    kind: str,
    subject: str,
    form_key: str,
    person_id: int,
    facts: dict[str, Any],
    now: datetime,
) -> int | None:
    """A new open one; None when this form, or another of the kind and subject, is there already."""
    row = {
        "kind": kind,
        "subject": subject,
        "form_key": form_key,
        "person_id": person_id,
        "submission_id": None,
        "state": "open",
        "code": None,
        "facts": facts,
        "result": None,
        "created_at": now,
        "ended_at": None,
    }
    return insert_if_new(session, table_of(_S), row)


def by_form_key(session: Session, *, person_id: int, form_key: str) -> SiteJobRow | None:
    query = _rows().where(_S.person_id == person_id, _S.form_key == form_key)
    return next((SiteJobRow(*row) for row in session.execute(query)), None)


def get(session: Session, site_job_id: int) -> SiteJobRow | None:
    found = session.execute(_rows().where(_S.id == site_job_id))
    return next((SiteJobRow(*row) for row in found), None)


def open_count(session: Session) -> int:
    return session.scalar(select(func.count()).where(_S.state == "open")) or 0


def open_of(session: Session, kind: str) -> dict[str, SiteJobRow]:
    """Those of a kind that are not over, by subject."""
    found = session.execute(_rows().where(_S.kind == kind, _S.state == "open"))
    return {row.subject: row for row in (SiteJobRow(*one) for one in found)}


def newest(session: Session, kind: str) -> dict[str, SiteJobRow]:
    """The newest of each subject, whatever its state."""
    last = select(func.max(_S.id)).where(_S.kind == kind).group_by(_S.subject)
    found = session.execute(_rows().where(_S.id.in_(last)))
    return {row.subject: row for row in (SiteJobRow(*one) for one in found)}


def linked(session: Session, site_job_id: int, submission_id: int) -> None:
    statement = (
        update(_S)
        .where(_S.id == site_job_id, _S.submission_id.is_(None))
        .values(submission_id=submission_id)
    )
    session.execute(statement.execution_options(synchronize_session=False))


def to_collect(session: Session, *, limit: int) -> list[Collected]:
    """The open ones, the oldest first."""
    columns = (
        *_columns(),
        _S.form_key,
        Person.unix_user,
        Submission.state,
        Submission.error_code,
        Submission.request["working_directory"].as_string(),
        Job.slurm_id,
        Job.state,
        Job.active,
        Job.end_time,
    )
    query = (
        select(*columns)
        .join(Person, Person.id == _S.person_id)
        .outerjoin(Submission, Submission.id == _S.submission_id)
        .outerjoin(Job, Job.id == Submission.job_id)
        .where(_S.state == "open")
        .order_by(_S.id)
        .limit(limit)
    )
    return [_collected(*row) for row in session.execute(query)]


def finish(
    session: Session,
    site_job_id: int,
    *,
    state: str,
    code: str | None,
    result: dict[str, Any] | None,
    now: datetime,
) -> bool:
    """Whether it was open: who closes it hands its result on, in the same transaction."""
    statement = (
        update(_S)
        .where(_S.id == site_job_id, _S.state == "open")
        .values(state=state, code=code, result=result, ended_at=now)
        .execution_options(synchronize_session=False)
    )
    return bool(getattr(session.execute(statement), "rowcount", 0))


def _collected(*values: Any) -> Collected:
    own = len(SiteJobRow.__slots__)
    form_key, user, state, code, folder, slurm_id, job_state, active, end_time = values[own:]
    return Collected(
        row=SiteJobRow(*values[:own]),
        form_key=form_key,
        user=user,
        submission_state=state,
        error_code=code,
        folder=folder or "",
        slurm_id=slurm_id,
        job_state=job_state,
        active=bool(active),
        end_time=end_time,
    )


def _columns() -> tuple[Any, ...]:
    own = [getattr(_S, name) for name in SiteJobRow.__slots__ if name != "job_id"]
    return (*own, Submission.job_id)


def _rows() -> Any:
    return select(*_columns()).outerjoin(Submission, Submission.id == _S.submission_id)
