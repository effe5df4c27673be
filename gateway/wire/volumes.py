"""Messages about volumes: folders of groups, with limits that the file system keeps."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Area:
    """A place for volumes. Bytes are None where they could not be read; `problem` (a code) then
    says why, and nothing is known of its volumes. `limits`: its provider can set any."""

    name: str
    path: str
    provider: str
    limits: bool
    total_bytes: int | None = None
    free_bytes: int | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Volume:
    """A folder of an area, as read just now. `used_bytes` None: not known, `problem` (a code)
    says why; `limit_bytes` None without a problem: no limit. `owner`: its Unix group."""

    area: str
    name: str
    path: str
    owner: str
    used_bytes: int | None = None
    limit_bytes: int | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Volumes:
    """Every area there is. A volume that is missing of an area without a problem is not there."""

    areas: tuple[Area, ...]
    volumes: tuple[Volume, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class MakeVolume:
    """`group` is the Unix group whose people may write. `limit_bytes` None: no limit."""

    area: str
    name: str
    group: str
    limit_bytes: int | None


@dataclass(frozen=True, slots=True)
class SetVolumeLimit:
    """Refused unless the limit is `expected_bytes` now, or already what is wanted; and below what
    is used now, unless `below_use` says that it is meant."""

    area: str
    name: str
    expected_bytes: int | None
    limit_bytes: int | None
    below_use: bool = False
