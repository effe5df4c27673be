"""Which rows a question is about, and what their key is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.core.wait_figures import (
    GPU_CLASSES,
    LIMIT_CLASSES,
    UNKNOWN,
    Dimension,
    Question,
)
from gateway.history.stats.columns import TEXTS, Part
from gateway.history.stats.pieces import Order
from gateway.history.stats.time_keys import TIMES, TimeKeys

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]
    # Key and cell of rows side by side, and how many they are.
    Entries = tuple[Numbers, Numbers, Numbers]

_ORDERED = (Dimension.GPU_CLASS, Dimension.GPUS, Dimension.LIMIT_CLASS)
_CLASSES = [name for name, _, _ in GPU_CLASSES] + [UNKNOWN]
_LIMITS = [name for name, _ in LIMIT_CLASSES] + [UNKNOWN]
_FROM = [low for _, low, _ in GPU_CLASSES]
_UP_TO = [most for _, most in LIMIT_CLASSES if most is not None]


@dataclass(frozen=True)
class Measure:
    """A number a row; what is called the same is the same number of every row of a part."""

    name: str
    of: "Callable[[Rows], Numbers]"


@dataclass(frozen=True)
class Rows:
    """Rows of a part, cell by cell: `counts` rows of each of `cells`."""

    part: Part
    cells: "Numbers"
    counts: "Numbers"
    where: "slice | Numbers"

    def column(self, name: str) -> "Numbers":
        """One number a row; of one that the part does not keep, zeros."""
        if name not in self.part.rows:
            return np.zeros(int(self.counts.sum()), np.int32)
        found: Numbers = self.part.rows[name][self.where]
        return found

    def of(self, cells: "Numbers") -> "Rows | None":
        """Those of them that are of these cells of the part; None: there is none."""
        keep = cells[self.cells]
        if keep.all():
            return self
        places = np.flatnonzero(keep)
        if not places.size:
            return None
        where: slice | Numbers
        if isinstance(self.where, slice) and places[-1] - places[0] + 1 == places.size:
            begin = self.where.start + int(self.counts[: places[0]].sum())
            where = slice(begin, begin + int(self.counts[places].sum()))
        else:
            index = np.flatnonzero(np.repeat(keep, self.counts))
            where = index + self.where.start if isinstance(self.where, slice) else self.where[index]
        return Rows(self.part, self.cells[places], self.counts[places], where)

    def each(self, of_cells: "Numbers") -> "Numbers":
        """What all cells of the part have, a number a row."""
        return np.repeat(of_cells[self.cells], self.counts)

    @property
    def are_whole(self) -> bool:
        """Whether all rows of each cell are here."""
        return np.array_equal(self.counts, self.part.cells["rows"][self.cells])

    def order(self, measure: Measure) -> Order | None:
        """How the measure is spread in the cells; None: of these rows nobody knows."""
        return self.part.orders.get(measure.name) if self.are_whole else None

    def summed(self, measure: Measure) -> "Numbers":
        """The sum of a measure, of each of `cells`."""
        if not self.are_whole:
            return self.sums(measure.of(self))
        part, order = self.part, self.order(measure)
        if order is not None:
            return order.sums[self.cells]
        every = Rows(
            part, np.arange(len(part.cells["rows"])), part.cells["rows"], slice(0, part.firsts[-1])
        )
        sums = part.once(f"sums of {measure.name}", lambda: every.sums(measure.of(every)))
        return sums[self.cells]

    def sums(self, values: "Numbers", counts: "Numbers | None" = None) -> "Numbers":
        """The sum of a number a row, of each of `cells`, or of so many rows side by side each."""
        counts = self.counts if counts is None else counts
        firsts = np.cumsum(counts, dtype=np.int64) - counts
        kind = np.float64 if values.dtype.kind == "f" else np.int64
        found: Numbers = np.add.reduceat(values, firsts, dtype=kind)
        return found


def wanted(part: Part, question: Question) -> "Numbers":
    """By cell: whether filters let it through, but for those by times."""
    found: Numbers = part.cells["gpus"] >= question.least_gpus
    if question.least_gpus <= 0:
        found = np.ones(len(found), bool)
    for dimension, values in question.only.items():
        if dimension not in TIMES:
            codes, names = labels(part, dimension)
            allowed = {value or UNKNOWN for value in values}
            found &= np.array([name in allowed for name in names], bool)[codes]
    return found


def rows(part: Part, question: Question, cells: "Numbers") -> Rows | None:
    """Of the wanted cells those rows that were submitted in the period; None: there is none."""
    ids = np.flatnonzero(cells)
    since = int(question.since.timestamp()) if question.since else 0
    until = -int(-question.until.timestamp() // 1) if question.until else 2**32
    first, last = part.submitted
    if not ids.size or first >= until or last < since:
        return None
    found = Rows(part, ids, part.cells["rows"][ids], _where(part, ids, cells))
    if first < since or last >= until:
        submit = found.column("submit")
        found = those(found, (submit >= since) & (submit < until))
    for dimension, values in question.only.items():
        if dimension in TIMES and found.cells.size:
            keys = TimeKeys([part], dimension, question.zone)
            allowed = np.array([name in values for name in keys.names] + [False], bool)
            found = those(found, allowed[keys.of(found)])
    return found if found.cells.size else None


def labels(part: Part, dimension: Dimension) -> "tuple[Numbers, Sequence[str]]":
    """By cell the place of its key, and the keys."""
    if dimension.value in TEXTS:
        names = part.texts[dimension.value]
        return part.cells[dimension.value], [name or UNKNOWN for name in names]
    if dimension is Dimension.GPUS:
        known, codes = np.unique(part.cells["gpus"], return_inverse=True)
        return codes, [str(n) if n >= 0 else UNKNOWN for n in known.tolist()]
    if dimension is Dimension.GPU_CLASS:
        gpus = part.cells["gpus"]
        codes = np.searchsorted(_FROM, gpus, side="right") - 1
        return np.where(gpus < 0, len(_FROM), codes), _CLASSES
    limits = part.cells["limit_minutes"]
    codes = np.searchsorted(_UP_TO, limits, side="left")
    return np.where(limits < 0, len(_LIMITS) - 1, codes), _LIMITS


class Keys:
    """Keys of one dimension over all parts; `names` in the order of their codes. Without a
    dimension everything has one key."""

    def __init__(self, parts: Sequence[Part], dimension: Dimension | None) -> None:
        self._dimension = dimension
        self.names: list[str] = [""]
        if dimension is not None:
            found = {name for part in parts for name in labels(part, dimension)[1]}
            self.names = in_order(found, dimension)
        self._codes = {name: code for code, name in enumerate(self.names)}

    def of_cells(self, part: Part) -> "Numbers":
        """By cell of the part."""
        if self._dimension is None:
            return np.zeros(len(part.cells["rows"]), np.int32)
        codes, names = labels(part, self._dimension)
        return np.array([self._codes[name] for name in names], np.int32)[codes]

    def of(self, found: Rows) -> "Numbers":
        """By row."""
        if self._dimension is None:
            return np.zeros(int(found.counts.sum()), np.int32)
        return found.each(self.of_cells(found.part))


def entries(keys: Keys | TimeKeys, found: Rows) -> "Entries":
    """Rows side by side that are of one cell and have one key."""
    if isinstance(keys, Keys):
        return keys.of_cells(found.part)[found.cells], found.cells, found.counts
    return keys.stretches(found)


def is_ordered(dimension: Dimension) -> bool:
    """Whether its keys have an order of their own."""
    return dimension in TIMES or dimension in _ORDERED


def in_order(names: set[str], dimension: Dimension) -> list[str]:
    """Classes and numbers in their order, the unknown last."""
    known = {Dimension.GPU_CLASS: _CLASSES, Dimension.LIMIT_CLASS: _LIMITS}.get(dimension)
    if known is not None:
        return known
    if dimension is Dimension.GPUS:
        return sorted(names, key=lambda name: (name == UNKNOWN, int(name.isdecimal() and name)))
    return sorted(names, key=lambda name: (name == UNKNOWN, name))


def _where(part: Part, ids: "Numbers", cells: "Numbers") -> "slice | Numbers":
    """Rows of cells side by side are read in place, without a copy."""
    if ids[-1] - ids[0] + 1 == ids.size:
        return slice(int(part.firsts[ids[0]]), int(part.firsts[ids[-1] + 1]))
    return np.flatnonzero(np.repeat(cells, part.cells["rows"]))


def those(found: Rows, mask: "Numbers") -> Rows:
    """Those rows for which `mask` is true; perhaps none."""
    index = np.flatnonzero(mask)
    places = np.repeat(np.arange(found.cells.size), found.counts)[index]
    counts = np.bincount(places, minlength=found.cells.size)
    where = index + found.where.start if isinstance(found.where, slice) else found.where[index]
    return Rows(found.part, found.cells[counts > 0], counts[counts > 0], where)
