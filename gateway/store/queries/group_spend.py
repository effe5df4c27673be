"""What groups spent in each month, as their statements have it: by when a line was posted.

Amounts are millionths; what was spent is a positive number.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from gateway.store import money_models as mm
from gateway.store.queries.statement import SPENDING

_CHARGES = ("charge", "correction", "storage")


@dataclass(frozen=True, slots=True)
class Spend:
    """`charged` with its corrections, `refunded` with what was undone."""

    group: str
    month: str
    charged: int
    refunded: int

    @property
    def spent(self) -> int:
        return self.charged - self.refunded


def by_month(
    session: Session,
    months: Sequence[tuple[str, datetime, datetime]],
    groups: Collection[str] | None,
) -> list[Spend]:
    """`months`: name, from when, until when, one after the other without a gap; `groups` None: all.
    In the order of months, who spent most first."""
    if not months:
        return []
    entry = mm.Entry
    number = case(*((entry.at < until, n) for n, (_, _, until) in enumerate(months)), else_=0)
    is_charge = entry.kind.in_(_CHARGES)
    wanted = [entry.at >= months[0][1], entry.at < months[-1][2], entry.kind.in_(SPENDING)]
    if groups is not None:
        wanted.append(entry.group.in_(groups))
    inner = (
        select(
            entry.group.label("name"),
            number.label("number"),
            case((is_charge, entry.amount), else_=0).label("charged"),
            case((is_charge, 0), else_=entry.amount).label("refunded"),
        )
        .where(*wanted)
        .subquery()
        .c
    )
    query = select(
        inner.name, inner.number, func.sum(inner.charged), func.sum(inner.refunded)
    ).group_by(inner.name, inner.number)
    rows = [
        (int(place), Spend(group, months[int(place)][0], -int(charged), int(refunded)))
        for group, place, charged, refunded in session.execute(query)
    ]
    return [one for _, one in sorted(rows, key=lambda row: (row[0], -row[1].spent, row[1].group))]
