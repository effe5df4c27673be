"""Volumes made, taken in and retired; caps and prices: the administrators' acts."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gateway.brokerclient.port import Broker
from gateway.core.access import Viewer
from gateway.core.credits import MILLION, parse_credits
from gateway.core.volumes import GROUP_NAME, LARGEST, NAME, State
from gateway.errors import BrokerRefused, GatewayError, Refused
from gateway.services import volume_rights
from gateway.store import volume_work as work
from gateway.store import volumes as store
from gateway.store.queries import group_credit
from gateway.store.uow import Begin
from gateway.store.volumes import VolumeRow
from gateway.wire import volumes as vol

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_MOST_A_MONTH = 1000 * MILLION
EXISTS = "volume_exists"


@dataclass(frozen=True, slots=True)
class Wish:
    """A volume to be. `owner`: the Unix group, where it is not called as Slurm's."""

    area: str
    name: str
    group: str
    limit_bytes: int | None = None
    owner: str = ""


def create(
    wish: Wish, *, viewer: Viewer | None, begin: Begin, broker: Broker, now: datetime
) -> VolumeRow:
    """Kept first, then made, then noted as there: who dies between leaves a volume that the worker
    makes. Still `making` when nobody can answer. Refused: with the broker's own codes too."""
    owner = wish.owner or wish.group
    with begin() as session:
        _require(session, wish, viewer)
        values: dict[str, Any] = {
            "area": wish.area,
            "name": wish.name,
            "group": wish.group,
            "owner": owner,
        }
        values |= {"path": "", "state": State.MAKING.value, "wanted_bytes": wish.limit_bytes}
        values |= {"created_at": now, "person_id": viewer.person_id if viewer else None}
        made = store.add(session, values)
        if made is None:
            raise Refused(EXISTS, field="name")
    try:
        return finish_making(made, begin=begin, broker=broker, now=now)
    except BrokerRefused as no:
        with begin() as session:
            store.drop(session, made)
        raise Refused(no.code, field=_FIELDS.get(no.code)) from no


def finish_making(volume_id: int, *, begin: Begin, broker: Broker, now: datetime) -> VolumeRow:
    """Ask the broker once; a broker that is silent leaves it `making`. BrokerRefused."""
    with begin() as session:
        row = _row(session, volume_id)
    wish = vol.MakeVolume(row.area, row.name, row.owner, row.wanted_bytes)
    try:
        back = broker.make_volume(wish)
    except BrokerRefused:
        raise
    except GatewayError as silence:
        with begin() as session:
            store.change(session, volume_id, leaving=[State.MAKING], problem=silence.code)
            return _row(session, volume_id)
    with begin() as session:
        note_made(session, volume_id, back, now=now)
        return _row(session, volume_id)


def note_made(session: "Session", volume_id: int, back: vol.Volume, *, now: datetime) -> None:
    """It is there."""
    values: dict[str, Any] = {
        "state": State.THERE.value,
        "path": back.path,
        "owner": back.owner,
        "read_at": now,
    }
    values |= {"used_bytes": back.used_bytes, "limit_bytes": back.limit_bytes}
    store.change(session, volume_id, leaving=[State.MAKING], problem=back.problem, **values)


def take_in(
    area: str, name: str, group: str, *, viewer: Viewer | None, begin: Begin, now: datetime
) -> VolumeRow:
    """A folder that is there already becomes a group's volume, with the limit that it has."""
    with begin() as session:
        _require(session, Wish(area, name, group), viewer)
        there = [one for one in store.strangers(session) if (one.area, one.name) == (area, name)]
        place = store.area(session, area)
        if not there or place is None:
            raise Refused("no_such_volume", field="name")
        values: dict[str, Any] = {
            "area": area,
            "name": name,
            "group": group,
            "owner": there[0].owner,
        }
        values |= {"path": f"{place.path}/{name}", "state": State.THERE.value, "read_at": now}
        values |= {"used_bytes": there[0].used_bytes, "limit_bytes": there[0].limit_bytes}
        values |= {"wanted_bytes": there[0].limit_bytes, "created_at": now}
        values |= {"person_id": viewer.person_id if viewer else None}
        made = store.add(session, values)
        if made is None:
            raise Refused(EXISTS, field="name")
        return _row(session, made)


def retire(volume_id: int, *, viewer: Viewer | None, begin: Begin, now: datetime) -> None:
    """Not shown to the group nor charged from now on. Its folder stays: nothing is deleted."""
    with begin() as session:
        volume_rights.require_manager(viewer)
        row = volume_rights.found(session, volume_id, viewer)
        changed = store.change(
            session, row.id, leaving=[State.THERE], state=State.RETIRED.value, retired_at=now
        )
        if not changed:
            raise Refused("volume_not_there")


def set_cap(group: str, most_bytes: int, *, viewer: Viewer | None, begin: Begin) -> None:
    """Up to what sum of limits the group's leaders may agree by themselves."""
    if not 0 <= most_bytes <= LARGEST:
        raise Refused("volume_bad_size", field="size")
    with begin() as session:
        volume_rights.require_manager(viewer)
        _require_group(session, group)
        work.set_cap(session, group, most_bytes)


def set_price(
    per_gb_month: str,
    *,
    area: str = "",
    starts: datetime | None = None,
    viewer: Viewer | None,
    begin: Begin,
    now: datetime,
) -> None:
    """Of a GB and month from `starts` (default now) on, in one area or in all without a price of
    their own. Refused: credits_…, price_negative, price_exists, price_in_the_past."""
    amount = parse_credits(per_gb_month)
    if amount < 0:
        raise Refused("price_negative", field="price")
    if amount > _MOST_A_MONTH:
        raise Refused("credits_too_large", field="price", most=_MOST_A_MONTH // MILLION)
    if starts is not None and starts < now:
        raise Refused("price_in_the_past", field="starts")
    with begin() as session:
        volume_rights.require_manager(viewer)
        if area and store.area(session, area) is None:
            raise Refused("no_such_area", field="area")
        values: dict[str, Any] = {
            "area": area,
            "per_gb_month": amount,
            "starts": starts or now,
            "set_at": now,
        }
        values |= {"person_id": viewer.person_id if viewer else None}
        if not work.add_price(session, values):
            raise Refused("price_exists", field="starts", resource=area or "*")


def _require(session: "Session", wish: Wish, viewer: Viewer | None) -> None:
    volume_rights.require_manager(viewer)
    if not NAME.fullmatch(wish.name):
        raise Refused("volume_bad_name", field="name")
    if wish.owner and not GROUP_NAME.fullmatch(wish.owner):
        raise Refused("volume_no_such_group", field="owner")
    area = store.area(session, wish.area)
    if area is None:
        raise Refused("no_such_area", field="area")
    if wish.limit_bytes is not None and not area.limits:
        raise Refused("volume_no_limits", field="size")
    _require_group(session, wish.group)


def _require_group(session: "Session", group: str) -> None:
    if not group_credit.known(session, group):
        raise Refused("no_such_group", field="group")


def _row(session: "Session", volume_id: int) -> VolumeRow:
    row = store.get(session, volume_id)
    if row is None:
        raise Refused("no_such_volume")
    return row


_FIELDS = {
    EXISTS: "name",
    "volume_bad_name": "name",
    "volume_no_such_group": "owner",
    "volume_system_group": "owner",
    "volume_bad_limit": "size",
    "volume_no_limits": "size",
    "no_such_area": "area",
}
