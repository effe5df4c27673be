"""Charts of use, drawn as those of waits: percent across, pixels down."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from gateway.core.usage_figures import Cards, LimitBin
from gateway.web.charts import Series, chart
from gateway.web.texts import gettext, ngettext
from gateway.web.wait_charts import Column, Histogram, Lines, Tick, clipped

_ROW = 34  # of a bar with its line of words
MOST_BARS = 20


@dataclass(frozen=True, slots=True)
class Bar:
    """`part`: percent of the width; `whole`: of a paler bar behind it."""

    name: str
    title: str
    words: str
    y: int
    part: float
    whole: float


@dataclass(frozen=True, slots=True)
class Bars:
    """One under the other, the longest 100 percent."""

    label: str
    kind: str
    bars: tuple[Bar, ...]
    height: int


def bars(
    rows: Sequence[tuple[str, str, float, float | None]], label: str, kind: str = "running"
) -> Bars | None:
    """Of name, words, value and what it is a part of. None: nothing to draw."""
    longest = max((max(value, whole or 0) for _, _, value, whole in rows), default=0)
    if not longest:
        return None
    made = tuple(
        Bar(
            clipped(name),
            name,
            words,
            place * _ROW,
            round(value / longest * 100, 2),
            round((whole or 0) / longest * 100, 2),
        )
        for place, (name, words, value, whole) in enumerate(rows[:MOST_BARS])
    )
    return Bars(label, kind, made, len(made) * _ROW)


def bins(rows: Sequence[LimitBin], label: str) -> Histogram | None:
    """How many runs used how much of their limit; the last column is all of it."""
    most = max((row.runs for row in rows), default=0)
    if not most:
        return None
    columns = tuple(
        Column(
            round(row.low / 110 * 100 + 0.5, 2),
            8.1,
            round(max(row.runs / most * 120, 1.5), 1),
            f"{bin_word(row)}: {_runs(row.runs)}",
        )
        for row in rows
        if row.runs
    )
    ticks = tuple(
        Tick(round(low / 110 * 100, 2), f"{low} %", "start" if not low else "middle")
        for low in (0, 20, 40, 60, 80, 100)
    )
    return Histogram("running", label, columns, ticks, _runs(most))


def bin_word(row: LimitBin) -> str:
    if row.low >= 100:
        return gettext("all of it")
    return f"{row.low}–{row.low + 10} %"


def cards(of: Cards, label: str) -> Lines | None:
    """Percent of the cards that were allocated, day by day."""
    points = [
        (_noon(one.day), one.gpu_seconds / one.capacity_s * 100 if one.capacity_s else None)
        for one in of.days
    ]
    values = [value for _, value in points if value is not None]
    if not values:
        return None
    top = max(100.0, *values)
    known = Series("main", gettext("allocated"), [(at, value, 0) for at, value in points])
    frame = Series("frame", "", [(points[0][0], top, 0), (points[-1][0], top, 0)])
    drawn = chart([known, frame])
    if drawn is None:
        return None
    down = tuple(
        Tick(round(100 - share / top * 100, 2), f"{share} %") for share in (100, 75, 50, 25)
    )
    ends = (
        Tick(0, of.days[0].day.isoformat(), "start"),
        Tick(100, of.days[-1].day.isoformat(), "end"),
    )
    return Lines(label, tuple(drawn.lines[:1]), ends, down)


def _noon(day: date) -> float:
    return datetime.combine(day, time(12), UTC).timestamp()


def _runs(count: int) -> str:
    return ngettext("%(shown)s run", "%(shown)s runs", count, shown=f"{count:,}")
