"""How the portal itself is: its polls, what is held for a look, what waits to be sent."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from gateway.store.models import HeldRow, Lease, Poll, Submission

MOST_HELD = 50
_COUNTED = 1_000


@dataclass(frozen=True, slots=True)
class PollRow:
    """How a periodic read of Slurm went last; `error_code` is that of the last try."""

    name: str
    tried_at: datetime | None
    succeeded_at: datetime | None
    error_code: str | None
    interval_seconds: float | None
    watermark: datetime | None


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """Submissions in one state that is not an end."""

    state: str
    number: int
    oldest: datetime


@dataclass(frozen=True, slots=True)
class HeldFact:
    """An accounting row that could not be understood."""

    id: int
    cluster: str
    raw: str
    reason: str
    first_seen_at: datetime


@dataclass(frozen=True, slots=True)
class LeaseRow:
    name: str
    holder: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Health:
    """`held` counts at most to a thousand; `held_rows` are the newest of them."""

    polls: tuple[PollRow, ...]
    outbox: tuple[OutboxRow, ...]
    held: int
    held_rows: tuple[HeldFact, ...]
    leases: tuple[LeaseRow, ...]


def health(session: Session) -> Health:
    return Health(
        polls(session), outbox(session), _held(session), held_rows(session), _leases(session)
    )


def polls(session: Session) -> tuple[PollRow, ...]:
    columns = [getattr(Poll, name) for name in PollRow.__dataclass_fields__]
    query = select(*columns).order_by(Poll.name)
    return tuple(PollRow(*row) for row in session.execute(query))


def poll(session: Session, name: str) -> PollRow | None:
    """One of them; None when it has never been tried."""
    return next((row for row in polls(session) if row.name == name), None)


def outbox(session: Session) -> tuple[OutboxRow, ...]:
    query = (
        select(Submission.state, func.count(), func.min(Submission.created_at))
        .where(Submission.state.in_(("queued", "sending", "unknown")))
        .group_by(Submission.state)
        .order_by(Submission.state)
    )
    return tuple(OutboxRow(*row) for row in session.execute(query))


def held_rows(session: Session) -> tuple[HeldFact, ...]:
    query = (
        select(HeldRow.id, HeldRow.cluster, HeldRow.raw, HeldRow.reason, HeldRow.first_seen_at)
        .where(HeldRow.settled_at.is_(None))
        .order_by(HeldRow.id.desc())
        .limit(MOST_HELD)
    )
    return tuple(HeldFact(*row) for row in session.execute(query))


def _held(session: Session) -> int:
    few = select(HeldRow.id).where(HeldRow.settled_at.is_(None)).limit(_COUNTED).subquery()
    return session.scalar(select(func.count()).select_from(few)) or 0


def _leases(session: Session) -> tuple[LeaseRow, ...]:
    query = select(Lease.name, Lease.holder, Lease.expires_at).order_by(Lease.name)
    return tuple(LeaseRow(*row) for row in session.execute(query))
