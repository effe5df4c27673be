"""What pages, commands and the API tell of volumes: one picture, made once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from gateway.core.access import Viewer
from gateway.core.volumes import (
    FIT_DAYS,
    Ask,
    Day,
    Full,
    StoragePrice,
    forecast,
    growth,
    percent,
    price_at,
)
from gateway.services import volume_charges, volume_rights
from gateway.store import volume_work as work
from gateway.store import volumes as store
from gateway.store.volume_work import ChargeRow, RequestRow
from gateway.store.volumes import AreaRow, StrangerRow, VolumeRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

DAYS_SHOWN = 180
_OPEN = (Ask.OPEN, Ask.AGREED)


@dataclass(frozen=True, slots=True)
class Picture:
    """A volume with what follows from its days. Amounts are millionths a month; None: not known,
    or nothing is charged."""

    row: VolumeRow
    percent: int | None
    growth: int | None
    full: Full | None
    a_month: int | None


@dataclass(frozen=True, slots=True)
class Pending:
    """A request that waits, with who may answer it and what it costs more a month. `have`: the
    limit that there is."""

    one: RequestRow
    have: int | None
    more: int | None
    may_agree: bool
    may_answer: bool
    own: bool


@dataclass(frozen=True, slots=True)
class GroupVolumes:
    """`cap`: up to what sum of limits leaders agree; `limits`: that sum now."""

    volumes: list[Picture]
    pending: list[Pending]
    cap: int
    limits: int


@dataclass(frozen=True, slots=True)
class VolumePage:
    picture: Picture
    days: list[Day]
    requests: list[RequestRow]
    pending: list[Pending]
    charges: list[ChargeRow]
    price: int | None
    limits: bool  # whether the area can set any


@dataclass(frozen=True, slots=True)
class Everything:
    """For administrators."""

    areas: list[AreaRow]
    volumes: list[Picture]
    strangers: list[StrangerRow]
    pending: list[Pending]
    prices: list[StoragePrice]
    caps: dict[str, int]


def group(
    session: "Session", name: str, viewer: Viewer | None, *, now: datetime, zone: tzinfo
) -> GroupVolumes:
    """The caller has looked that the viewer may see the group."""
    rows = store.listed(session, [name])
    asked = work.requests(session, groups=[name], states=_OPEN)
    return GroupVolumes(
        volumes=pictures(session, rows, now=now, zone=zone),
        pending=[_pending(session, one, viewer, now=now) for one in asked],
        cap=work.cap(session, name),
        limits=work.limits_of(session, name, but=0),
    )


def volume(
    session: "Session", volume_id: int, viewer: Viewer | None, *, now: datetime, zone: tzinfo
) -> VolumePage:
    """NotFound for who may not see it."""
    row = volume_rights.found(session, volume_id, viewer)
    since = now.astimezone(zone).date() - timedelta(days=DAYS_SHOWN)
    told = work.requests(session, volume_id=row.id)
    area = store.area(session, row.area)
    return VolumePage(
        picture=pictures(session, [row], now=now, zone=zone)[0],
        days=store.days(session, row.id, since=since),
        requests=told,
        pending=[_pending(session, o, viewer, now=now) for o in told if o.state in _OPEN],
        charges=work.charged(session, row.id),
        price=price_at(work.prices(session), row.area, now),
        limits=area is not None and area.limits,
    )


def everything(
    session: "Session", viewer: Viewer | None, *, now: datetime, zone: tzinfo
) -> Everything:
    volume_rights.require_manager(viewer)
    return Everything(
        areas=store.areas(session),
        volumes=pictures(session, store.listed(session), now=now, zone=zone),
        strangers=store.strangers(session),
        pending=waiting(session, viewer, now=now),
        prices=work.prices(session),
        caps=work.caps(session),
    )


def areas(session: "Session") -> list[AreaRow]:
    """Those that the broker has."""
    return store.areas(session)


def listed(
    session: "Session", viewer: Viewer | None, *, now: datetime, zone: tzinfo
) -> list[Picture]:
    """All that this person may see."""
    rows = [r for r in store.listed(session) if volume_rights.rights(viewer, r.group).see]
    return pictures(session, rows, now=now, zone=zone)


def waiting(session: "Session", viewer: Viewer | None, *, now: datetime) -> list[Pending]:
    """What is asked for in the volumes that this person may see."""
    open_ones = work.requests(session, states=_OPEN)
    seen = [one for one in open_ones if volume_rights.rights(viewer, one.group).see]
    return [_pending(session, one, viewer, now=now) for one in seen]


def pictures(
    session: "Session", rows: Sequence[VolumeRow], *, now: datetime, zone: tzinfo
) -> list[Picture]:
    today = now.astimezone(zone).date()
    days = store.days_of(session, [r.id for r in rows], since=today - timedelta(days=FIT_DAYS))
    prices = work.prices(session)
    return [
        Picture(
            row,
            percent(row.used_bytes, row.limit_bytes),
            growth(days[row.id], today=today),
            forecast(days[row.id], limit=row.limit_bytes, today=today),
            volume_charges.a_month(prices, row, now=now),
        )
        for row in rows
    ]


def as_fields(one: Picture) -> dict[str, Any]:
    """For programs: sizes in bytes, amounts in millionths."""
    row, full = one.row, one.full
    return {
        "id": row.id,
        "area": row.area,
        "name": row.name,
        "group": row.group,
        "unix_group": row.owner,
        "path": row.path,
        "state": row.state.value,
        "used_bytes": row.used_bytes,
        "limit_bytes": row.limit_bytes,
        "percent": one.percent,
        "growth_30_days_bytes": one.growth,
        "full": None
        if full is None
        else {
            "at": full.at.isoformat(),
            "earliest": full.earliest.isoformat(),
            "latest": full.latest.isoformat() if full.latest else None,
            "bytes_a_day": full.per_day,
            "days_known": full.days,
        },
        "a_month_millionths": one.a_month,
        "problem": row.problem,
        "read_at": row.read_at.isoformat() if row.read_at else None,
    }


def request_fields(one: RequestRow) -> dict[str, Any]:
    """A request as the audit has it."""
    times = ("at", "decided_at", "done_at")
    found: dict[str, Any] = {name: getattr(one, name) for name in _REQUEST}
    found |= {"state": one.state.value}
    for name in times:
        at = getattr(one, name)
        found[name] = at.isoformat() if at else None
    return found


def day_fields(one: Day) -> dict[str, Any]:
    return {"day": one.day.isoformat(), "used_bytes": one.used, "limit_bytes": one.limit}


def _pending(
    session: "Session", one: RequestRow, viewer: Viewer | None, *, now: datetime
) -> Pending:
    row = store.get(session, one.volume_id)
    have = row.limit_bytes if row else None
    more = volume_charges.more_a_month(session, one.area, have, one.wanted_bytes, now=now)
    is_open = one.state is Ask.OPEN
    return Pending(
        one=one,
        have=have,
        more=more,
        may_agree=is_open and volume_rights.may_agree(session, one, viewer),
        may_answer=is_open and volume_rights.rights(viewer, one.group).lead,
        own=is_open and viewer is not None and one.person_id == viewer.person_id,
    )


_REQUEST = (
    *("id", "area", "name", "group", "wanted_bytes", "text", "by", "answer", "decider"),
    *("before_bytes", "after_bytes", "code"),
)
