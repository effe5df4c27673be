"""Charts of waits: shapes of an SVG whose width is that of its place. Across, numbers are percent
of it; down, they are pixels. Words and units are in it: a picture of it can stand alone."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from gateway.core.wait_shapes import Bar
from gateway.web.charts import Drawn, Series, chart, thinned
from gateway.web.show import duration
from gateway.web.texts import gettext
from gateway.web.wait_words import jobs_words

_ROW = 52  # of a pair of bars with its line of words
_NICE = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200),
    *(86400 * days for days in (1, 2, 3, 5, 7, 14, 30, 60, 90, 180, 365, 730)),
)
_LOG_TICKS = (1, 10, 60, 600, 3600, 21600, 86400, 604800, 2592000, 31536000)
_MOST_TICKS = 5
_NO_ROOM = 70  # percent: a word behind a longer bar would not fit on a phone
_LONGEST_NAME = 30  # columns; a Chinese character takes two


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    word: str
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two bars on one scale. `count` is what a phone has room for of `words`."""

    name: str
    title: str
    words: str
    count: str
    y: int
    bars: tuple["PairBar", ...]


@dataclass(frozen=True, slots=True)
class PairBar:
    """Percent of the width; `mark` is the median's. `inside`: its word stands at its
    beginning, since behind it there is no room."""

    kind: str
    y: int
    wide: float
    mark: float | None
    word: str
    inside: bool


@dataclass(frozen=True, slots=True)
class PairChart:
    label: str
    pairs: tuple[Pair, ...]
    ticks: tuple[Tick, ...]
    height: int


@dataclass(frozen=True, slots=True)
class Lengths:
    """Mean and median of waits and of runs, in seconds, of what `name` says."""

    name: str
    words: str
    count: str
    wait: float | None
    run: float | None
    wait_median: float | None
    run_median: float | None


