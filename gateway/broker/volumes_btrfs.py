"""Btrfs: a volume is a subvolume, its limit one of its quota group on what it refers to."""

import fcntl
import os
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.broker.volumes_areas import AreaSettings, Figures, Tools, Trouble

_INO_LOOKUP = 0xD0009412  # BTRFS_IOC_INO_LOOKUP of linux/btrfs.h: tree, inode, 4,080 bytes of name
_FIRST_INODE = 256  # of every subvolume's own root, and of nothing else in it
_GROUP = re.compile(r"0/(\d+)")


@dataclass(frozen=True, slots=True)
class Btrfs:
    """Full and simple quotas alike; the site enables one of them."""

    tools: Tools
    limits: bool = True

    def read(self, area: AreaSettings, names: Sequence[str]) -> Mapping[str, Figures]:
        argv = ["btrfs", "qgroup", "show", "--sync", "--raw", "-r", str(area.path)]
        try:
            done = self.tools.run(argv)
        except Trouble as error:
            if "not enabled" in str(error):
                raise Trouble(str(error), code="volume_quota_off") from error
            raise
        groups = quota_groups(done.stdout.decode("utf-8", "replace"))
        stale = "inconsistent" in done.stderr
        return {name: _figures(area.path / name, groups, stale=stale) for name in names}

    def make(self, _area: AreaSettings, folder: Path) -> None:
        self.tools.run(["btrfs", "subvolume", "create", str(folder)], acts=True)

    def limit(self, _area: AreaSettings, folder: Path, limit_bytes: int | None) -> None:
        text = "none" if limit_bytes is None else str(limit_bytes)
        self.tools.run(["btrfs", "qgroup", "limit", text, str(folder)], acts=True)


def quota_groups(text: str) -> dict[int, tuple[int, int | None]]:
    """Referenced bytes and their limit by subvolume, as `btrfs qgroup show --raw -r` prints them:
    a head, then `0/257  16384  16384  52428800  name`; older ones print no name."""
    found: dict[int, tuple[int, int | None]] = {}
    for line in text.splitlines():
        words = line.split()
        group = _GROUP.fullmatch(words[0]) if words else None
        if group is None:
            continue
        try:
            limit = None if words[3] == "none" else int(words[3])
            found[int(group[1])] = (int(words[1]), limit)
        except (IndexError, ValueError) as error:
            raise Trouble(f"btrfs printed {line[:200]!r}", code="volume_tool_failed") from error
    if not found:
        raise Trouble("btrfs printed no quota group", code="volume_quota_off")
    return found


def _figures(folder: Path, groups: Mapping[int, tuple[int, int | None]], *, stale: bool) -> Figures:
    subvolume = subvolume_id(folder)
    if subvolume is None:
        return Figures(None, None, "volume_not_limited")
    if subvolume not in groups:
        return Figures(None, None, "volume_quota_lost")
    used, limit = groups[subvolume]
    # What the kernel has not counted through is no figure.
    return Figures(None, limit, "volume_quota_stale") if stale else Figures(used, limit)


def subvolume_id(folder: Path) -> int | None:
    """None for a folder that is no subvolume. The kernel answers without any process of ours."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(handle).st_ino != _FIRST_INODE:
            return None
        asked = bytearray(struct.pack("=QQ", 0, _FIRST_INODE) + bytes(4080))
        fcntl.ioctl(handle, _INO_LOOKUP, asked)
    except OSError:
        return None
    finally:
        os.close(handle)
    return int(struct.unpack_from("=Q", asked)[0])
