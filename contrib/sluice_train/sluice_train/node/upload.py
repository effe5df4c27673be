"""Complete checkpoints to the second place, and back: data first, compared, the manifest last.

Copied, never mirrored: what is missing here is never deleted there, except by the same rule of
the newest few. Only the newest checkpoint that is not there yet is brought: an upload slower than
the saves falls behind by one, not by more and more.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice_train import checkpoint
from sluice_train.files import read_object, sync_folder, whole, write_whole
from sluice_train.formats import MANIFEST, Checkpoint
from sluice_train.node.copying import is_part
from sluice_train.node.halting import Failed, Halt, Halted
from sluice_train.node.places import NAME, place_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sluice_train.files import RunFolder
    from sluice_train.node.places import Place

LONGEST_PAUSE = 600


class Uploader:
    """Brings checkpoints of one run to its second place. Never raises into the job."""

    def __init__(self, run: RunFolder, place: Place, halt: Halt, *, name: str, keep: int) -> None:
        self._run, self._place, self._halt = run, place, halt
        self._name, self._keep = name, keep
        self._there: set[str] | None = None  # None: not asked yet

    @classmethod
    def of_environment(
        cls, run: RunFolder, halt: Halt, given: Mapping[str, str]
    ) -> Uploader | None:
        """By SLUICE_UPLOAD and what belongs to it; None where it is empty. ValueError: nonsense."""
        text = given.get("SLUICE_UPLOAD", "")
        if not text:
            return None
        place = place_of(
            text,
            given.get("SLUICE_RUN") or run.path.name,
            mbps=whole("SLUICE_UPLOAD_MBPS", 0, given),
            halt=halt,
        )
        keep = max(1, whole("SLUICE_CHECKPOINT_KEEP", 2, given))
        return cls(run, place, halt, name=text, keep=keep)

    def keep_up(self, *, every: float, pause: float) -> None:
        """Look every so many seconds until halted; after failures wait, longer each time."""
        wait = pause
        with suppress(Halted):
            while True:
                done = self.once()
                self._halt.pause(every if done else wait)
                wait = pause if done else min(wait * 2, max(pause, LONGEST_PAUSE))

    def once(self) -> bool:
        """Bring the newest checkpoint where it is not there yet. False: it failed, and is said."""
        try:
            newest = checkpoint.newest(self._run.checkpoints)
        except OSError:
            return False  # of the folder itself: looked at again after the pause
        if newest is None or (self._there and newest.path.name in self._there):
            return True
        started = time.monotonic()
        try:
            if not self._brought(newest):
                return True
            facts = {"place": self._name, "bytes": newest.bytes}
            self._tell("uploaded", newest, **facts, seconds=round(time.monotonic() - started, 3))
            self._prune(newest.path.name)
        except Halted:
            self._tell("upload_failed", newest, place=self._name, error="cut off")
            raise
        except (Failed, OSError, ValueError) as error:
            self._tell("upload_failed", newest, place=self._name, error=str(error))
            return False
        return True

    def _brought(self, newest: Checkpoint) -> bool:
        """Whether it had to be brought. Failed, Halted, OSError."""
        name = newest.path.name
        if not NAME.fullmatch(name):
            raise Failed(f"a folder named {name!r} is not brought to a second place")
        with _alone(self._run, self._halt):
            self._there = {held for held, marked in self._place.holdings().items() if marked}
            if name in self._there:
                return False
            write_whole(self._run.uploading, name)
            try:
                with tempfile.TemporaryDirectory() as aside:
                    manifest = Path(aside) / MANIFEST
                    files = _manifest_of(newest, manifest)
                    self._place.copy(newest.path, name, files)
                    self._place.verify(newest.path, name, files)
                    self._place.mark(manifest, name)
            finally:
                with suppress(OSError):
                    self._run.uploading.unlink()
        self._there.add(name)
        return True

    def _prune(self, newest: str) -> None:
        """Leave the newest `keep` complete ones there, and nothing that older uploads left over.

        Only what is named like `newest` but for its number: other folders are the person's own.
        """
        try:
            held = self._place.holdings()
            alike = sorted((name for name in held if _family(name) == _family(newest)), key=step_of)
            kept = [name for name in alike if held[name]][-self._keep :]
            for name in alike:
                if name != newest and kept and step_of(name) < step_of(kept[0]):
                    self._place.remove(name)
        except Failed as error:
            # What was uploaded is safe all the same.
            print(f"sluice: an old checkpoint was not deleted there: {error}", file=sys.stderr)

    def _tell(self, kind: str, of: Checkpoint, **facts: Any) -> None:
        # A full disk must not end the uploads.
        with suppress(OSError, ValueError):
            self._run.event(kind, step=of.step, **facts)


def flush(run: RunFolder, given: Mapping[str, str], *, seconds_left: float) -> None:
    """Bring the newest checkpoint to the second place, as far as the time allows."""
    halt = Halt()
    try:
        uploader = Uploader.of_environment(run, halt, given)
    except ValueError as error:
        print(f"sluice: nothing is uploaded: {error}", file=sys.stderr)
        return
    if uploader is None or seconds_left <= 0:
        return
    deadline = threading.Timer(seconds_left, halt.now)
    deadline.daemon = True
    deadline.start()
    try:
        if not uploader.once():
            print("sluice: the newest checkpoint could not be uploaded", file=sys.stderr)
    except Halted:
        print("sluice: no time was left to upload the newest checkpoint", file=sys.stderr)
    finally:
        deadline.cancel()


def step_of(name: str) -> int:
    """The step that the name of a checkpoint's folder tells; -1 where it tells none."""
    found = re.search(r"([0-9]+)\D*$", name)
    return int(found[1]) if found else -1


