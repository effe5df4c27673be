"""Keys that are times of a zone: days, weeks, months, hours, and hours of the week."""

from collections.abc import Sequence
from datetime import date, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.core.wait_figures import Dimension
from gateway.core.wait_shapes import Step
from gateway.history.stats import clock
from gateway.history.stats.columns import Part

if TYPE_CHECKING:
    from gateway.history.stats.chosen import Entries, Rows

    Numbers = np.ndarray[Any, Any]

# Which time of a row, and in which steps.
TIMES = {
    Dimension.HOUR_OF_WEEK: ("submit", None),
    Dimension.SUBMIT_DAY: ("submit", Step.DAY),
    Dimension.START_DAY: ("start", Step.DAY),
    Dimension.END_DAY: ("end", Step.DAY),
    Dimension.SUBMIT_MONTH: ("submit", Step.MONTH),
}


class TimeKeys:
    """Keys that are times: the days, weeks, months or hours (`step`), or hours of the week (None),
    of a time of the row. Rows without that time have the code behind the last."""

    def __init__(
        self,
        parts: Sequence[Part],
        dimension: Dimension,
        zone: str,
        step: Step | None = None,
    ) -> None:
        self._column, own = TIMES[dimension]
        self._step, self.zone = step or own, zone
        self.firsts: Numbers = np.arange(clock.HOURS_OF_WEEK)
        bounds = [part.bounds(self._column) for part in parts] or [(0, 0)]
        self._ends = min(low for low, _ in bounds), max(high for _, high in bounds)
        if self._step is not None and parts:
            low, high = self._counted(np.array(self._ends)).tolist()
            self._low = low
            self.firsts = np.unique(self._stepped(np.arange(low, high + 1, dtype=np.int32)))
        self._codes: dict[int, Numbers] = {}  # by part
        self._stretches: dict[int, Entries] = {}

    @property
    def names(self) -> list[str]:
        """Hours of the week as numbers, days as 2026-11-30, months as 2026-11."""
        if self._step is None:
            return [str(hour) for hour in self.firsts.tolist()]
        epoch = date(1970, 1, 1)
        size = 7 if self._step is Step.MONTH else 10
        return [str(epoch + timedelta(days=day))[:size] for day in self.firsts.tolist()]

    def of(self, found: "Rows") -> "Numbers":
        """By row."""
        codes: Numbers = self._coded_part(found.part)[found.where]
        return codes

    def stretches(self, found: "Rows") -> "Entries":
        """Key, cell and number of rows side by side that have both in common."""
        if not found.are_whole:
            return _stretches(self.of(found), found.cells, found.counts)
        part = found.part
        if id(part) not in self._stretches:
            rows = part.cells["rows"]
            every = _stretches(self._coded_part(part), np.arange(len(rows)), rows)
            self._stretches[id(part)] = every
        key, cell, n = self._stretches[id(part)]
        keep = np.zeros(len(part.cells["rows"]), bool)
        keep[found.cells] = True
        some = keep[cell]
        return (key, cell, n) if some.all() else (key[some], cell[some], n[some])

    def _coded_part(self, part: Part) -> "Numbers":
        if id(part) not in self._codes:
            self._codes[id(part)] = self._of_part(part)
        return self._codes[id(part)]

    def _of_part(self, part: Part) -> "Numbers":
        seconds = part.rows[self._column]
        codes = self._coded(seconds)
        known = seconds > 0
        if self._column != "submit":  # who never started has an end, and no day of a run
            known &= part.rows["start"] > 0
        return codes if known.all() else np.where(known, codes, np.int32(len(self.firsts)))

    def _coded(self, seconds: "Numbers") -> "Numbers":
        quarters = self._quarters
        if quarters is None:
            return self._reckoned(seconds)
        first = self._ends[0] // clock.QUARTER
        return quarters[np.maximum((seconds // clock.QUARTER).view(np.int32) - first, 0)]

    @cached_property
    def _quarters(self) -> "Numbers | None":
        """The code of each quarter of an hour, where clocks were changed between two alone."""
        low, high = self._ends
        if not clock.changes_at_quarters(low, high, self.zone):
            return None
        first = low // clock.QUARTER
        return self._reckoned(
            np.arange(first, high // clock.QUARTER + 1, dtype=np.uint32) * np.uint32(clock.QUARTER)
        )

    def _reckoned(self, seconds: "Numbers") -> "Numbers":
        if self._step is None:
            return clock.hours_of_week(seconds, self.zone)
        # The first quarter may begin on the day before the first row.
        counted = self._counted(np.clip(seconds, *self._ends))
        found: Numbers = self._lookup()[counted - self._low]
        return found

    def _counted(self, seconds: "Numbers") -> "Numbers":
        if self._step is Step.HOUR:
            return clock.hours(seconds)
        return clock.days(seconds, self.zone)

    def _stepped(self, counted: "Numbers") -> "Numbers":
        if self._step is None or self._step is Step.HOUR:
            return counted
        return clock.steps(counted, self._step)

    def _lookup(self) -> "Numbers":
        last = int(self.firsts[-1]) + 31
        every = np.arange(self._low, last + 1, dtype=np.int32)
        found: Numbers = np.searchsorted(self.firsts, self._stepped(every)).astype(np.int32)
        return found


def _stretches(key: "Numbers", cells: "Numbers", counts: "Numbers") -> "Entries":
    firsts = np.cumsum(counts, dtype=np.int64) - counts
    begins = np.ones(len(key), bool)
    np.not_equal(key[1:], key[:-1], out=begins[1:])
    begins[firsts] = True
    places = np.flatnonzero(begins)
    many = np.add.reduceat(begins, firsts, dtype=np.int64)
    return key[places], np.repeat(cells, many), np.diff(places, append=len(key))
