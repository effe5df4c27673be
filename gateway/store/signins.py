"""Server-side sessions, and the failed sign-ins that the throttle counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, delete, func, or_, select, update
from sqlalchemy.orm import Session

from gateway.store.models import SignIn, SignInFailure, table_of


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A live session, as its owner may see it."""

    id: int
    kind: str  # browser, api
    address: str
    agent: str
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Held:
    """Whose token it is."""

    session_id: int
    person_id: int
    kind: str
    last_seen_at: datetime


@dataclass(frozen=True, slots=True)
class Failures:
    """How many in the window, and when the oldest of them was."""

    count: int
    oldest: datetime | None


_C = table_of(SignIn).c
_HOLDER = select(_C.id, _C.person_id, _C.kind, _C.last_seen_at).where(
    _C.token_hash == bindparam("hash"), _C.ended_at.is_(None), _C.expires_at > bindparam("now")
)


def add(
    session: Session,
    *,
    person_id: int,
    token_hash: str,
    kind: str,
    address: str,
    agent: str,
    now: datetime,
    expires_at: datetime,
) -> int:
    row = SignIn(
        person_id=person_id,
        token_hash=token_hash,
        kind=kind,
        address=address,
        agent=agent,
        created_at=now,
        last_seen_at=now,
        expires_at=expires_at,
    )
    session.add(row)
    session.flush()
    return row.id


def holder(session: Session, token_hash: str, *, now: datetime) -> Held | None:
    found = session.execute(_HOLDER, {"hash": token_hash, "now": now}).one_or_none()
    return None if found is None else Held(*found)


def touch(session: Session, session_id: int, *, now: datetime, expires_at: datetime | None) -> None:
    """Note that it was used; `expires_at` None leaves its end where it is."""
    values: dict[str, datetime] = {"last_seen_at": now}
    if expires_at is not None:
        values["expires_at"] = expires_at
    # Not an ended one: a touch must not bring a session back.
    session.execute(
        update(SignIn).where(SignIn.id == session_id, SignIn.ended_at.is_(None)).values(values)
    )


def live(session: Session, person_id: int, *, now: datetime) -> list[SessionRow]:
    query = (
        select(
            SignIn.id,
            SignIn.kind,
            SignIn.address,
            SignIn.agent,
            SignIn.created_at,
            SignIn.last_seen_at,
            SignIn.expires_at,
        )
        .where(SignIn.person_id == person_id, SignIn.ended_at.is_(None), SignIn.expires_at > now)
        .order_by(SignIn.last_seen_at.desc(), SignIn.id.desc())
        .limit(200)
    )
    return [SessionRow(*row) for row in session.execute(query)]


def end(session: Session, session_id: int, *, person_id: int, now: datetime) -> bool:
    """Whether there was such a live session of this person."""
    ended = session.execute(
        update(SignIn)
        .where(SignIn.id == session_id, SignIn.person_id == person_id, SignIn.ended_at.is_(None))
        .values(ended_at=now)
        .returning(SignIn.id)
    )
    return ended.first() is not None


def end_by_token(session: Session, token_hash: str, *, now: datetime) -> None:
    session.execute(
        update(SignIn)
        .where(SignIn.token_hash == token_hash, SignIn.ended_at.is_(None))
        .values(ended_at=now)
    )


def end_all(session: Session, person_id: int, *, now: datetime, but: int | None = None) -> None:
    """End every session and token of a person, but perhaps the one in hand."""
    query = update(SignIn).where(SignIn.person_id == person_id, SignIn.ended_at.is_(None))
    if but is not None:
        query = query.where(SignIn.id != but)
    session.execute(query.values(ended_at=now))


def failures(session: Session, key: str, *, since: datetime) -> Failures:
    query = select(func.count(), func.min(SignInFailure.at)).where(
        SignInFailure.key == key, SignInFailure.at > since
    )
    count, oldest = session.execute(query).one()
    return Failures(count, oldest)


def add_failures(session: Session, keys: Sequence[str], *, now: datetime) -> tuple[int, ...]:
    """One row a key; their ids, to take them back by."""
    rows = [SignInFailure(key=key, at=now) for key in keys]
    session.add_all(rows)
    session.flush()
    return tuple(row.id for row in rows)


def forget_failures(session: Session, *, ids: Sequence[int], key: str) -> None:
    """Take back the rows with these ids, and all of one key."""
    session.execute(
        delete(SignInFailure).where(or_(SignInFailure.id.in_(ids), SignInFailure.key == key))
    )


def drop_old_failures(session: Session, *, before: datetime) -> None:
    session.execute(delete(SignInFailure).where(SignInFailure.at < before))


def drop_old_sessions(session: Session, *, before: datetime) -> None:
    """Forget sessions that ended, or ran out, before then."""
    session.execute(delete(SignIn).where(or_(SignIn.expires_at < before, SignIn.ended_at < before)))
