"""Holds: credit kept back for a submission's worst case. Their entries are the ledger's."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, bindparam, case, exists, func, insert, or_, select, update
from sqlalchemy.orm import Session, aliased

from gateway.store import money_models as mm
from gateway.store.charges import TO_SETTLE, is_same_job
from gateway.store.models import Job, Run, Submission, table_of
from gateway.store.upsert import chunks

_HOLD, _ENTRY = table_of(mm.Hold), table_of(mm.Entry)
_H = _HOLD.c


@dataclass(frozen=True, slots=True)
class HoldRow:
    """`amount` is held now; `per_task` is the worst case of one task."""

    id: int
    submission_id: int
    group: str
    user: str
    tasks: int
    per_task: int
    amount: int
    opened_at: datetime
    closed_at: datetime | None


_COLUMNS = (
    _H.id,
    _H.submission_id,
    _H.group_name,
    _H.user,
    _H.tasks,
    _H.per_task,
    _H.amount,
    _H.opened_at,
    _H.closed_at,
)
_ADD = insert(_HOLD).returning(_H.id)
_OF_SUBMISSION = select(*_COLUMNS).where(_H.submission_id == bindparam("of"))
_SET = (
    update(_HOLD)
    .where(_H.id == bindparam("of"))
    .values(
        amount=_H.amount + bindparam("more"),
        closed_at=case((_H.closed_at.is_(None), bindparam("closed")), else_=_H.closed_at),
    )
)


def add(
    session: Session,
    *,
    submission_id: int,
    group: str,
    user: str,
    tasks: int,
    per_task: int,
    amount: int,
    now: datetime,
) -> int:
    values = {
        "submission_id": submission_id,
        "group_name": group,
        "user": user,
        "tasks": tasks,
        "per_task": per_task,
        "amount": amount,
        "opened_at": now,
    }
    return int(session.execute(_ADD, values).scalar_one())


def of_submission(session: Session, submission_id: int) -> HoldRow | None:
    found = session.execute(_OF_SUBMISSION, {"of": submission_id}).one_or_none()
    return HoldRow(*found) if found else None


def by_ids(session: Session, ids: Iterable[int]) -> list[HoldRow]:
    found: list[HoldRow] = []
    for part in chunks(sorted(set(ids))):
        rows = session.execute(select(*_COLUMNS).where(_H.id.in_(part)))
        found += [HoldRow(*row) for row in rows]
    return found


def parts(session: Session, hold_ids: Iterable[int]) -> dict[int, dict[int, int]]:
    """What each hold has in each pot now."""
    found: dict[int, dict[int, int]] = defaultdict(dict)
    for part in chunks(sorted(set(hold_ids))):
        query = (
            select(_ENTRY.c.hold_id, _ENTRY.c.pot_id, -func.sum(_ENTRY.c.amount))
            .where(_ENTRY.c.hold_id.in_(part), _ENTRY.c.kind.in_(("hold", "release")))
            .group_by(_ENTRY.c.hold_id, _ENTRY.c.pot_id)
        )
        for hold_id, pot_id, amount in session.execute(query):
            if amount:
                found[hold_id][pot_id] = int(amount)
    return found


def moves(session: Session, hold_id: int) -> int:
    """How many times the hold has been moved: makes the next entry's key."""
    query = select(func.count()).select_from(_ENTRY).where(_ENTRY.c.hold_id == hold_id)
    return int(session.scalar(query) or 0)


def change(session: Session, rows: Sequence[tuple[int, int, datetime | None]]) -> None:
    """Rows of id, what is added to the amount, and when it was closed, if it was."""
    if rows:
        values = [{"of": of, "more": more, "closed": closed} for of, more, closed in rows]
        session.connection().execute(_SET, values)


def raise_task(session: Session, hold_id: int, more: int) -> None:
    """The worst case of one task has changed by this."""
    statement = update(_HOLD).where(_H.id == hold_id).values(per_task=_H.per_task + more)
    session.execute(statement)


def to_release(session: Session, *, limit: int = 500) -> list[int]:
    """Open holds that nothing will be charged against any more.

    The submission ended without a job; or accounting has told the end of each of its jobs, and
    all their runs are settled. The queue's word alone frees nothing: the charge comes first.
    """
    linked = aliased(Job)
    of_link = exists().where(linked.id == Submission.job_id, is_same_job(Job, linked))
    mine = and_(Job.token == Submission.token, Job.user == mm.Hold.user, of_link)
    going_on = exists().where(mine, or_(Job.active, ~Job.accounted))
    reviewed = exists().where(mm.Charge.run_id == Run.id, mm.Charge.state == "review")
    unsettled = exists().where(mine, Run.job_id == Job.id, or_(TO_SETTLE, reviewed))
    refused = Submission.state.in_(("refused", "withdrawn")) & Submission.job_id.is_(None)
    over = Submission.job_id.is_not(None) & ~going_on & ~unsettled
    query = (
        select(mm.Hold.id)
        .join(Submission, Submission.id == mm.Hold.submission_id)
        .where(mm.Hold.closed_at.is_(None), or_(refused, over))
        .order_by(mm.Hold.id)
        .limit(limit)
    )
    return list(session.scalars(query))
