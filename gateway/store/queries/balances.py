"""What groups have now: pot by pot, what is held, and what waits for a decision."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import func, select, union
from sqlalchemy.orm import Session

from gateway.core.pots import PotKind
from gateway.store import money_models as mm

_NEVER = datetime.max.replace(tzinfo=UTC)
_RANK = {PotKind.PACKAGE: 0, PotKind.GRANT: 1, PotKind.LOAN: 1, PotKind.BALANCE: 2}


@dataclass(frozen=True, slots=True)
class PotRow:
    """`left` may be drawn, `held` lies under holds beside that. `given` is what a grant, package or
    loan began with; 0 for the balance."""

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
    """`available` may be spent now, `in_packages` of it on one GPU type only: what the open pots
    have left, less `committed`, the worst case of running jobs that no hold covers. `pending` is
    the estimate for `reviews` runs whose charge waits for a person. `to_come` lies in pots that
    begin later."""

    group: str
    available: int
    in_packages: int
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
    """Every group that has an account, or a run in review."""
    reviewed = select(mm.Charge.group).where(mm.Charge.state == "review")
    both = union(select(mm.Account.group), reviewed).subquery()
    return list(session.scalars(select(both.c[0]).where(both.c[0] != "").order_by(both.c[0])))


def balance(session: Session, group: str, *, now: datetime) -> Balance:
    """All zero for a group that was never given credit."""
    pots = _pots(session, group)
    account = session.execute(
        select(
            mm.Account.committed,
            mm.Account.committed_at,
            mm.Account.at_zero,
            mm.Account.overdraft,
        ).where(mm.Account.group == group)
    ).one_or_none()
    committed, committed_at, at_zero, overdraft = account or (0, None, "hold", 0)
    pending, reviews = _in_review(session, group)
    return Balance(
        group=group,
        available=sum(pot.left for pot in pots if _is_open(pot, now)) - committed,
        in_packages=sum(p.left for p in pots if p.kind == "package" and _is_open(p, now)),
        held=sum(pot.held for pot in pots),
        committed=committed,
        committed_at=committed_at,
        pending=pending,
        reviews=reviews,
        to_come=sum(pot.left for pot in pots if pot.starts > now),
        at_zero=at_zero,
        overdraft=overdraft,
        pots=pots,
    )


def grants(session: Session, *, group: str | None = None) -> list[tuple[str, PotRow]]:
    """Grants, packages and loans with their groups, the newest first, also those used up."""
    query = _all().where(mm.Pot.kind != PotKind.BALANCE.value).order_by(mm.Pot.id.desc())
    if group is not None:
        query = query.where(mm.Pot.group == group)
    held = _held(session, group)
    return [(row[0], _pot(tuple(row[1:]), held)) for row in session.execute(query)]


def _in_review(session: Session, group: str) -> tuple[int, int]:
    """By the index of the few that are in review: the concatenation keeps that of a group's
    charges, of which there may be a million, out of the way."""
    query = select(func.coalesce(func.sum(mm.Charge.pending), 0), func.count()).where(
        mm.Charge.state == "review", mm.Charge.group + "" == group
    )
    row = session.execute(query).one()
    return int(row[0] or 0), int(row[1])


def _pots(session: Session, group: str) -> tuple[PotRow, ...]:
    """In the order of use; without those that are used up or have lapsed."""
    rows, held = session.execute(_all().where(mm.Pot.group == group)), _held(session, group)
    found = [_pot(tuple(row[1:]), held) for row in rows]
    kept = [p for p in found if p.left or p.held or p.kind == PotKind.BALANCE.value]
    return tuple(sorted(kept, key=lambda p: (_RANK[PotKind(p.kind)], p.expires or _NEVER, p.id)))


def _held(session: Session, group: str | None) -> dict[int, int]:
    """What open holds keep in each pot; from the holds on, since a balance has lines by the
    million."""
    query = (
        select(mm.Entry.pot_id, -func.sum(mm.Entry.amount))
        .join(mm.Hold, mm.Hold.id == mm.Entry.hold_id)
        .where(mm.Hold.closed_at.is_(None), mm.Entry.kind.in_(("hold", "release")))
        .group_by(mm.Entry.pot_id)
    )
    if group is not None:
        query = query.where(mm.Hold.group == group)
    return {row[0]: int(row[1]) for row in session.execute(query)}


def _all() -> Any:
    pot = mm.Pot
    # A grant or package is filled by the one line that has its key.
    filled = (
        select(mm.Entry.amount)
        .where(mm.Entry.key == pot.key, mm.Entry.pot_id == pot.id)
        .correlate(pot)
        .scalar_subquery()
    )
    lent = select(mm.Loan.amount).where(mm.Loan.pot_id == pot.id).correlate(pot).scalar_subquery()
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
        func.coalesce(filled, lent, 0),
        pot.carry_over_millionths,
    )


def _pot(row: tuple[Any, ...], held: dict[int, int]) -> PotRow:
    values: list[Any] = [*row[:9], held.get(row[0], 0), *row[9:]]
    return PotRow(*values)


def _is_open(pot: PotRow, now: datetime) -> bool:
    return pot.starts <= now and (pot.expires is None or now < pot.expires)
