"""Volumes and areas: what is kept of them, and what was read of them last."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.orm import Session

from gateway.core.volumes import Day, State
from gateway.store import volume_models as vm
from gateway.store.models import Job, Run, table_of
from gateway.store.upsert import insert_if_new

_V, _DAY = vm.Volume, vm.VolumeDay
_AREA, _STRANGER = table_of(vm.Area), table_of(vm.StrangeFolder)


@dataclass(frozen=True, slots=True)
class AreaRow:
    """See volume_models.Area."""

    name: str
    path: str
    provider: str
    limits: bool
    total_bytes: int | None
    free_bytes: int | None
    problem: str | None
    read_at: datetime
    gone_at: datetime | None


@dataclass(frozen=True, slots=True)
class VolumeRow:
    """See volume_models.Volume."""

    id: int
    area: str
    name: str
    group: str
    owner: str
    path: str
    state: State
    used_bytes: int | None
    limit_bytes: int | None
    wanted_bytes: int | None
    problem: str | None
    read_at: datetime | None
    created_at: datetime
    retired_at: datetime | None

    def holds(self, folder: str) -> bool:
        """Whether this folder is the volume or inside it."""
        return bool(self.path) and (folder == self.path or folder.startswith(f"{self.path}/"))

    @property
    def free_bytes(self) -> int | None:
        """None: not known, or without a limit of its own."""
        if self.limit_bytes is None or self.used_bytes is None:
            return None
        return max(0, self.limit_bytes - self.used_bytes)


@dataclass(frozen=True, slots=True)
class StrangerRow:
    """A folder of an area that is no volume of the portal."""

    area: str
    name: str
    owner: str
    used_bytes: int | None
    limit_bytes: int | None


_AREA_COLUMNS = [getattr(vm.Area, name) for name in AreaRow.__slots__]
_COLUMNS = [getattr(_V, name) for name in VolumeRow.__slots__]
_STRANGER_COLUMNS = [getattr(vm.StrangeFolder, name) for name in StrangerRow.__slots__]


def areas(session: Session) -> list[AreaRow]:
    """Those that the broker has, by name."""
    query = select(*_AREA_COLUMNS).where(vm.Area.gone_at.is_(None)).order_by(vm.Area.name)
    return [AreaRow(*row) for row in session.execute(query)]


def area(session: Session, name: str) -> AreaRow | None:
    return next((one for one in areas(session) if one.name == name), None)


def last_read(session: Session) -> datetime | None:
    return session.scalar(select(func.max(vm.Area.read_at)))


def put_areas(session: Session, rows: Iterable[AreaRow], *, now: datetime) -> None:
    """As they are now; one that is not among them is gone."""
    found = {row.name: {key: getattr(row, key) for key in AreaRow.__slots__} for row in rows}
    known = set(session.scalars(select(vm.Area.name)))
    for name, values in found.items():
        if name in known:
            session.execute(update(vm.Area).where(vm.Area.name == name).values(**values))
        else:
            session.execute(insert(_AREA), values)
    gone = vm.Area.name.not_in(found), vm.Area.gone_at.is_(None)
    session.execute(update(vm.Area).where(*gone).values(gone_at=now))


def put_strangers(session: Session, areas_read: Collection[str], rows: list[StrangerRow]) -> None:
    """In place of those that were read in these areas before."""
    session.execute(delete(vm.StrangeFolder).where(vm.StrangeFolder.area.in_(areas_read)))
    if rows:
        values = [{key: getattr(row, key) for key in StrangerRow.__slots__} for row in rows]
        session.execute(insert(_STRANGER), values)


def strangers(session: Session) -> list[StrangerRow]:
    query = select(*_STRANGER_COLUMNS).order_by(vm.StrangeFolder.area, vm.StrangeFolder.name)
    return [StrangerRow(*row) for row in session.execute(query)]


def get(session: Session, volume_id: int) -> VolumeRow | None:
    return _one(session, _V.id == volume_id)


def by_name(session: Session, area: str, name: str) -> VolumeRow | None:
    return _one(session, _V.area == area, _V.name == name)


def named(session: Session, name: str) -> list[VolumeRow]:
    """Of every area: names are unique inside one."""
    return _all(session, _V.name == name)


def listed(session: Session, groups: Collection[str] | None = None) -> list[VolumeRow]:
    """What is not retired, by group and name; None: of all groups."""
    conditions = [_V.state != State.RETIRED.value]
    if groups is not None:
        conditions.append(_V.group.in_(groups))
    return _all(session, *conditions)


def every(session: Session) -> list[VolumeRow]:
    """Also those that are retired."""
    return _all(session)


def around(session: Session, folder: str) -> VolumeRow | None:
    """That which this folder is in."""
    return next((row for row in listed(session) if row.holds(folder)), None)


def failed_in(session: Session, folders: Collection[str], *, since: datetime) -> bool:
    """Whether a program failed since then that worked inside one of these folders."""
    if not folders:
        return False
    query = select(Job.working_directory).join(Run, Run.job_id == Job.id).distinct()
    found = session.scalars(query.where(Run.end_time > since, Run.state == "FAILED"))
    return any(f"{place}/".startswith(tuple(f"{one}/" for one in folders)) for place in found)


def add(session: Session, values: dict[str, Any]) -> int | None:
    """None when the area has one of the name."""
    given = {("group_name" if key == "group" else key): value for key, value in values.items()}
    return insert_if_new(session, table_of(_V), given)


def change(
    session: Session, volume_id: int, *, leaving: Sequence[State] = (), **values: Any
) -> bool:
    """Whether it was there in one of the states `leaving`; none given: in any."""
    statement = update(_V).where(_V.id == volume_id)
    if leaving:
        statement = statement.where(_V.state.in_([one.value for one in leaving]))
    return bool(getattr(session.execute(statement.values(**values)), "rowcount", 0))


def drop(session: Session, volume_id: int) -> None:
    """One that never came to be."""
    session.execute(delete(_V).where(_V.id == volume_id, _V.state == State.MAKING.value))


def put_day(
    session: Session, volume_id: int, day: date, *, used: int | None, limit: int | None
) -> None:
    """The last figures of the day; figures that are not known do not replace known ones."""
    key = {"volume_id": volume_id, "day": day}
    there = session.get(_DAY, (volume_id, day))
    if there is None:
        session.add(_DAY(**key, used_bytes=used, limit_bytes=limit))
        session.flush()
    elif used is not None or limit is not None:
        there.used_bytes, there.limit_bytes = used, limit


def days(session: Session, volume_id: int, *, since: date) -> list[Day]:
    """From this day on, in order."""
    query = (
        select(_DAY.day, _DAY.used_bytes, _DAY.limit_bytes)
        .where(_DAY.volume_id == volume_id, _DAY.day >= since)
        .order_by(_DAY.day)
    )
    return [Day(*row) for row in session.execute(query)]


def days_of(session: Session, ids: Collection[int], *, since: date) -> dict[int, list[Day]]:
    """The same of several."""
    query = (
        select(_DAY.volume_id, _DAY.day, _DAY.used_bytes, _DAY.limit_bytes)
        .where(_DAY.volume_id.in_(ids), _DAY.day >= since)
        .order_by(_DAY.volume_id, _DAY.day)
    )
    found: dict[int, list[Day]] = {volume_id: [] for volume_id in ids}
    for row in session.execute(query):
        found[row[0]].append(Day(*row[1:]))
    return found


def _one(session: Session, *conditions: Any) -> VolumeRow | None:
    return next(iter(_all(session, *conditions)), None)


def _all(session: Session, *conditions: Any) -> list[VolumeRow]:
    query = select(*_COLUMNS).where(*conditions).order_by(_V.group, _V.name, _V.area)
    return [_row(tuple(found)) for found in session.execute(query)]


def _row(found: tuple[Any, ...]) -> VolumeRow:
    values = [*found]
    values[6] = State(found[6])
    return VolumeRow(*values)
