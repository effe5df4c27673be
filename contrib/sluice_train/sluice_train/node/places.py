"""The second place of checkpoints: a mounted folder, or what rclone or rsync reach.

A place holds a folder for each run, in that one for each checkpoint, and in that the data and,
written last and deleted first, the manifest. Only what has its manifest counts.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sluice_train.files import write_whole
from sluice_train.formats import MANIFEST
from sluice_train.node.copying import Copier, is_part
from sluice_train.node.halting import Failed, Halt

if TYPE_CHECKING:
    from collections.abc import Sequence

# No pattern of rsync's or rclone's, no option, no path.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+=-]*")
RCLONE_NOT_THERE = 3
RSYNC_SOME_NOT_THERE = 23


class Place(Protocol):
    """Where the checkpoints of one run are kept. Every method may raise Failed or Halted."""

    def holdings(self) -> dict[str, bool]:
        """The checkpoints there by their folders' names, and whether each has its manifest."""

    def copy(self, folder: Path, name: str, files: Sequence[str]) -> None:
        """Bring `files` (relative to `folder`) into the folder `name`."""

    def verify(self, folder: Path, name: str, files: Sequence[str]) -> None:
        """Compare what is there with `folder`. Failed: it differs."""

    def mark(self, manifest: Path, name: str) -> None:
        """Bring the manifest, which makes it complete."""

    def fetch(self, name: str, target: Path) -> None:
        """Bring all of `name`, with its manifest, into the empty folder `target`."""

    def remove(self, name: str) -> None:
        """Delete it, its manifest first."""


def place_of(text: str, run: str, *, mbps: int, halt: Halt) -> Place:
    """The place for `run` that SLUICE_UPLOAD describes. ValueError: it describes none.

    `mbps` limits what is copied there, in millions of bytes a second; 0: no limit.
    """
    if not NAME.fullmatch(run):
        raise ValueError(f"a run named {run!r} cannot be kept in a second place")
    if text.startswith("/"):
        return FolderPlace(Path(text), run, Copier(mbps * 1_000_000, halt))
    kind, colon, rest = text.partition(":")
    if not colon or not rest or rest.startswith("-") or not rest.isprintable():
        raise ValueError(f"{text!r} is no place: rclone:remote:path, rsync:host:/path or /folder")
    if kind == "rclone":
        return RclonePlace(rest, run, mbps, halt)
    if kind == "rsync":
        return RsyncPlace(rest, run, mbps, halt)
    raise ValueError(f"{kind!r} is not known: rclone:remote:path, rsync:host:/path or /folder")


