"""A zone's distances from UTC as a table, for programs that convert whole columns."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise

FIRST_YEAR, LAST_YEAR = 1970, 2100
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Step:
    """From the naive local second `since` on (since 1970 as if it were UTC) a clock is `offset`
    seconds ahead of UTC."""

    since: int
    offset: int


def steps(zone: tzinfo) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """The earlier and the later reading of a naive time, from 1970 to 2100.

    They differ where a time comes twice. Where it does not exist, the first reads it as the clock
    before the jump would go on, the second as that after it, as datetime's `fold` 0 and 1 do.
    """
    first = _offset(zone, _utc(FIRST_YEAR))
    early, late = [Step(-(2**40), first)], [Step(-(2**40), first)]
    for at, before, after in _changes(zone):
        early.append(Step(at + max(before, after), after))
        late.append(Step(at + min(before, after), after))
    return tuple(early), tuple(late)


def _changes(zone: tzinfo) -> Iterator[tuple[int, int, int]]:
    """The second of UTC, the distance before it and the one from it on."""
    days = (_utc(LAST_YEAR) - _utc(FIRST_YEAR)).days
    begin = _utc(FIRST_YEAR)
    looks = [(begin + day * _DAY, _offset(zone, begin + day * _DAY)) for day in range(days + 1)]
    for (since, before), (until, after) in pairwise(looks):
        if before != after:
            at = _within(zone, int(since.timestamp()), int(until.timestamp()), before)
            yield at, before, after


def _within(zone: tzinfo, low: int, high: int, before: int) -> int:
    """The first second in (low, high] that is not `before` any more: one change a day at most."""
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, datetime.fromtimestamp(middle, UTC)) == before:
            low = middle
        else:
            high = middle
    return high


def _offset(zone: tzinfo, moment: datetime) -> int:
    distance = moment.astimezone(zone).utcoffset()
    return int(distance.total_seconds()) if distance is not None else 0


def _utc(year: int) -> datetime:
    return datetime(year, 1, 1, tzinfo=UTC)
