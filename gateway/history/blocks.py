"""The job history on disk: Parquet files of one or many blocks of jobs, and the list of them.

`runs.json` is the truth: which file holds which block. Files are written whole under a name that
was never used, then the list is renamed into its place, so that a reader has all of one state or
all of the next, and a kill leaves the old one. What no list has named for a while is removed.
"""

import fcntl
import json
import os
import secrets
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.core.past_runs import COLUMNS, ColumnType, Row

if TYPE_CHECKING:
    import duckdb

SHAPE = 3  # of the columns: another number makes everything anew
LIST = "runs.json"
# DuckDB fetches nothing from anywhere: what is needed is built in.
OWN: dict[str, str | bool | int | float | list[str]] = {"autoinstall_known_extensions": False}
# Half the size of the first version's, and read no slower.
_ENCODING = "PARQUET_VERSION v2"
_SPILL = "spill"  # where something too large for memory goes
_MAGIC = b"PAR1"  # begins and ends each Parquet file
KEPT_SECONDS = 600.0  # readers that have the list of a moment ago still open its files


@dataclass(frozen=True, slots=True)
class Manifest:
    """File names by block, one name for all blocks of a file; the highest job id that the database
    had; when it was made."""

    files: Mapping[int, str]
    highest: int
    made_at: datetime


@contextmanager
def writing(folder: Path, *, wait: bool) -> Iterator[bool]:
    """The one writer at a time. False when somebody else is writing and `wait` is not wished."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # who ran what is for the portal alone
    with (folder / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True  # closing the file lets go of it


def load(folder: Path) -> Manifest | None:
    """What the list says; None where there is none, or none that this code can read, or where it
    names a file that has gone or has no end: then everything is to be made anew."""
    try:
        found = json.loads((folder / LIST).read_text())
        if found["shape"] != SHAPE:
            return None
        files = {int(block): str(name) for block, name in found["files"].items()}
        made_at = datetime.fromtimestamp(found["made_at"], UTC)
        manifest = Manifest(files, int(found["highest"]), made_at)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    whole = all(is_whole(folder / name) for name in set(files.values()))
    return manifest if whole else None


def is_whole(file: Path) -> bool:
    """Whether both ends are there: a file system that broke down may have left a part of it."""
    try:
        with file.open("rb") as opened:
            first = opened.read(len(_MAGIC))
            opened.seek(-len(_MAGIC), os.SEEK_END)
            return first == opened.read() == _MAGIC
    except OSError:
        return False


def save(folder: Path, manifest: Manifest) -> None:
    """From here on readers have this state."""
    facts = {
        "shape": SHAPE,
        "highest": manifest.highest,
        "made_at": manifest.made_at.timestamp(),
        "files": {str(block): name for block, name in sorted(manifest.files.items())},
    }
    put_list(folder / LIST, facts)


def put_list(place: Path, facts: Mapping[str, object]) -> None:
    """Renamed into its place, so that readers have the old list or the new one; on disk."""
    part = place.with_name(f"{place.name}.part")
    with part.open("w") as file:
        json.dump(facts, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(place)
    to_disk(place.parent)


def write(folder: Path, block: int, rows: Sequence[Row], times: Sequence[int] = ()) -> str:
    """The block's file, on disk; its name. Nobody reads it before a list names it. `times`: how
    often each row is in it, once where nothing is said."""
    values = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    columns = {
        str(place): _array(kind, column)
        for place, (kind, column) in enumerate(zip(COLUMNS.values(), values, strict=True))
    }
    columns["times"] = _array(ColumnType.INTEGER, times or [1] * len(rows))
    chosen = ", ".join(
        f'{_typed(place, kind)} AS "{column}"'
        for place, (column, kind) in enumerate(COLUMNS.items())
    )
    file = _new_file(folder, block)
    with _writer(folder) as connection:
        # Texts are texts, whatever the first ones look like.
        connection.execute("SET pandas_analyze_sample = 0")
        connection.register("given", columns)
        source = "(SELECT *, unnest(range(times)) FROM given)"
        copy(connection, f"SELECT {chosen} FROM {source}", file)  # noqa: S608  # our own names
    return file.name


def merge(folder: Path, names: Iterable[str], kept: Collection[int], *, size: int) -> str:
    """One file of those rows of these files that are of blocks `kept`, each of `size` jobs; its
    name, as for `write`. In memory are a few thousand rows at a time."""
    given = parquet([folder / name for name in names])
    file = _new_file(folder, min(kept))
    listed = ", ".join(str(block) for block in sorted(kept))
    with _writer(folder) as connection:
        query = f"SELECT * FROM {given} WHERE job_id // {size} IN ({listed})"  # noqa: S608  # ours
        copy(connection, query, file)
    return file.name


def copy(
    connection: "duckdb.DuckDBPyConnection", query: str, file: Path, *, options: str = _ENCODING
) -> None:
    """What the query answers, in a Parquet file, on disk."""
    connection.execute(f"COPY ({query}) TO {_quoted(file)} (FORMAT parquet, {options})")
    to_disk(file)


def parquet(found: Iterable[Path], *, options: str = "") -> str:
    """The files as a table of a query."""
    return f"read_parquet([{', '.join(map(_quoted, found))}]{options})"


def files(folder: Path) -> list[Path]:
    """Those that the list names at this moment, each once; none where there is no history."""
    manifest = load(folder)
    return [folder / name for name in sorted(set(manifest.files.values()))] if manifest else []


def to_disk(place: Path) -> None:
    """The file, or the names in the folder, whatever happens to the machine."""
    opened = os.open(place, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def retire(folder: Path, names: Iterable[str]) -> None:
    """No list will name these files: from now on they are kept for a while. Call it before the
    list without them is saved."""
    for name in names:
        os.utime(folder / name)


def sweep(folder: Path, manifest: Manifest) -> None:
    """Remove files that no list has named for a while, and what a killed writer put aside: call it
    within `writing`."""
    shutil.rmtree(folder / _SPILL, ignore_errors=True)
    named = set(manifest.files.values())
    for file in folder.glob("runs-*.parquet"):
        if file.name not in named and age(file) > KEPT_SECONDS:
            file.unlink(missing_ok=True)


def age(file: Path) -> float:
    """Seconds since it was written or retired."""
    return time.time() - file.stat().st_mtime


@contextmanager
def _writer(folder: Path) -> "Iterator[duckdb.DuckDBPyConnection]":
    import duckdb  # noqa: PLC0415  # tens of megabytes, for who writes or reads history

    config = OWN | {"memory_limit": "1GB", "threads": 2, "temp_directory": str(folder / _SPILL)}
    with duckdb.connect(config=config) as connection:
        yield connection


def _new_file(folder: Path, block: int) -> Path:
    return folder / f"runs-{block:06}-{secrets.token_hex(6)}.parquet"


def _quoted(file: Path) -> str:
    return "'" + str(file).replace("'", "''") + "'"


def _typed(place: int, kind: ColumnType) -> str:
    if kind is ColumnType.TIME:
        return f'make_timestamp("{place}" * 1000000)'
    return f'CAST("{place}" AS {kind.value})'


def _array(kind: ColumnType, values: Sequence[Any]) -> Any:
    import numpy as np  # noqa: PLC0415

    if kind is ColumnType.TEXT:
        return np.array(values, dtype=object)
    if None not in values:
        return np.array(values, dtype=np.int64)
    missing = [value is None for value in values]
    known = np.array([value or 0 for value in values], dtype=np.int64)
    return np.ma.masked_array(known, mask=missing)
