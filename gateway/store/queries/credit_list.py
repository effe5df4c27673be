"""All groups with their credit, for those who look after all of it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from gateway.store import money_models as mm
from gateway.store.models import AssociationNow


@dataclass(frozen=True, slots=True)
class GroupLine:
    """A group of Slurm or of the ledger. `available` leaves out what lies in packages and what is
    committed; `closed`: its gate is shut."""

    group: str
    available: int
    in_packages: int
    held: int
    pending: int
    in_review: int
    overdrawn: int
    closed: bool
    last_charge: datetime | None
    in_slurm: bool


def group_lines(session: Session, *, now: datetime, search: str = "") -> list[GroupLine]:
    """By name; `search` is a part of the name."""
    in_slurm = set(session.scalars(select(AssociationNow.account).distinct())) - {"root"}
    last = _last_charges(session)
    pots, packages = _pots(session, now, packages=False), _pots(session, now, packages=True)
    balances = _balances(session)
    committed = _sums(session, mm.Account.group, mm.Account.committed)
    held = _sums(session, mm.Hold.group, mm.Hold.amount, mm.Hold.closed_at.is_(None))
    pending = _sums(session, mm.Charge.group, mm.Charge.pending, mm.Charge.state == "review")
    closed = set(session.scalars(select(mm.Gate.group).where(mm.Gate.user == "", mm.Gate.closed)))
    names = [name for name in sorted(in_slurm | set(last)) if search.lower() in name.lower()]
    return [
        GroupLine(
            group=name,
            available=pots.get(name, 0) - committed.get(name, (0, 0))[0],
            in_packages=packages.get(name, 0),
            held=held.get(name, (0, 0))[0],
            pending=pending.get(name, (0, 0))[0],
            in_review=pending.get(name, (0, 0))[1],
            overdrawn=max(0, -balances.get(name, 0)),
            closed=name in closed,
            last_charge=last.get(name),
            in_slurm=name in in_slurm,
        )
        for name in names
    ]


def waiting(session: Session) -> tuple[int, int]:
    """How many runs wait in the review, and for how many a person has decided already."""
    query = (
        select(func.count(), func.count(mm.Charge.decided_by))
        .where(mm.Charge.reason.is_not(None))
        .where(mm.Charge.state == "review")
    )
    row = session.execute(query).one()
    return int(row[0]), int(row[1])


def shut(session: Session) -> int:
    """How many groups have a shut gate."""
    query = select(func.count()).select_from(mm.Gate).where(mm.Gate.user == "", mm.Gate.closed)
    return int(session.scalar(query) or 0)


def _last_charges(session: Session) -> dict[str, datetime | None]:
    """One look along the index for each account, instead of through all charges."""
    newest = (
        select(mm.Charge.at)
        .where(mm.Charge.group == mm.Account.group)
        .order_by(mm.Charge.at.desc())
        .limit(1)
        .correlate(mm.Account)
        .scalar_subquery()
    )
    return {row[0]: row[1] for row in session.execute(select(mm.Account.group, newest))}


def _pots(session: Session, now: datetime, *, packages: bool) -> dict[str, int]:
    """What may be drawn now: of packages, or of all else."""
    kind = (mm.Pot.kind == "package") if packages else (mm.Pot.kind != "package")
    is_open = or_(mm.Pot.expires.is_(None), mm.Pot.expires > now)
    sums = _sums(session, mm.Pot.group, mm.Pot.left, mm.Pot.starts <= now, is_open, kind)
    return {name: amount for name, (amount, _) in sums.items()}


def _balances(session: Session) -> dict[str, int]:
    sums = _sums(session, mm.Pot.group, mm.Pot.left, mm.Pot.kind == "balance")
    return {name: amount for name, (amount, _) in sums.items()}


def _sums(session: Session, of: Any, amount: Any, *where: Any) -> dict[str, tuple[int, int]]:
    query = select(of, func.coalesce(func.sum(amount), 0), func.count()).where(*where).group_by(of)
    return {row[0]: (int(row[1]), int(row[2])) for row in session.execute(query)}