def _family(name: str) -> str:
    return re.sub(r"[0-9]+(?=\D*$)", "#", name)


def newest_there(place: Place) -> str | None:
    """The name of the newest complete checkpoint of a place. Failed, Halted."""
    marked = [name for name, complete in place.holdings().items() if complete]
    return max(marked, key=step_of, default=None)


def restore(place: Place, name: str, folder: Path) -> Checkpoint:
    """Bring `name` back into `folder`, compared with its manifest. Failed, Halted, OSError."""
    aside, final = folder / f"{name}.tmp", folder / name
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        place.fetch(name, aside)
        manifest = _checked(aside)
        for path in aside.rglob("*"):
            _sync(path)
        if final.exists():
            checkpoint.move_incomplete(folder)
        aside.rename(final)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    if manifest.get("format") == "deepspeed":
        write_whole(folder / "latest", name)
    sync_folder(folder)
    whole_again = checkpoint.complete(final)
    if whole_again is None:
        raise Failed(f"{name} is not complete in the second place either")
    return whole_again


def _checked(folder: Path) -> dict[str, Any]:
    manifest = read_object(folder / MANIFEST)
    if manifest is None or not isinstance(manifest.get("files"), dict):
        raise Failed(f"{folder.name} came without a manifest")
    for file, size in manifest["files"].items():
        inside = folder / file
        if not inside.is_file() or inside.stat().st_size != size:
            raise Failed(f"{file} is not as long as the manifest says")
    return manifest


def _manifest_of(found: Checkpoint, copy: Path) -> list[str]:
    """Write its manifest to `copy`, made for those whose framework writes none; the data files."""
    manifest = read_object(found.path / MANIFEST)
    if manifest is None or not isinstance(manifest.get("files"), dict):
        paths = sorted(path for path in found.path.rglob("*") if path.is_file())
        manifest = {
            "step": found.step,
            "world": found.world,
            "files": {
                path.relative_to(found.path).as_posix(): path.stat().st_size for path in paths
            },
            "format": found.format,
            "at": found.at,
        }
    copy.write_text(json.dumps(manifest, indent=1) + "\n")
    return list(manifest["files"])


def _sync(path: Path) -> None:
    if path.is_dir():
        sync_folder(path)
    elif path.is_file() and not is_part(path):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _alone(run: RunFolder, halt: Halt) -> Iterator[None]:
    """One upload of a run at a time on this node: the guard's process, or the last flush.

    A name that the kernel takes back by itself, however its holder ends.
    """
    address = f"\0sluice-upload-{hashlib.sha256(os.fsencode(run.checkpoints)).hexdigest()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as held:
        while True:
            try:
                held.bind(address)
                break
            except OSError:
                halt.pause(0.2)
        yield
