"""`stage FOLDER SHA256:MANIFEST …`: copies of datasets on this node's own disk, made once.

A copy is `<place>/<hash of the manifest>/`, complete when it has this name: it is filled under
`<hash>.part` and renamed. A lock file beside it is held alone while it is filled or cleared, and
shared by each job that reads it (the script's `on_node`). Each person has a place of their own, so
that nobody reads what another may not, or trusts what another wrote. Whatever fails, the job goes
on with the shared folder: this ends with 0 and says so.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import shutil
import stat
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_train.data.manifest import CHUNK, BadData, Entry, load, sha256_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BOUND_GB = 500
KEEP_FREE = 0.05  # of the disk: others live there too
LOOKED_AT = 0.01  # of the files of a copy that is there already are hashed again


def main(argv: Sequence[str]) -> int:
    """Always 0. Pairs: a folder, and its manifest's hash and path with a colon between, or ""."""
    for folder, manifest in zip(argv[0::2], argv[1::2]):
        began = time.monotonic()
        try:
            said = staged(Path(folder), manifest, os.environ)
        except (BadData, OSError) as error:
            said = f"read from the shared folder: {_why(error)}"
        print(f"{folder}: {said} ({time.monotonic() - began:.1f} s)", file=sys.stderr)
    return 0


def place_of(environment: Mapping[str, str]) -> Path:
    """This person's folder for copies on the node, made if need be; BadData when it is not
    theirs alone."""
    local = environment.get("SLUICE_LOCAL") or environment.get("TMPDIR") or "/tmp"  # noqa: S108
    own = Path(local) / f"sluice-{os.getuid()}"
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = own.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise BadData(f"{own} is not this account's own folder")
    (own / "datasets").mkdir(mode=0o700, exist_ok=True)
    return own / "datasets"


def staged(folder: Path, manifest: str, environment: Mapping[str, str]) -> str:
    """Have the copy; what was done, in words. BadData, OSError."""
    sha256, _, path = manifest.partition(":")
    if not path:
        return "read from the shared folder: it has no manifest"
    place = place_of(environment)
    entries = load(Path(path), sha256)
    with locked(place / f"{sha256}.lock"):
        copy = place / sha256
        if copy.is_dir() and looks_right(copy, entries):
            os.utime(place / f"{sha256}.lock")
            return "there already"
        if copy.is_dir():
            shutil.rmtree(copy)  # something was lost of it: a copy is no evidence, make it anew
        part = place / f"{sha256}.part"
        part.mkdir(exist_ok=True)
        _clear_extra(part, {entry.path for entry in entries})
        left = [entry for entry in entries if not _is_whole(part, entry)]
        make_room(place, sum(entry.size for entry in left), environment)
        for entry in left:
            _copy(folder, part, entry)
        part.rename(copy)
        os.utime(place / f"{sha256}.lock")
    size = sum(entry.size for entry in entries)
    return f"copied to {copy}: {len(left)} of {len(entries)} files, {size / 1e6:.1f} MB in all"


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Alone with the copy of this lock, whatever dies; False where it is taken and not waited."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(handle)


def looks_right(copy: Path, entries: list[Entry]) -> bool:
    """Every file has its size, and those of a sample their hash."""
    for entry in entries:
        if not _is_whole(copy, entry):
            return False
    count = max(1, round(len(entries) * LOOKED_AT))
    chosen = random.sample(entries, count)
    with suppress(OSError, BadData):
        return all(sha256_of(os.fspath(copy / one.path))[0] == one.sha256 for one in chosen)
    return False


def make_room(place: Path, need: int, environment: Mapping[str, str]) -> None:
    """Clear copies that nobody reads, the longest unused first, until `need` more bytes fit both
    the disk and the bound. BadData when they do not."""
    bound = float(environment.get("SLUICE_LOCAL_GB") or BOUND_GB) * 1e9
    unused = sorted(place.glob("*.lock"), key=lambda lock: lock.stat().st_mtime)
    for lock in unused:
        if _fits(place, need, bound):
            return
        with locked(lock, wait=False) as mine:
            if mine:
                for name in (lock.stem, f"{lock.stem}.part"):
                    shutil.rmtree(place / name, ignore_errors=True)
    if not _fits(place, need, bound):
        raise BadData(f"there is no room for {need / 1e9:.2f} GB more in {place}")


def _fits(place: Path, need: int, bound: float) -> bool:
    disk = shutil.disk_usage(place)
    return need <= disk.free - disk.total * KEEP_FREE and _used(place) + need <= bound


def _used(place: Path) -> int:
    return sum(
        os.lstat(os.path.join(root, name)).st_size  # noqa: PTH118
        for root, _, names in os.walk(place)
        for name in names
    )


def _is_whole(folder: Path, entry: Entry) -> bool:
    try:
        return (folder / entry.path).lstat().st_size == entry.size
    except OSError:
        return False


def _clear_extra(part: Path, known: set[str]) -> None:
    for root, _, names in os.walk(part):
        for name in names:
            full = Path(root) / name
            if os.fspath(full.relative_to(part)) not in known:
                full.unlink()


def _copy(folder: Path, part: Path, entry: Entry) -> None:
    """A file under its name only when it is whole and has its hash."""
    target = part / entry.path
    target.parent.mkdir(parents=True, exist_ok=True)
    half = target.with_name(f".{target.name}.half"[-255:])
    digest = hashlib.sha256()
    with (folder / entry.path).open("rb") as source, half.open("wb") as sink:
        while chunk := source.read(CHUNK):
            digest.update(chunk)
            sink.write(chunk)
    if digest.hexdigest() != entry.sha256:
        half.unlink()
        raise BadData(f"{entry.path} is not what the manifest says")
    half.chmod(0o400)
    half.rename(target)


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
