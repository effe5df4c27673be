"""Use of cards, by up to two things. Definitions: docs/engineering/waits.md, core.usage_figures.

Every figure is exact. Of a run over an edge the part inside is elapsed × overlap ÷ length, rounded
so that the parts of neighbouring periods add up to the run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.core.usage_figures import DIMENSIONS, By, CreditSeen, Use, in_order
from gateway.core.wait_figures import Question
from gateway.core.wait_shapes import Step
from gateway.history.stats.chosen import Keys, Measure, Rows
from gateway.history.stats.columns import Part
from gateway.history.stats.people import People
from gateway.history.stats.periods import Period, started
from gateway.history.stats.select import RUN
from gateway.history.stats.sums import counted, summed
from gateway.history.stats.threads import each

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

_TABLE = 1 << 22  # pairs up to which a table of all is quicker than sorting those that there are
# The column has one millionth more than was posted, 0 where nothing was.
_POSTED = Measure("charges", lambda rows: rows.column("charge"))
_CHARGED = Measure("charged runs", lambda rows: (rows.column("charge") > 0).astype(np.int32))


def use(
    parts: Sequence[Part], question: Question, by: Sequence[By], *, credit: CreditSeen
) -> list[Use]:
    """Runs that held something in the period, by none, one or two of `By`: months in their order,
    others by GPU-hours. `wait` of the question does not matter."""
    rows, whole = _all_and_by(parts, question, by, credit)
    if by:
        return in_order(rows, by)
    return [whole] if whole.runs else []


def use_and_total(
    parts: Sequence[Part], question: Question, by: Sequence[By], *, credit: CreditSeen
) -> tuple[list[Use], Use]:
    """The same with all of them together. In one look where no month is asked for: a run may have
    parts in several."""
    if By.MONTH in by or not by:
        whole = use(parts, question, (), credit=credit)
        return use(parts, question, by, credit=credit) if by else whole, next(iter(whole), Use())
    rows, total = _all_and_by(parts, question, by, credit)
    return in_order(rows, by), total


def first(parts: Sequence[Part], question: Question) -> datetime | None:
    """When the first run began that held something in the period; None: there is none."""
    period, found = Period.of(parts, question), list[int]()
    for part in parts:
        rows = started(part, question, period)
        if rows is not None:
            start, ended = rows.column("start"), period.ended(rows, slice(None))
            some = start[(start < period.hi) & (ended >= period.lo)]
            found += [int(some.min())] if some.size else []
    return datetime.fromtimestamp(max(min(found), period.lo), UTC) if found else None


@dataclass(frozen=True)
class _Entries:
    """Runs of one cell of a part that lie in one month; of `seconds` and `charge` the sums, `paid`
    runs have a charge."""

    cell: "Numbers"
    month: "Numbers"
    runs: "Numbers"
    ended: "Numbers"
    seconds: "Numbers"
    charge: "Numbers"
    paid: "Numbers"


def _all_and_by(
    parts: Sequence[Part], question: Question, by: Sequence[By], credit: CreditSeen
) -> tuple[list[Use], Use]:
    """All together only where no month is asked for."""
    period = Period.of(parts, question, step=Step.MONTH if By.MONTH in by else None)
    keys = _Keys(parts, by, period)
    people = People(parts, question, keys.size)

    def one(part: Part) -> "Numbers | None":
        found = _entries(part, question, period)
        if found is None:
            return None
        key = keys.of(part, found)
        people.add(part, (key, found.cell, found.runs))
        return np.stack([summed(key, v, keys.size) for v in _figures(part, found, credit)])

    none = np.zeros((_FIGURES, keys.size), np.int64)
    sums: Numbers = sum((table for table in each(one, parts) if table is not None), none)
    persons, others = people.lists()
    some = np.flatnonzero(sums[0]).tolist()
    rows = [
        _use(keys.names(place), *figures, persons[place], others[place])
        for place, figures in zip(some, sums[:, some].T.tolist(), strict=True)
    ]
    return rows, _use((), *sums.sum(axis=1).tolist(), persons[-1], others[-1])


class _Keys:
    """Numbers for the keys, or pairs of them, that rows may have."""

    def __init__(self, parts: Sequence[Part], by: Sequence[By], period: Period) -> None:
        self._by, self._period = by, period
        self._keys = [None if o is By.MONTH else Keys(parts, DIMENSIONS[o]) for o in by]
        self._sizes = [len(k.names if k else period.names) for k in self._keys]
        self.size = int(np.prod(self._sizes, dtype=np.int64))
        self._known: Numbers | None = None
        if self.size > _TABLE and None not in self._keys:
            pairs = [np.unique(self._of_cells(part)) for part in parts]
            self._known = np.unique(np.concatenate(pairs))
            self.size = len(self._known)

    def of(self, part: Part, found: _Entries) -> "Numbers":
        """By entry."""
        if self._known is not None:
            return np.searchsorted(self._known, self._of_cells(part))[found.cell]
        code = np.zeros(len(found.cell), np.int64)
        for keys, size in zip(self._keys, self._sizes, strict=True):
            code = code * size + (keys.of_cells(part)[found.cell] if keys else found.month)
        return code

    def names(self, place: int) -> tuple[str, ...]:
        code = place if self._known is None else int(self._known[place])
        found: list[str] = []
        for keys, size in zip(reversed(self._keys), reversed(self._sizes), strict=True):
            code, number = divmod(code, size)
            found.insert(0, (keys.names if keys else self._period.names)[number])
        return tuple(found)

    def _of_cells(self, part: Part) -> "Numbers":
        code = np.zeros(len(part.cells["rows"]), np.int64)
        for keys, size in zip(self._keys, self._sizes, strict=True):
            assert keys is not None
            code = code * size + keys.of_cells(part)
        return code


def _entries(part: Part, question: Question, period: Period) -> _Entries | None:
    rows = started(part, question, period)
    if rows is None:
        return None
    if period.holds(part):
        posted, paid = _charges(rows)
        month = np.zeros(len(rows.cells), np.int64)
        seconds = rows.summed(RUN)
        return _Entries(rows.cells, month, rows.counts, rows.counts, seconds, posted - paid, paid)
    return _by_row(rows, period)


def _charges(rows: Rows) -> "tuple[Numbers, Numbers]":
    if "charge" not in rows.part.rows:
        none = np.zeros(len(rows.cells), np.int64)
        return none, none
    return rows.summed(_POSTED), rows.summed(_CHARGED)


def _by_row(rows: Rows, period: Period) -> _Entries:
    """Where runs of the part reach over an edge of the period or of a month."""
    plain, month = period.plain(rows)
    crossing = np.flatnonzero(~plain)
    others = period.others(rows, crossing)
    low, high = period.places_of(rows.part)
    width = high - low + 1
    size = rows.cells.size * width  # of pairs of a cell and a month
    pair = np.repeat(np.arange(rows.cells.size) * width - low, rows.counts)
    other = pair[others.place] + others.month
    pair += month
    known = None
    if size > _TABLE:
        known = np.unique(np.append(pair[plain], other))
        pair, other, size = *(np.searchsorted(known, one) for one in (pair, other)), known.size
    pair[crossing] = size
    begins = np.flatnonzero(np.diff(pair, prepend=-1))  # of rows side by side that are of one pair
    pair, n = pair[begins], np.diff(begins, append=len(pair))
    over = other[others.ended]
    posted = paid = np.zeros(size, np.int64)
    if "charge" in rows.part.rows:
        charge = rows.column("charge")
        late = charge[others.place[others.ended]]
        posted = summed(pair, np.add.reduceat(charge, begins), size) + summed(over, late, size)
        some_paid = np.add.reduceat(charge > 0, begins, dtype=np.int64)
        paid = summed(pair, some_paid, size) + counted(over[late > 0], size)
    whole = summed(pair, n, size)
    runs = whole + counted(other, size)
    ended = whole + counted(over, size)
    told = np.add.reduceat(rows.column("run"), begins, dtype=np.int64)
    seconds = summed(pair, told, size) + summed(other, others.seconds, size)
    some = np.flatnonzero(runs)
    sums = (column[some] for column in (runs, ended, seconds, posted - paid, paid))
    found = some if known is None else known[some]
    return _Entries(rows.cells[found // width], found % width + low, *sums)


_FIGURES = 7


def _figures(part: Part, found: _Entries, credit: CreditSeen) -> "tuple[Numbers, ...]":
    """By entry, in the order of `_use`."""
    gpus, cpus = (part.cells[name][found.cell].astype(np.int64) for name in ("gpus", "cpus"))
    groups = np.array([credit.all_groups or t in credit.groups for t in part.texts["group"]], bool)
    is_seen = groups[part.cells["group"]][found.cell]
    return (
        found.runs,
        found.ended,
        np.maximum(gpus, 0) * found.seconds,
        np.maximum(cpus, 0) * found.seconds,
        found.charge * is_seen,
        found.paid * is_seen,
        found.runs * (gpus < 0),
    )


def _use(keys: tuple[str, ...], *figures: int) -> Use:
    runs, ended, gpu_seconds, cpu_seconds, charge, paid, untold, people, others = figures
    return Use(
        keys=keys,
        runs=runs,
        ended=ended,
        people=people,
        others=others,
        gpu_seconds=gpu_seconds,
        cpu_seconds=cpu_seconds,
        charge=charge if paid else None,
        untold=untold,
    )
