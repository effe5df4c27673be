"""Numbers with their keys, as statistics take them: row by row, or in stretches.

Of rows that are alike in all that is asked (a cell) the numbers are kept in order, with the bucket
of each counted beforehand (`Order`): most figures are then made of stretches of one bucket, and
single numbers are only looked at where a bucket does not say enough.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.history.stats.buckets import FINE, Buckets

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

_EVERY = Buckets(FINE, whole=True)
_EXACT = 1 << 24  # above it a whole number may be rounded into the next bucket
_DENSE = 1 << 24  # seconds up to which a table tells the interval of a number
_MANY = 1 << 16  # numbers from which on that table is worth its making


@dataclass(frozen=True)
class Order:
    """A whole number >= 0 a row, cell by cell and in order within one. By stretch of numbers in one
    bucket its `cell`, its `bucket` (of FINE) and how many they are; by cell their `sums`."""

    values: "Numbers"
    cell: "Numbers"
    bucket: "Numbers"
    n: "Numbers"
    sums: "Numbers"

    def piece(self, of_cells: "Numbers", keep: "Numbers") -> "Piece":
        """The numbers of the cells to keep, by the key of each cell."""
        n = self.n.astype(np.int64)
        every = Piece(of_cells[self.cell], self.values, self.bucket, n, np.cumsum(n) - n)
        return every if keep.all() else every.some(np.flatnonzero(keep[self.cell]))

    @classmethod
    def of(cls, values: "Numbers", rows: "Numbers") -> "Order":
        """`values`: of `rows` rows of each cell."""
        cell = np.repeat(np.arange(len(rows), dtype=np.int64), rows)
        both = np.sort((cell << 32) | values)
        ordered = both.astype(np.int32)
        bucket = _EVERY.of(ordered)
        code = (cell << 32) | bucket
        begins = np.flatnonzero(np.diff(code, prepend=-1))
        n = np.diff(begins, append=len(code))
        sums = np.bincount(cell, ordered, minlength=len(rows))
        cells, buckets, many = (c.astype("<i4") for c in (cell[begins], bucket[begins], n))
        return cls(ordered, cells, buckets, many, sums.astype("<i8"))


@dataclass(frozen=True)
class Piece:
    """`key`: by number, or by stretch; from the number of keys on: none. A stretch are `n` values
    in one bucket (of FINE), from the place `begin` on; without `n`, a bucket is a number's."""

    key: "Numbers"
    value: "Numbers"
    bucket: "Numbers | None" = None
    n: "Numbers | None" = None
    begin: "Numbers | None" = None

    def __len__(self) -> int:
        """How many numbers."""
        return len(self.key) if self.n is None else int(self.n.sum())

    def some(self, which: "Numbers") -> "Piece":
        """Those (places among numbers or stretches)."""
        bucket = None if self.bucket is None else self.bucket[which]
        if self.n is None or self.begin is None:
            return Piece(self.key[which], self.value[which], bucket)
        return Piece(self.key[which], self.value, bucket, self.n[which], self.begin[which])

    def singly(self) -> "Piece":
        """Number by number."""
        if self.n is None or self.begin is None:
            return self
        shift = np.repeat(self.begin - (np.cumsum(self.n) - self.n), self.n)
        return Piece(np.repeat(self.key, self.n), self.value[shift + np.arange(shift.size)])

    def keyed(self, key: "Numbers") -> "Piece":
        """The same numbers with other keys."""
        return replace(self, key=key)


class Intervals:
    """Between which of some moments, in order and each there once, numbers lie: the place is how
    many of these are less."""

    def __init__(self, moments: "Numbers") -> None:
        self._moments = moments
        self._table: Numbers | None = None
        every = np.arange(_EVERY.size + 1)
        lowest = np.ceil(_EVERY.lowest(every)).astype(np.int64)
        self._of_bucket = self._searched(lowest[:-1])
        alike = self._of_bucket == self._searched(lowest[1:] - 1)
        self._alike = alike & (lowest[1:] <= _EXACT)

    def of(self, piece: Piece) -> "Iterator[tuple[Numbers, Numbers, Numbers | None]]":
        """Key, place, and how many (None: one)."""
        if piece.n is None or piece.bucket is None:
            yield piece.key, self._looked_up(piece.value), None
            return
        alike = self._alike[piece.bucket]
        yield piece.key[alike], self._of_bucket[piece.bucket[alike]], piece.n[alike]
        if not alike.all():
            yield from self.of(piece.some(np.flatnonzero(~alike)).singly())

    def _looked_up(self, values: "Numbers") -> "Numbers":
        last = int(self._moments[-1]) if self._moments.size else 0
        if values.size < _MANY or last >= _DENSE:
            return self._searched(values)
        if self._table is None:
            ends = np.zeros(last + 2, np.int32)
            np.add.at(ends, np.maximum(self._moments + 1, 0), 1)
            self._table = np.cumsum(ends, dtype=np.int32)
        found: Numbers = self._table[np.minimum(values, last + 1)]
        return found

    def _searched(self, values: "Numbers") -> "Numbers":
        return np.searchsorted(self._moments, values, side="left")


def together(pieces: Sequence[Piece]) -> "tuple[Numbers, Numbers]":
    """Keys and numbers of all of them, one by one."""
    none, found = np.zeros(0, np.int32), [piece.singly() for piece in pieces]
    return (
        np.concatenate([none, *(piece.key for piece in found)]),
        np.concatenate([none, *(piece.value for piece in found)]),
    )