class FolderPlace:
    """A folder that is mounted."""

    def __init__(self, root: Path, run: str, copier: Copier) -> None:
        self._root, self._folder, self._copier = root, root / run, copier

    def holdings(self) -> dict[str, bool]:
        """See Place. A root that is not there is an error: it is not mounted."""
        if not self._root.is_dir():
            raise Failed(f"the folder {self._root} is not there")
        if not self._folder.is_dir():
            return {}
        if not self._is_mine():
            raise Failed(f"{self._folder} is another person's: give this run another name")
        found = [inner for inner in self._folder.iterdir() if inner.is_dir()]
        return {inner.name: (inner / MANIFEST).is_file() for inner in found}

    def _is_mine(self) -> bool:
        """Whether a folder that several people share has the run of this name from this person.
        Some mounts show all files as one account's: then that of a new file tells."""
        owner = self._folder.stat().st_uid
        if owner == os.getuid():
            return True
        try:
            with tempfile.TemporaryFile(dir=self._folder) as mine:
                return os.fstat(mine.fileno()).st_uid == owner
        except OSError:
            return False

    def copy(self, folder: Path, name: str, files: Sequence[str]) -> None:
        """See Place."""
        self.holdings()
        for file in files:
            self._copier.copy(folder / file, self._folder / name / file)

    def verify(self, folder: Path, name: str, files: Sequence[str]) -> None:
        """See Place: by size and SHA-256. All that differ are found at once, to be copied anew."""
        differing: Failed | None = None
        for file in files:
            try:
                self._copier.compare(folder / file, self._folder / name / file)
            except Failed as error:
                differing = differing or error
        if differing:
            raise differing

    def mark(self, manifest: Path, name: str) -> None:
        """See Place."""
        try:
            write_whole(self._folder / name / MANIFEST, manifest.read_text())
        except OSError as error:
            raise Failed(str(error)) from error

    def fetch(self, name: str, target: Path) -> None:
        """See Place."""
        source = self._folder / name
        for path in sorted(source.rglob("*")):
            if path.is_file() and not is_part(path):
                inside = target / path.relative_to(source)
                self._copier.copy(path, inside)
                self._copier.compare(path, inside)

    def remove(self, name: str) -> None:
        """See Place."""
        try:
            (self._folder / name / MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(self._folder / name)
        except OSError as error:
            raise Failed(str(error)) from error


class RclonePlace:
    """What rclone reaches, by a remote of the person's own configuration."""

    def __init__(self, remote: str, run: str, mbps: int, halt: Halt) -> None:
        self._root, self._halt = (
            f"{remote.rstrip('/')}{'' if remote[-1:] == ':' else '/'}{run}",
            halt,
        )
        self._limit = ("--bwlimit", f"{mbps * 1_000_000}B") if mbps else ()

    def holdings(self) -> dict[str, bool]:
        """See Place."""
        try:
            listed = self._rclone("lsf", "-R", "--max-depth", "2", self._root)
        except Failed as error:
            if error.code == RCLONE_NOT_THERE:
                return {}
            raise
        return _holdings(listed.splitlines())

    def copy(self, folder: Path, name: str, files: Sequence[str]) -> None:
        """See Place."""
        self._with_names("copy", folder, name, files, *self._limit)

    def verify(self, folder: Path, name: str, files: Sequence[str]) -> None:
        """See Place: by the hashes that the remote has, else by size."""
        self._with_names("check", folder, name, files, "--one-way")

    def mark(self, manifest: Path, name: str) -> None:
        """See Place."""
        self._rclone("copyto", str(manifest), f"{self._root}/{name}/{MANIFEST}")

    def fetch(self, name: str, target: Path) -> None:
        """See Place."""
        self._rclone("copy", f"{self._root}/{name}", str(target))

    def remove(self, name: str) -> None:
        """See Place."""
        if self.holdings().get(name):
            self._rclone("deletefile", f"{self._root}/{name}/{MANIFEST}")
        self._rclone("purge", f"{self._root}/{name}")

    def _with_names(
        self, verb: str, folder: Path, name: str, files: Sequence[str], *options: str
    ) -> None:
        self._rclone(
            verb,
            "--files-from-raw=-",
            *options,
            str(folder),
            f"{self._root}/{name}",
            given=_listed(files, "\n"),
        )

    def _rclone(self, *words: str, given: bytes = b"") -> str:
        quick = ("--retries=1", "--low-level-retries=3", "--contimeout=20s", "--timeout=60s")
        return self._halt.run(("rclone", "-q", *quick, *words), given=given)


class RsyncPlace:
    """What rsync reaches: a host through ssh, a daemon (`rsync://host/module`), or a folder."""

    def __init__(self, target: str, run: str, mbps: int, halt: Halt) -> None:
        self._base, self._run, self._halt = target.rstrip("/") + "/", run, halt
        self._root = f"{self._base}{run}/"
        self._limit = (f"--bwlimit={max(1, mbps * 1_000_000 // 1024)}",) if mbps else ()

    def holdings(self) -> dict[str, bool]:
        """See Place."""
        chosen = ("--include=/*/", f"--include=/*/{MANIFEST}", "--exclude=*")
        try:
            listed = self._rsync("--list-only", "-r", *chosen, "--", self._root)
        except Failed as error:
            if error.code == RSYNC_SOME_NOT_THERE and "No such file" in str(error):
                return {}
            raise
        found = []
        for line in listed.splitlines():
            parts = line.split(None, 4)  # mode, size, date, time, name
            if len(parts) == 5:
                found.append(parts[4] + "/" if parts[0].startswith("d") else parts[4])
        return _holdings(found)

    def copy(self, folder: Path, name: str, files: Sequence[str]) -> None:
        """See Place."""
        with tempfile.TemporaryDirectory() as empty:
            # Older rsyncs make no folder for what they copy: an empty one is sent there first.
            (Path(empty) / self._run / name).mkdir(parents=True)
            self._rsync("-rR", "--", f"./{self._run}/{name}", self._base, cwd=Path(empty))
        self._with_names(folder, name, files, "-rt", *self._limit)

    def verify(self, folder: Path, name: str, files: Sequence[str]) -> None:
        """See Place: by checksum. What differs is sent again: `copy` sees only size and time."""
        listed = self._with_names(folder, name, files, "-rcni")
        if differing := [line for line in listed.splitlines() if line[1:2] == "f"]:
            self._with_names(folder, name, files, "-rtc", *self._limit)
            raise Failed(f"what arrived differs: {differing[0]}")

    def mark(self, manifest: Path, name: str) -> None:
        """See Place."""
        self._rsync("--", str(manifest), f"{self._root}{name}/{MANIFEST}")

    def fetch(self, name: str, target: Path) -> None:
        """See Place."""
        self._rsync("-rt", "--", f"{self._root}{name}/", f"{target}/")

    def remove(self, name: str) -> None:
        """See Place: an empty folder is brought in line, each time with a part of what is there."""
        with tempfile.TemporaryDirectory() as empty:
            (Path(empty) / name).mkdir()
            marker = (f"--include=/{name}/", f"--include=/{name}/{MANIFEST}", "--exclude=*")
            self._rsync("-r", "--delete", *marker, "--", f"{empty}/", self._root)
            (Path(empty) / name).rmdir()
            whole = (f"--include=/{name}/", f"--include=/{name}/**", "--exclude=*")
            self._rsync("-r", "--delete", *whole, "--", f"{empty}/", self._root)

    def _with_names(self, folder: Path, name: str, files: Sequence[str], *options: str) -> str:
        return self._rsync(
            *options,
            "--from0",
            "--files-from=-",
            "--",
            f"{folder}/",
            f"{self._root}{name}/",
            given=_listed(files, "\0"),
        )

    def _rsync(self, *words: str, cwd: Path | None = None, given: bytes = b"") -> str:
        # -s: the other side's shell does not see the names.
        return self._halt.run(("rsync", "-s", "--timeout=120", *words), cwd=cwd, given=given)


def _listed(files: Sequence[str], end: str) -> bytes:
    if any(end in file for file in files):
        raise Failed("a file's name holds a line break")
    return "".join(file + end for file in files).encode(errors="surrogateescape")


def _holdings(listed: Sequence[str]) -> dict[str, bool]:
    """Of lines `name/` and `name/manifest.json`; other lines are no concern of ours."""
    marked = {line[: -len(MANIFEST) - 1] for line in listed if line.endswith(f"/{MANIFEST}")}
    folders = {line[:-1] for line in listed if line.endswith("/") and "/" not in line[:-1]}
    return {name: name in marked for name in sorted(folders) if NAME.fullmatch(name)}
