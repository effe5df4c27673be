"""A person's store of snapshots: layers, documents, an index, overlays.

Layers and documents can be read by who was told their names; the folders cannot be listed. What
is there is whole: everything is written under a name that begins with `.tmp-`, synced, and renamed.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice_train.env import document
from sluice_train.env.errors import BUSY, FULL, Unusable
from sluice_train.files import sync_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TEMPORARY = ".tmp-"
INDEX = "index.jsonl"


def user() -> str:
    """The account's name, not what a variable says."""
    return pwd.getpwuid(os.getuid()).pw_name


class Store:
    """`root` is `<area>/<user>`, or `~/.sluice/snapshots` where the site has no area."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.layers, self.documents = root / "layers", root / "documents"

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Store:
        """Where SLUICE_SNAPSHOT_AREA says, or at home."""
        area = environment.get("SLUICE_SNAPSHOT_AREA", "")
        home = Path(pwd.getpwuid(os.getuid()).pw_dir)
        return cls(Path(area) / user() if area else home / ".sluice" / "snapshots")

    def make(self) -> None:
        """The folders. Unusable: they cannot be made."""
        try:
            for folder in (self.root.parent, self.root, self.layers, self.documents):
                if not folder.is_dir():
                    folder.mkdir(parents=True, exist_ok=True)
                    folder.chmod(0o711)
        except OSError as error:
            raise Unusable(f"{self.root} cannot be made: {error.strerror}", FULL) from error

    @property
    def reachable(self) -> bool:
        """Whether others may enter every folder above the documents."""
        real = self.documents.resolve()
        return all(folder.stat().st_mode & 0o001 for folder in (real, *real.parents))

    @contextmanager
    def locked(self, *, wait: bool = True) -> Iterator[None]:
        """One at a time writes here; the lock goes with the process. Unusable: not waiting."""
        self.make()
        handle = os.open(self.root / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                text = "another save is going on: try again when it is done"
                raise Unusable(text, BUSY) from None
            yield
        finally:
            os.close(handle)

    def sweep(self) -> None:
        """Under the lock: what killed saves left, and layers that no document has."""
        kept, used = set(), set()
        for path in self.documents.glob("*.json"):
            try:
                used |= {layer.sha256 for layer in document.load(path).layers}
                kept.add(path.stem)
            except Unusable:
                continue  # it is the person's own; `check` tells of it
        for folder in (self.root, self.layers, self.documents):
            for path in folder.glob(f"{TEMPORARY}*"):
                remove(path)
        damaged = len(kept) < sum(1 for _ in self.documents.glob("*.json"))
        for path in self.layers.glob("*.sqfs"):
            if path.stem not in used and not damaged:
                remove(path)
        listed = {line["id"] for line in self.index()}
        if listed != kept:
            self._write_index(kept)

    def index(self) -> list[dict[str, Any]]:
        """The lines of what is kept, oldest first."""
        found = []
        with suppress(OSError):
            for line in (self.root / INDEX).read_text("utf-8", "replace").splitlines():
                with suppress(ValueError, TypeError, KeyError):
                    one = json.loads(line)
                    if isinstance(one["id"], str):
                        found.append(one)
        return found

    def layer(self, sha256: str) -> Path:
        """Where the image is, or will be."""
        return self.layers / f"{sha256}.sqfs"

    def keep(self, fields: Mapping[str, Any]) -> str:
        """Under the lock: write a document and its line. Its id."""
        data = document.dump(fields)
        name = document.digest(data)
        path = self.documents / f"{name}.json"
        if not path.exists():
            write_synced(path, data, 0o644)
            self._write_index({line["id"] for line in self.index()} | {name})
        return name

    def drop(self, name: str) -> None:
        """Under the lock: forget a document and the layers that only it had."""
        path = self.documents / f"{name}.json"
        if not path.exists():
            raise Unusable(f"there is no snapshot {name} in {self.root}")
        path.unlink()
        self.sweep()

    def drop_asked(self, environment: Mapping[str, str]) -> None:
        """What the portal was told to delete goes, unless somebody is saving just now."""
        names = set(environment.get("SLUICE_SNAPSHOT_DROP", "").split())
        found = [path for path in self.documents.glob("*.json") if path.stem in names]
        if found:
            with suppress(Unusable), self.locked(wait=False):
                for path in found:
                    path.unlink()
                self.sweep()

    def _write_index(self, names: set[str]) -> None:
        lines = []
        for name in names:
            with suppress(Unusable):
                lines.append(self._line(document.load(self.documents / f"{name}.json")))
        lines.sort(key=lambda line: (line["at"], line["id"]))
        text = "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines)
        write_synced(self.root / INDEX, text.encode(), 0o600)

    def _line(self, one: document.Document) -> dict[str, Any]:
        return {
            "id": one.id,
            "at": one.raw.get("at", 0),
            "reachable": self.reachable,
            "base": one.base["name"],
            "bytes": sum(layer.bytes for layer in one.layers),
        }


def write_synced(path: Path, data: bytes, mode: int) -> None:
    """`path` holds either what it held or all of it. Unusable: there is no room."""
    aside = path.with_name(f"{TEMPORARY}{path.name}-{os.getpid()}")
    try:
        with aside.open("wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        remove(aside)
        raise Unusable(f"{path} cannot be written: {error.strerror}", FULL) from error
    sync_folder(path.parent)


def remove(path: Path) -> None:
    """A file, a link or a whole folder, also one that may not be written to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, onerror=open_up)
        return
    with suppress(FileNotFoundError):
        path.unlink()


def open_up(act: Any, path: str, _: object) -> None:
    """A folder without the right to write keeps its entries: give it to its owner and try again."""
    with suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)
        os.chmod(path, 0o700)
        if act in (os.unlink, os.rmdir):
            act(path)
        else:
            shutil.rmtree(path, ignore_errors=True)
