"""Submissions: each step of one is an UPDATE that names the state it leaves.

A claim is `claimed_until` itself: who finishes must still hold the value he was given, so a
worker that slept past its claim changes nothing.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Update,
    and_,
    bindparam,
    func,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from gateway.store.models import Job, Submission, table_of
from gateway.store.upsert import CHUNK, chunks, insert_if_new

TABLE = table_of(Submission)


@dataclass(frozen=True, slots=True)
class NewSubmission:
    """`request` is the wire SubmitRequest without its script. With `after_id` it waits until that
    submission has a job, whose id it is sent with."""

    token: str
    form_key: str
    person_id: int
    cluster: str
    template: str
    ask: dict[str, Any]
    request: dict[str, Any]
    script: str
    run: str | None = None
    purpose: str | None = None
    after_id: int | None = None


@dataclass(frozen=True, slots=True)
class SubmissionRow:
    id: int
    token: str
    person_id: int
    cluster: str
    state: str
    template: str
    ask: dict[str, Any]
    request: dict[str, Any]
    script: str
    created_at: datetime
    attempts: int
    next_attempt_at: datetime | None
    claimed_until: datetime | None
    sent_at: datetime | None
    error_code: str | None
    error_text: str | None
    job_id: int | None
    purpose: str | None


COLUMNS = tuple(TABLE.c[name] for name in SubmissionRow.__slots__)
_C = TABLE.c
# What each press of Submit runs, built once.
_BY_ID = select(*COLUMNS).where(_C.id == bindparam("of"))
_BY_FORM_KEY = select(_C.id).where(
    _C.person_id == bindparam("person_id"), _C.form_key == bindparam("form_key")
)
_CLAIM_TO_SEND = (
    update(TABLE)
    .where(
        _C.id == bindparam("of"),
        _C.state == "queued",
        _C.next_attempt_at.is_not(None),
        _C.next_attempt_at <= bindparam("now"),
    )
    .values(
        state="sending",
        claimed_until=bindparam("until"),
        sent_at=func.coalesce(_C.sent_at, bindparam("now", type_=_C.sent_at.type)),
        attempts=_C.attempts + 1,
    )
)
_ACCEPT = (
    update(TABLE)
    .where(_C.id == bindparam("of"), _C.job_id.is_(None))
    .values(
        state="accepted",
        job_id=bindparam("job"),
        claimed_until=null(),
        next_attempt_at=null(),
        error_code=null(),
        error_text=null(),
    )
)


@dataclass(frozen=True, slots=True)
class TokenRow:
    """What linking a job to its submission needs."""

    id: int
    token: str
    user: str
    state: str
    template: str
    job_id: int | None
    created_at: datetime
    error_code: str | None
    purpose: str | None


def add(session: Session, new: NewSubmission, *, now: datetime) -> tuple[int, bool]:
    """The id, and whether it is new: a form posted twice is one submission."""
    row = {name: getattr(new, name) for name in NewSubmission.__slots__}
    first = None if new.after_id is not None else now
    row |= {"state": "queued", "created_at": now, "next_attempt_at": first, "attempts": 0}
    made = insert_if_new(session, TABLE, row)
    if made is not None:
        return made, True
    before = by_form_key(session, person_id=new.person_id, form_key=new.form_key)
    if before is None:
        raise LookupError("the token is taken, but not by this form")
    return before, False


def by_form_key(session: Session, *, person_id: int, form_key: str) -> int | None:
    key = {"person_id": person_id, "form_key": form_key}
    found: int | None = session.execute(_BY_FORM_KEY, key).scalar()
    return found


def get(session: Session, submission_id: int) -> SubmissionRow | None:
    found = session.execute(_BY_ID, {"of": submission_id}).one_or_none()
    return SubmissionRow(*found) if found else None


def of_job(session: Session, job_id: int) -> SubmissionRow | None:
    """The submission that a job, or the array that it is a task of, came from."""
    submission_id = id_of_job(session, job_id)
    return None if submission_id is None else get(session, submission_id)


def id_of_job(session: Session, job_id: int) -> int | None:
    """The same, its id alone; the first one, should there be more."""
    first = select(Submission.id).order_by(Submission.id).limit(1)
    found = session.scalar(first.where(Submission.job_id == job_id))
    if found is not None:
        return found
    job = session.get(Job, job_id)
    if job is None or job.array_job_id is None or job.token is None:
        return None
    # Linked to another task of it. A cluster that was cleared counts from one again: the token.
    of_array = first.join(Job, Submission.job_id == Job.id).where(
        Job.array_job_id == job.array_job_id,
        Job.cluster == job.cluster,
        Job.user == job.user,
        Job.token == job.token,
    )
    return session.scalar(of_array)


def due(session: Session, *, now: datetime, limit: int) -> list[int]:
    """What an attempt may be made for: its time has come and nobody holds it."""
    query = (
        select(Submission.id)
        .where(_claimable(now), or_(Submission.state == "sending", _time_has_come(now)))
        .order_by(Submission.next_attempt_at, Submission.id)
        .limit(limit)
    )
    return list(session.execute(query).scalars())


def claim_to_send(session: Session, submission_id: int, *, now: datetime, until: datetime) -> bool:
    """Take a queued submission, and note that a call may have begun, before it begins."""
    values = {"of": submission_id, "now": now, "until": until}
    return bool(getattr(session.execute(_CLAIM_TO_SEND, values), "rowcount", 0))


def claim_to_find(session: Session, submission_id: int, *, now: datetime, until: datetime) -> bool:
    """Take one whose outcome is unknown; a sender that died left one too."""
    statement = (
        update(Submission)
        .where(
            Submission.id == submission_id,
            Submission.state.in_(("sending", "unknown")),
            _claimable(now),
            or_(Submission.state == "sending", _time_has_come(now)),
        )
        .values(state="unknown", claimed_until=until)
    )
    return _changed(session, statement)


def accept(session: Session, submission_id: int, *, job_id: int) -> bool:
    """Slurm has it: a fact, whoever learns of it and whatever was believed before."""
    result = session.execute(_ACCEPT, {"of": submission_id, "job": job_id})
    return bool(getattr(result, "rowcount", 0))


def attach(session: Session, submission_id: int, *, job_id: int) -> bool:
    """Note the job of a submission that stays refused: it was cancelled for a difference."""
    statement = (
        update(Submission)
        .where(Submission.id == submission_id, Submission.job_id.is_(None))
        .values(job_id=job_id)
    )
    return _changed(session, statement)


def mark_mismatch(session: Session, submission_id: int, *, code: str, text: str) -> None:
    """Slurm accepted another job than the one asked for; that job has been cancelled."""
    statement = (
        update(Submission)
        .where(Submission.id == submission_id)
        .values(state="refused", error_code=code, error_text=text, **_settled())
        .execution_options(synchronize_session=False)
    )
    session.execute(statement)


def refuse(session: Session, submission_id: int, *, claim: datetime, code: str, text: str) -> bool:
    values = {"state": "refused", **_settled(), "error_code": code, "error_text": text}
    return _finish(session, submission_id, claim=claim, values=values)


def put_back(
    session: Session,
    submission_id: int,
    *,
    claim: datetime,
    state: str,
    at: datetime,
    code: str | None,
) -> bool:
    """Let go of a claim: `queued` when nothing happened, `unknown` when nobody can tell."""
    values = {"state": state, "claimed_until": None, "next_attempt_at": at, "error_code": code}
    return _finish(session, submission_id, claim=claim, values=values)


def withdraw(session: Session, submission_id: int) -> bool:
    """Only what Slurm cannot have: never sent, or every attempt was a plain no-contact."""
    statement = (
        update(Submission)
        .where(Submission.id == submission_id, Submission.state == "queued")
        .values(state="withdrawn", **_settled())
    )
    return _changed(session, statement)


def by_tokens(session: Session, tokens: list[str]) -> list[TokenRow]:
    """Submissions by token, for linking what the queue or accounting shows."""
    rows: list[TokenRow] = []
    columns = (
        Submission.id,
        Submission.token,
        Submission.request["user"].as_string(),
        Submission.state,
        Submission.template,
        Submission.job_id,
        Submission.created_at,
        Submission.error_code,
        Submission.purpose,
    )
    for part in chunks(tokens, CHUNK):
        found = session.execute(select(*columns).where(Submission.token.in_(part)))
        rows += [TokenRow(*row) for row in found]
    return rows


def unsettled_tokens(session: Session) -> list[str]:
    """Tokens whose outcome is open."""
    query = select(Submission.token).where(Submission.state.in_(("queued", "sending", "unknown")))
    return list(session.execute(query).scalars())


def _finish(
    session: Session, submission_id: int, *, claim: datetime, values: dict[str, Any]
) -> bool:
    statement = (
        update(Submission)
        .where(
            Submission.id == submission_id,
            Submission.state.in_(("sending", "unknown")),
            Submission.claimed_until == claim,
        )
        .values(**values)
    )
    return _changed(session, statement)


def _settled() -> dict[str, Any]:
    return {"claimed_until": None, "next_attempt_at": None}


def _time_has_come(now: datetime) -> ColumnElement[bool]:
    return and_(Submission.next_attempt_at.is_not(None), Submission.next_attempt_at <= now)


def _claimable(now: datetime) -> ColumnElement[bool]:
    free = or_(Submission.claimed_until.is_(None), Submission.claimed_until < now)
    return and_(Submission.state.in_(("queued", "sending", "unknown")), free)


def _changed(session: Session, statement: Update) -> bool:
    result = session.execute(statement.execution_options(synchronize_session=False))
    return bool(getattr(result, "rowcount", 0))
