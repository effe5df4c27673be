"""The catalogue of datasets: what is kept of entries, versions, readers, requests and checks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, insert, or_, select, update
from sqlalchemy.orm import Session

from gateway.core.access import Permission, Viewer
from gateway.core.datasets import Offered
from gateway.store import dataset_models as dm
from gateway.store.models import table_of

_D, _V, _R = table_of(dm.Dataset).c, table_of(dm.DatasetVersion).c, table_of(dm.DatasetReader).c
_VERSION, _READER = table_of(dm.DatasetVersion), table_of(dm.DatasetReader)


@dataclass(frozen=True, slots=True)
class DatasetRow:
    """See dataset_models.Dataset."""

    id: int
    name: str
    title: str
    licence: str
    description: str
    visibility: str
    group: str | None
    owner_id: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class VersionRow:
    """See dataset_models.DatasetVersion."""

    id: int
    dataset_id: int
    version: int
    path: str
    state: str
    bytes: int | None
    files: int | None
    manifest: str | None
    manifest_path: str
    note: str
    parent_id: int | None
    made_by: str
    created_by: int
    created_at: datetime
    decided_by: int | None
    published_at: datetime | None
    withdrawn_at: datetime | None
    withdrawn_why: str
    health: str
    checked_at: datetime | None
    read_mbps: float | None


_DATASET_COLUMNS = [getattr(dm.Dataset, name) for name in DatasetRow.__slots__]
_VERSION_COLUMNS = [getattr(dm.DatasetVersion, name) for name in VersionRow.__slots__]
_OFFERED: list[Any] = [
    *(_V.id, _D.name, _V.version, _D.title, _D.licence, _V.path, _V.bytes, _V.files),
    *(_V.manifest, _V.manifest_path, _V.read_mbps, _V.health),
]


def may_use(viewer: Viewer) -> ColumnElement[bool]:
    """Of the table dataset: this person may use it. Administrators steer all, and use what they
    are readers of like anybody else."""
    named = or_(
        and_(_R.kind == "group", _R.name.in_(viewer.groups)),
        and_(_R.kind == "person", _R.name == viewer.unix_user),
    )
    reads = exists().where(_R.dataset_id == _D.id, named)
    return or_(
        _D.visibility == "everyone",
        reads,
        _D.group_name.in_(viewer.groups),
        _D.owner_id == viewer.person_id,
    )


def may_see(viewer: Viewer) -> ColumnElement[bool]:
    """The same, and what is listed; who manages the catalogue sees all of it."""
    if viewer.may(Permission.MANAGE_DATASETS):
        return _D.id.is_not(None)
    return or_(may_use(viewer), _D.visibility == "listed")


def offered(session: Session, viewer: Viewer) -> tuple[Offered, ...]:
    """The published versions that this person may use, by name, newest first."""
    query = (
        select(*_OFFERED)
        .where(_V.dataset_id == _D.id, _V.state == "published", may_use(viewer))
        .order_by(_D.name, _V.version.desc())
    )
    return tuple(Offered(*row) for row in session.execute(query))


def by_name(session: Session, name: str, viewer: Viewer | None = None) -> DatasetRow | None:
    """The entry; with a viewer only if they may see it."""
    query = select(*_DATASET_COLUMNS).where(_D.name == name)
    if viewer is not None:
        query = query.where(may_see(viewer))
    found = session.execute(query).one_or_none()
    return DatasetRow(*found) if found else None


def get(session: Session, dataset_id: int) -> DatasetRow | None:
    found = session.execute(select(*_DATASET_COLUMNS).where(_D.id == dataset_id)).one_or_none()
    return DatasetRow(*found) if found else None


def usable(session: Session, dataset_id: int, viewer: Viewer) -> bool:
    query = select(_D.id).where(_D.id == dataset_id, may_use(viewer))
    return session.scalar(query) is not None


def seen(session: Session, viewer: Viewer | None) -> tuple[DatasetRow, ...]:
    """All that this person may see, by name; None: all there are."""
    query = select(*_DATASET_COLUMNS).order_by(_D.name)
    if viewer is not None:
        query = query.where(may_see(viewer))
    return tuple(DatasetRow(*row) for row in session.execute(query))


def versions(session: Session, dataset_ids: Sequence[int]) -> tuple[VersionRow, ...]:
    """Of these entries, newest first."""
    query = (
        select(*_VERSION_COLUMNS)
        .where(_V.dataset_id.in_(dataset_ids))
        .order_by(_V.dataset_id, _V.version.desc())
    )
    return tuple(VersionRow(*row) for row in session.execute(query))


def version(session: Session, version_id: int) -> VersionRow | None:
    found = session.execute(select(*_VERSION_COLUMNS).where(_V.id == version_id)).one_or_none()
    return VersionRow(*found) if found else None


def children(session: Session, version_id: int) -> list[tuple[str, int]]:
    """Name and version of those made from it."""
    query = (
        select(_D.name, _V.version)
        .where(_V.dataset_id == _D.id, _V.parent_id == version_id)
        .order_by(_D.name, _V.version)
    )
    return [(name, number) for name, number in session.execute(query)]


def add(session: Session, values: dict[str, Any]) -> int:
    """A new entry; the caller has looked that the name is free."""
    row = dm.Dataset(**values)
    session.add(row)
    session.flush()
    return row.id


def change(session: Session, dataset_id: int, **values: Any) -> None:
    session.execute(update(dm.Dataset).where(dm.Dataset.id == dataset_id).values(**values))


def add_version(session: Session, dataset_id: int, values: dict[str, Any]) -> int:
    """The next version of it, a draft; its id."""
    last = session.scalar(select(func.max(_V.version)).where(_V.dataset_id == dataset_id)) or 0
    row = dm.DatasetVersion(
        dataset_id=dataset_id, version=last + 1, state="draft", health="unknown", **values
    )
    session.add(row)
    session.flush()
    return row.id


def change_version(
    session: Session, version_id: int, *, leaving: Sequence[str] = (), **values: Any
) -> bool:
    """Whether it was there in one of the states `leaving`; none given: in any."""
    statement = update(_VERSION).where(_V.id == version_id)
    if leaving:
        statement = statement.where(_V.state.in_(leaving))
    return bool(getattr(session.execute(statement.values(**values)), "rowcount", 0))


def readers(session: Session, dataset_id: int) -> list[tuple[str, str]]:
    """Kind (group, person) and name."""
    query = select(_R.kind, _R.name).where(_R.dataset_id == dataset_id).order_by(_R.kind, _R.name)
    return [(kind, name) for kind, name in session.execute(query)]


def add_reader(session: Session, dataset_id: int, kind: str, name: str) -> None:
    there = select(_R.name).where(_R.dataset_id == dataset_id, _R.kind == kind, _R.name == name)
    if session.scalar(there) is None:
        row = {"dataset_id": dataset_id, "kind": kind, "name": name}
        session.execute(insert(_READER).values(row))


def drop_reader(session: Session, dataset_id: int, kind: str, name: str) -> None:
    gone = _READER.delete().where(_R.dataset_id == dataset_id, _R.kind == kind, _R.name == name)
    session.execute(gone)


def add_uses(session: Session, submission_id: int, version_ids: Sequence[int]) -> None:
    """What a submission is sent with, in the transaction that keeps it."""
    rows = [{"submission_id": submission_id, "version_id": one} for one in version_ids]
    if rows:
        session.execute(insert(table_of(dm.DatasetUse)), rows)


def used_by(session: Session, submission_id: int) -> tuple[tuple[DatasetRow, VersionRow], ...]:
    """The versions that a submission was sent with, whatever became of them since."""
    query = (
        select(*_DATASET_COLUMNS, *_VERSION_COLUMNS)
        .join(dm.DatasetVersion, dm.DatasetVersion.dataset_id == dm.Dataset.id)
        .join(dm.DatasetUse, dm.DatasetUse.version_id == dm.DatasetVersion.id)
        .where(dm.DatasetUse.submission_id == submission_id)
        .order_by(_D.name, _V.version)
    )
    cut = len(_DATASET_COLUMNS)
    return tuple((DatasetRow(*row[:cut]), VersionRow(*row[cut:])) for row in session.execute(query))
