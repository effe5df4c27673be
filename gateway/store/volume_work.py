"""Requests for other limits, caps, prices of storage, and what months were charged."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from gateway.core.volumes import Ask, StoragePrice
from gateway.store import money_models as mm
from gateway.store import volume_models as vm
from gateway.store.models import Person, table_of
from gateway.store.upsert import insert_if_new, insert_ignoring

_R, _V = vm.VolumeRequest, vm.Volume
_CLAIM = timedelta(seconds=60)  # longer than a call to the broker may take


@dataclass(frozen=True, slots=True)
class RequestRow:
    """See volume_models.VolumeRequest. `by` and `decider` are logins; None: the command line."""

    id: int
    volume_id: int
    wanted_bytes: int | None
    state: Ask
    text: str
    at: datetime
    answer: str
    decided_at: datetime | None
    before_bytes: int | None
    after_bytes: int | None
    tried_at: datetime | None
    done_at: datetime | None
    code: str | None
    person_id: int | None
    below_use: bool
    area: str
    name: str
    group: str
    by: str | None
    decider: str | None


@dataclass(frozen=True, slots=True)
class ChargeRow:
    """`gb_days` in thousandths; the amount in millionths."""

    month: str
    gb_days: int
    amount: int
    at: datetime


_OWN = [getattr(_R, name) for name in RequestRow.__slots__[:15]]


def add_request(session: Session, values: dict[str, Any]) -> int | None:
    """None while another of the volume is open or agreed."""
    filled = {"text": "", "answer": "", **values}
    return insert_if_new(session, table_of(_R), filled)


def request(session: Session, request_id: int) -> RequestRow | None:
    return next(iter(_requests(session, _R.id == request_id)), None)


def requests(
    session: Session,
    *,
    groups: Collection[str] | None = None,
    volume_id: int | None = None,
    states: Sequence[Ask] = (),
    limit: int = 200,
) -> list[RequestRow]:
    """The newest first; `groups` None: of all."""
    conditions: list[ColumnElement[bool]] = []
    if groups is not None:
        conditions.append(_V.group.in_(groups))
    if volume_id is not None:
        conditions.append(_R.volume_id == volume_id)
    if states:
        conditions.append(_R.state.in_([one.value for one in states]))
    return _requests(session, *conditions, limit=limit)


def decide(session: Session, request_id: int, *, leaving: Ask, **values: Any) -> bool:
    """Whether it was in that state still."""
    statement = update(_R).where(_R.id == request_id, _R.state == leaving.value)
    return bool(getattr(session.execute(statement.values(**values)), "rowcount", 0))


def claim(session: Session, request_id: int, *, before: int | None, now: datetime) -> bool:
    """Take an agreed one for one try: of several processes one gets it. What the limit was at the
    first try stays: a second try must find that, or what is wanted."""
    statement = (
        update(_R)
        .where(_R.id == request_id, _R.state == Ask.AGREED.value)
        .where(or_(_R.tried_at.is_(None), _R.tried_at < now - _CLAIM))
    )
    first = update(_R).where(_R.id == request_id, _R.tried_at.is_(None))
    session.execute(first.values(before_bytes=before))
    return bool(getattr(session.execute(statement.values(tried_at=now)), "rowcount", 0))


def agreed(session: Session) -> list[int]:
    """Those that are to be written, or were and nobody knows."""
    query = select(_R.id).where(_R.state == Ask.AGREED.value).order_by(_R.id)
    return list(session.scalars(query))


def cap(session: Session, group: str) -> int:
    """Up to what sum its leaders agree; 0 where none was set."""
    return session.scalar(select(vm.VolumeCap.most_bytes).where(vm.VolumeCap.group == group)) or 0


def caps(session: Session) -> dict[str, int]:
    rows = session.execute(select(vm.VolumeCap.group, vm.VolumeCap.most_bytes))
    return {row[0]: row[1] for row in rows}


def set_cap(session: Session, group: str, most_bytes: int) -> None:
    there = session.get(vm.VolumeCap, group)
    if there is None:
        session.add(vm.VolumeCap(group=group, most_bytes=most_bytes))
    else:
        there.most_bytes = most_bytes
    session.flush()


def limits_of(session: Session, group: str, *, but: int) -> int:
    """The sum of the limits of a group's volumes, but of this one."""
    wanted = func.coalesce(func.sum(func.coalesce(_V.wanted_bytes, _V.limit_bytes, 0)), 0)
    query = select(wanted).where(_V.group == group, _V.state != "retired", _V.id != but)
    return int(session.scalar(query) or 0)


def prices(session: Session) -> list[StoragePrice]:
    """Every row, also those to come, in the order of their start."""
    query = select(vm.VolumePrice.area, vm.VolumePrice.per_gb_month, vm.VolumePrice.starts)
    rows = session.execute(query.order_by(vm.VolumePrice.starts, vm.VolumePrice.area))
    return [StoragePrice(*row) for row in rows]


def add_price(session: Session, values: dict[str, Any]) -> bool:
    """False when the area has a price for this moment."""
    return insert_if_new(session, table_of(vm.VolumePrice), values) is not None


def charged(session: Session, volume_id: int) -> list[ChargeRow]:
    """The newest month first."""
    row = vm.VolumeCharge
    query = select(row.month, row.gb_days, row.amount, row.at).where(row.volume_id == volume_id)
    return [ChargeRow(*found) for found in session.execute(query.order_by(row.month.desc()))]


def charged_months(session: Session) -> set[tuple[int, str]]:
    rows = session.execute(select(vm.VolumeCharge.volume_id, vm.VolumeCharge.month))
    return {(volume_id, month) for volume_id, month in rows}


def add_charge(session: Session, values: dict[str, Any]) -> bool:
    """Once a volume and month: False when it is there."""
    statement = insert_ignoring(session, table_of(vm.VolumeCharge))
    return bool(getattr(session.execute(statement, values), "rowcount", 0))


def storage_spent(session: Session, group: str, *, since: datetime, until: datetime) -> int:
    """What the ledger has for storage in a stretch of time."""
    query = select(func.coalesce(-func.sum(mm.Entry.amount), 0)).where(
        mm.Entry.group == group,
        mm.Entry.kind == "storage",
        mm.Entry.at >= since,
        mm.Entry.at < until,
    )
    return int(session.scalar(query) or 0)


def _requests(session: Session, *conditions: Any, limit: int = 1) -> list[RequestRow]:
    asker, decider = aliased(Person), aliased(Person)
    query = (
        select(*_OWN, _V.area, _V.name, _V.group, asker.login, decider.login)
        .join(_V, _V.id == _R.volume_id)
        .outerjoin(asker, asker.id == _R.person_id)
        .outerjoin(decider, decider.id == _R.decided_by)
        .where(*conditions)
        .order_by(_R.at.desc(), _R.id.desc())
        .limit(limit)
    )
    return [_row(tuple(found)) for found in session.execute(query)]


def _row(found: tuple[Any, ...]) -> RequestRow:
    values = [*found]
    values[3] = Ask(found[3])
    return RequestRow(*values)
