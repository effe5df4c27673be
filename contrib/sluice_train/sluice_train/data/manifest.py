"""A manifest: lines `<sha256> <bytes> <relative path>`, in the order of the paths' bytes.

The SHA-256 of the text names the content. What a manifest cannot hold is refused, not passed over:
links out of the folder, devices, names with a line's end or of no UTF-8.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 4 << 20
_LINE = re.compile(r"([0-9a-f]{64}) (0|[1-9][0-9]{0,17}) ([^\n\0]+)")


class Entry(NamedTuple):
    """A file of a dataset; `path` is relative."""

    sha256: str
    size: int
    path: str


class BadData(Exception):
    """What cannot be in a dataset, or is no manifest; a sentence for a person."""


def parse(text: str) -> list[Entry]:
    """The entries of a manifest's text; BadData names the line that is none."""
    entries: list[Entry] = []
    last = b""
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        found = _LINE.fullmatch(line)
        path = found.group(3) if found else ""
        key = os.fsencode(path)
        if found is None or not _is_inside(path) or key <= last:
            raise BadData(f"line {number} is none of a manifest")
        last = key
        entries.append(Entry(found.group(1), int(found.group(2)), path))
    if not text.endswith("\n") or not entries:
        raise BadData("the manifest is empty, or cut off")
    return entries


def load(path: Path, sha256: str) -> list[Entry]:
    """The manifest in a file, which must be the one that was published."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadData(f"the manifest {path} cannot be read: {error.strerror}") from error
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise BadData(f"the manifest {path} is not the one that was published")
    try:
        return parse(raw.decode())
    except UnicodeDecodeError as error:
        raise BadData(f"the manifest {path} is no UTF-8") from error


def dump(entries: list[Entry]) -> str:
    return "".join(f"{one.sha256} {one.size} {one.path}\n" for one in sorted(entries, key=_order))


def _order(entry: Entry) -> bytes:
    return os.fsencode(entry.path)


def _is_inside(path: str) -> bool:
    return not path.startswith("/") and {"", ".", ".."}.isdisjoint(path.split("/"))


def files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Every file below, by relative path; links to files inside count as files."""
    root = os.path.realpath(folder)
    for place, folders, names in os.walk(root, onerror=_fail):
        folders.sort()
        for name in folders:
            if os.path.islink(os.path.join(place, name)):  # noqa: PTH118, PTH114  # any bytes
                raise BadData(f"{os.path.join(place, name)!r} is a link to a folder")  # noqa: PTH118
        for name in names:
            full = os.path.join(place, name)  # noqa: PTH118
            yield os.path.relpath(full, root), _look(full, root)


def _look(full: str, root: str) -> os.stat_result:
    try:
        full.encode()
    except UnicodeEncodeError as error:
        raise BadData(f"the name {full!r} is no UTF-8") from error
    if "\n" in full:
        raise BadData(f"the name {full!r} holds the end of a line")
    real = os.path.realpath(full)
    if not real.startswith(root.rstrip("/") + "/"):
        raise BadData(f"{full!r} leads out of the folder")
    try:
        found = os.stat(full)  # noqa: PTH116
    except OSError as error:
        raise BadData(f"{full!r}: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        raise BadData(f"{full!r} is no file")
    return found


def _fail(error: OSError) -> None:
    raise BadData(f"{error.filename!r}: {error.strerror}") from error


def sha256_of(path: str, *, drop_cache: bool = False) -> tuple[str, int]:
    """The SHA-256 and the bytes of a file. With `drop_cache` the disk is read, not the memory.
    BadData when it changes meanwhile; OSError."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        before = os.fstat(file.fileno())
        if drop_cache and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        size = 0
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            size += len(chunk)
        after = os.fstat(file.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise BadData(f"{path!r} changed while it was read")
    return digest.hexdigest(), size


def workers(asked: int) -> int:
    """How many threads read: as many as CPUs are ours, unless told."""
    return asked or min(32, len(os.sched_getaffinity(0)))
