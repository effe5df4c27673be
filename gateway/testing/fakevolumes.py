"""The part of FakeBroker that keeps areas and volumes."""

from dataclasses import dataclass, field, replace
from typing import Any

from gateway.core.volumes import GROUP_NAME, LARGEST, NAME, STEP
from gateway.errors import BrokerRefused
from gateway.testing.fakefiles import EVERYONES
from gateway.testing.fakepolicy import FakePolicy
from gateway.wire import volumes as vol

_TB = 2**40


def _areas() -> dict[str, vol.Area]:
    limited = vol.Area("volumes", "/volumes", "btrfs", True, 100 * _TB, 60 * _TB)
    measured = vol.Area("archive", "/archive", "folder", False, 50 * _TB, 50 * _TB)
    return {area.name: area for area in (limited, measured)}


@dataclass(slots=True)
class VolumeState:
    """What the file systems hold: change it to do something behind the portal's back."""

    areas: dict[str, vol.Area] = field(default_factory=_areas)
    rows: dict[tuple[str, str], vol.Volume] = field(default_factory=dict)

    def change(self, name: str, *, area: str = "volumes", **values: Any) -> None:
        self.rows[area, name] = replace(self.rows[area, name], **values)


class FakeVolumes(FakePolicy):
    """Areas `volumes` (limits) and `archive` (only measures)."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.volume_state = VolumeState()

    def volumes(self) -> vol.Volumes:
        self._ask("volumes")
        state = self.volume_state
        known = {name for name, area in state.areas.items() if area.problem is None}
        rows = tuple(row for (area, _), row in sorted(state.rows.items()) if area in known)
        return vol.Volumes(tuple(state.areas.values()), rows, self.now)

    def make_volume(self, request: vol.MakeVolume) -> vol.Volume:
        return self._act("make-volume", lambda: self._make_volume(request))

    def set_volume_limit(self, request: vol.SetVolumeLimit) -> vol.Volume:
        return self._act("set-volume-limit", lambda: self._set_volume_limit(request))

    # --- inside ---

    def _make_volume(self, asked: vol.MakeVolume) -> vol.Volume:
        area = self._volume_area(asked.area)
        _check(asked.name, asked.limit_bytes)
        if not GROUP_NAME.fullmatch(asked.group) or asked.group not in self.policy.accounts:
            raise BrokerRefused(asked.group, code="volume_no_such_group")
        if asked.limit_bytes is not None and not area.limits:
            raise BrokerRefused(area.name, code="volume_no_limits")
        self._require_readable(area)
        key = (area.name, asked.name)
        if key in self.volume_state.rows:
            raise BrokerRefused(asked.name, code="volume_exists")
        path = f"{area.path}/{asked.name}"
        row = vol.Volume(area.name, asked.name, path, asked.group, 0, asked.limit_bytes)
        self.volume_state.rows[key] = row
        self.files.add_folder(path, EVERYONES)
        return row

    def _set_volume_limit(self, asked: vol.SetVolumeLimit) -> vol.Volume:
        area = self._volume_area(asked.area)
        _check(asked.name, asked.limit_bytes)
        if not area.limits:
            raise BrokerRefused(area.name, code="volume_no_limits")
        self._require_readable(area)
        row = self.volume_state.rows.get((area.name, asked.name))
        if row is None:
            raise BrokerRefused(asked.name, code="no_such_volume")
        if row.limit_bytes not in {asked.limit_bytes, asked.expected_bytes}:
            raise BrokerRefused(asked.name, code="volume_changed_meanwhile")
        low = asked.limit_bytes is not None and asked.limit_bytes < (row.used_bytes or 0)
        if low and row.limit_bytes != asked.limit_bytes and not asked.below_use:
            raise BrokerRefused(asked.name, code="volume_below_use")
        self.volume_state.change(asked.name, area=area.name, limit_bytes=asked.limit_bytes)
        return self.volume_state.rows[area.name, asked.name]

    def _volume_area(self, name: str) -> vol.Area:
        if name not in self.volume_state.areas:
            raise BrokerRefused(name, code="no_such_area")
        return self.volume_state.areas[name]

    def _require_readable(self, area: vol.Area) -> None:
        if area.problem is not None:
            raise BrokerRefused(area.name, code="volume_area_gone")


def _check(name: str, limit_bytes: int | None) -> None:
    if not NAME.fullmatch(name):
        raise BrokerRefused(name, code="volume_bad_name")
    if limit_bytes is not None and (not 0 < limit_bytes <= LARGEST or limit_bytes % STEP):
        raise BrokerRefused(str(limit_bytes), code="volume_bad_limit")
