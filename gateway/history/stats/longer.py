"""Kaplan–Meier: how long one waits, where those that have not started count as longer.

Between two moments at which somebody leaves the count, the curve falls in proportion to those that
start: only how many started until each such moment must be known, not each start by itself.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.history.stats.pieces import Intervals, Piece, together
from gateway.history.stats.threads import each

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

_LARGEST = 1 << 22  # cells of a table of keys and times
_CLOSE = 1e-12  # of a share: products of millions of quotients are not exact


class Curve:
    """Of each of `keys` keys, and of all together (the last row). Those that start at the moment at
    which another leaves start before."""

    def __init__(self, started: Sequence[Piece], left: Sequence[Piece], keys: int) -> None:
        self._keys = keys
        key, seconds = together(left)
        key, seconds = key[key < keys], seconds[key < keys]
        self.times, places = np.unique(seconds, return_inverse=True)
        leaving = self._table(key * self._width + places)
        starting = self._started(started)
        self.starting = np.vstack((starting, starting.sum(axis=0)))
        self.leaving = np.vstack((leaving, leaving.sum(axis=0)))
        gone_before = np.cumsum(self.starting + self.leaving, axis=1)
        total = gone_before[:, -1:]
        self.at_risk = total - gone_before + self.starting + self.leaving
        falls = (self.at_risk - self.starting) / np.maximum(self.at_risk, 1)
        falls[self.at_risk == 0] = 1
        self.share = np.cumprod(falls, axis=1)  # at the end of each interval

    @property
    def _width(self) -> int:
        return len(self.times) + 1

    def ranks(self, percents: Sequence[int]) -> "Numbers":
        """By key and percentile the place (from 0) among those that started, in order, at whose
        start no more than the rest still waits; -1 where the curve does not fall so far."""
        begin = np.hstack((np.ones((self._keys + 1, 1)), self.share[:, :-1]))
        before = np.cumsum(self.starting, axis=1) - self.starting
        found = np.full((self._keys + 1, len(percents)), -1, np.int64)
        for column, percent in enumerate(percents):
            rest = (100 - percent) / 100 + _CLOSE
            low = (self.share <= rest) & (self.starting > 0)
            rows = np.flatnonzero(low.any(axis=1))
            at = (rows, low[rows].argmax(axis=1))
            steps = np.ceil(self.at_risk[at] * (1 - rest / begin[at]) - _CLOSE)
            places = before[at] + np.clip(steps, 1, self.starting[at]) - 1
            found[rows, column] = places.astype(np.int64)
        return found

    def still(self, seconds: "Numbers", started: "Numbers") -> "Numbers":
        """The share of all that still waits after each of these seconds, by then having seen so
        many starts."""
        interval = np.searchsorted(self.times, seconds, side="left")
        begin = np.append(1.0, self.share[-1])[interval]
        before = np.append(0, np.cumsum(self.starting[-1]))[interval]
        risk = self.at_risk[-1][interval]
        found: Numbers = begin * (1 - (started - before) / np.maximum(risk, 1))
        return found

    def _started(self, pieces: Sequence[Piece]) -> "Numbers":
        """How many started in each interval: up to each time at which somebody leaves, and after
        the last."""
        intervals = Intervals(self.times)

        def one(piece: Piece) -> "Numbers":
            found = np.zeros((self._keys, self._width), np.int64)
            for key, interval, n in intervals.of(piece):
                found += self._table(np.minimum(key, self._keys) * self._width + interval, n)
            return found

        empty = np.zeros((self._keys, self._width), np.int64)
        return sum(each(one, pieces), empty)

    def _table(self, cells: "Numbers", n: "Numbers | None" = None) -> "Numbers":
        counts = np.bincount(cells, n, minlength=(self._keys + 1) * self._width).astype(np.int64)
        found: Numbers = counts[: self._keys * self._width].reshape(self._keys, self._width)
        return found


def ranks(
    started: Sequence[Piece], left: Sequence[Piece], n: "Numbers", percents: Sequence[int]
) -> "Numbers":
    """As Curve.ranks. `n`: how many of each key, and of all, started. Keys that nobody left have
    ordinary percentiles, and are counted together."""
    keys = len(n) - 1
    found: Numbers = np.stack([-(-percent * n // 100) - 1 for percent in percents], axis=1)
    some = np.unique(np.concatenate([np.zeros(0, np.int32), *(piece.key for piece in left)]))
    some = some[some < keys]
    if not some.size:
        return found
    place = np.full(keys + 1, some.size, np.int32)
    place[some], place[keys] = np.arange(some.size), some.size + 1
    curves = _ranks(
        [piece.keyed(place[piece.key]) for piece in started],
        [piece.keyed(place[piece.key]) for piece in left],
        some.size + 1,
        percents,
    )
    found[some], found[keys] = curves[: some.size], curves[-1]
    return found


def _ranks(
    started: Sequence[Piece], left: Sequence[Piece], keys: int, percents: Sequence[int]
) -> "Numbers":
    """Also where keys and times are so many that no table of both can be made."""
    times = np.unique(np.concatenate([piece.value for piece in left])).size
    if keys * times <= _LARGEST:
        return Curve(started, left, keys).ranks(percents)
    begun, gone = ([one.keyed(one.key // keys) for one in pieces] for pieces in (started, left))
    whole = Curve(begun, gone, 1)
    single = [
        Curve([Piece(one * 0, one)], [Piece(other * 0, other)], 1).ranks(percents)[0]
        for one, other in zip(_by_key(started, keys), _by_key(left, keys), strict=True)
    ]
    return np.vstack((*single, whole.ranks(percents)[-1]))


def _by_key(pieces: Sequence[Piece], keys: int) -> list["Numbers"]:
    key, seconds = together(pieces)
    order = np.argsort(key, kind="stable")
    ends = np.searchsorted(key[order], np.arange(keys + 1))
    return np.split(seconds[order], ends)[1:-1]
