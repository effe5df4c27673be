"""The hourly look at volumes: figures, what is not as the portal left it, and who is to be told."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from gateway.brokerclient.port import Broker
from gateway.core.notices import Kind
from gateway.core.volumes import WARNED_AT, State, percent, warning
from gateway.errors import BrokerRefused, GatewayError
from gateway.services import volume_entries, volume_requests
from gateway.store import notices
from gateway.store import volumes as store
from gateway.store.uow import Begin
from gateway.store.volumes import AreaRow, StrangerRow, VolumeRow
from gateway.wire import volumes as vol

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

EVERY = timedelta(hours=1)
SOON = timedelta(minutes=2)
GONE, DIFFERS = "volume_gone", "volume_limit_differs"
Found = Mapping[tuple[str, str], vol.Volume]


@dataclass(frozen=True, slots=True)
class Report:
    """`code`: why nothing could be read."""

    volumes: int = 0
    closed: int = 0
    code: str | None = None


def look_when_due(*, begin: Begin, broker: Broker, now: datetime, zone: tzinfo) -> Report | None:
    """What somebody died over is gone on with at once; figures are read once an hour, and soon
    after a job failed in a volume, which may be full. None: it was not due."""
    closed = volume_requests.carry_on(begin=begin, broker=broker, now=now)
    with begin() as session:
        due = _is_due(session, now)
    if not due and not closed:
        return None
    report = look(begin=begin, broker=broker, now=now, zone=zone)
    return Report(report.volumes, closed, report.code)


def _is_due(session: "Session", now: datetime) -> bool:
    last, rows = store.last_read(session), store.listed(session)
    if last is None or now - last >= EVERY or any(row.state is State.MAKING for row in rows):
        return True
    folders = [row.path for row in rows if row.state is State.THERE]
    return now - last >= SOON and store.failed_in(session, folders, since=last)


def look(*, begin: Begin, broker: Broker, now: datetime, zone: tzinfo) -> Report:
    """One read of all areas. A broker that does not answer changes nothing but what is said."""
    try:
        told = broker.volumes()
    except GatewayError as error:
        return Report(code=error.code)
    found = {(one.area, one.name): one for one in told.volumes}
    readable = {area.name for area in told.areas if area.problem is None}
    with begin() as session:
        store.put_areas(session, [_area(one, now) for one in told.areas], now=now)
        rows = store.listed(session)
        for row in rows:
            if row.state is State.THERE:
                _note(session, row, found, readable, now=now, zone=zone)
        known = {(row.area, row.name) for row in store.every(session)}
        strange = [_stranger(one) for key, one in found.items() if key not in known]
        store.put_strangers(session, readable, strange)
    for row in rows:
        if row.state is State.MAKING:
            _go_on_making(row, found, begin=begin, broker=broker, now=now)
    return Report(volumes=len(found))


def _note(
    session: "Session",
    row: VolumeRow,
    found: Found,
    readable: set[str],
    *,
    now: datetime,
    zone: tzinfo,
) -> None:
    one = found.get((row.area, row.name))
    if row.area not in readable:
        # Nothing is known: the last figures stay, with the time that they are of.
        store.change(session, row.id, problem="volume_area_unread")
        return
    used, limit = (one.used_bytes, one.limit_bytes) if one else (None, None)
    problem = _problem(row, one)
    values: dict[str, Any] = {
        "used_bytes": used,
        "limit_bytes": limit,
        "problem": problem,
        "read_at": now,
    }
    store.change(session, row.id, **values)
    store.put_day(session, row.id, now.astimezone(zone).date(), used=used, limit=limit)
    _tell(session, row, used, limit, problem, now=now)


def _problem(row: VolumeRow, one: vol.Volume | None) -> str | None:
    if one is None:
        return GONE
    if one.problem is not None:
        return one.problem
    return DIFFERS if one.limit_bytes != row.wanted_bytes else None


def _tell(
    session: "Session",
    row: VolumeRow,
    used: int | None,
    limit: int | None,
    problem: str | None,
    *,
    now: datetime,
) -> None:
    """The group of the highest threshold that is reached; the administrators of what differs."""
    facts = {"volume": row.name, "group": row.group}
    if used is not None:
        at = warning(used, limit)
        over = [_key(row, one) for one in WARNED_AT if one != at]
        notices.over(session, over, now=now)
        if at is not None:
            more = {"percent": percent(used, limit)}
            key, kind = _key(row, at), Kind.VOLUME_FULL if at == 100 else Kind.VOLUME_FILLS
            notices.tell(session, key, kind=kind, facts=facts | more, now=now, group=row.group)
    drift = f"volume:{row.id}:drift"
    if problem in {GONE, DIFFERS}:
        told = facts | {"code": problem}
        notices.tell(session, drift, kind=Kind.VOLUME_DRIFT, facts=told, now=now)
    else:
        notices.over(session, [drift], now=now)


def _key(row: VolumeRow, threshold: int) -> str:
    return f"volume:{row.id}:{threshold}"


def _go_on_making(
    row: VolumeRow, found: Found, *, begin: Begin, broker: Broker, now: datetime
) -> None:
    """Its maker died: it is there, or it is made now."""
    one = found.get((row.area, row.name))
    if one is not None and one.owner == row.owner:
        with begin() as session:
            volume_entries.note_made(session, row.id, one, now=now)
        return
    try:
        volume_entries.finish_making(row.id, begin=begin, broker=broker, now=now)
    except BrokerRefused as no:
        with begin() as session:
            store.change(session, row.id, leaving=[State.MAKING], problem=no.code)


def _area(one: vol.Area, now: datetime) -> AreaRow:
    return AreaRow(
        one.name,
        one.path,
        one.provider,
        one.limits,
        one.total_bytes,
        one.free_bytes,
        one.problem,
        now,
        None,
    )


def _stranger(one: vol.Volume) -> StrangerRow:
    return StrangerRow(one.area, one.name, one.owner, one.used_bytes, one.limit_bytes)
