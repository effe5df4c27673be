"""Keep the columnar job history in step with the database."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gateway.history import blocks
from gateway.store import history, history_rows
from gateway.store.uow import Begin

# What has not changed for a while goes into files of about a million rows: opening and planning
# cost a reader something for each file.
GROUP = 64  # blocks
QUIET_SECONDS = 3600.0

Files = dict[int, str]  # by block


@dataclass(frozen=True, slots=True)
class Kept:
    """`made` blocks were written. `rebuilt`: all there are. `busy`: somebody else is writing."""

    made: int = 0
    rebuilt: bool = False
    busy: bool = False


def keep(folder: Path, *, begin: Begin, read: Begin, now: datetime, wait: bool = False) -> Kept:
    """Make the blocks again in which something was written; all of them where there is no history,
    or one of another database. Safe to kill and to repeat. `wait`: for another writer to end."""
    with blocks.writing(folder, wait=wait) as alone:
        if not alone:
            return Kept(busy=True)
        manifest = blocks.load(folder)
        with read() as session:
            marks = history.marks(session)
            highest, _ = history.highest(session)
        if manifest is None or manifest.highest > highest:
            return _rebuild(folder, begin=begin, read=read, now=now)
        if marks:
            made = _write(folder, sorted(marks), read=read, now=now)
            files = _without(folder, manifest.files, marks) | made
            manifest = _publish(folder, manifest, blocks.Manifest(files, highest, now))
            _unmark(marks, begin)
        if quiet := _quiet(folder, manifest.files):
            merged = _merge(folder, manifest.files, quiet)
            _publish(folder, manifest, blocks.Manifest(merged, manifest.highest, now))
    return Kept(made=len(marks))


def in_step(folder: Path, *, begin: Begin, read: Begin, now: datetime) -> Kept:
    """For who reads where no worker need be: nothing is behind afterwards, but what another writer
    is making now. Waits for it where there is no history yet."""
    return keep(folder, begin=begin, read=read, now=now, wait=blocks.load(folder) is None)


def rebuild(folder: Path, *, begin: Begin, read: Begin, now: datetime) -> Kept:
    """Everything anew from the database; waits for another writer to end. Readers have the old
    history until the new one is whole. Imported sets stay as they are."""
    with blocks.writing(folder, wait=True):
        return _rebuild(folder, begin=begin, read=read, now=now)


def _rebuild(folder: Path, *, begin: Begin, read: Begin, now: datetime) -> Kept:
    with read() as session:
        marks = history.marks(session)
        highest, _ = history.highest(session)
        known = history.blocks(session)
    files: Files = {}
    for group in _groups(known):
        made = _write(folder, group, read=read, now=now)
        if len(made) > 1:
            merged = _merge(folder, made, made)
            for name in made.values():
                (folder / name).unlink()
            made = merged
        files |= made
    _publish(folder, blocks.load(folder), blocks.Manifest(files, highest, now))
    _unmark(marks, begin)
    return Kept(made=len(files), rebuilt=True)


def _write(folder: Path, wanted: Iterable[int], *, read: Begin, now: datetime) -> Files:
    """Each block read in a transaction of its own, after its marks were seen: what is written
    meanwhile is in it, or has a new mark."""
    made: Files = {}
    for block in wanted:
        with read() as session:
            found = history_rows.rows(session, block, now=now)
        if found:
            rows, tasks = zip(*found, strict=True)
            made[block] = blocks.write(folder, block, rows, tasks)
    return made


def _without(folder: Path, files: Mapping[int, str], changed: Collection[int]) -> Files:
    """Where a block of a merged file has changed, the others of that file get a new one."""
    left: Files = {}
    for name, held in _by_file(files).items():
        rest = [block for block in held if block not in changed]
        whole = len(rest) == len(held)
        if rest:
            kept = name if whole else blocks.merge(folder, [name], rest, size=history.BLOCK)
            left |= dict.fromkeys(rest, kept)
    return left


def _quiet(folder: Path, files: Mapping[int, str]) -> list[int]:
    """Blocks of the first group of which several files have not changed for a while."""
    old = [b for b, name in files.items() if blocks.age(folder / name) > QUIET_SECONDS]
    for group in _groups(old):
        if len({files[block] for block in group}) > 1:
            return group
    return []


def _merge(folder: Path, files: Mapping[int, str], chosen: Collection[int]) -> Files:
    """All of `files`, those of the chosen blocks in one."""
    names = sorted({files[block] for block in chosen})
    name = blocks.merge(folder, names, chosen, size=history.BLOCK)
    return {**files, **dict.fromkeys(chosen, name)}


def _groups(found: Iterable[int]) -> list[list[int]]:
    groups: dict[int, list[int]] = defaultdict(list)
    for block in sorted(found):
        groups[block // GROUP].append(block)
    return list(groups.values())


def _by_file(files: Mapping[int, str]) -> dict[str, list[int]]:
    held: dict[str, list[int]] = defaultdict(list)
    for block, name in sorted(files.items()):
        held[name].append(block)
    return dict(held)


def _publish(
    folder: Path, before: blocks.Manifest | None, manifest: blocks.Manifest
) -> blocks.Manifest:
    if before is not None:
        blocks.retire(folder, set(before.files.values()) - set(manifest.files.values()))
    blocks.save(folder, manifest)
    blocks.sweep(folder, manifest)
    return manifest


def _unmark(marks: Mapping[int, list[int]], begin: Begin) -> None:
    with begin() as session:
        history.unmark(session, [mark for ids in marks.values() for mark in ids])
