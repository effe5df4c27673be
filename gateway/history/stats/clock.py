"""Days, weeks, months and hours of the week of a zone, for whole columns of seconds."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np

from gateway.core.wait_shapes import Step

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

DAY, HOUR, QUARTER, HOURS_OF_WEEK = 86_400, 3_600, 900, 168
_THURSDAY = 3  # 1970 began on one


def local(seconds: "Numbers", zone: str) -> "Numbers":
    """What the clock of the zone shows, as seconds since 1970 as if it were UTC."""
    if not seconds.size:
        return seconds.astype(np.int64)
    low, high = int(seconds.min()), int(seconds.max())
    ahead = np.full(1, _ahead(ZoneInfo(zone), low), np.int32)
    for at, change in _between(low, high, zone):
        ahead = ahead + (seconds >= at) * np.int32(change)
    shown: Numbers = np.maximum(seconds.astype(np.int64) + ahead, 0)
    return shown


def changes_at_quarters(low: int, high: int, zone: str) -> bool:
    """Whether quarters of an hour of UTC are quarters of the zone's clock from `low` to `high`."""
    steps = (_ahead(ZoneInfo(zone), low), *(n for one in _between(low, high, zone) for n in one))
    return all(step % QUARTER == 0 for step in steps)


def hours_of_week(seconds: "Numbers", zone: str) -> "Numbers":
    """0: Monday from 00:00 to 01:00."""
    hours: Numbers = (local(seconds, zone).astype(np.uint32) // HOUR + 24 * _THURSDAY) % 168
    return hours.astype(np.int32)


def days(seconds: "Numbers", zone: str) -> "Numbers":
    """Days since 1970."""
    found: Numbers = (local(seconds, zone).astype(np.uint32) // DAY).astype(np.int32)
    return found


def hours(seconds: "Numbers") -> "Numbers":
    """Hours since 1970, of UTC: an hour that comes twice at night stays two."""
    found: Numbers = (seconds // HOUR).astype(np.int32)
    return found


def steps(days: "Numbers", step: Step) -> "Numbers":
    """The first day, since 1970, of the week or month of each of these days."""
    if step is Step.WEEK:
        monday: Numbers = days - (days + _THURSDAY) % 7
        return monday
    if step is Step.MONTH:
        months = days.astype("datetime64[D]").astype("datetime64[M]")
        first: Numbers = months.astype("datetime64[D]").astype(np.int64).astype(np.int32)
        return first
    return days


def midnight(day: int, zone: str) -> datetime:
    """When the day, since 1970, begins in the zone; UTC."""
    naive = datetime(1970, 1, 1) + timedelta(days=day)  # noqa: DTZ001  # the zone is put on below
    return naive.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def _between(low: int, high: int, zone: str) -> list[tuple[int, int]]:
    """Changes of the clock after `low` and up to `high`."""
    years = range(datetime.fromtimestamp(low, UTC).year, datetime.fromtimestamp(high, UTC).year + 1)
    found = (one for year in years for one in _changes(zone, year))
    return [(at, change) for at, change in found if low < at <= high]


@lru_cache(maxsize=4096)
def _changes(zone: str, year: int) -> tuple[tuple[int, int], ...]:
    """Seconds since 1970 at which the clock was changed in this year of UTC, and by how much."""
    there = ZoneInfo(zone)
    first = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
    past = int(datetime(year + 1, 1, 1, tzinfo=UTC).timestamp())
    found = []
    for at in range(first, past, DAY):
        low, high = at, min(at + DAY, past)
        before, after = _ahead(there, low), _ahead(there, high)
        if before == after:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _ahead(there, middle) == before else (low, middle)
        found.append((high, after - before))
    return tuple(found)


def _ahead(zone: ZoneInfo, second: int) -> int:
    distance = datetime.fromtimestamp(second, zone).utcoffset()
    return int(distance.total_seconds()) if distance is not None else 0
