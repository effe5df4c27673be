"""Who may do what with volumes. A viewer of None is the host's administrator at the command."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.core.access import Permission, Viewer
from gateway.core.volumes import State
from gateway.errors import NotFound, Refused
from gateway.store import volume_work as work
from gateway.store import volumes as store
from gateway.store.volume_work import RequestRow
from gateway.store.volumes import VolumeRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Rights:
    """Of a viewer in a group: to see its volumes, to ask for more, to steer, to manage all."""

    see: bool
    ask: bool
    lead: bool
    manage: bool


def rights(viewer: Viewer | None, group: str) -> Rights:
    """Members see and ask; leaders agree up to the group's cap; administrators do the rest; an
    operator looks."""
    manage = manages(viewer)
    if viewer is None or manage:
        return Rights(see=True, ask=True, lead=True, manage=True)
    lead, member = group in viewer.leads, group in viewer.groups
    see = lead or member or viewer.may(Permission.SEE_ALL_CREDIT)
    return Rights(see=see, ask=member or lead, lead=lead, manage=False)


def manages(viewer: Viewer | None) -> bool:
    return viewer is None or viewer.may(Permission.MANAGE_VOLUMES)


def require_manager(viewer: Viewer | None) -> None:
    if not manages(viewer):
        raise NotFound("volumes are administrators' to manage")


def found(session: "Session", volume_id: int, viewer: Viewer | None) -> VolumeRow:
    """The volume, if they may see it; NotFound else. A retired one is the administrators'."""
    row = store.get(session, volume_id)
    hidden = row is None or not rights(viewer, row.group).see
    if row is None or hidden or (row.state is State.RETIRED and not manages(viewer)):
        raise NotFound(f"volume {volume_id}")
    return row


def by_name(session: "Session", text: str, viewer: Viewer | None) -> VolumeRow:
    """`NAME`, or `AREA/NAME` where several areas have one of the name."""
    area, slash, name = text.rpartition("/")
    rows = store.named(session, name)
    seen = [
        row for row in rows if rights(viewer, row.group).see and (not slash or row.area == area)
    ]
    if len(seen) > 1:
        raise Refused("volume_which", name=name, areas=", ".join(row.area for row in seen))
    if not seen:
        raise NotFound(f"volume {text}")
    return found(session, seen[0].id, viewer)


def may_agree(session: "Session", one: RequestRow, viewer: Viewer | None) -> bool:
    """Administrators; leaders while the group's limits stay within its cap."""
    have = rights(viewer, one.group)
    return have.manage or (have.lead and not over_cap(session, one))


def over_cap(session: "Session", one: RequestRow) -> bool:
    """Whether it takes an administrator."""
    if one.wanted_bytes is None:
        return True
    others = work.limits_of(session, one.group, but=one.volume_id)
    return others + one.wanted_bytes > work.cap(session, one.group)
