"""Imported sets: histories of other clusters or earlier years, in columns alone.

`$SLUICE_HOME/imports/sets.json` is the truth: which sets there are, and the files of each in the
folder of its name. Files are written whole under a name that was never used, then the list is
renamed into its place. They come from nowhere else, so nothing removes a file that the list names.
"""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from gateway.errors import GatewayError
from gateway.history import blocks

FOLDER = "imports"  # in $SLUICE_HOME, beside the history
LIST = "sets.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class BrokenSets(GatewayError):
    """The list of imported sets is there and cannot be read: nobody can tell what was imported."""

    code = "broken_sets"


@dataclass(frozen=True, slots=True)
class ImportedSet:
    """`files`: names in `folder_of(imports, name)`. `held`: rows that could not be read. `shape`:
    of the columns when the files were written (blocks.SHAPE)."""

    name: str
    format: str
    rows: int
    held: int
    added_at: datetime
    files: tuple[str, ...]
    shape: int = blocks.SHAPE


def is_name(text: str) -> bool:
    """Whether a set can be called so: its folder is."""
    return _NAME.fullmatch(text) is not None


def folder_of(imports: Path, name: str) -> Path:
    """Where the files of the set are, or are to be written before `publish`."""
    if not is_name(name):
        raise ValueError(f"no name of a set: {name!r}")
    return imports / name


def listed(imports: Path) -> list[ImportedSet]:
    """All sets by name; none where nothing was ever imported. Raises BrokenSets."""
    try:
        found = json.loads((imports / LIST).read_text())
        sets = [_read(one) for one in found["sets"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BrokenSets(f"{imports / LIST}: {error}") from error
    return sorted(sets, key=lambda one: one.name)


def files(imports: Path) -> list[Path]:
    """The files of all sets. Raises BrokenSets where one has gone or has no end: statistics without
    it would be wrong, and nobody else has its rows."""
    found = []
    for one in listed(imports):
        for name in one.files:
            file = folder_of(imports, one.name) / name
            if not blocks.is_whole(file):
                raise BrokenSets(
                    f"{file} is broken: `sluice history forget {one.name}`, then import"
                )
            found.append(file)
    return found


@contextmanager
def changing(imports: Path) -> Iterator[None]:
    """One process at a time reads the list, writes files and publishes; others wait."""
    with blocks.writing(imports, wait=True):
        yield


def publish(imports: Path, given: ImportedSet) -> None:
    """From here on readers have this set, in place of the one of its name. Its files are on disk
    (blocks.to_disk). Call it within `changing`."""
    others = [one for one in listed(imports) if one.name != given.name]
    _save(imports, [*others, given])


def remove(imports: Path, name: str) -> bool:
    """Forget the set and delete its files; False where there is none of this name. A reader
    that had the list may find them gone. Call it within `changing`."""
    sets = listed(imports)
    left = [one for one in sets if one.name != name]
    if len(left) == len(sets):
        return False
    _save(imports, left)
    shutil.rmtree(folder_of(imports, name), ignore_errors=True)
    return True


def sweep(imports: Path) -> None:
    """Delete what a killed import left: no list names it. Call it within `changing`, before files
    are written."""
    named = {folder_of(imports, one.name) / file for one in listed(imports) for file in one.files}
    for file in imports.glob("*/*"):
        if file.is_dir():
            shutil.rmtree(file, ignore_errors=True)  # where something too large for memory was
        elif file not in named:
            file.unlink(missing_ok=True)


def _read(one: dict[str, object]) -> ImportedSet:
    given = ImportedSet(**one)  # type: ignore[arg-type]  # a wrong type shows below
    name = str(given.name)
    if not is_name(name):
        raise ValueError(f"no name of a set: {name!r}")
    added_at = datetime.fromisoformat(str(given.added_at)).astimezone(UTC)
    return replace(given, files=tuple(map(str, given.files)), added_at=added_at)


def _save(imports: Path, sets: Sequence[ImportedSet]) -> None:
    facts = [asdict(one) | {"added_at": one.added_at.isoformat()} for one in sets]
    blocks.put_list(imports / LIST, {"sets": facts})
