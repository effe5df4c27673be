"""Snapshots, with whom they are shared, and what their bases look like now."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, false, func, insert, or_, select, true, update
from sqlalchemy.orm import Session

from gateway.core.access import Permission, Viewer
from gateway.core.snapshots import Document, Shared, dump, load, words
from gateway.store.models import Person, table_of
from gateway.store.snapshot_models import Snapshot, SnapshotBase, SnapshotLook
from gateway.store.upsert import insert_if_new

_S = Snapshot
MOST_SHOWN = 500


@dataclass(frozen=True, slots=True)
class SnapshotRow:
    """A snapshot and whose it is. `new_bytes`: of the layers that it was the first to need."""

    id: int
    digest: str
    person_id: int
    login: str
    owner: str  # the display name
    folder: str
    name: str
    bytes: int
    new_bytes: int
    reachable: bool
    document: Document
    saved_at: datetime
    shared: Shared
    group: str | None
    deleted_at: datetime | None

    @property
    def path(self) -> str:
        """Where its document lies."""
        return f"{self.folder}/documents/{self.digest}.json"


@dataclass(frozen=True, slots=True)
class BaseRow:
    """A base as the site's own check saw it last."""

    name: str
    fingerprint: str
    changed_at: datetime
    seen_at: datetime


def add(
    session: Session,
    digest: str,
    document: Document,
    *,
    person_id: int,
    folder: str,
    name: str,
    reachable: bool,
    now: datetime,
) -> int | None:
    """The new row's id; None: it is there already."""
    before = _layers_of(session, person_id, document.at)
    row = {
        "digest": digest,
        "person_id": person_id,
        "folder": folder,
        "name": name,
        "note": document.note,
        "base": document.base.name,
        "job": document.job or None,
        "bytes": document.bytes,
        "new_bytes": sum(one.bytes for one in document.layers if one.sha256 not in before),
        "reachable": reachable,
        "document": dump(document),
        "words": words(name, document),
        "saved_at": document.at,
        "seen_at": now,
        "shared": Shared.NONE.value,
    }
    return insert_if_new(session, table_of(_S), row)


def _layers_of(session: Session, person_id: int, before: datetime) -> set[str]:
    """What is stored already when this one is saved."""
    mine = select(_S.document).where(_S.person_id == person_id, _S.saved_at <= before)
    found = session.scalars(mine.where(_S.deleted_at.is_(None)))
    return {layer["sha256"] for raw in found for layer in raw["layers"]}


def digests(session: Session, person_id: int) -> dict[str, bool]:
    """Of all that this person saved: whether each counts as deleted."""
    query = select(_S.digest, _S.deleted_at).where(_S.person_id == person_id)
    return {digest: deleted is not None for digest, deleted in session.execute(query)}


def seen(session: Session, person_id: int, reachable: dict[str, bool], *, now: datetime) -> None:
    """Keep what the index says now of being reachable."""
    for value in (True, False):
        these = [digest for digest, is_so in reachable.items() if is_so is value]
        for start in range(0, len(these), MOST_SHOWN):
            part = _S.digest.in_(these[start : start + MOST_SHOWN])
            session.execute(
                update(_S)
                .where(_S.person_id == person_id, part)
                .values(reachable=value, seen_at=now)
            )


def delete(session: Session, found: Iterable[str], *, person_id: int, now: datetime) -> None:
    """They are offered to nobody any more."""
    for digest in found:
        session.execute(
            update(_S)
            .where(_S.person_id == person_id, _S.digest == digest, _S.deleted_at.is_(None))
            .values(deleted_at=now, shared=Shared.NONE.value, group=None)
        )


def deleted(session: Session, person_id: int) -> tuple[str, ...]:
    """What this person took away, and their store may still have."""
    query = select(_S.digest).where(_S.person_id == person_id, _S.deleted_at.is_not(None))
    return tuple(session.scalars(query.order_by(_S.deleted_at.desc()).limit(MOST_SHOWN)))


def change(session: Session, snapshot_id: int, **values: Any) -> None:
    """Set columns of one."""
    session.execute(update(_S).where(_S.id == snapshot_id).values(values))


