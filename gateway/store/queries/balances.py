"""What groups have now: pot by pot, what is held, and what waits for a decision."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, union
from sqlalchemy.orm import Session

from gateway.core.pots import PotKind
from gateway.store import money_models as mm

_RANK = {PotKind.PACKAGE: 0, PotKind.GRANT: 1, PotKind.LOAN: 1, PotKind.BALANCE: 2}


@dataclass(frozen=True, slots=True)
class PotRow:
    """`left` may be drawn, `held` of it lies under holds beside that. `given` is all that ever
    came in."""

    id: int
    kind: str  # core.pots.PotKind
    reason: str
    note: str
    resource: str | None
    per_hour: int | None
    starts: datetime
    expires: datetime | None
    left: int
    held: int
    given: int
    carry_over_millionths: int


@dataclass(frozen=True, slots=True)
class Balance:
    """`available` may be spent now: what the open pots have left, less `committed`, the worst
    case of running jobs that no hold covers. `pending` is the estimate for `reviews` runs whose
    charge waits for a person. `to_come` lies in pots that begin later."""

    group: str
    available: int
    held: int
    committed: int
    committed_at: datetime | None
    pending: int
    reviews: int
    to_come: int
    at_zero: str
    overdraft: int
    pots: tuple[PotRow, ...]


def groups(session: Session) -> list[str]:
    """Every group that has an account, or a charge."""
    both = union(select(mm.Account.group), select(mm.Charge.group)).subquery()
    return list(session.scalars(select(both.c[0]).order_by(both.c[0])))


def balance(session: Session, group: str, *, now: datetime) -> Balance:
    """All zero for a group that was never given credit."""
    pots = _pots(session, group, now)
    account = session.execute(
        select(
            mm.Account.committed,
            mm.Account.committed_at,
            mm.Account.at_zero,
            mm.Account.overdraft,
        ).where(mm.Account.group == group)
    ).one_or_none()
    committed, committed_at, at_zero, overdraft = account or (0, None, "hold", 0)
    pending, reviews = session.execute(
        select(func.coalesce(func.sum(mm.Charge.pending), 0), func.count()).where(
            mm.Charge.group == group, mm.Charge.state == "review"
        )
    ).one()
    return Balance(
        group=group,
        available=sum(pot.left for pot in pots if _is_open(pot, now)) - committed,
        held=sum(pot.held for pot in pots),
        committed=committed,
        committed_at=committed_at,
        pending=int(pending or 0),
        reviews=reviews,
        to_come=sum(pot.left for pot in pots if pot.starts > now),
        at_zero=at_zero,
        overdraft=overdraft,
        pots=pots,
    )


def grants(session: Session, *, group: str | None = None) -> list[tuple[str, PotRow]]:
    """Grants, packages and loans with their groups, the newest first, also those used up."""
    query = _with_sums().where(mm.Pot.kind != PotKind.BALANCE.value).order_by(mm.Pot.id.desc())
    if group is not None:
        query = query.where(mm.Pot.group == group)
    return [(row[0], _pot(tuple(row[1:]))) for row in session.execute(query)]


def _pots(session: Session, group: str, now: datetime) -> tuple[PotRow, ...]:
    """In the order of use; without those that are used up or have lapsed."""
    rows = session.execute(_with_sums().where(mm.Pot.group == group))
    found = [_pot(tuple(row[1:])) for row in rows]
    kept = [p for p in found if p.left or p.held or p.kind == PotKind.BALANCE.value]
    far = max((p.expires for p in kept if p.expires), default=now)
    return tuple(
        sorted(kept, key=lambda p: (_RANK[PotKind(p.kind)], p.expires is None, p.expires or far))
    )


def _with_sums() -> Any:
    pot = mm.Pot
    given = (
        select(func.coalesce(func.sum(mm.Entry.amount), 0))
        .where(mm.Entry.pot_id == pot.id, mm.Entry.amount > 0)
        .where(mm.Entry.kind.in_(("grant", "top_up", "package", "carry_over", "lend")))
        .correlate(pot)
        .scalar_subquery()
    )
    held = (
        select(-func.sum(mm.Entry.amount).label("amount"))
        .where(mm.Entry.pot_id == pot.id, mm.Entry.kind.in_(("hold", "release")))
        .where(mm.Entry.hold_id.in_(select(mm.Hold.id).where(_OPEN)))
        .correlate(pot)
        .scalar_subquery()
    )
    return select(
        pot.group,
        pot.id,
        pot.kind,
        pot.reason,
        pot.note,
        pot.resource,
        pot.per_hour,
        pot.starts,
        pot.expires,
        pot.left,
        func.coalesce(held, 0),
        given,
        pot.carry_over_millionths,
    )


_OPEN = mm.Hold.closed_at.is_(None)


def _pot(row: tuple[Any, ...]) -> PotRow:
    values: list[Any] = [*row[:9], int(row[9]), int(row[10]), row[11]]
    return PotRow(*values)


def _is_open(pot: PotRow, now: datetime) -> bool:
    return pot.starts <= now and (pot.expires is None or now < pot.expires)
