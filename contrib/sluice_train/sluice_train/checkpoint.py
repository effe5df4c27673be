"""Checkpoints that are whole or not there: written aside, synced, named in a manifest, renamed.

`begin`, `sync`, `seal` and `abandon` are the parts of a save, which the ranks of a run share out
among them; `writing` is all of them for one process.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_train.files import sync_folder, write_whole
from sluice_train.formats import (
    MANIFEST,
    OWN,
    OWN_UNFINISHED,
    Checkpoint,
    complete,
    form_of,
    looks_unfinished,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Checkpoint",
    "abandon",
    "begin",
    "complete",
    "listed",
    "move_incomplete",
    "newest",
    "prune",
    "seal",
    "sync",
    "unfinished",
    "write_manifest",
    "writing",
]

INCOMPLETE = "incomplete"
UPLOADING = "uploading"


@contextmanager
def writing(folder: Path, step: int, world: int = 1) -> Iterator[Path]:
    """A folder to write checkpoint `step` into; complete under its name when the block ends.

    An exception leaves nothing of it. Where that step is there already and complete, what is
    written now is thrown away. OSError: the disk.
    """
    aside = begin(folder, step)
    try:
        yield aside
        sync(aside)
        seal(aside, step, world)
    except BaseException:
        abandon(aside)
        raise


def unfinished(folder: Path, step: int) -> Path:
    """Where checkpoint `step` is while it is written; ValueError where it is below 0."""
    if step < 0:
        raise ValueError(f"a checkpoint is of a step from 0 on, not {step}")
    return folder / f"step-{step:09d}.tmp"


def begin(folder: Path, step: int) -> Path:
    """Make the empty folder that checkpoint `step` (0 or more) is written into. OSError."""
    aside = unfinished(folder, step)
    if aside.exists():
        shutil.rmtree(aside)
    aside.mkdir(parents=True)
    return aside


def sync(aside: Path) -> None:
    """Bring every file under `aside` to the disk: each node does so for its own. OSError."""
    for part in _files(aside):
        _synced_size(part)


def seal(aside: Path, step: int, world: int) -> Checkpoint:
    """Write the manifest and give the folder its name, as the last one to touch it. OSError."""
    final = aside.with_suffix("")
    if there := complete(final):
        shutil.rmtree(aside)
        return there
    if final.exists():
        _move_aside(final)
    write_manifest(aside, step, world)
    for folder, _, _ in os.walk(aside):
        sync_folder(Path(folder))
    aside.rename(final)
    sync_folder(final.parent)
    sealed = complete(final)
    if sealed is None:
        raise OSError(f"{final} was changed while it was finished")
    return sealed


def write_manifest(folder: Path, step: int, world: int) -> None:
    """Name every file under `folder` with its size, synced and renamed into place. OSError."""
    sizes = {
        part.relative_to(folder).as_posix(): _synced_size(part)
        for part in _files(folder)
        if part != folder / MANIFEST
    }
    facts = {
        "step": step,
        "world": world,
        "files": sizes,
        "format": form_of(folder),
        "at": round(time.time(), 3),
    }
    write_whole(folder / MANIFEST, json.dumps(facts, indent=1) + "\n")


def abandon(aside: Path) -> None:
    """Take away what was written so far, as far as that is possible."""
    shutil.rmtree(aside, ignore_errors=True)


def listed(folder: Path) -> list[Checkpoint]:
    """The complete checkpoints in `folder`, lowest step first. None where there is no folder."""
    found = [checkpoint for path in _folders(folder) if (checkpoint := complete(path))]
    return sorted(found, key=lambda checkpoint: (checkpoint.step, checkpoint.at))


def newest(folder: Path) -> Checkpoint | None:
    """The complete checkpoint of the highest step, whatever the clocks said."""
    found = listed(folder)
    return found[-1] if found else None


def prune(folder: Path, keep: int) -> list[Checkpoint]:
    """Delete all but the newest `keep` (at least 1) of our own checkpoints; those deleted.

    What a framework wrote is its own to rotate, and what is being copied away stays.
    OSError: one could not be deleted.
    """
    if keep < 1:
        raise ValueError(f"at least one checkpoint is kept, not {keep}")
    own = [checkpoint for checkpoint in listed(folder) if OWN.fullmatch(checkpoint.path.name)]
    pruned = []
    for checkpoint in own[:-keep]:
        if checkpoint.path.name == _uploading(folder):
            continue
        # Renamed first: cut off in the middle, the rest is not taken for a checkpoint.
        going = checkpoint.path.with_name(f"{checkpoint.path.name}.old.tmp")
        shutil.rmtree(going, ignore_errors=True)
        checkpoint.path.rename(going)
        shutil.rmtree(going)
        pruned.append(checkpoint)
    return pruned


def move_incomplete(folder: Path) -> list[Path]:
    """Move cut-off checkpoints into `folder`/incomplete; where they are now. OSError.

    Only where nobody is saving. Of our own, those that were moved the time before are deleted:
    failed saves must not fill the disk.
    """
    unfinished = [path for path in _folders(folder) if looks_unfinished(path)]
    if unfinished:
        for old in _folders(folder / INCOMPLETE):
            if OWN_UNFINISHED.fullmatch(old.name):
                shutil.rmtree(old)
    return [_move_aside(path) for path in unfinished]


def _move_aside(path: Path) -> Path:
    place = path.parent / INCOMPLETE
    place.mkdir(exist_ok=True)
    moved, count = place / path.name, 0
    while moved.exists():
        count += 1
        moved = place / f"{path.name}.{count}"
    return path.rename(moved)


def _uploading(folder: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return (folder / UPLOADING).read_text().strip()
    return ""


def _folders(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir()]
    except FileNotFoundError:
        return []


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _synced_size(path: Path) -> int:
    # Opening asks a network file system for the size anew: another node may have written it.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
