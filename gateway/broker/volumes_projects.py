"""Project quotas: a volume is a folder with a project's number, which what is made in it inherits.

XFS (`xfs_quota`) and Lustre (`lfs`) differ in how the number is kept and the quota is told.
"""

import fcntl
import os
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.broker.volumes_areas import AreaSettings, Figures, Tools, Trouble

_KIB = 1024
# linux/fs.h: FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR and struct fsxattr
_GET, _SET = 0x801C581F, 0x401C5820
_ATTRIBUTES = struct.Struct("=5I8x")  # flags, extent size, extents, project, cow extent size
_INHERIT = 0x200
_XFS_ROW = re.compile(r"#(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+\d+\s+\[.*\]")
_LUSTRE_PROJECT = re.compile(r"\s*(\d+)\s+(\S)\s+")


@dataclass(frozen=True, slots=True)
class Xfs:
    """The number lies in the folder's attributes, which the kernel tells; xfs_quota has figures."""

    tools: Tools
    limits: bool = True

    def read(self, area: AreaSettings, names: Sequence[str]) -> Mapping[str, Figures]:
        rows = self._report(area)
        return {name: _of(rows, xfs_project(area.path / name)) for name in names}

    def make(self, area: AreaSettings, folder: Path) -> None:
        others = [xfs_project(one) for one in _folders(area.path)]
        number = max(area.first_project - 1, *self._report(area), *others) + 1
        folder.mkdir(mode=0o700)
        _set_xfs_project(folder, number)

    def limit(self, area: AreaSettings, folder: Path, limit_bytes: int | None) -> None:
        number = _of_a_project(xfs_project(folder))
        words = f"limit -p bhard={(limit_bytes or 0) // _KIB}k {number}"
        self.tools.run(["xfs_quota", "-x", "-c", words, str(area.mount)], acts=True)

    def _report(self, area: AreaSettings) -> dict[int, Figures]:
        argv = ["xfs_quota", "-x", "-c", "report -p -b -n -N", str(area.mount)]
        return xfs_report(self.tools.run(argv).stdout.decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Lustre:
    """`lfs project` has the number, `lfs quota` the figures; one call each a volume."""

    tools: Tools
    limits: bool = True

    def read(self, area: AreaSettings, names: Sequence[str]) -> Mapping[str, Figures]:
        return {name: self._figures(area, area.path / name) for name in names}

    def make(self, area: AreaSettings, folder: Path) -> None:
        others = [self._project(one) for one in _folders(area.path)]
        number = max([area.first_project - 1, *others]) + 1
        folder.mkdir(mode=0o700)
        self.tools.run(["lfs", "project", "-p", str(number), "-s", str(folder)], acts=True)

    def limit(self, area: AreaSettings, folder: Path, limit_bytes: int | None) -> None:
        number = _of_a_project(self._project(folder))
        blocks = str((limit_bytes or 0) // _KIB)
        argv = ["lfs", "setquota", "-p", str(number), "-b", "0", "-B", blocks, str(area.mount)]
        self.tools.run(argv, acts=True)

    def _project(self, folder: Path) -> int:
        done = self.tools.run(["lfs", "project", "-d", str(folder)])
        return lustre_project(done.stdout.decode("utf-8", "replace"))

    def _figures(self, area: AreaSettings, folder: Path) -> Figures:
        number = self._project(folder)
        if not number:
            return Figures(None, None, "volume_not_limited")
        done = self.tools.run(["lfs", "quota", "-q", "-p", str(number), str(area.mount)])
        return lustre_quota(done.stdout.decode("utf-8", "replace"), str(area.mount))


def xfs_report(text: str) -> dict[int, Figures]:
    """`#42  1024  0  2048  00 [--------]`: KiB used, soft and hard, by project. xfs_quota ends
    well where quotas are off, and prints nothing."""
    found: dict[int, Figures] = {}
    for line in text.splitlines():
        row = _XFS_ROW.fullmatch(line.strip())
        if row is not None:
            number, used, _, hard = (int(word) for word in row.groups())
            found[number] = Figures(used * _KIB, hard * _KIB or None)
        elif line.strip():
            raise Trouble(f"xfs_quota printed {line[:200]!r}", code="volume_tool_failed")
    if not found:
        raise Trouble("xfs_quota printed no project", code="volume_quota_off")
    return found


def lustre_project(text: str) -> int:
    """`  1001 P /mnt/lustre/nlp`; 0 where new files would not inherit the number."""
    row = _LUSTRE_PROJECT.match(text)
    if row is None:
        raise Trouble(f"lfs printed {text[:200]!r}", code="volume_tool_failed")
    return int(row[1]) if row[2] == "P" else 0


def lustre_quota(text: str, mount: str) -> Figures:
    """`/mnt/lustre  1024*  0  1024  -  3  0  0  -`, perhaps on two lines: KiB used, soft and hard.
    A star is beside what is over, brackets around what not all servers have told."""
    words = [word for word in text.split() if word != mount]
    if len(words) < 8:
        raise Trouble(f"lfs printed {text[:200]!r}", code="volume_tool_failed")
    if "[" in words[0]:
        return Figures(None, None, "volume_quota_stale")
    try:
        used, hard = int(words[0].rstrip("*")), int(words[2].rstrip("*"))
    except ValueError as error:
        raise Trouble(f"lfs printed {text[:200]!r}", code="volume_tool_failed") from error
    return Figures(used * _KIB, hard * _KIB or None)


def xfs_project(folder: Path) -> int:
    """0 for none, also where new files would not inherit it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        raw = bytearray(_ATTRIBUTES.size)
        fcntl.ioctl(handle, _GET, raw)
    except OSError:
        return 0
    finally:
        os.close(handle)
    flags, _, _, number, _ = _ATTRIBUTES.unpack(raw)
    return int(number) if flags & _INHERIT else 0


def _set_xfs_project(folder: Path, number: int) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        raw = bytearray(_ATTRIBUTES.size)
        fcntl.ioctl(handle, _GET, raw)
        flags, size, extents, _, cow = _ATTRIBUTES.unpack(raw)
        fcntl.ioctl(handle, _SET, _ATTRIBUTES.pack(flags | _INHERIT, size, extents, number, cow))
    except OSError as error:
        raise Trouble(f"{folder}: {error}", code="volume_quota_off") from error
    finally:
        os.close(handle)


def _of(rows: Mapping[int, Figures], number: int) -> Figures:
    if not number:
        return Figures(None, None, "volume_not_limited")
    # A project that has never used a block has no row.
    return rows.get(number, Figures(0, None))


def _of_a_project(number: int) -> int:
    if not number:
        raise Trouble("the folder has no project", code="volume_not_limited")
    return number


def _folders(area: Path) -> list[Path]:
    return [one for one in area.iterdir() if one.is_dir() and not one.is_symlink()]
