"""Keep the columnar job history in step with the database."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gateway.history import blocks, reading
from gateway.store import history, history_rows
from gateway.store.uow import Begin


@dataclass(frozen=True, slots=True)
class Kept:
    """`made` blocks were written. `rebuilt`: all there are. `busy`: somebody else is writing."""

    made: int = 0
    rebuilt: bool = False
    busy: bool = False


def keep(folder: Path, *, begin: Begin, read: Begin, now: datetime) -> Kept:
    """Make the blocks again in which a run was written; all of them where there is no history, or
    one of another database. Safe to kill and to repeat."""
    with blocks.writing(folder, wait=False) as alone:
        if not alone:
            return Kept(busy=True)
        manifest = blocks.load(folder)
        with read() as session:
            marks = history.marks(session)
            highest, _ = history.highest(session)
        if manifest is None or manifest.highest > highest:
            return _rebuild(folder, begin=begin, read=read, now=now)
        if not marks:
            return Kept()
        made = _write(folder, sorted(marks), read=read, now=now)
        kept = {block: name for block, name in manifest.files.items() if block not in marks}
        _publish(folder, blocks.Manifest(kept | made, highest, now))
        with begin() as session:
            history.unmark(session, [mark for ids in marks.values() for mark in ids])
    return Kept(made=len(made))


def rebuild(folder: Path, *, begin: Begin, read: Begin, now: datetime) -> Kept:
    """Everything anew from the database; waits for another writer to end. Readers have the old
    history until the new one is whole."""
    with blocks.writing(folder, wait=True):
        return _rebuild(folder, begin=begin, read=read, now=now)


@dataclass(frozen=True, slots=True)
class Known:
    """`made_at` None: there is no history. `to_make`: blocks that are behind the database."""

    runs: int
    blocks: int
    bytes: int
    to_make: int
    made_at: datetime | None


def info(folder: Path, *, read: Begin) -> Known:
    """What the history holds."""
    manifest = blocks.load(folder)
    with read() as session:
        marks = history.marks(session)
        to_make = len(marks if manifest else history.blocks(session))
    if manifest is None:
        return Known(0, 0, 0, to_make, None)
    size = sum((folder / name).stat().st_size for name in manifest.files.values())
    with reading.runs(folder) as connection:
        (runs,) = connection.execute("SELECT count(*) FROM runs").fetchone() or (0,)
    return Known(int(runs), len(manifest.files), size, to_make, manifest.made_at)


def _rebuild(folder: Path, *, begin: Begin, read: Begin, now: datetime) -> Kept:
    with read() as session:
        marks = history.marks(session)
        highest, _ = history.highest(session)
        known = history.blocks(session)
    made = _write(folder, known, read=read, now=now)
    _publish(folder, blocks.Manifest(made, highest, now))
    with begin() as session:
        history.unmark(session, [mark for ids in marks.values() for mark in ids])
    return Kept(made=len(made), rebuilt=True)


def _write(folder: Path, wanted: Iterable[int], *, read: Begin, now: datetime) -> dict[int, str]:
    """Each block read in a transaction of its own, after its marks were seen: what is written
    meanwhile is in it, or has a new mark."""
    made: dict[int, str] = {}
    for block in wanted:
        with read() as session:
            found = history_rows.rows(session, block, now=now)
        if found:
            rows, tasks = zip(*found, strict=True)
            made[block] = blocks.write(folder, block, rows, tasks)
    return made


def _publish(folder: Path, manifest: blocks.Manifest) -> None:
    blocks.save(folder, manifest)
    blocks.sweep(folder, manifest)
