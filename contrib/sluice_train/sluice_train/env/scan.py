"""What is in an overlay, and what of it is new against the list made before.

Paths are bytes, below the overlay's folder: a name need not be UTF-8. In JSON they are what
os.fsdecode makes of them.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sluice_train.env.content import is_compiled
from sluice_train.env.errors import DATA, Unusable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SHOWN = 5


@dataclass(frozen=True)
class Entry:
    """`kind` is d, f or l; `content` is a link's target, or a file's SHA-256 where it is known."""

    kind: str
    mode: int
    size: int
    mtime_ns: int
    inode: int
    content: str | None = None

    def looks_like(self, other: Entry) -> bool:
        """Nothing that can be seen without reading has changed. A folder's times do not count."""
        if self.kind == "d" or other.kind == "d":
            return (self.kind, self.mode) == (other.kind, other.mode)
        if self.kind == "l":
            return (self.kind, self.content) == (other.kind, other.content)
        mine = (self.kind, self.mode, self.size, self.mtime_ns, self.inode)
        return mine == (other.kind, other.mode, other.size, other.mtime_ns, other.inode)


def scan(root: bytes) -> dict[bytes, Entry]:
    """All entries below `root`; links are not followed. Unusable: a device, a socket or a FIFO."""
    found: dict[bytes, Entry] = {}
    refused: list[bytes] = []
    for path, one in _walk(root, b""):
        kind = _kind(one.st_mode)
        if kind is None:
            refused.append(path)
            continue
        target = None
        if kind == "l":
            try:
                target = os.fsdecode(os.readlink(os.path.join(root, path)))
            except OSError:
                continue  # gone in between
        mode = stat.S_IMODE(one.st_mode)
        found[path] = Entry(kind, mode, one.st_size, one.st_mtime_ns, one.st_ino, target)
    if refused:
        names = ", ".join(repr(os.fsdecode(path)) for path in refused[:_SHOWN])
        more = f" and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
        text = f"devices, sockets and FIFOs cannot be saved; take them away first: {names}{more}"
        raise Unusable(text, DATA)
    return found


def changed(now: Mapping[bytes, Entry], before: Mapping[bytes, Entry]) -> set[bytes]:
    """What is new, or looks different."""
    return {
        path
        for path, entry in now.items()
        if path not in before or not before[path].looks_like(entry)
    }


def gone(now: Mapping[bytes, Entry], before: Mapping[bytes, Entry]) -> list[bytes]:
    """What is not there any more, sorted; of a folder that is gone the folder alone."""
    lost = {path for path in before if path not in now}
    return sorted(path for path in lost if os.path.dirname(path) not in lost)


def is_steady(first: Mapping[bytes, Entry], second: Mapping[bytes, Entry]) -> bytes | None:
    """The first path that differs between two looks; compiled files come and go as modules load."""
    for path in first.keys() | second.keys():
        if b"__pycache__" in path.split(b"/") or is_compiled(path):
            continue
        one, other = first.get(path), second.get(path)
        if one is None or other is None or not one.looks_like(other):
            return path
    return None


def to_json(listing: Mapping[bytes, Entry]) -> dict[str, list[object]]:
    """For the overlay's state."""
    return {
        os.fsdecode(path): [e.kind, e.mode, e.size, e.mtime_ns, e.inode, e.content]
        for path, e in listing.items()
    }


def of_json(raw: Mapping[str, list[object]]) -> dict[bytes, Entry]:
    """The inverse of to_json."""
    return {os.fsencode(path): Entry(*fields) for path, fields in raw.items()}  # type: ignore[arg-type]


def _walk(root: bytes, below: bytes) -> Iterator[tuple[bytes, os.stat_result]]:
    todo = [below]
    while todo:
        folder = todo.pop()
        try:
            with os.scandir(os.path.join(root, folder)) as entries:
                for entry in entries:
                    try:
                        one = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    path = os.path.join(folder, entry.name)
                    if stat.S_ISDIR(one.st_mode):
                        todo.append(path)
                    yield path, one
        except FileNotFoundError:
            continue
        except PermissionError as error:
            raise Unusable(
                f"{os.fsdecode(folder)!r} cannot be read: {error.strerror}", DATA
            ) from None


def _kind(mode: int) -> str | None:
    if stat.S_ISREG(mode):
        return "f"
    if stat.S_ISDIR(mode):
        return "d"
    return "l" if stat.S_ISLNK(mode) else None
