"""Exact order statistics of many numbers by key, without sorting them.

Numbers are counted in buckets of at most 3 % width; only those in buckets that hold a wanted place
are then looked at one by one.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.history.stats.buckets import COARSE, FINE, Buckets
from gateway.history.stats.pieces import Piece, together
from gateway.history.stats.threads import each

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

_MANY = 64  # keys from which on buckets are wide, so that tables stay small
_STEP = 1 << 16
_ONE_TABLE = 1 << 16  # cells from which on pieces are counted in one go


class Tally:
    """How many numbers each of `keys` keys has, and all of them together (the last row)."""

    def __init__(self, pieces: Sequence[Piece], keys: int, *, whole: bool = True) -> None:
        self.buckets = Buckets(FINE, whole=whole)
        pieces = each(self._bucketed, pieces)
        wide = Buckets(FINE if keys <= _MANY else COARSE, whole=whole)
        self._of_keys = self._of_all = _Table(pieces, keys, wide)
        if keys != 1:
            one = [piece.keyed((piece.key >= keys).astype(np.int32)) for piece in pieces]
            given = self._of_keys.table.sum(axis=0, keepdims=True) if wide.halvings == 0 else None
            self._of_all = _Table(one, 1, self.buckets, given)
        self.together: Numbers = self._of_all.table[0]
        tables = (self._of_keys.table, self._of_all.table)
        self.n: Numbers = np.concatenate([table.sum(axis=1) for table in tables])
        self.zeros: Numbers = np.concatenate([table[:, 0] for table in tables])

    def _bucketed(self, piece: Piece) -> Piece:
        if piece.bucket is not None:
            return piece
        return replace(piece, bucket=self.buckets.of(piece.value))

    def at(self, ranks: "Numbers") -> "Numbers":
        """The number at each of these places (from 0) of each key in order, the last row of all
        together; where the place is below 0, some number."""
        return np.vstack((self._of_keys.at(ranks[:-1]), self._of_all.at(ranks[-1:])))


class _Table:
    """How many numbers of each key are in each bucket: `table`, where it is known already."""

    def __init__(
        self,
        pieces: Sequence[Piece],
        keys: int,
        buckets: Buckets,
        table: "Numbers | None" = None,
    ) -> None:
        self._pieces, self._keys, self._buckets = pieces, keys, buckets
        self._codes: list[Numbers] = each(self._coded, pieces)
        if table is None:
            coded = list(zip(self._codes, (piece.n for piece in pieces), strict=True))
            table = _table(coded, (keys + 1) * buckets.size).reshape(-1, buckets.size)[:keys]
        self.table = table

    def at(self, ranks: "Numbers") -> "Numbers":
        """As Tally.at, of the keys alone."""
        if not self.table.any():
            return np.zeros(ranks.shape, np.int64)
        buckets, places = _found(self.table, np.maximum(ranks, 0))
        codes = buckets + np.arange(self._keys)[:, None] * self._buckets.size
        picked = self._looked_up(codes, places, buckets >= self._buckets.single)
        return np.where(buckets < self._buckets.single, self._buckets.lowest(buckets), picked)

    def _coded(self, piece: Piece) -> "Numbers":
        buckets, key = self._buckets, piece.key
        assert piece.bucket is not None  # Tally has seen to it
        code = buckets.wider(piece.bucket)
        if self._keys > 1:
            return code + np.minimum(key, self._keys) * np.int32(self._buckets.size)
        return code + np.minimum(key, 1) * np.int32(self._buckets.size) if key.any() else code

    def _looked_up(self, codes: "Numbers", places: "Numbers", which: "Numbers") -> "Numbers":
        """`codes`: place in the table; `places`: the how-manieth of the bucket's numbers; `which`
        of them are wanted."""
        coded = [p.keyed(code) for p, code in zip(self._pieces, self._codes, strict=True)]
        some, wanted = _needed(coded, codes, which, (self._keys + 1) * self._buckets.size)
        parts = 1 << self._buckets.halvings
        if parts > 1:
            size = (int(wanted.max()) + 1) * parts
            some = each(self._parted, some)
            table = _table([(one.key, one.n) for one in some], size)
            rows = table.reshape(-1, parts)[wanted.ravel()]
            part, places = (
                one.reshape(wanted.shape) for one in _found(rows, places.reshape(-1, 1))
            )
            some, wanted = _needed(some, wanted * parts + part, which, size)
        return _picked(*together(some), wanted, places)

    def _parted(self, piece: Piece) -> Piece:
        assert piece.bucket is not None
        parts = 1 << self._buckets.halvings
        return piece.keyed(piece.key * parts + self._buckets.parts(piece.bucket))


def _needed(
    pieces: Sequence[Piece], codes: "Numbers", which: "Numbers", size: int
) -> "tuple[list[Piece], Numbers]":
    """Those numbers whose key is one of `codes`, as far as these are wanted; for keys they have
    the places of these codes in order, which is told of `codes`, too."""
    needed = np.zeros(size, bool)
    needed[codes[which]] = True
    number = np.maximum(np.cumsum(needed, dtype=np.int32) - 1, 0)

    def one(piece: Piece) -> Piece:
        some = piece.some(np.flatnonzero(needed[piece.key]))
        return some.keyed(number[some.key])

    return each(one, pieces), number[codes]


def _found(table: "Numbers", places: "Numbers") -> "tuple[Numbers, Numbers]":
    """By row of counts: in which column each place lies, and the place there."""
    ends = np.cumsum(table, axis=None)
    begins = ends.reshape(table.shape)[:, -1:] - table.sum(axis=1, keepdims=True)
    found = np.searchsorted(ends, begins + places, side="right")
    found = np.minimum(found, ends.size - 1)  # of a row without numbers: any
    before = np.where(found > 0, ends[found - 1], 0) - begins
    columns: Numbers = found % table.shape[1]
    return columns, places - before


def _table(coded: "Sequence[tuple[Numbers, Numbers | None]]", size: int) -> "Numbers":
    """How many have each code: codes, and how many each stands for (None: one)."""
    if size > _ONE_TABLE and coded:
        coded = [_joined(coded)]
    none = np.zeros(size, np.int64)
    found: Numbers = sum(each(lambda one: _bincount(*one, size), coded), none)
    return found


def _bincount(code: "Numbers", n: "Numbers | None", size: int) -> "Numbers":
    """In steps that stay in a core's own memory where the table does: three times as fast."""
    if size > _ONE_TABLE:
        return np.bincount(code, n, minlength=size).astype(np.int64, copy=False)
    found = np.zeros(size)
    for first in range(0, len(code), _STEP):
        some = slice(first, first + _STEP)
        found += np.bincount(code[some], None if n is None else n[some], minlength=size)
    return found.astype(np.int64)


def _joined(coded: "Sequence[tuple[Numbers, Numbers | None]]") -> "tuple[Numbers, Numbers | None]":
    code = np.concatenate([code for code, _ in coded])
    if all(n is None for _, n in coded):
        return code, None
    return code, np.concatenate([np.ones(len(c)) if n is None else n for c, n in coded])


def _picked(codes: "Numbers", values: "Numbers", wanted: "Numbers", places: "Numbers") -> "Numbers":
    """The number at each place among those of each wanted code."""
    if not codes.size:
        return np.zeros(wanted.shape, values.dtype)
    codes, values = _sorted(codes, values)
    at = np.searchsorted(codes, wanted) + places
    found: Numbers = values[np.clip(at, 0, codes.size - 1)]
    return found


def _sorted(codes: "Numbers", values: "Numbers") -> "tuple[Numbers, Numbers]":
    """By code, and by value within one."""
    if values.dtype.kind == "f":
        order = np.lexsort((values, codes))
        return codes[order], values[order]
    both = np.sort((codes.astype(np.int64) << 32) | values)
    return both >> 32, both & 0xFFFFFFFF
