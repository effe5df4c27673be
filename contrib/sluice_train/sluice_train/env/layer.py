"""A layer: a squashfs image of entries, written and unpacked.

The entries go to mksquashfs as a tar stream, so nothing is copied aside, a name may be any bytes,
and each file is read once. The same entries make the same image: sorted, one time for all, owned
by nobody in particular.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from sluice_train.env import content, store
from sluice_train.env.document import GONE
from sluice_train.env.errors import FULL, Changed, Unusable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from sluice_train.env.scan import Entry

TIME = 315532800  # 1980: the first that every archive can hold
LEVEL = 3  # of zstd: 15, the default, saves a tenth of the room in ten times the time
_PIECE = 1 << 20
_BLOCK = 512


def tool(name: str) -> str:
    """Where a program of squashfs-tools is. Unusable: not on this machine."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/bin:/usr/sbin:/sbin")
    if found is None:
        raise Unusable(f"{name} is not installed on {os.uname().nodename}: snapshots need it")
    return found


@dataclass
class Written:
    """`hashes` of the files that went in, their bytes, and stale files that were left out."""

    hashes: dict[bytes, str] = field(default_factory=dict)
    size: int = 0
    count: int = 0
    left_out: set[bytes] = field(default_factory=set)


def write(
    target: Path, env: bytes, entries: Mapping[bytes, Entry], wanted: Iterable[bytes], gone: bytes
) -> Written:
    """Make the image `target` of the paths `wanted` below `env`, with the list `gone`.

    Raises Changed where a file is written to meanwhile, Unusable where there is no room.
    """
    words = [tool("mksquashfs"), "-", str(target), "-tar", "-noappend", "-no-xattrs", "-all-root"]
    words += ["-comp", "zstd", "-Xcompression-level", str(LEVEL), "-quiet", "-no-progress"]
    words += ["-exit-on-error", "-root-mode", "755"]
    # Looking for the same tail of two files in a tar stream, 4.5.1 writes blocks that nobody can
    # read, other ones each time (seen with 1 GB of packages in three saves of five).
    words += ["-no-duplicates"]
    words += ["-mkfs-time", str(TIME), "-root-time", str(TIME), "-all-time", str(TIME)]
    with subprocess.Popen(  # noqa: S603
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stderr
        try:
            written = _Stream(process.stdin, env).send(entries, sorted(wanted), gone)
        except BrokenPipeError:
            written = Written()
        except BaseException:
            process.kill()
            raise
        finally:
            # What is still in the buffer has nowhere to go once the program has ended.
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        said = process.stderr.read().decode("utf-8", "replace").strip()
    if process.returncode != 0:
        last = said.splitlines()[-1:] or [f"mksquashfs ended with {process.returncode}"]
        full = "No space left" in said or "quota" in said.lower()
        reason = "there is no room for it" if full else last[0]
        raise Unusable(f"the snapshot cannot be written: {reason}", FULL)
    return written


class _Stream:
    """A tar archive on its way into a pipe."""

    def __init__(self, pipe: IO[bytes], env: bytes) -> None:
        self._pipe, self._env = pipe, env
        self._links: dict[tuple[int, int], bytes] = {}
        self._done = Written()

    def send(self, entries: Mapping[bytes, Entry], wanted: Iterable[bytes], gone: bytes) -> Written:
        if gone:
            self._file(GONE, 0o644, gone)
        for path in wanted:
            entry = entries[path]
            if entry.kind == "d":
                self._header(path, tarfile.DIRTYPE, entry.mode)
            elif entry.kind == "l":
                link = os.fsencode(entry.content or "")
                self._header(path, tarfile.SYMTYPE, 0o777, link=link)
            elif not self._regular(path, entry):
                self._done.left_out.add(path)
                continue
            self._done.count += 1
        self._pipe.write(b"\0" * 2 * _BLOCK)
        self._pipe.close()
        return self._done

    def _regular(self, path: bytes, entry: Entry) -> bool:
        """False: a stale compiled file."""
        try:
            handle = os.open(self._at(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            raise Changed(os.fsdecode(path)) from None
        except PermissionError as error:
            text = f"{os.fsdecode(path)!r} cannot be read: {error.strerror}"
            raise Unusable(text, FULL) from None
        with os.fdopen(handle, "rb") as file:
            before = os.fstat(handle)
            key = (before.st_dev, before.st_ino)
            if before.st_nlink > 1 and key in self._links:
                first = self._links[key]
                self._header(path, tarfile.LNKTYPE, entry.mode, link=first)
                self._done.hashes[path] = self._done.hashes[first]
                return True
            if content.is_special(path) and before.st_size <= content.LARGEST:
                data = self._normal(path, file.read())
                if data is None:
                    return False
                self._file(path, entry.mode, data)
            else:
                self._pieces(path, entry, file, before)
            content.same(path, before, os.fstat(handle))
        self._links[key] = path
        return True

    def _normal(self, path: bytes, data: bytes) -> bytes | None:
        if not content.is_compiled(path):
            return content.normal(path, data, self._env)
        folder, name = os.path.split(path)
        source = os.path.join(os.path.dirname(folder), name.split(b".")[0] + b".py")
        try:
            with open(self._at(source), "rb") as file:
                return content.compiled(data, file.read(), os.fstat(file.fileno()), self._env)
        except OSError:
            return None

    def _file(self, path: bytes, mode: int, data: bytes) -> None:
        self._header(path, tarfile.REGTYPE, mode, size=len(data))
        self._pipe.write(data)
        self._end(path, len(data), hashlib.sha256(data).hexdigest())

    def _pieces(self, path: bytes, entry: Entry, file: IO[bytes], now: os.stat_result) -> None:
        size = now.st_size
        self._header(path, tarfile.REGTYPE, entry.mode, size=size)
        left, found = size, hashlib.sha256()
        while left:
            piece = file.read(min(left, _PIECE))
            if not piece:
                raise Changed(os.fsdecode(path))
            found.update(piece)
            self._pipe.write(piece)
            left -= len(piece)
        self._end(path, size, found.hexdigest())

    def _end(self, path: bytes, size: int, sha256: str) -> None:
        self._pipe.write(b"\0" * (-size % _BLOCK))
        self._done.hashes[path] = sha256
        self._done.size += size

    def _header(
        self, path: bytes, kind: bytes, mode: int, *, size: int = 0, link: bytes = b""
    ) -> None:
        info = tarfile.TarInfo(os.fsdecode(path))
        info.type, info.mode, info.size, info.mtime = kind, mode, size, TIME
        info.linkname = os.fsdecode(link)
        self._pipe.write(info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape"))

    def _at(self, path: bytes) -> bytes:
        return os.path.join(self._env, path)


def sha256(path: Path) -> str:
    """Of the file's bytes. Raises OSError."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def unpack(image: Path, tree: Path) -> None:
    """Lay the image over `tree`: what it lists as gone is removed first. Unusable: no room.

    It is unpacked aside and moved: a link in a lower layer must not lead a higher one elsewhere.
    """
    aside = tree.with_name(f"{store.TEMPORARY}{tree.name}-{os.getpid()}")
    store.remove(aside)
    try:
        _unsquash(image, aside, tree)
        listed = aside / os.fsdecode(GONE)
        gone = listed.read_bytes() if listed.is_file() and not listed.is_symlink() else b""
        store.remove(listed)
        _take_away(os.fsencode(tree), [path for path in gone.split(b"\0") if path])
        _merge(os.fsencode(aside), os.fsencode(tree))
    finally:
        store.remove(aside)


def _unsquash(image: Path, aside: Path, tree: Path) -> None:
    words = [tool("unsquashfs"), "-d", str(aside), "-quiet", "-no-progress", "-no-xattrs"]
    words += ["-strict-errors", str(image)]
    done = subprocess.run(  # noqa: S603
        words, capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode == 0:
        return
    said = done.stderr.decode("utf-8", "replace").strip()
    full = "No space left" in said or "quota" in said.lower()
    last = said.splitlines()[-1:] or [f"unsquashfs ended with {done.returncode}"]
    reason = "there is no room for it" if full else last[0]
    raise Unusable(f"the snapshot cannot be unpacked to {tree}: {reason}")


def _take_away(tree: bytes, gone: list[bytes]) -> None:
    """Paths that lead out, or through a link, are none of the tree's."""
    for path in gone:
        parts = path.split(b"/")
        if b".." in parts or b"" in parts or b"." in parts:
            continue
        above = [os.path.join(tree, *parts[:count]) for count in range(1, len(parts))]
        if all(os.path.isdir(one) and not os.path.islink(one) for one in above):
            _remove(os.path.join(tree, path))


def _merge(source: bytes, target: bytes) -> None:
    """Move `source` over `target`; folders of both become one, with the upper's mode."""
    if not _is_folder(target):
        _remove(target)
        os.rename(source, target)
        return
    mode = os.lstat(source).st_mode & 0o7777
    os.chmod(source, 0o700)
    os.chmod(target, 0o700)
    with os.scandir(source) as entries:
        names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in names:
        upper, lower = os.path.join(source, name), os.path.join(target, name)
        if is_folder:
            _merge_into(upper, lower)
        else:
            _remove(lower)
            os.rename(upper, lower)
    os.chmod(target, mode)


def _merge_into(upper: bytes, lower: bytes) -> None:
    mode = os.lstat(upper).st_mode & 0o7777
    if not _is_folder(lower):
        _remove(lower)
        os.chmod(upper, mode | 0o700)  # moving a folder writes its `..`
        os.rename(upper, lower)
        os.chmod(lower, mode)
        return
    _merge(upper, lower)


def _is_folder(path: bytes) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _remove(path: bytes) -> None:
    if _is_folder(path):
        shutil.rmtree(path, onerror=store.open_up)
    elif os.path.lexists(path):
        os.unlink(path)
