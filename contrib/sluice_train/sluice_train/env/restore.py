"""Restore a snapshot on a node: verified once, and shared by this person's jobs there.

It is unpacked to the node's own disk. A site may have it mounted instead (SLUICE_SNAPSHOT_RESTORE):
`kernel` by words of the site's own (SLUICE_SNAPSHOT_MOUNT, the image and the folder behind them),
which need root; `squashfuse` for one job on one node, for the mount ends with the job that made it.
Several layers are always unpacked: only so can a higher one take away what a lower one has.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shlex
import shutil
import stat
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_train.env import base as bases
from sluice_train.env import document, layer, overlay, store
from sluice_train.env.errors import DATA, Unusable
from sluice_train.node.slurm import queue_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sluice_train.env.base import Base
    from sluice_train.env.document import Document

READY = "ready"
_YOUNG_SECONDS = 120.0  # Slurm may not tell yet of a job that has just begun
_SPARE = 32 * 1024 * 1024  # bytes for the files that make it an environment


def restore(path: Path, environment: Mapping[str, str], *, shared: bool) -> Path:
    """The environment to activate. `shared`: jobs to come may use it, so it must outlast this one.

    Unusable says why not: a wrong hash, a layer that is missing, no room."""
    one = document.load(path)
    base = above(one)
    place = node_folder(environment) / one.id[:32]
    with _locked(place):
        _use(place, environment)
        _sweep(place.parent, keep=place.name)
        if not (place / READY).exists():
            store.remove(place / "tree")
            store.remove(place / "env")
            try:
                _bring(one, path, place, environment, shared=shared)
                overlay.make(place / "env", base, below=[place / "tree"])
                (place / READY).touch()
            except BaseException:
                _clear(place)
                raise
        elif not os.path.ismount(place / "tree") and (place / "mounted").exists():
            _mount(one, path, place, environment)  # its job ended, and took the mount along
    return place / "env"


def above(one: Document) -> Base:
    """The base of a snapshot as it is now. Unusable: another Python; a word where it changed."""
    base = bases.look(Path(one.base["path"]), name=one.base["name"], kind=one.base["kind"])
    if base.version != one.base["python"]:
        text = f"the snapshot was saved above Python {one.base['python']} of {base.path}"
        raise Unusable(f"{text}, which has {base.version} now")
    if base.fingerprint() != one.base["fingerprint"]:
        name = base.name or base.path
        print(f"{name} has changed since snapshot {one.id[:12]} was saved", file=sys.stderr)
    return base


def unpacked(one: Document, path: Path, tree: Path) -> None:
    """Verify the layers and lay them into `tree`, an empty or absent folder. Unusable: why not."""
    images = images_of(one, path)
    needed = sum(each.content for each in one.layers) + _SPARE
    tree.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(tree).free
    if free < needed:
        sizes = f"{needed / 1e9:,.2f} GB are needed, {free / 1e9:,.2f} GB are free"
        raise Unusable(f"there is no room to unpack the snapshot at {tree}: {sizes}")
    for image in images:
        layer.unpack(image, tree)


def images_of(one: Document, path: Path) -> list[Path]:
    """The layers, each with the hash that the document has. Unusable: missing, or damaged."""
    images = []
    for each in one.layers:
        image = path.parent.parent / "layers" / f"{each.sha256}.sqfs"
        try:
            found = layer.sha256(image)
        except OSError as error:
            text = f"layer {each.sha256[:12]} of snapshot {one.id[:12]} cannot be read"
            raise Unusable(f"{text}: {error.strerror}") from error
        if found != each.sha256:
            text = f"layer {each.sha256[:12]} of snapshot {one.id[:12]} is damaged"
            raise Unusable(f"{text}: its content has another hash")
        images.append(image)
    return images


def node_folder(environment: Mapping[str, str]) -> Path:
    """The person's own folder on the node's disk. Unusable: somebody else has made it."""
    local = environment.get("SLUICE_LOCAL") or environment.get("TMPDIR") or "/tmp"  # noqa: S108
    folder = Path(local) / f"sluice-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        seen = folder.lstat()
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid() or seen.st_mode & 0o022:
            raise Unusable(f"{folder} is not this account's own folder", DATA)
        (folder / "snapshots").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Unusable(f"{folder} cannot be made: {error.strerror}") from error
    return folder / "snapshots"


def _bring(
    one: Document, path: Path, place: Path, environment: Mapping[str, str], *, shared: bool
) -> None:
    way = environment.get("SLUICE_SNAPSHOT_RESTORE", "unpack")
    mounts = way == "kernel" or (way == "squashfuse" and not shared)
    if mounts and len(one.layers) == 1:
        images_of(one, path)
        (place / "tree").mkdir(parents=True)
        _mount(one, path, place, environment)
        (place / "mounted").touch()
    else:
        unpacked(one, path, place / "tree")


def _mount(one: Document, path: Path, place: Path, environment: Mapping[str, str]) -> None:
    image = path.parent.parent / "layers" / f"{one.layers[0].sha256}.sqfs"
    if environment.get("SLUICE_SNAPSHOT_RESTORE") == "kernel":
        default = "mount -t squashfs -o loop,ro,nosuid,nodev"
        words = shlex.split(environment.get("SLUICE_SNAPSHOT_MOUNT", default))
    else:
        words = [layer.tool("squashfuse"), "-o", "nosuid,nodev"]
    try:
        done = subprocess.run(  # noqa: S603
            [*words, str(image), str(place / "tree")],
            capture_output=True,
            check=False,
            timeout=60,
            stdin=subprocess.DEVNULL,
        )
        said = done.stderr.decode("utf-8", "replace").strip()
    except (OSError, subprocess.SubprocessError) as error:
        said, done = str(error), None
    if done is None or done.returncode != 0:
        raise Unusable(f"the snapshot cannot be mounted: {said or words[0]}")


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    """One job of the node prepares a snapshot; the others wait for it."""
    try:
        handle = os.open(f"{place}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Unusable(f"{place} cannot be made: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        place.mkdir(mode=0o700, exist_ok=True)  # who swept it had the lock
        yield
    finally:
        os.close(handle)


def _use(place: Path, environment: Mapping[str, str]) -> None:
    """Note that this job uses it."""
    job = environment.get("SLURM_JOB_ID", "")
    if job.isdigit():
        (place / f"used-{job}").touch()


def _sweep(folder: Path, *, keep: str) -> None:
    """Clear away what no live job uses. One that is being prepared is left alone."""
    for place in folder.iterdir():
        if place.name == keep or not place.is_dir() or place.is_symlink():
            continue
        handle = os.open(f"{place}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not any(_is_used(use) for use in place.glob("used-*")):
                _clear(place)
        except BlockingIOError:
            continue
        finally:
            os.close(handle)


def _is_used(use: Path) -> bool:
    """Slurm's silence is no end of a job."""
    with suppress(OSError):
        if time.time() - use.stat().st_mtime < _YOUNG_SECONDS:
            return True
    if queue_state(use.name.partition("-")[2]) != "":
        return True
    store.remove(use)
    return False


def _clear(place: Path) -> None:
    if (place / "mounted").exists():
        for words in (["fusermount", "-uz"], ["fusermount3", "-uz"], ["umount", "-l"]):
            if shutil.which(words[0]):
                command = [*words, str(place / "tree")]
                subprocess.run(command, capture_output=True, check=False)  # noqa: S603
            if not os.path.ismount(place / "tree"):
                break
        else:
            return  # still mounted: nothing of it is ours to delete
    store.remove(place)


def main(argv: list[str]) -> int:
    """Print the environment to activate."""
    parser = argparse.ArgumentParser(prog="sluice_train.env restore")
    parser.add_argument("--document", type=Path, required=True)
    parser.add_argument("--shared", action="store_true", help="it must outlast this process")
    given = parser.parse_args(argv[1:])
    store.Store.of_environment(os.environ).drop_asked(os.environ)
    print(restore(given.document, os.environ, shared=given.shared))
    return 0
