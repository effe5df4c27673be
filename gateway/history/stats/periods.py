"""Runs inside a period and its days or months, in whole seconds since 1970.

Most runs lie whole in one month: they are told apart by columns. Of the few others each month that
they touch has its part.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np

from gateway.core import months
from gateway.core.wait_figures import Question
from gateway.core.wait_shapes import Step
from gateway.history.stats import chosen
from gateway.history.stats.chosen import Rows
from gateway.history.stats.clock import QUARTER
from gateway.history.stats.columns import RUNNING, Part

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

_END = 2**32


@dataclass(frozen=True)
class Some:
    """Some of the rows found, by their places among them, with the month of each: a run may be
    here several times. `seconds` of it are in that month, and whether it `ended` there."""

    place: "Numbers"
    month: "Numbers"
    seconds: "Numbers"
    ended: "Numbers"


@dataclass(frozen=True)
class Period:
    """[lo, hi), no later than now. `names` and `begins` of its steps, days or months; one without a
    name where they are not told apart."""

    lo: int
    hi: int
    now: int
    names: tuple[str, ...]
    begins: "Numbers"

    @classmethod
    def of(cls, parts: Sequence[Part], question: Question, *, step: Step | None = None) -> "Period":
        """`step`: DAY or MONTH, of the question's zone."""
        now = int(question.now.timestamp())
        until = _END if question.until is None else int(question.until.timestamp())
        lo = 0 if question.since is None else int(question.since.timestamp())
        hi = min(until, now + 1)
        if step is None:
            return cls(lo, hi, now, ("",), np.array([lo]))
        known = [part.started_to_ended for part in parts]
        begin = max(lo, min((first for first, _ in known), default=lo))
        end = min(hi, max((last for _, last in known), default=lo) + 1)
        names, begins = _steps(begin, end, ZoneInfo(question.zone), step)
        return cls(lo, hi, now, names, np.array(begins))

    @cached_property
    def ends(self) -> "Numbers":
        """Of the months, inside the period."""
        return np.append(self.begins[1:], self.hi)

    def holds(self, part: Part) -> bool:
        """Whether all runs of the part lie in it, and in one month."""
        first, last = part.started_to_ended
        return len(self.names) == 1 and first >= self.lo and last < self.hi

    def touches(self, part: Part) -> bool:
        """Whether a run of the part may have held something in it."""
        first, last = part.started_to_ended
        return first < self.hi and last >= self.lo

    def place(self, seconds: "Numbers") -> "Numbers":
        """Place of the step of each; what lies outside is in the first or the last."""
        table = self._quarters
        if table is None:
            found: Numbers = np.searchsorted(self.begins, seconds, side="right") - 1
            return np.maximum(found, 0)
        quarter = (seconds // QUARTER).astype(np.int32)
        quarter -= np.int32(self.begins[0] // QUARTER)
        return table.take(quarter, mode="clip")

    def places_of(self, part: Part) -> tuple[int, int]:
        """The first and the last that runs of the part touch."""
        first, last = self.place(np.minimum(part.started_to_ended, self.hi)).tolist()
        return first, last

    @cached_property
    def _quarters(self) -> "Numbers | None":
        """The month of each quarter of an hour, where months begin with one."""
        if (self.begins[1:] % QUARTER).any():
            return None
        first, last = int(self.begins[0]) // QUARTER, int(self.begins[-1]) // QUARTER
        quarters = np.arange(first, last + 1) * QUARTER
        found = np.searchsorted(self.begins, quarters, side="right") - 1
        return np.maximum(found, 0).astype(np.int32)

    def plain(self, rows: Rows) -> "tuple[Numbers, Numbers]":
        """Which rows are over and lie whole in one month of the period, and in which."""
        start, end = rows.column("start"), rows.column("end")
        inside = (start >= self.lo) & (end < self.hi) & (end >= start)
        if len(self.names) == 1:
            return inside, np.zeros(1, np.int32)
        month = self.place(start)
        inside &= month == self.place(end)
        return inside, month

    def ended(self, rows: Rows, which: "Numbers | slice") -> "Numbers":
        """When runs ended. One that goes on is taken to do so until now, and no longer than its
        limit, since nobody may have told of its end; in an imported set as long as that says."""
        end = rows.column("end")[which].astype(np.int64)
        latest = rows.column("latest")[which].astype(np.int64)
        imported = rows.each(rows.part.imported)[which]
        return np.where(end > 0, end, np.where(imported, latest, np.minimum(latest, self.now)))

    def others(self, rows: Rows, which: "Numbers") -> Some:
        """Of these rows those that held something in the period, in each month that they touch."""
        ended, start = self.ended(rows, which), rows.column("start")[which].astype(np.int64)
        some = (start < self.hi) & (ended >= self.lo)
        which, ended, start = which[some], ended[some], start[some]
        first, past = self.place(start), self.place(np.maximum(ended, start))
        times = past - first + 1
        each = np.repeat(np.arange(len(which)), times)
        month = np.arange(len(each)) - np.repeat(np.cumsum(times) - times, times) + first[each]
        lo, hi = self.begins[month], self.ends[month]
        end = rows.column("end")[which].astype(np.int64)
        told = np.where(end > 0, rows.column("run")[which], ended - start)
        seconds = inside(start[each], ended[each], told[each], lo, hi)
        over = (end[each] > 0) & (end[each] >= lo) & (end[each] < hi)
        return Some(which[each], month, seconds, over)


def inside(
    start: "Numbers", ended: "Numbers", run: "Numbers", lo: "Numbers | int", hi: "Numbers | int"
) -> "Numbers":
    """Of each run time the part in [lo, hi), as its part of start to end: whole seconds, and those
    of neighbouring periods add up."""
    length = np.maximum(ended - start, 0)
    divisor = np.maximum(length, 1)
    until = run * np.clip(hi - start, 0, length) // divisor
    since = run * np.clip(lo - start, 0, length) // divisor
    return np.where((start >= lo) & (ended <= hi), run, until - since)


def _steps(begin: int, end: int, zone: ZoneInfo, step: Step) -> tuple[tuple[str, ...], list[int]]:
    """Those of the zone that [begin, end) touches, and from when on each is in it."""
    since = datetime.fromtimestamp(begin, UTC)
    until = datetime.fromtimestamp(max(end, begin + 1), UTC)
    size = 7 if step is Step.MONTH else 10
    found: dict[str, int] = {}
    for day, begins, _ in months.days(since, until, zone):
        found.setdefault(day.isoformat()[:size], int(begins.timestamp()))
    return tuple(found), list(found.values())


def started(part: Part, question: Question, period: Period) -> Rows | None:
    """All runs of the part that filters let through; None: none of the part is in the period."""
    if not period.touches(part):
        return None
    cells = chosen.wanted(part, question) & (part.cells["kind"] >= RUNNING)
    return chosen.rows(part, replace(question, since=None, until=None), cells)
