"""Cards that were held day by day, to the second. Definitions: docs/engineering/waits.md.

Card-seconds until a moment b are the sum of cards × (b - start) of what began before it, less that
of cards × (b - end) of what ended before it: only what began or ended on each day must be known.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.core.usage_figures import DayUse
from gateway.core.wait_figures import Dimension, Question
from gateway.core.wait_shapes import Step
from gateway.history.stats.chosen import Keys
from gateway.history.stats.columns import Part
from gateway.history.stats.periods import Period, started
from gateway.history.stats.sums import summed
from gateway.history.stats.threads import each

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]


def by_day(parts: Sequence[Part], question: Question) -> list[DayUse]:
    """Cards of each type that jobs held, by day of the question's zone, in the order of days."""
    period, types = Period.of(parts, question, step=Step.DAY), Keys(parts, Dimension.GPU_TYPE)
    shape = (2, len(types.names), len(period.names))
    tables = each(lambda part: _steps(part, question, period, types), parts)
    found: Numbers = sum((one for one in tables if one is not None), np.zeros(shape, np.int64))
    cards, moments = np.cumsum(found, axis=2)
    until = cards * (period.ends - period.begins[0]) - moments
    held = np.diff(until, axis=1, prepend=0)
    return [one for n, name in enumerate(types.names) for one in _days(name, period, held[n])]


def _steps(part: Part, question: Question, period: Period, types: Keys) -> "Numbers | None":
    """By type and day: cards of what began less those of what ended, and the same times when."""
    every = started(part, question, period)
    rows = every and every.of(part.cells["gpus"] > 0)
    if rows is None:
        return None
    start = rows.column("start").astype(np.int64)
    ended = np.maximum(period.ended(rows, slice(None)), start)
    cards, days = rows.each(part.cells["gpus"]), len(period.names)
    key, size = types.of(rows) * np.int64(days), len(types.names) * days
    first, second = (_of(t, cards, key, size, period) for t in (start, ended))
    return (first - second).reshape(2, len(types.names), days)


def _of(
    moment: "Numbers", cards: "Numbers", key: "Numbers", size: int, period: Period
) -> "Numbers":
    begin = int(period.begins[0])
    inside = np.clip(moment, begin, period.hi)
    code = key + period.place(inside)
    return np.stack([summed(code, n, size) for n in (cards, cards * (inside - begin))])


def _days(name: str, period: Period, held: "Numbers") -> Iterator[DayUse]:
    """Days on which no card was held are not there."""
    for place in np.flatnonzero(held).tolist():
        yield DayUse(date.fromisoformat(period.names[place]), name, int(held[place]))
