"""Exact order statistics of many numbers by key, without sorting them.

Numbers are counted in buckets of at most 3 % width (a float's exponent and the first bits of its
fraction). Only those in buckets that hold a wanted place are then looked at one by one.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.history.stats.threads import each

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]
    Piece = tuple[Numbers, Numbers]  # by row: key (from the number of keys on: none), and value

_MANY = 64  # keys from which on buckets are wide, so that tables stay small
_STEP = 1 << 16
_ONE_TABLE = 1 << 16  # cells from which on all pieces are counted in one go


class Buckets:
    """Places of numbers >= 0 among buckets; whole numbers below 2^31, or ratios of two such."""

    def __init__(self, fine: int, *, whole: bool) -> None:
        octaves = 32 if whole else 64
        self._shift = 23 - fine
        self._base = ((127 + 32 - octaves) << fine) - 1
        self.size = (octaves << fine) + 2
        self.single = self._single(fine, whole=whole)

    def of(self, values: "Numbers") -> "Numbers":
        """By number its bucket; 0 has the first for itself."""
        found: Numbers = np.empty(len(values), np.int32)
        for first in range(0, len(values), _STEP):
            part = values[first : first + _STEP].astype(np.float32).view(np.int32)
            part >>= self._shift
            part -= self._base
            np.maximum(part, 0, out=found[first : first + _STEP])
        return found

    def _single(self, fine: int, *, whole: bool) -> int:
        """Buckets below this one hold one number each."""
        return int(self.of(np.array([2 << fine], np.int32))[0]) if whole else 1

    def lowest(self, buckets: "Numbers") -> "Numbers":
        """The lowest number of each bucket; that of the first is 0."""
        raised = ((buckets + self._base) << self._shift).astype(np.int32).view(np.float32)
        return np.where(buckets > 0, raised.astype(np.float64), 0)


class Tally:
    """How many numbers each of `keys` keys has, and all of them together (the last row)."""

    def __init__(self, pieces: "Sequence[Piece]", keys: int, *, whole: bool = True) -> None:
        self._pieces, self._keys = pieces, keys
        self.buckets = Buckets(7 if keys <= _MANY else 5, whole=whole)
        self._codes: list[Numbers] = each(self._coded, pieces)
        of_keys = self._counted().reshape(keys + 1, self.buckets.size)[:keys]
        self.table: Numbers = np.vstack((of_keys, of_keys.sum(axis=0)))
        self.n: Numbers = self.table.sum(axis=1)
        self.zeros: Numbers = self.table[:, 0]

    def at(self, ranks: "Numbers") -> "Numbers":
        """The number at each of these places (from 0) of each key in order, the last row of all
        together; where the place is below 0, some number."""
        places = np.maximum(ranks, 0)
        ends = np.cumsum(self.table.ravel()).reshape(self.table.shape)
        begins = ends[:, -1] - self.n
        flat = ends.ravel()
        # Of a key without numbers: any bucket.
        found = np.searchsorted(flat, begins[:, None] + places, side="right")
        found = np.minimum(found, flat.size - 1)
        before = np.where(found > 0, flat[found - 1], 0) - begins[:, None]
        return self._looked_up(found, places - before)

    def _coded(self, piece: "Piece") -> "Numbers":
        key, value = piece
        code = self.buckets.of(value)
        if self._keys > 1:
            code += np.minimum(key, self._keys) * np.int32(self.buckets.size)
        elif key.size and key.any():
            code += np.minimum(key, 1) * np.int32(self.buckets.size)
        return code

    def _counted(self) -> "Numbers":
        cells = (self._keys + 1) * self.buckets.size
        if cells > _ONE_TABLE and self._codes:
            return np.bincount(np.concatenate(self._codes), minlength=cells)
        found: Numbers = sum(
            each(lambda code: _bincount(code, cells), self._codes), np.zeros(cells, np.int64)
        )
        return found

    def _looked_up(self, codes: "Numbers", places: "Numbers") -> "Numbers":
        """`codes`: place in the table; `places`: the how-manieth of the bucket's numbers."""
        size, single = self.buckets.size, self.buckets.single
        buckets = codes % size
        needed = np.zeros((self._keys + 1, size), bool)
        needed.reshape(-1)[codes[:-1]] = True
        needed[: self._keys, buckets[-1]] = True
        needed[:, :single] = False
        code, value = _sorted(*self._gathered(needed.reshape(-1)))
        found = _pick(code, value, codes[:-1], places[:-1])
        bucket, value = _sorted(code % size, value)
        whole = _pick(bucket, value, buckets[-1:], places[-1:])
        return np.where(buckets < single, self.buckets.lowest(buckets), np.vstack((found, whole)))

    def _gathered(self, needed: "Numbers") -> "Piece":
        """Code and value of the numbers in these buckets."""

        def one(both: "tuple[Numbers, Piece]") -> "Piece":
            code, (_, value) = both
            index = np.flatnonzero(needed[code])
            return code[index], value[index]

        found = each(one, list(zip(self._codes, self._pieces, strict=True)))
        if not found:
            return np.zeros(0, np.int32), np.zeros(0, np.int32)
        return np.concatenate([code for code, _ in found]), np.concatenate([v for _, v in found])


def _bincount(codes: "Numbers", cells: int) -> "Numbers":
    """In steps that stay in a core's own memory: three times as fast."""
    found = np.zeros(cells, np.int64)
    for first in range(0, len(codes), _STEP):
        found += np.bincount(codes[first : first + _STEP], minlength=cells)
    return found


def _sorted(codes: "Numbers", values: "Numbers") -> "Piece":
    """By code, and by value within one."""
    if values.dtype.kind == "f":
        order = np.lexsort((values, codes))
        return codes[order], values[order]
    both = np.sort((codes.astype(np.int64) << 32) | values)
    return both >> 32, both & 0xFFFFFFFF


def _pick(codes: "Numbers", values: "Numbers", wanted: "Numbers", places: "Numbers") -> "Numbers":
    if not codes.size:
        return np.zeros(wanted.shape, values.dtype)
    at = np.searchsorted(codes, wanted) + places
    found: Numbers = values[np.clip(at, 0, codes.size - 1)]
    return found
