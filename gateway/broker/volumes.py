"""Volumes: folders of groups in the site's areas, read, made and limited.

Nothing of a path comes from outside but a volume's name, which is matched against a pattern; areas
belong to root, so nobody exchanges a folder for a link meanwhile.
"""

import contextlib
import grp
import os
import stat
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.broker.accounts import Account
from gateway.broker.person import as_person
from gateway.broker.slots import Slots
from gateway.broker.volumes_areas import AreaSettings, Figures, Provider, Tools, Trouble
from gateway.broker.volumes_btrfs import Btrfs
from gateway.broker.volumes_folder import Folder
from gateway.broker.volumes_projects import Lustre, Xfs
from gateway.core.volumes import GROUP_NAME, LARGEST, NAME, STEP
from gateway.errors import BrokerRefused, BrokerSilent, GatewayError
from gateway.wire import volumes as vol

PROVIDERS: Mapping[str, Callable[[Tools], Provider]] = {
    "btrfs": Btrfs,
    "xfs": Xfs,
    "lustre": Lustre,
    "folder": Folder,
}
_UNFINISHED = ".new-"
_MODE = 0o2770  # new files belong to the group, and nobody else looks in
_DEFAULT_ACL = "system.posix_acl_default"
# linux/posix_acl_xattr.h: version 2, then (tag, rights, id): owner and group all, others nothing.
# With it a person's umask does not shut out the rest of the group.
_EVERYBODY_OF_THE_GROUP = struct.pack(
    "<IHHIHHIHHI", 2, 0x01, 7, 0xFFFFFFFF, 0x04, 7, 0xFFFFFFFF, 0x20, 0, 0xFFFFFFFF
)


@dataclass(frozen=True, slots=True)
class VolumeStore:
    """`alone` has one slot: from the comparison to the read-back no other writer gets between.
    `seconds` is what a whole answer may take."""

    areas: Sequence[AreaSettings]
    tools: Tools
    alone: Slots
    seconds: float
    min_gid: int

    def read(self) -> vol.Volumes:
        """Each area in a child of its own: one that hangs is not known, and hides no other."""
        end = time.monotonic() + self.seconds
        areas: list[vol.Area] = []
        volumes: list[vol.Volume] = []
        for place, area in enumerate(self.areas):
            left = (end - time.monotonic()) / (len(self.areas) - place)
            found, inside = self._in_child(area, left)
            areas.append(found)
            volumes += inside
        return vol.Volumes(tuple(areas), tuple(volumes), datetime.now(UTC))

    def make(self, asked: vol.MakeVolume) -> vol.Volume:
        """Under another name until it is whole; what a killed call left is gone on with."""
        area = self._area(asked.area)
        _require_name(asked.name)
        _require_limit(asked.limit_bytes)
        gid = self._gid(asked.group)
        provider = self._provider(area)
        if asked.limit_bytes is not None and not provider.limits:
            raise BrokerRefused(area.name, code="volume_no_limits")
        with self.alone.taken():
            self._require_usable(area)
            if os.path.lexists(area.path / asked.name):
                raise BrokerRefused(asked.name, code="volume_exists")
            fresh = area.path / (_UNFINISHED + asked.name)
            try:
                if not os.path.lexists(fresh):
                    provider.make(area, fresh)
                provider.limit(area, fresh, asked.limit_bytes)
                _give(fresh, gid)
                fresh.rename(area.path / asked.name)
            except (Trouble, OSError) as error:
                raise _no(error) from error
            return self._read_back(area, asked.name, asked.limit_bytes)

    def set_limit(self, asked: vol.SetVolumeLimit) -> vol.Volume:
        area = self._area(asked.area)
        _require_name(asked.name)
        _require_limit(asked.limit_bytes)
        provider = self._provider(area)
        if not provider.limits:
            raise BrokerRefused(area.name, code="volume_no_limits")
        with self.alone.taken():
            self._require_usable(area)
            try:
                now = self._one(area, asked.name)
            except Trouble as error:
                raise _no(error) from error
            if now.problem == "volume_not_limited":
                raise BrokerRefused(asked.name, code=now.problem)
            if now.limit_bytes == asked.limit_bytes:
                return now
            if now.limit_bytes != asked.expected_bytes:
                text = f"{asked.name} has {now.limit_bytes}, not {asked.expected_bytes}"
                raise BrokerRefused(text, code="volume_changed_meanwhile")
            _require_meant(asked, now)
            return self._write(area, provider, asked, now)

    def _write(
        self,
        area: AreaSettings,
        provider: Provider,
        asked: vol.SetVolumeLimit,
        before: vol.Volume,
    ) -> vol.Volume:
        """What the file system has afterwards decides, whatever its program said."""
        said: Trouble | None = None
        try:
            provider.limit(area, area.path / asked.name, asked.limit_bytes)
        except Trouble as error:
            said = error
        back = self._read_back(area, asked.name, asked.limit_bytes, unless=said)
        if back.limit_bytes == before.limit_bytes and said is not None:
            raise BrokerRefused(str(said), code=said.code) from said
        return back

    def _read_back(
        self,
        area: AreaSettings,
        name: str,
        limit_bytes: int | None,
        *,
        unless: Trouble | None = None,
    ) -> vol.Volume:
        try:
            back = self._one(area, name)
        except Trouble as error:
            raise BrokerSilent(f"volume {name} was written, then: {error}") from error
        if back.limit_bytes != limit_bytes and unless is None:
            raise BrokerSilent(f"volume {name} has {back.limit_bytes}, not {limit_bytes}")
        return back

    def _in_child(
        self, area: AreaSettings, seconds: float
    ) -> tuple[vol.Area, tuple[vol.Volume, ...]]:
        def work() -> Any:
            found, inside = self._look(area)
            return [asdict(found), [asdict(one) for one in inside]]

        try:
            raw, rows = as_person(_ourselves(), work, timeout_seconds=max(0.5, seconds))
        except BrokerSilent:
            return self._shown(area, problem="volume_timeout"), ()
        return vol.Area(**raw), tuple(vol.Volume(**row) for row in rows)

    def _look(self, area: AreaSettings) -> tuple[vol.Area, tuple[vol.Volume, ...]]:
        try:
            self._require_there(area)
            room = os.statvfs(area.path)
            owners = _folders(area.path)
            figures = self._provider(area).read(area, tuple(owners)) if owners else {}
        except Trouble as error:
            return self._shown(area, problem=error.code), ()
        except OSError:
            return self._shown(area, problem="volume_area_gone"), ()
        found = self._shown(
            area, total=room.f_blocks * room.f_frsize, free=room.f_bavail * room.f_frsize
        )
        rows = [_volume(area, name, owner, figures[name]) for name, owner in owners.items()]
        return found, tuple(rows)

    def _one(self, area: AreaSettings, name: str) -> vol.Volume:
        try:
            owner = _owner(area.path / name)
            if owner is None:
                raise Trouble(name, code="no_such_volume")
            return _volume(area, name, owner, self._provider(area).read(area, [name])[name])
        except OSError as error:
            code = "no_such_volume" if isinstance(error, FileNotFoundError) else "volume_unreadable"
            raise Trouble(f"{name}: {error}", code=code) from error

    def _shown(
        self,
        area: AreaSettings,
        *,
        total: int | None = None,
        free: int | None = None,
        problem: str | None = None,
    ) -> vol.Area:
        limits = self._provider(area).limits
        return vol.Area(area.name, str(area.path), area.provider, limits, total, free, problem)

    def _provider(self, area: AreaSettings) -> Provider:
        return PROVIDERS[area.provider](self.tools)

    def _area(self, name: str) -> AreaSettings:
        for area in self.areas:
            if area.name == name:
                return area
        raise BrokerRefused(name, code="no_such_area")

    def _gid(self, group: str) -> int:
        if not GROUP_NAME.fullmatch(group):
            raise BrokerRefused(group, code="volume_no_such_group")
        try:
            gid = grp.getgrnam(group).gr_gid
        except KeyError as error:
            raise BrokerRefused(group, code="volume_no_such_group") from error
        if gid < self.min_gid:
            raise BrokerRefused(group, code="volume_system_group")
        return gid

    def _require_there(self, area: AreaSettings) -> None:
        """An empty folder where a file system should be mounted is not an empty area."""
        if os.path.realpath(area.path) != str(area.path) or not area.path.is_dir():
            raise Trouble(str(area.path), code="volume_area_gone")
        if not os.path.ismount(area.mount):
            raise Trouble(f"{area.mount} is not mounted", code="volume_area_gone")

    def _require_usable(self, area: AreaSettings) -> None:
        try:
            self._require_there(area)
            found = area.path.stat()
        except (Trouble, OSError) as error:
            raise BrokerRefused(str(error), code="volume_area_gone") from error
        if found.st_uid not in {0, os.geteuid()} or found.st_mode & 0o022:
            raise BrokerRefused(f"others may write in {area.path}", code="volume_area_open")


