"""Reading files, looking at folders and making one, as the person who asks.

The path is the person's text. It is opened first and judged afterwards, by the real path of the
open file, so that exchanging a link in between wins nothing. O_PATH opens neither a device nor
the other end of a FIFO.
"""

import os
import stat
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from gateway.broker.accounts import Account
from gateway.broker.lay import lay
from gateway.broker.person import as_person, borrowed
from gateway.errors import BrokerRefused, BrokerSilent
from gateway.wire import messages as m
from gateway.wire.codec import parse
from gateway.wire.folders import MadeFolder, MakeFolder

MAX_CHUNK_BYTES = 1 << 20
_LONGEST_UTF8 = 4
_LATEST = 253402300799.0  # the last second that a datetime can tell
_KINDS = (
    (m.EntryKind.FILE, stat.S_ISREG),
    (m.EntryKind.FOLDER, stat.S_ISDIR),
    (m.EntryKind.LINK, stat.S_ISLNK),
)


class Files:
    """`areas` are the folders that hold people's files."""

    def __init__(self, areas: Sequence[Path], *, timeout_seconds: float) -> None:
        self._areas = tuple(areas)
        self._timeout_seconds = timeout_seconds

    def read(self, account: Account, request: m.ReadFileRequest) -> m.FileChunk:
        """A piece of a regular file; refused: file_missing, file_not_permitted,
        file_not_regular, file_outside, file_timeout."""
        _require_absolute(request.path)
        limit = max(1, min(request.max_bytes, MAX_CHUNK_BYTES))
        raw = self._as(account, lambda: self._read(request.path, request.offset, limit))
        return m.FileChunk(**raw)

    def folder(self, account: Account, path: str) -> m.FolderState:
        """Whether the person can enter (and write) a folder. `~` is the account's own home."""
        if path == "~" or path.startswith("~/"):
            path = account.home + path[1:]
        if not _is_absolute(path):
            return m.FolderState(path=path, problem="missing", writable=False)
        # A look reads nothing, so no child is needed: a fork costs twenty times the look.
        with borrowed(account):
            return m.FolderState(**self.look(path))

    def look(self, path: str) -> dict[str, Any]:
        """The same for a process that already is the person, in effect at least."""
        answer: dict[str, Any] = {"path": path, "problem": None, "writable": False}
        try:
            handle = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except PermissionError:
            return {**answer, "problem": "not_permitted"}
        except NotADirectoryError:
            return {**answer, "problem": "not_a_folder"}
        except (OSError, ValueError):
            return {**answer, "problem": "missing"}
        try:
            link = f"/proc/self/fd/{handle}"
            answer["path"] = os.readlink(link)  # noqa: PTH115  # bytes of the kernel, unchanged
            if not self._inside(answer["path"]):
                return {**answer, "problem": "outside"}
            if not os.access(link, os.X_OK, effective_ids=True):
                return {**answer, "problem": "not_permitted"}
            writable = os.access(link, os.W_OK | os.X_OK, effective_ids=True)
            readable = os.access(link, os.R_OK | os.X_OK, effective_ids=True)
            return {**answer, "writable": writable, "readable": readable}
        finally:
            os.close(handle)

    def list(self, account: Account, request: m.ListFolderRequest) -> m.FolderList:
        """What stands in a folder, by name, links not followed; refused: file_missing,
        file_not_permitted, file_outside, file_timeout, folder_not_a_folder."""
        _require_absolute(request.path)
        most = max(1, min(request.most, m.MOST_ENTRIES))
        raw = self._as(account, lambda: self._list(request.path, most))
        return parse(m.FolderList, raw)

    def make(self, account: Account, request: MakeFolder) -> MadeFolder:
        """As `lay` says; BrokerSilent where it took too long: it may be there."""
        return lay(account, request, self._inside, timeout_seconds=self._timeout_seconds)

    def _as(self, account: Account, work: Any) -> Any:
        try:
            return as_person(account, work, timeout_seconds=self._timeout_seconds)
        except BrokerSilent as error:
            # Reading changes nothing: a slow file system is a no, not an unknown outcome.
            raise BrokerRefused(str(error), code="file_timeout") from error

    def _read(self, path: str, offset: int, limit: int) -> dict[str, Any]:
        place = _open(path, os.O_PATH)
        try:
            if not stat.S_ISREG(os.fstat(place).st_mode):
                raise BrokerRefused(path, code="file_not_regular")
            if not self._inside(os.readlink(f"/proc/self/fd/{place}")):  # noqa: PTH115
                raise BrokerRefused(path, code="file_outside")
            handle = _open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_NONBLOCK)
        finally:
            os.close(place)
        try:
            size = os.fstat(handle).st_size
            start = max(0, size + offset) if offset < 0 else offset
            # Beyond the end there is nothing, and a number may be more than the kernel takes.
            raw = os.pread(handle, limit, start) if start < size else b""
            return chunk(raw, start, size, cut=offset < 0)
        finally:
            os.close(handle)

    def _list(self, path: str, most: int) -> dict[str, Any]:
        place = _open(path, os.O_PATH)
        try:
            link = f"/proc/self/fd/{place}"
            if not stat.S_ISDIR(os.fstat(place).st_mode):
                raise BrokerRefused(path, code="folder_not_a_folder")
            real = os.readlink(link)  # noqa: PTH115
            if not self._inside(real):
                raise BrokerRefused(path, code="file_outside")
            handle = _open(link, os.O_RDONLY | os.O_DIRECTORY)
        finally:
            os.close(place)
        try:
            with os.scandir(handle) as found:
                some = list(islice(found, most + 1))
                entries = [one for one in map(_entry, some[:most]) if one is not None]
        finally:
            os.close(handle)
        entries.sort(key=lambda one: str(one["name"]))
        return {"path": _text(real), "entries": entries, "cut": len(some) > most}

    def _inside(self, real: str) -> bool:
        # The areas may be links themselves (/home -> /export/home).
        areas = [os.path.realpath(area) for area in self._areas]
        return any(real == area or real.startswith(area.rstrip("/") + "/") for area in areas)


