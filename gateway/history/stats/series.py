"""What charts draw of waits and runs: bars, curves, steps of time, hours of the week."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.core.wait_figures import Dimension, Question
from gateway.core.wait_shapes import (
    Bar,
    Distribution,
    HeatCell,
    Step,
    Survival,
    TimePoint,
)
from gateway.history.stats import clock
from gateway.history.stats.chosen import Keys
from gateway.history.stats.columns import Part
from gateway.history.stats.counts import count
from gateway.history.stats.longer import Curve
from gateway.history.stats.pieces import Intervals, Piece
from gateway.history.stats.select import Selection
from gateway.history.stats.spread import Tally
from gateway.history.stats.threads import each
from gateway.history.stats.time_keys import TimeKeys

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]
    Points = tuple[tuple[int, float], ...]


def distribution(
    parts: Sequence[Part], question: Question, bounds: tuple[int, ...]
) -> Distribution:
    """How long waits and runs were. `bounds`: the lowest seconds of each bar."""
    keys = Keys(parts, None)
    selection = Selection(parts, question)
    waits, runs = selection.waits(keys), selection.runs(keys)
    counts = count(selection, keys)
    heights = (_below(pieces, np.array(bounds)).tolist() for pieces in (waits, runs))
    highs = [*bounds[1:], None]
    return Distribution(
        bars=tuple(Bar(*bar) for bar in zip(bounds, highs, *heights, strict=True)),
        waits=sum(len(piece) for piece in waits),
        runs=sum(len(piece) for piece in runs),
        wait_ecdf=_ecdf(waits),
        run_ecdf=_ecdf(runs),
        people=int(counts.people[-1]),
        others=int(counts.others[-1]),
    )


def over_time(parts: Sequence[Part], question: Question, step: Step) -> list[TimePoint]:
    """In the order of time; a step without jobs is not there."""
    keys = TimeKeys(parts, Dimension.SUBMIT_DAY, question.zone, step)
    selection, size = Selection(parts, question), len(keys.names)
    counts = count(selection, keys)
    waits = _percentiles(Tally(selection.waits(keys), size), (50, 90, 99))
    runs = _percentiles(Tally(selection.runs(keys), size), (50,))
    jobs = counts.started + counts.never + counts.waiting
    columns = (jobs, counts.started, counts.never, counts.waiting, counts.people, counts.others)
    rows = zip(*(column.tolist()[:size] for column in columns), waits, runs, strict=False)
    return [
        TimePoint(_moment(first, step, question.zone), *facts, *wait, *run)
        for first, (*facts, wait, run) in zip(keys.firsts.tolist(), rows, strict=True)
        if facts[0]
    ]


def heat(parts: Sequence[Part], question: Question) -> list[HeatCell]:
    """All 168 hours of the week."""
    keys = TimeKeys(parts, Dimension.HOUR_OF_WEEK, question.zone)
    selection = Selection(parts, question)
    counts = count(selection, keys)
    tally = Tally(selection.waits(keys), len(keys.names))
    people, others = counts.people.tolist(), counts.others.tolist()
    found = zip(tally.n.tolist(), people, others, _percentiles(tally, (50, 90)), strict=True)
    return [
        HeatCell(hour, n, p, o, *waits)
        for hour, (n, p, o, waits) in zip(range(clock.HOURS_OF_WEEK), found, strict=False)
    ]


def survival(parts: Sequence[Part], question: Question) -> Survival:
    """How many still waited after how long."""
    keys = Keys(parts, None)
    selection = Selection(parts, question)
    waits = selection.waits(keys)
    left = [*selection.gave_up(keys), *selection.waiting(keys)]
    counts = count(selection, keys)
    started = _ecdf(waits)
    return Survival(
        all=_still(waits, left),
        started=tuple((seconds, 1 - share) for seconds, share in started),
        events=sum(len(piece) for piece in waits),
        censored=sum(len(piece) for piece in left),
        people=int(counts.people[-1]),
        others=int(counts.others[-1]),
    )


def _below(pieces: Sequence[Piece], bounds: "Numbers") -> "Numbers":
    """How many numbers lie between one bound and the next."""

    intervals = Intervals(bounds - 1)  # of whole numbers: from a bound on is above it less one

    def one(piece: Piece) -> "Numbers":
        found = np.zeros(len(bounds) + 1, np.int64)
        for _, place, n in intervals.of(piece):
            found += np.bincount(place, n, minlength=len(found)).astype(np.int64)
        return found

    found: Numbers = sum(each(one, pieces), np.zeros(len(bounds) + 1, np.int64))
    return found[1:]


def _ecdf(pieces: Sequence[Piece]) -> "Points":
    tally = Tally(pieces, 1)
    if not tally.n[-1]:
        return ()
    some = np.flatnonzero(tally.together)
    ends = np.ceil(tally.buckets.lowest(some + 1)).astype(np.int64) - 1
    shares = np.cumsum(tally.together[some]) / tally.n[-1]
    return tuple(zip(ends.tolist(), shares.tolist(), strict=True))


def _still(waits: Sequence[Piece], left: Sequence[Piece]) -> "Points":
    """Kaplan–Meier's curve at the ends of the buckets that hold a start."""
    tally = Tally(waits, 1)
    if not tally.n[-1]:
        return ()
    some = np.flatnonzero(tally.together)
    ends = np.ceil(tally.buckets.lowest(some + 1)).astype(np.int64) - 1
    curve = Curve(waits, left, 1)
    starts = np.cumsum(tally.together)[some]
    return tuple(zip(ends.tolist(), curve.still(ends, starts).tolist(), strict=True))


def _percentiles(tally: Tally, percents: Sequence[int]) -> list[tuple[float | None, ...]]:
    """Interpolated, by key; None where there is no number."""
    n = tally.n
    places = np.stack([percent * (n - 1) for percent in percents], axis=1)
    low = places // 100
    found = tally.at(np.hstack((low, np.minimum(low + 1, n[:, None] - 1)))).astype(np.int64)
    first, second = np.hsplit(found, 2)
    between = first + (second - first) * (places % 100 / 100)
    return [
        tuple(row) if some else (None,) * len(percents)
        for row, some in zip(between.tolist(), n.tolist(), strict=True)
    ]


def _moment(first: int, step: Step, zone: str) -> datetime:
    if step is Step.HOUR:
        return datetime.fromtimestamp(first * clock.HOUR, UTC)
    return clock.midnight(first, zone)