def visible(session: Session, viewer: Viewer, *, text: str = "") -> list[SnapshotRow]:
    """What this person may use or has to agree to, newest first, at most MOST_SHOWN. Each word of
    `text` must be in its name, note, base, job or packages."""
    query = _rows(viewer)
    for word in text.casefold().split():
        query = query.where(_S.words.contains(word, autoescape=True))
    return [_row(row) for row in session.execute(query.limit(MOST_SHOWN))]


def find(session: Session, name: str, viewer: Viewer) -> list[SnapshotRow]:
    """Those whose digest begins so, among what this person may see."""
    query = _rows(viewer).where(_S.digest.startswith(name, autoescape=True))
    return [_row(row) for row in session.execute(query.limit(2))]


def bases(session: Session) -> dict[str, BaseRow]:
    """By name."""
    rows = session.scalars(select(SnapshotBase))
    return {
        row.name: BaseRow(row.name, row.fingerprint, row.changed_at, row.seen_at) for row in rows
    }


def note_base(session: Session, name: str, fingerprint: str, *, now: datetime) -> bool:
    """Keep what a check saw; whether it has changed since the last one."""
    row = session.get(SnapshotBase, name)
    if row is None:
        session.add(SnapshotBase(name=name, fingerprint=fingerprint, changed_at=now, seen_at=now))
        return False
    changed = row.fingerprint != fingerprint
    row.seen_at = now
    if changed:
        row.fingerprint, row.changed_at = fingerprint, now
    return changed


def looked(session: Session, person_id: int) -> tuple[datetime, str | None] | None:
    """When this person's store was read last, and why it could not be."""
    row = session.get(SnapshotLook, person_id)
    return (row.at, row.code) if row else None


def look(session: Session, person_id: int, *, code: str | None, now: datetime) -> None:
    """Note that it was read now."""
    row = session.get(SnapshotLook, person_id)
    if row is None:
        session.execute(insert(SnapshotLook).values(person_id=person_id, at=now, code=code))
    else:
        row.at, row.code = now, code


def affected(session: Session) -> dict[str, list[tuple[int, str]]]:
    """By base: whose live snapshots are above it (person, fingerprint of the base then)."""
    found: dict[str, list[tuple[int, str]]] = {}
    query = select(_S.base, _S.person_id, _S.document).where(_S.deleted_at.is_(None))
    for base, person_id, document in session.execute(query):
        found.setdefault(base, []).append((person_id, document["base"]["fingerprint"]))
    return found


def _rows(viewer: Viewer) -> Any:
    steers = viewer.may(Permission.MANAGE_ENVIRONMENTS)
    with_us = and_(_S.shared == Shared.GROUP.value, _S.group.in_(viewer.groups or ("",)))
    asked: ColumnElement[bool] = _S.shared == Shared.ASKED.value
    may = or_(
        _S.person_id == viewer.person_id,
        _S.shared == Shared.SITE.value,
        with_us,
        and_(asked, true() if steers else false()),
    )
    columns = (
        _S.id,
        _S.digest,
        _S.person_id,
        Person.login,
        Person.display_name,
        _S.folder,
        _S.name,
        _S.bytes,
        _S.new_bytes,
        _S.reachable,
        _S.document,
        _S.saved_at,
        _S.shared,
        _S.group,
        _S.deleted_at,
    )
    return (
        select(*columns)
        .join(Person, Person.id == _S.person_id)
        .where(may, _S.deleted_at.is_(None))
        .order_by(_S.saved_at.desc(), _S.id.desc())
    )


def _row(row: Sequence[Any]) -> SnapshotRow:
    values = list(row)
    values[10] = load(values[10])
    values[12] = Shared(values[12])
    return SnapshotRow(*values)


def count(session: Session, person_id: int) -> tuple[int, int]:
    """How many this person has, and the bytes that they take: each layer once."""
    mine = select(_S.document).where(_S.person_id == person_id, _S.deleted_at.is_(None))
    layers = {one["sha256"]: one["bytes"] for raw in session.scalars(mine) for one in raw["layers"]}
    number = session.scalar(
        select(func.count()).where(_S.person_id == person_id, _S.deleted_at.is_(None))
    )
    return number or 0, sum(layers.values())
