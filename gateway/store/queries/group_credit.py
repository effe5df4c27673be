"""How a group's credit moved day by day, and whether there is such a group."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from sqlalchemy import BigInteger, case, cast, exists, func, or_, select
from sqlalchemy.orm import Session

from gateway.store import money_models as mm
from gateway.store.models import AssociationNow
from gateway.store.queries.statement import HOLDING, SPENDING

_QUARTER = 900  # seconds: every zone's midnight is a multiple of it


@dataclass(frozen=True, slots=True)
class DayFlow:
    """A day of the site's zone: what was spent, and by how much credit changed in all."""

    day: date
    spent: int
    net: int


@dataclass(frozen=True, slots=True)
class GateLine:
    """The gate of a whole group. `confirmed_at` None: Slurm does not have it yet."""

    closed: bool
    reason: str
    changed_at: datetime
    confirmed_at: datetime | None
    error_code: str | None


def gate(session: Session, group: str) -> GateLine | None:
    """None: the portal has never written a limit for this group."""
    row = session.get(mm.Gate, (group, ""))
    if row is None:
        return None
    return GateLine(row.closed, row.reason, row.changed_at, row.confirmed_at, row.error_code)


@dataclass(frozen=True, slots=True)
class NoticeLine:
    kind: str
    facts: dict[str, Any]
    at: datetime


def notices(session: Session, group: str | None, *, limit: int = 50) -> list[NoticeLine]:
    """What a group is told now, the newest first; None: what the administrators are told."""
    notice = mm.Notice
    query = (
        select(notice.kind, notice.facts, notice.at)
        .where(notice.gone_at.is_(None), notice.group == group)
        .order_by(notice.at.desc(), notice.id.desc())
        .limit(limit)
    )
    return [NoticeLine(*row) for row in session.execute(query)]


def known(session: Session, group: str) -> bool:
    """Whether Slurm or the ledger has such a group."""
    if group == "root":
        return False  # Slurm's own account above all groups
    in_slurm = exists().where(AssociationNow.account == group)
    in_ledger = exists().where(mm.Account.group == group)
    return bool(session.scalar(select(or_(in_slurm, in_ledger))))


def flows(
    session: Session, group: str, *, since: datetime, until: datetime, zone: tzinfo
) -> list[DayFlow]:
    """Each day of the window, also those on which nothing moved. Holds are no flow."""
    quarter = _quarter(session)
    spent = case((mm.Entry.kind.in_(SPENDING), -mm.Entry.amount), else_=0)
    query = (
        select(quarter, func.sum(spent), func.sum(mm.Entry.amount))
        .where(mm.Entry.group == group, mm.Entry.at >= since, mm.Entry.at < until)
        .where(mm.Entry.kind.not_in(HOLDING))
        .group_by(quarter)
    )
    days = dict.fromkeys(_days(since, until, zone), (0, 0))
    for number, out, net in session.execute(query):
        at = max(datetime.fromtimestamp(int(number) * _QUARTER, UTC), since)
        day = at.astimezone(zone).date()
        before = days.get(day, (0, 0))
        days[day] = (before[0] + int(out), before[1] + int(net))
    return [DayFlow(day, *amounts) for day, amounts in sorted(days.items())]


def _days(since: datetime, until: datetime, zone: tzinfo) -> list[date]:
    first = since.astimezone(zone).date()
    last = (until - timedelta(microseconds=1)).astimezone(zone).date()
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def _quarter(session: Session) -> Any:
    if session.get_bind().dialect.name == "sqlite":
        return cast(func.strftime("%s", mm.Entry.at), BigInteger) // _QUARTER
    return cast(func.floor(func.extract("epoch", mm.Entry.at) / _QUARTER), BigInteger)