def pairs(rows: Sequence[Lengths], label: str) -> PairChart | None:
    """None where there is nothing to draw."""
    known = [
        value
        for row in rows
        for value in (row.wait, row.run, row.wait_median, row.run_median)
        if value is not None
    ]
    if not known:
        return None
    step = next((one for one in _NICE if max(known) / one <= 5), _NICE[-1])
    end = max(1, math.ceil(max(known) / step)) * step

    def part(value: float | None) -> float | None:
        return None if value is None else round(value / end * 100, 2)

    def bar(kind: str, y: int, mean: float | None, median: float | None) -> PairBar:
        wide = part(mean) or 0.0
        inside = max(wide, part(median) or 0.0) > _NO_ROOM
        return PairBar(kind, y, wide, part(median), duration(mean) or "–", inside)

    made = tuple(
        Pair(
            clipped(row.name), row.name, row.words, row.count, place * _ROW,
            (
                bar("waiting", place * _ROW + 18, row.wait, row.wait_median),
                bar("running", place * _ROW + 32, row.run, row.run_median),
            ),
        )
        for place, row in enumerate(rows)
    )  # fmt: skip
    ticks = tuple(_tick(n * step / end * 100, duration(n * step)) for n in range(end // step + 1))
    return PairChart(label, made, ticks, len(rows) * _ROW + 20)


@dataclass(frozen=True, slots=True)
class Column:
    x: float
    width: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """`height` of the whole is 160, of its columns 120."""

    kind: str
    label: str
    columns: tuple[Column, ...]
    ticks: tuple[Tick, ...]
    most: str


def histogram(bars: Sequence[Bar], *, of_runs: bool, label: str) -> Histogram | None:
    """On a log axis: bars double, so that they are equally wide. The axis is the same for waits and
    runs, from the shortest to the longest of both."""
    used = [place for place, bar in enumerate(bars) if bar.waits or bar.runs]
    counts = [bar.runs if of_runs else bar.waits for bar in bars]
    if not used or not any(counts):
        return None
    first, last = used[0], used[-1] + 1
    wide, most = 100 / (last - first), max(counts)
    columns = tuple(
        Column(
            round((place - first) * wide + wide * 0.06, 2),
            round(wide * 0.88, 2),
            round(max(counts[place] / most * 120, 1.5), 1),
            _between(bars[place], counts[place]),
        )
        for place in range(first, last)
        if counts[place]
    )
    ticks = tuple(
        _tick((1 + math.log2(seconds) - first) * wide, duration(seconds))
        for seconds in _LOG_TICKS
        if first <= 1 + math.log2(seconds) <= last
    )
    kind = "running" if of_runs else "waiting"
    return Histogram(kind, label, columns, ticks, jobs_words(most))


def _between(bar: Bar, count: int) -> str:
    return f"{between(bar)}: {jobs_words(count)}"


def between(bar: Bar) -> str:
    """The seconds of a bar in words; its upper end is not in it."""
    if bar.low_s == 0 and bar.high_s == 1:
        return duration(0)
    if bar.high_s is None:
        return gettext("%(low)s and longer", low=duration(bar.low_s))
    return f"{duration(bar.low_s)} – {duration(bar.high_s)}"


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines in a plot of 100 by 100, with ticks beneath and beside it. `counts` are bars beneath:
    of how many jobs each part is made."""

    label: str
    lines: tuple[Drawn, ...]
    across: tuple[Tick, ...]
    down: tuple[Tick, ...]
    counts: tuple[Column, ...] = ()
    most: str = ""


@dataclass(frozen=True, slots=True)
class Curve:
    """Seconds, and the share of jobs that took no longer."""

    kind: str
    word: str
    points: Sequence[tuple[int, float]]


def curves(given: Iterable[Curve], label: str) -> Lines | None:
    """Shares of 0 to 100 percent over a log axis of seconds."""
    found = [one for one in given if one.points]
    longest = max((one.points[-1][0] for one in found), default=0)
    if not found:
        return None
    wide = log_seconds(max(longest, 10))
    series = [
        Series(one.kind, one.word, [(0.0, 0.0, 0), *_flat(one.points, wide)]) for one in found
    ]
    top = Series("frame", "", [(0.0, 100.0, 0), (100.0, 100.0, 0)])
    drawn = chart([*series, top])
    if drawn is None:
        return None
    across = tuple(
        _tick(log_seconds(seconds) / wide * 100, duration(seconds))
        for seconds in _LOG_TICKS
        if seconds <= max(longest, 10)
    )
    down = tuple(Tick(100 - share, f"{share} %") for share in (100, 75, 50, 25))
    return Lines(label, tuple(drawn.lines[:-1]), across, down)


@dataclass(frozen=True, slots=True)
class Moment:
    """One step of a time series: percentiles of the wait in seconds, and how many jobs."""

    at: datetime
    word: str
    values: tuple[float | None, ...]
    jobs: int


def over_time(
    moments: Sequence[Moment], kinds: Sequence[tuple[str, str]], *, step: float, label: str
) -> Lines | None:
    """Durations on a log axis; a step without an answer is a gap. `step`: its seconds."""
    values = [value for one in moments for value in one.values if value is not None]
    if not values:
        return None
    series = [_series(moments, place, kind, step) for place, kind in enumerate(kinds)]
    drawn = chart(series, from_zero=False)
    if drawn is None:
        return None
    first, last = moments[0].at, moments[-1].at
    long = max((last - first).total_seconds(), 1.0)
    most = max(one.jobs for one in moments)
    width = min(100 / (long / step + 1), 12.0)
    columns = tuple(
        Column(
            round((one.at - first).total_seconds() / long * (100 - width), 2),
            round(width * 0.84, 3),
            round(one.jobs / max(most, 1) * 36, 1),
            f"{one.word}: {one.jobs:,}",
        )
        for one in moments
    )
    tall = drawn.high - drawn.low
    down = tuple(
        Tick(round((drawn.high - log_seconds(seconds)) / tall * 100, 2), duration(seconds))
        for seconds in _between_logs(drawn.low, drawn.high)
    )
    ends = (Tick(0, moments[0].word, "start"), Tick(100, moments[-1].word, "end"))
    return Lines(label, tuple(drawn.lines), ends, down, columns, f"{most:,}")


def _series(moments: Sequence[Moment], place: int, kind: tuple[str, str], step: float) -> Series:
    points: list[tuple[float, float | None, int]] = []
    part, last = 0, None
    for one in moments:
        at, value = one.at.timestamp(), one.values[place]
        # A month is as long as 31 days, a day as 25 hours: more than one and a half is a gap.
        part += last is not None and at - last > step * 1.6
        points.append((at, None if value is None else log_seconds(value), part))
        last = at
    return Series(kind[0], kind[1], points)


def _between_logs(low: float, high: float) -> list[int]:
    """Seconds to write beside a log axis: few, and not fewer than two where there is a choice."""
    coarse = [seconds for seconds in _LOG_TICKS if low <= log_seconds(seconds) <= high]
    if len(coarse) > 1:
        return coarse
    return thinned([s for s in _NICE if low <= log_seconds(s) <= high], _MOST_TICKS)


def _flat(points: Sequence[tuple[int, float]], wide: float) -> Iterable[tuple[float, float, int]]:
    return ((log_seconds(seconds) / wide * 100, share * 100, 0) for seconds, share in points)


def log_seconds(seconds: float) -> float:
    """The place on a log axis of what took so long; all under a second are at its beginning."""
    return math.log10(max(seconds, 1.0))


def clipped(name: str) -> str:
    """As much of a name as there is room for."""
    room = _LONGEST_NAME
    for place, character in enumerate(name):
        room -= 2 if ord(character) > 0x2E80 else 1
        if room < 0:
            return f"{name[:place]}…"
    return name


def _tick(at: float, word: str) -> Tick:
    """A word at the edge stays inside."""
    return Tick(round(at, 2), word, "start" if at < 4 else "end" if at > 96 else "middle")
