"""Figures of waits and runs: all there are, exact. Definitions: docs/engineering/waits.md."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.core.wait_figures import UNKNOWN, Censored, Dimension, Figures, Question, Spread
from gateway.core.wait_shapes import Choice, Overview
from gateway.history.stats import longer
from gateway.history.stats.chosen import TIMES, Keys, Rows, TimeKeys, is_ordered
from gateway.history.stats.columns import Part
from gateway.history.stats.counts import Counts, Hours, count, hours
from gateway.history.stats.select import (
    Cells,
    Measured,
    Selection,
    again,
    deferral,
    ended,
    run_time,
    waited,
)
from gateway.history.stats.spread import Tally

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]
    Piece = tuple[Numbers, Numbers]

_PERCENTS = (50, 90, 95, 99)
_CENSORED = (50, 90, 99)


def figures(parts: Sequence[Part], question: Question) -> Figures:
    """Of all rows of the question together."""
    return _answers(parts, question, Keys(parts, None))[-1]


def overview(parts: Sequence[Part], question: Question, dimension: Dimension) -> Overview:
    """The period, the one before it, and the period by one dimension."""
    now, rows = all_and_by(parts, question, dimension)
    before = None
    if question.since and question.until:
        since = question.since - (question.until - question.since)
        before = figures(parts, replace(question, since=since, until=question.since))
    return Overview(now, before, tuple(rows))


def by(
    parts: Sequence[Part], question: Question, dimension: Dimension
) -> list[tuple[str, Figures]]:
    """By one dimension: classes and times in their order, others by number of jobs."""
    return all_and_by(parts, question, dimension)[1]


def all_and_by(
    parts: Sequence[Part], question: Question, dimension: Dimension
) -> tuple[Figures, list[tuple[str, Figures]]]:
    """All rows together, and by one dimension: one reading for both."""
    keys = keys_of(parts, question, dimension)
    *found, whole = _answers(parts, question, keys)
    return whole, _sorted(keys.names, found, dimension)


def others(parts: Sequence[Part], question: Question) -> int:
    """`Figures.others` alone."""
    keys = Keys(parts, None)
    selection = Selection(parts, question)
    return int(count(selection, keys, hours(selection, keys)).others[-1])


def options(parts: Sequence[Part], question: Question) -> dict[Dimension, list[Choice]]:
    """What filters can choose, the commonest first."""
    selection = Selection(parts, replace(question, only={}, least_gpus=0))
    found = {}
    for dimension in (one for one in Dimension if one not in TIMES):
        keys = Keys(parts, dimension)
        counts = count(selection, keys)
        jobs = counts.started + counts.never + counts.waiting
        columns = (column.tolist() for column in (jobs, counts.people, counts.others))
        choices = [
            Choice("" if name == UNKNOWN else name, *numbers)
            for name, *numbers in zip(keys.names, *columns, strict=False)
        ]
        some = [choice for choice in choices if choice.jobs]
        found[dimension] = sorted(some, key=lambda one: (-one.jobs, one.value))
    return found


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


def _answers(parts: Sequence[Part], question: Question, keys: Keys | TimeKeys) -> list[Figures]:
    """Of each key, and of all together at the end."""
    selection, size = Selection(parts, question), len(keys.names)
    used = hours(selection, keys)
    counts = count(selection, keys, used)
    waits, deferrals = selection.measured(
        keys, waited, lambda rows: (selection.wait(rows), deferral(rows)), 2
    )
    (runs,) = selection.measured(keys, ended, lambda rows: (run_time(rows),), 1)
    tally = Tally(waits.pieces, size)
    spread = {
        "wait": _spreads(tally, waits.sums),
        "run": _spreads(Tally(runs.pieces, size), runs.sums),
        "deferral": _spreads(Tally(deferrals.pieces, size), deferrals.sums),
        "requeue_wait": _of_few(selection.pieces(keys, again, selection.wait), size),
        "gave_up": _of_few(selection.gave_up(keys), size),
    }
    censored = _censored(selection, keys, tally, waits.pieces)
    ratios = _ratios(selection, keys, waits)
    return [
        replace(
            _counted(counts, used, k),
            wait=spread["wait"][k],
            run=spread["run"][k],
            deferral=spread["deferral"][k],
            requeue_wait=spread["requeue_wait"][k],
            gave_up=spread["gave_up"][k],
            censored=censored[k],
            ratio_of_sums=ratios[k][0],
            ratio_mean=ratios[k][1],
            ratio_median=ratios[k][2],
        )
        for k in range(size + 1)
    ]


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


def _of_few(pieces: "Sequence[Piece]", size: int) -> list[Spread]:
    if not any(len(values) for _, values in pieces):
        return [Spread()] * (size + 1)
    sums = np.zeros(size + 1)
    for key, values in pieces:
        sums += np.bincount(key, values, minlength=size + 1)
    sums[-1] = sums[:-1].sum()
    return _spreads(Tally(pieces, size), sums)


def _spreads(tally: Tally, sums: "Numbers") -> list[Spread]:
    n = tally.n
    places = [percent * (n - 1) for percent in _PERCENTS]
    ranks = [
        *(place // 100 for place in places),
        *(np.minimum(place // 100 + 1, n - 1) for place in places),
        *(-(-percent * n // 100) - 1 for percent in _PERCENTS),
        n - 1,
    ]
    found = tally.at(np.stack(ranks, axis=1)).astype(np.int64)
    low, high, disc, most = found[:, :4], found[:, 4:8], found[:, 8:12], found[:, 12]
    part = np.stack([place % 100 for place in places], axis=1) / 100
    between = low + (high - low) * part
    columns = (n, sums, between, disc, most, tally.zeros)
    return [_spread(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _spread(*given: Any) -> Spread:
    n, total, (median, *tops), (_, *discs), most, zeros = given
    if n == 0:
        return Spread()
    facts: tuple[Any, ...] = (n, int(total), total / n, median, *tops, *discs, most, zeros / n)
    return Spread(*facts)


def _censored(
    selection: Selection, keys: Keys | TimeKeys, tally: Tally, waits: "Sequence[Piece]"
) -> list[Censored]:
    left = [*selection.gave_up(keys), *selection.waiting(keys)]
    ranks = longer.ranks(waits, left, tally.n, _CENSORED)
    found = tally.at(ranks)
    return [
        Censored(*(int(v) if rank >= 0 else None for v, rank in zip(values, row, strict=True)))
        for values, row in zip(found.tolist(), ranks.tolist(), strict=True)
    ]


def _ratios(
    selection: Selection, keys: Keys | TimeKeys, waits: Measured
) -> list[tuple[float | None, ...]]:
    """Of those that have both: sum over sum, and mean and median where the run is not 0."""
    size = len(keys.names)

    def ratio(found: Rows) -> "tuple[Numbers, Numbers]":
        wait, run = selection.wait(found), found.column("run")
        ratio: Numbers = wait / np.maximum(run, 1)
        if not run.all():
            ratio[run == 0] = 0
        return ratio, run

    ratios, run = selection.measured(keys, _both, ratio, 2)
    wait = waits
    if not all(np.array_equal(cells.waited, cells.ended) for cells in selection.cells):
        (wait,) = selection.measured(keys, _both, lambda rows: (selection.wait(rows),), 1)
    some = [
        (key, value) if one[1].all() else (key[one[1] > 0], value[one[1] > 0])
        for (key, value), one in zip(ratios.pieces, run.pieces, strict=True)
    ]
    tally = Tally(some, size, whole=False)
    n = tally.n
    middle = tally.at(np.stack(((n - 1) // 2, n // 2), axis=1)).mean(axis=1)
    return [
        (
            float(wait.sums[k] / run.sums[k]) if run.sums[k] else None,
            float(ratios.sums[k] / n[k]) if n[k] else None,
            float(middle[k]) if n[k] else None,
        )
        for k in range(size + 1)
    ]


def _both(cells: Cells) -> "Numbers":
    return cells.waited & cells.ended
