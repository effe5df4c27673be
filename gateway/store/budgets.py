"""Budgets: their rows, what was entered by hand, and their thresholds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from gateway.core.budgets import Action, Category, Standing, Threshold
from gateway.store import money_models as mm
from gateway.store import volume_work
from gateway.store.models import Person, table_of
from gateway.store.queries import spending

_BUDGET, _LINE, _THRESHOLD = (
    table_of(mm.Budget),
    table_of(mm.BudgetLine),
    table_of(mm.BudgetThreshold),
)
_B = mm.Budget


@dataclass(frozen=True, slots=True)
class BudgetRow:
    id: int
    group: str
    name: str
    amount: int
    starts: datetime
    ends: datetime
    approved_until: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class LineRow:
    """`by`: the login of who entered it."""

    id: int
    category: str
    amount: int
    note: str
    at: datetime
    by: str | None


def add(
    session: Session,
    *,
    group: str,
    name: str,
    amount: int,
    starts: datetime,
    ends: datetime,
    thresholds: Sequence[Threshold],
    now: datetime,
    person_id: int | None,
) -> int:
    values = {"group_name": group, "name": name, "amount": amount, "starts": starts, "ends": ends}
    values |= {"approved_until": 0, "created_at": now, "person_id": person_id}
    found = session.execute(insert(_BUDGET).returning(_BUDGET.c.id), values).scalar_one()
    rows = [
        {"budget_id": found, "percent": one.percent, "action": one.action.value}
        for one in thresholds
    ]
    if rows:
        session.execute(insert(_THRESHOLD), rows)
    return int(found)


def get(session: Session, budget_id: int) -> BudgetRow | None:
    found = session.execute(select(*_COLUMNS).where(_B.id == budget_id)).one_or_none()
    return BudgetRow(*found) if found else None


def of_group(session: Session, group: str | None = None) -> list[BudgetRow]:
    """The newest first; None: of all groups."""
    query = select(*_COLUMNS).order_by(_B.starts.desc(), _B.id.desc())
    if group is not None:
        query = query.where(_B.group == group)
    return [BudgetRow(*row) for row in session.execute(query)]


def in_force(session: Session, group: str, *, now: datetime) -> list[BudgetRow]:
    """Those in whose dates `now` lies."""
    query = select(*_COLUMNS).where(_B.group == group, _B.starts <= now, now < _B.ends)
    return [BudgetRow(*row) for row in session.execute(query.order_by(_B.id))]


def waiting(session: Session, *, now: datetime) -> list[int]:
    """Budgets that have begun and have a threshold which was never reached."""
    query = (
        select(_B.id)
        .join(mm.BudgetThreshold, mm.BudgetThreshold.budget_id == _B.id)
        .where(mm.BudgetThreshold.reached_at.is_(None), _B.starts <= now)
        .distinct()
        .order_by(_B.id)
    )
    return list(session.scalars(query))


def thresholds(session: Session, budget_id: int) -> list[Threshold]:
    """The lowest first."""
    columns = (_THRESHOLD.c.percent, _THRESHOLD.c.action, _THRESHOLD.c.reached_at)
    query = select(*columns).where(_THRESHOLD.c.budget_id == budget_id).order_by(columns[0])
    return [Threshold(row[0], Action(row[1]), row[2]) for row in session.execute(query)]


def set_threshold(session: Session, budget_id: int, percent: int, action: Action | None) -> None:
    """None takes it away. One that was reached stays reached."""
    row = session.get(mm.BudgetThreshold, (budget_id, percent))
    if action is None:
        if row is not None:
            session.delete(row)
    elif row is None:
        session.add(mm.BudgetThreshold(budget_id=budget_id, percent=percent, action=action.value))
    else:
        row.action = action.value


def mark_reached(
    session: Session, budget_id: int, percents: Iterable[int], *, now: datetime
) -> None:
    session.execute(
        update(_THRESHOLD)
        .where(_THRESHOLD.c.budget_id == budget_id, _THRESHOLD.c.percent.in_(list(percents)))
        .where(_THRESHOLD.c.reached_at.is_(None))
        .values(reached_at=now)
    )


def approve(session: Session, budget_id: int, percent: int) -> None:
    session.execute(update(_BUDGET).where(_BUDGET.c.id == budget_id).values(approved_until=percent))


def add_line(
    session: Session,
    budget_id: int,
    *,
    category: str,
    amount: int,
    note: str,
    at: datetime,
    person_id: int | None,
) -> int:
    values = {"budget_id": budget_id, "category": category, "amount": amount, "note": note}
    values |= {"at": at, "person_id": person_id}
    return int(session.execute(insert(_LINE).returning(_LINE.c.id), values).scalar_one())


def end(session: Session, budget_id: int, *, at: datetime) -> None:
    session.execute(
        update(_BUDGET).where(_BUDGET.c.id == budget_id, _BUDGET.c.ends > at).values(ends=at)
    )


def same(
    session: Session, *, group: str, name: str, amount: int, starts: datetime, ends: datetime
) -> int | None:
    """A budget that says just this."""
    query = select(_BUDGET.c.id).where(
        _BUDGET.c.group_name == group,
        _BUDGET.c.name == name,
        _BUDGET.c.amount == amount,
        _BUDGET.c.starts == starts,
        _BUDGET.c.ends == ends,
    )
    return session.scalar(query.limit(1))


def same_line(
    session: Session,
    budget_id: int,
    *,
    category: str,
    amount: int,
    note: str,
    since: datetime,
    person_id: int | None,
) -> int | None:
    """A line that says just this, by the same person, dated after `since`."""
    query = select(_LINE.c.id).where(
        _LINE.c.budget_id == budget_id,
        _LINE.c.category == category,
        _LINE.c.amount == amount,
        _LINE.c.note == note,
        _LINE.c.at >= since,
        _LINE.c.person_id.is_not_distinct_from(person_id),
    )
    return session.scalar(query.limit(1))


def lines(session: Session, budget_id: int) -> list[LineRow]:
    """As they were entered."""
    line = mm.BudgetLine
    query = (
        select(line.id, line.category, line.amount, line.note, line.at, Person.login)
        .outerjoin(Person, Person.id == line.person_id)
        .where(line.budget_id == budget_id)
        .order_by(line.at, line.id)
    )
    return [LineRow(*row) for row in session.execute(query)]


def standing(session: Session, row: BudgetRow) -> Standing:
    """What was spent of it by now, and what open holds of the group keep back."""
    line = mm.BudgetLine
    by_hand = (
        select(line.category, func.sum(line.amount))
        .where(line.budget_id == row.id)
        .group_by(line.category)
    )
    held = select(func.coalesce(func.sum(mm.Hold.amount), 0)).where(
        mm.Hold.group == row.group, mm.Hold.closed_at.is_(None)
    )
    window = {"since": row.starts, "until": row.ends}
    volumes = volume_work.storage_spent(session, row.group, **window)
    entered = {category: int(amount) for category, amount in session.execute(by_hand)}
    storage = Category.STORAGE.value
    return Standing(
        amount=row.amount,
        charged=spending.spent(session, row.group, **window) - volumes,
        lines=entered | {storage: entered.get(storage, 0) + volumes},
        held=int(session.scalar(held) or 0),
    )


def by_hand_since(session: Session, budget_id: int, since: datetime) -> int:
    """What was entered by hand from then on."""
    query = select(func.coalesce(func.sum(mm.BudgetLine.amount), 0)).where(
        mm.BudgetLine.budget_id == budget_id, mm.BudgetLine.at >= since
    )
    return int(session.scalar(query) or 0)


_COLUMNS = tuple(getattr(_B, name) for name in BudgetRow.__slots__)
