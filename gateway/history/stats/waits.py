"""Figures of waits and runs: all there are, exact. Definitions: docs/engineering/waits.md."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.core.wait_figures import Censored, Dimension, Figures, Question, Spread
from gateway.core.wait_shapes import Overview
from gateway.history.stats import longer
from gateway.history.stats.chosen import Keys, is_ordered
from gateway.history.stats.columns import Part
from gateway.history.stats.counts import Counts, Hours, count, hours
from gateway.history.stats.pieces import Piece
from gateway.history.stats.select import (
    DEFERRAL,
    RUN,
    Cells,
    Measured,
    Selection,
    again,
    ended,
    known,
    waited,
)
from gateway.history.stats.spread import Tally
from gateway.history.stats.threads import both
from gateway.history.stats.time_keys import TIMES, TimeKeys

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

_PERCENTS = (50, 90, 95, 99)
_CENSORED = (50, 90, 99)


def figures(parts: Sequence[Part], question: Question) -> Figures:
    """Of all rows of the question together."""
    return _answers(parts, question, Keys(parts, None))[-1]


def overview(parts: Sequence[Part], question: Question, dimension: Dimension) -> Overview:
    """The period, the one before it, and the period by one dimension; `brief` as in `by`."""
    now, rows = all_and_by(parts, question, dimension, brief=True)
    before = None
    if (earlier := question.before) is not None:
        before = _answers(parts, earlier, Keys(parts, None), brief=True)[-1]
    return Overview(now, before, tuple(rows))


def by(
    parts: Sequence[Part], question: Question, dimension: Dimension, *, brief: bool = False
) -> list[tuple[str, Figures]]:
    """By one dimension: classes and times in their order, others by number of jobs. `brief`:
    without the mean and the median of ratios, and of deferrals nothing but all together."""
    return all_and_by(parts, question, dimension, brief=brief)[1]


def all_and_by(
    parts: Sequence[Part], question: Question, dimension: Dimension, *, brief: bool = False
) -> tuple[Figures, list[tuple[str, Figures]]]:
    """All rows together, and by one dimension: one reading for both. `brief` as in `by`."""
    keys = keys_of(parts, question, dimension)
    *found, whole = _answers(parts, question, keys, brief=brief)
    return whole, _sorted(keys.names, found, dimension)


def others(parts: Sequence[Part], question: Question) -> int:
    """`Figures.others` alone."""
    keys = Keys(parts, None)
    selection = Selection(parts, question)
    return int(count(selection, keys, hours(selection, keys)).others[-1])


def keys_of(
    parts: Sequence[Part], question: Question, dimension: Dimension | None
) -> Keys | TimeKeys:
    """What rows are told apart by."""
    if dimension in TIMES:
        return TimeKeys(parts, dimension, question.zone)
    return Keys(parts, dimension)


def _sorted(
    names: Sequence[str], found: Sequence[Figures], dimension: Dimension
) -> list[tuple[str, Figures]]:
    rows = [
        (name, figure)
        for name, figure in zip(names, found, strict=True)
        if figure.jobs or figure.run.n or figure.gpu_hours or figure.cpu_hours
    ]
    return rows if is_ordered(dimension) else sorted(rows, key=lambda row: (-row[1].jobs, row[0]))


def _answers(
    parts: Sequence[Part], question: Question, keys: Keys | TimeKeys, *, brief: bool = False
) -> list[Figures]:
    """Of each key, and of all together at the end."""
    selection, size = Selection(parts, question), len(keys.names)
    used = hours(selection, keys)
    counts = count(selection, keys, used)
    waits = selection.measured(keys, waited, selection.waits_of_rows)
    deferrals = selection.measured(Keys(parts, None) if brief else keys, waited, DEFERRAL)
    runs = selection.measured(keys, ended, RUN)
    (wait, censored), run = both(
        lambda: _wait_spreads(selection, keys, waits),
        lambda: _spreads(Tally(runs.pieces, size), runs.sums),
    )
    deferred = _spreads(Tally(deferrals.pieces, 1 if brief else size), deferrals.sums)
    rows = zip(
        wait,
        run,
        [Spread()] * size + deferred[-1:] if brief else deferred,
        _of_few(selection.pieces(keys, again, selection.wait), size),
        _of_few(selection.gave_up(keys), size),
        censored,
        *_ratios(selection, keys, waits, runs, brief=brief),
        strict=True,
    )
    return [_figures(_counted(counts, used, place), *row) for place, row in enumerate(rows)]


def _figures(counted: Figures, *found: Any) -> Figures:
    wait, run, deferred, requeue, gave_up, censored, of_sums, mean, median = found
    return replace(
        counted,
        wait=wait,
        run=run,
        deferral=deferred,
        requeue_wait=requeue,
        gave_up=gave_up,
        censored=censored,
        ratio_of_sums=of_sums,
        ratio_mean=mean,
        ratio_median=median,
    )


def _counted(counts: Counts, used: Hours, place: int) -> Figures:
    started, never, waiting = (
        int(of_keys[place]) for of_keys in (counts.started, counts.never, counts.waiting)
    )
    return Figures(
        jobs=started + never + waiting,
        started=started,
        never_started=never,
        waiting=waiting,
        throttled=int(counts.throttled[place]),
        gpu_jobs=int(counts.gpu_jobs[place]),
        people=int(counts.people[place]),
        others=int(counts.others[place]),
        gpu_hours=float(used.gpu_seconds[place] / 3600),
        cpu_hours=float(used.cpu_seconds[place] / 3600),
    )


def _of_few(pieces: Sequence[Piece], size: int) -> list[Spread]:
    if not any(len(piece) for piece in pieces):
        return [Spread()] * (size + 1)
    sums = np.zeros(size + 1)
    for piece in pieces:
        sums += np.bincount(piece.key, piece.value, minlength=size + 1)
    sums[-1] = sums[:-1].sum()
    return _spreads(Tally(pieces, size), sums)


def _spreads(tally: Tally, sums: "Numbers") -> list[Spread]:
    return _told(tally, sums, tally.at(_ranks(tally.n)))


def _wait_spreads(
    selection: Selection, keys: Keys | TimeKeys, waits: Measured
) -> tuple[list[Spread], list[Censored]]:
    """Of those that started, and with those that did not: from one look at the waits."""
    tally = Tally(waits.pieces, len(keys.names))
    left = [*selection.gave_up(keys), *selection.waiting(keys)]
    places = longer.ranks(waits.pieces, left, tally.n, _CENSORED)
    ranks = _ranks(tally.n)
    found = tally.at(np.hstack((ranks, places)))
    censored = [
        Censored(*(int(v) if rank >= 0 else None for v, rank in zip(values, row, strict=True)))
        for values, row in zip(found[:, ranks.shape[1] :].tolist(), places.tolist(), strict=True)
    ]
    return _told(tally, waits.sums, found), censored


def _ranks(n: "Numbers") -> "Numbers":
    """By key: the two neighbours of each percentile, its nearest rank, and the last place."""
    places = [percent * (n - 1) for percent in _PERCENTS]
    ranks = [
        *(place // 100 for place in places),
        *(np.minimum(place // 100 + 1, n - 1) for place in places),
        *(-(-percent * n // 100) - 1 for percent in _PERCENTS),
        n - 1,
    ]
    return np.stack(ranks, axis=1)


def _told(tally: Tally, sums: "Numbers", given: "Numbers") -> list[Spread]:
    n, found = tally.n, given.astype(np.int64)
    low, high, disc, most = found[:, :4], found[:, 4:8], found[:, 8:12], found[:, 12]
    part = np.stack([percent * (n - 1) % 100 for percent in _PERCENTS], axis=1) / 100
    between = low + (high - low) * part
    columns = (n, sums, between, disc, most, tally.zeros)
    return [_spread(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _spread(*given: Any) -> Spread:
    n, total, (median, *tops), (_, *discs), most, zeros = given
    if n == 0:
        return Spread()
    facts: tuple[Any, ...] = (n, int(total), total / n, median, *tops, *discs, most, zeros / n)
    return Spread(*facts)


def _ratios(
    selection: Selection,
    keys: Keys | TimeKeys,
    waits: Measured,
    runs: Measured,
    *,
    brief: bool,
) -> tuple[list[float | None], ...]:
    """Of those that have both: sum over sum, and unless `brief` mean and median where the run is
    not 0."""
    alike = all(np.array_equal(cells.waited, cells.ended) for cells in selection.cells)
    if not alike:
        waits = selection.measured(keys, _both, selection.waits_of_rows)
        runs = selection.measured(keys, _both, RUN)
    of_sums = [
        float(wait / run) if run else None for wait, run in zip(waits.sums, runs.sums, strict=True)
    ]
    if brief:
        nothing: list[float | None] = [None] * len(of_sums)
        return of_sums, nothing, nothing

    size = len(keys.names)
    some = selection.pieces(keys, _both, lambda rows: _ratio(selection.wait(rows), RUN.of(rows)))
    some = known(some)
    sums = sum(
        (np.bincount(one.key, one.value, minlength=size + 1)[:size] for one in some),
        np.zeros(size),
    )
    tally = Tally(some, size, whole=False)
    n = np.maximum(tally.n, 1)
    middle = tally.at(np.stack(((tally.n - 1) // 2, tally.n // 2), axis=1)).mean(axis=1)
    return (
        of_sums,
        _where(tally.n, np.append(sums, sums.sum()) / n),
        _where(tally.n, middle),
    )


def _ratio(wait: "Numbers", run: "Numbers") -> "Numbers":
    """Below 0 where there is none."""
    found: Numbers = np.divide(wait, run, out=np.full(len(run), -1.0), where=run > 0)
    return found


def _where(n: "Numbers", values: "Numbers") -> list[float | None]:
    return [float(value) if some else None for some, value in zip(n, values, strict=True)]


def _both(cells: Cells) -> "Numbers":
    return cells.waited & cells.ended