def _ourselves() -> Account:
    uid, gid = os.geteuid(), os.getegid()
    return Account("", uid, gid, tuple(os.getgroups()), "/", "")


def _folders(area: Path) -> dict[str, str]:
    """The folders of an area that may be volumes, with their Unix groups; no links."""
    found: dict[str, str] = {}
    for folder in sorted(area.iterdir()):
        owner = _owner(folder) if NAME.fullmatch(folder.name) else None
        if owner is not None:
            found[folder.name] = owner
    return found


def _owner(folder: Path) -> str | None:
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        return None
    try:
        return grp.getgrgid(found.st_gid).gr_name
    except KeyError:
        return str(found.st_gid)


def _volume(area: AreaSettings, name: str, owner: str, found: Figures) -> vol.Volume:
    path = str(area.path / name)
    return vol.Volume(area.name, name, path, owner, found.used, found.limit, found.problem)


def _give(folder: Path, gid: int) -> None:
    """To the group: everybody of it reads and writes all that is made in it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchown(handle, -1, gid)
        os.fchmod(handle, _MODE)
        with contextlib.suppress(OSError):  # a file system without ACLs: people's umask decides
            os.setxattr(handle, _DEFAULT_ACL, _EVERYBODY_OF_THE_GROUP)
        os.fsync(handle)
    finally:
        os.close(handle)


def _require_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise BrokerRefused(repr(name), code="volume_bad_name")


def _require_limit(limit_bytes: int | None) -> None:
    if limit_bytes is not None and (not 0 < limit_bytes <= LARGEST or limit_bytes % STEP):
        raise BrokerRefused(str(limit_bytes), code="volume_bad_limit")


def _require_meant(asked: vol.SetVolumeLimit, now: vol.Volume) -> None:
    """By what is used at this moment: the portal's figure may be an hour old."""
    low = asked.limit_bytes is not None and asked.limit_bytes < (now.used_bytes or 0)
    if low and not asked.below_use:
        raise BrokerRefused(f"{now.used_bytes} are used", code="volume_below_use")


def _no(error: Exception) -> GatewayError:
    """Before the volume is there under its name nothing has happened that anybody sees."""
    if isinstance(error, Trouble):
        return BrokerRefused(str(error), code=error.code)
    full = getattr(error, "errno", None) in {28, 30, 122}  # ENOSPC, EROFS, EDQUOT
    return BrokerRefused(str(error), code="volume_area_full" if full else "volume_tool_failed")
