"""Volumes: sizes, how fast one fills, when it is full, and what its months cost.

A GB here is 2^30 bytes and a TB 2^40, as file systems' own programs mean them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from itertools import pairwise
from math import sqrt

from gateway.core.credits import Credits
from gateway.errors import Refused

NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}", re.ASCII)
GROUP_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
GB = 2**30
STEP = 2**20  # what a limit is a multiple of: every provider keeps it exactly
LARGEST = 2**60
WARNED_AT = (100, 90, 80)  # percent of the limit, the highest first
GROWTH_DAYS = 30
FIT_DAYS = 56
_FEWEST_DAYS = 14  # of less nobody can tell a trend from a week
_FARTHEST = 3650
_UNITS = {"MB": 2**20, "GB": GB, "TB": 2**40, "PB": 2**50}
_SIZE = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,3}))?\s*([MGTP])(?:i?B)?", re.ASCII | re.IGNORECASE)


class State(StrEnum):
    """Of a volume in the portal. What was found of it the last time is `problem`."""

    MAKING = "making"  # the broker was asked, or is about to be
    THERE = "there"
    RETIRED = "retired"  # not charged and not shown to the group any more; its folder stays


class Ask(StrEnum):
    """Of a request for another limit."""

    OPEN = "open"
    AGREED = "agreed"  # to be written, or written and not read back yet
    APPLIED = "applied"
    REFUSED = "refused"  # by a person
    FAILED = "failed"  # by the file system, or somebody was there first
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class Day:
    """The last figures of a day, in bytes; None: not known."""

    day: date
    used: int | None
    limit: int | None


@dataclass(frozen=True, slots=True)
class Full:
    """When a volume is full, by a line through `days` days: the likely day and the range of 95 %
    of the line's slope. `latest` None: it may as well never be."""

    at: date
    earliest: date
    latest: date | None
    per_day: int
    days: int


@dataclass(frozen=True, slots=True)
class StoragePrice:
    """Of a GB for a month (millionths) from `starts` on; `area` empty: of every area without a
    price of its own."""

    area: str
    per_gb_month: int
    starts: datetime


def parse_size(text: str, *, field: str = "size") -> int:
    """`2 TB`, `500G`, `1.5TiB`: whole bytes. Refused: volume_bad_size."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise Refused("volume_bad_size", field=field)
    thousandths = int(found[1]) * 1000 + int((found[2] or "").ljust(3, "0"))
    size = thousandths * _UNITS[found[3].upper() + "B"] // 1000 // STEP * STEP
    if not 0 < size <= LARGEST:
        raise Refused("volume_bad_size", field=field)
    return size


def format_size(size: int) -> str:
    """In the largest unit that leaves at least 1: `1.5 TB`. Three digits of what is not whole."""
    unit, factor = next(
        ((name, at) for name, at in reversed(_UNITS.items()) if abs(size) >= at), ("MB", 2**20)
    )
    figure = size / factor
    if figure == int(figure):
        return f"{int(figure):,} {unit}"
    return f"{figure:,.{2 if abs(figure) < 10 else 1}f} {unit}"


def percent(used: int | None, limit: int | None) -> int | None:
    """Whole percent of the limit, rounded down, so that 100 means full."""
    return None if used is None or not limit else used * 100 // limit


def warning(used: int | None, limit: int | None) -> int | None:
    """The highest threshold that is reached."""
    reached = percent(used, limit)
    return next((one for one in WARNED_AT if reached is not None and reached >= one), None)


def growth(days: Sequence[Day], *, today: date) -> int | None:
    """Bytes more than at the beginning of the last 30 days; None where that is not known."""
    since = today - timedelta(days=GROWTH_DAYS)
    known = [one for one in days if one.used is not None and since <= one.day <= today]
    if len(known) < 2 or (known[-1].day - known[0].day).days < GROWTH_DAYS // 2:
        return None
    return (known[-1].used or 0) - (known[0].used or 0)


def forecast(days: Sequence[Day], *, limit: int | None, today: date) -> Full | None:
    """A straight line through the last eight weeks; None where too little is known, where it does
    not grow, and where it is not full within ten years."""
    since = today - timedelta(days=FIT_DAYS)
    points = [
        ((one.day - since).days, one.used)
        for one in days
        if one.used is not None and since <= one.day <= today
    ]
    if limit is None or len(points) < _FEWEST_DAYS // 2 or _spread(points) < _FEWEST_DAYS:
        return None
    slope, error = _line(points)
    if slope <= 0 or slope <= error:
        return None  # it does not grow, or nobody can say whether it does
    left = max(0, limit - points[-1][1])
    lasts = left / slope
    if lasts > _FARTHEST:
        return None
    slowest, fastest = slope - 2 * error, slope + 2 * error
    latest = None if slowest <= 0 or left / slowest > _FARTHEST else _after(today, left / slowest)
    return Full(
        _after(today, lasts),
        _after(today, left / fastest),
        latest,
        int(slope),
        _spread(points),
    )


def price_at(prices: Iterable[StoragePrice], area: str, at: datetime) -> int | None:
    """Per GB and month; an area's own price before that of all. None: nothing is charged."""
    rows = [row for row in prices if row.area in {area, ""} and row.starts <= at]
    best = max(rows, key=lambda row: (row.area == area, row.starts), default=None)
    return best.per_gb_month if best else None


def month_price(size: int, per_gb_month: int) -> Credits:
    """Of a whole month, rounded up as a bill is."""
    return Credits(-(-size * per_gb_month // GB))


def month_cost(billed: Iterable[tuple[int, int]], *, days_of_month: int) -> Credits:
    """Of one (bytes, price of a GB and month) a day: each day is its part of the month, and the
    sum is rounded up once."""
    total = sum(size * price for size, price in billed)
    return Credits(-(-total // (GB * days_of_month)))


def billed_bytes(days: Iterable[Day], month: Sequence[date]) -> Mapping[date, int]:
    """What each day of a month is charged for: its limit, or what was used where there is none.
    A day that nobody read goes as the one before it; before the first there was nothing."""
    known = {one.day: one for one in days}
    earlier = [one for one in known.values() if one.day < month[0]]
    last = _size(max(earlier, key=lambda one: one.day)) if earlier else None
    found: dict[date, int] = {}
    for day in month:
        here = _size(known[day]) if day in known else None
        last = last if here is None else here
        if last:
            found[day] = last
    return found


def _size(one: Day) -> int | None:
    return one.used if one.limit is None else one.limit


def _spread(points: Sequence[tuple[int, int]]) -> int:
    return points[-1][0] - points[0][0] if points else 0


def _after(today: date, days: float) -> date:
    return today + timedelta(days=round(days))


def _line(points: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Slope and its standard error, by least squares. Days are not independent of each other: what
    is left of the line is taken by its changes from day to day where those say more."""
    count = len(points)
    middle = sum(x for x, _ in points) / count
    mean = sum(y for _, y in points) / count
    wide = sum((x - middle) ** 2 for x, _ in points)
    slope = sum((x - middle) * (y - mean) for x, y in points) / wide
    rest = sum((y - mean - slope * (x - middle)) ** 2 for x, y in points)
    error = sqrt(rest / max(1, count - 2) / wide)
    steps = [(b[1] - a[1]) - slope * (b[0] - a[0]) for a, b in pairwise(points)]
    walk = sqrt(sum(step * step for step in steps)) / max(1, _spread(points))
    return slope, max(error, walk)