def _open(path: str, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC | os.O_NOCTTY)
    except PermissionError as error:
        raise BrokerRefused(path, code="file_not_permitted") from error
    except (OSError, ValueError) as error:
        raise BrokerRefused(path, code="file_missing") from error


def _entry(one: os.DirEntry[str]) -> dict[str, Any] | None:
    """None for what is gone since it was listed."""
    try:
        seen = one.stat(follow_symlinks=False)
    except OSError:
        return None
    mode = seen.st_mode
    kind = next((kind for kind, is_kind in _KINDS if is_kind(mode)), m.EntryKind.OTHER)
    name = _text(one.name)
    return {
        "name": name,
        "kind": kind.value,
        "size": seen.st_size if kind is m.EntryKind.FILE else 0,
        "modified_at": min(max(0.0, seen.st_mtime), _LATEST),  # anyone sets it to anything
        "exact": name == one.name,
    }


def _text(name: str) -> str:
    return name.encode(errors="surrogateescape").decode(errors="replace")


def chunk(raw: bytes, start: int, size: int, *, cut: bool) -> dict[str, Any]:
    """Whole characters only: one that is cut at the edge is left for the next read."""
    head = _continuation_bytes(raw) if cut and start else 0
    start, raw = start + head, raw[head:]
    whole = raw[: len(raw) - _unfinished_bytes(raw)] or raw
    return {
        "text": whole.decode("utf-8", "replace"),
        "offset": start,
        "next_offset": start + len(whole),
        "size": size,
    }


def _continuation_bytes(raw: bytes) -> int:
    count = 0
    while count < min(len(raw), _LONGEST_UTF8 - 1) and raw[count] & 0xC0 == 0x80:
        count += 1
    return count


def _unfinished_bytes(raw: bytes) -> int:
    for back in range(1, min(len(raw), _LONGEST_UTF8 - 1) + 1):
        byte = raw[-back]
        if byte & 0xC0 == 0x80:
            continue
        needs = 1 if byte > 0xF4 or byte < 0xC2 else 2 + (byte >= 0xE0) + (byte >= 0xF0)
        return back if needs > back else 0
    return 0


def _is_absolute(path: str) -> bool:
    return path.startswith("/") and "\0" not in path


def _require_absolute(path: str) -> None:
    if not _is_absolute(path):
        raise BrokerRefused("not an absolute path", code="file_missing")
