"""Counting what was so at a moment, for many moments at once: sorted moments and sums up to them.

A key is a number below 2^30; with the moment below it makes one sorted number, so that one binary
search finds a key's moment.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, Any]

_BITS = 33  # of a moment, NEVER included


@dataclass(frozen=True, slots=True)
class Tally:
    """Events by key and moment, and the running sums of their weights (columns)."""

    places: "Numbers"
    sums: "Numbers"

    @classmethod
    def of(cls, keys: "Numbers", moments: "Numbers", weights: "Numbers") -> "Tally":
        """`weights`: a row an event. A first column of ones counts."""
        import numpy as np  # noqa: PLC0415

        order, places = _sorted(keys, moments)
        sums = np.zeros((len(places) + 1, weights.shape[1]))
        np.cumsum(weights[order], axis=0, out=sums[1:])
        return cls(places, sums)

    def before(self, keys: "Numbers", moments: "Numbers") -> "Numbers":
        """Sums over the events of each key before each moment: a row a question."""
        first, end = _between(self.places, keys, moments)
        result: Numbers = self.sums[end] - self.sums[first]
        return result


@dataclass(frozen=True, slots=True)
class Latest:
    """The values of the last events of a key."""

    places: "Numbers"
    values: "Numbers"
    moments: "Numbers"

    @classmethod
    def of(cls, keys: "Numbers", moments: "Numbers", values: "Numbers") -> "Latest":
        order, places = _sorted(keys, moments)
        return cls(places, values[order], moments[order])

    def quantiles(
        self,
        keys: "Numbers",
        moments: "Numbers",
        shares: tuple[float, ...],
        *,
        last: int,
        reach: int | None = None,
    ) -> "Numbers":
        """Of the `last` values before each moment and at most `reach` seconds old, the nearest
        ranks: a column a share; -1 where there is none."""
        import numpy as np  # noqa: PLC0415

        found = np.full((len(keys), len(shares)), -1.0)
        if not len(self.values):
            return found
        first, end = _between(self.places, keys, moments)
        first = np.maximum(first, end - last)
        if reach is not None:
            first = np.maximum(first, _between(self.places, keys, moments - reach)[1])
        for begin in range(0, len(keys), _AT_ONCE):
            part = slice(begin, begin + _AT_ONCE)
            found[part] = self._ranks(first[part], end[part], shares, last)
        return found

    def _ranks(
        self, first: "Numbers", end: "Numbers", shares: tuple[float, ...], last: int
    ) -> "Numbers":
        import numpy as np  # noqa: PLC0415

        # The same window again and again, as of tasks of one array, is sorted once.
        windows, back = np.unique(first * (len(self.values) + 1) + end, return_inverse=True)
        first, end = np.divmod(windows, len(self.values) + 1)
        at = first[:, None] + np.arange(last)
        values = self.values[np.minimum(at, len(self.values) - 1)].astype(np.float32)
        values[at >= end[:, None]] = np.inf
        values.sort(axis=1)
        number = end - first
        ranks = np.ceil(np.outer(number, shares)).astype(np.int64) - 1
        taken = np.take_along_axis(values, np.clip(ranks, 0, last - 1), axis=1)
        result: Numbers = np.where(number[:, None] > 0, taken, -1.0)[back]
        return result


_AT_ONCE = 20_000


def _sorted(keys: "Numbers", moments: "Numbers") -> "tuple[Numbers, Numbers]":
    import numpy as np  # noqa: PLC0415

    places = (keys << _BITS) + moments
    order = np.argsort(places, kind="stable")
    return order, places[order]


def _between(places: "Numbers", keys: "Numbers", moments: "Numbers") -> "tuple[Numbers, Numbers]":
    """Where a key's events begin, and where those before a moment end."""
    import numpy as np  # noqa: PLC0415

    floor = keys << _BITS
    first = np.searchsorted(places, floor)
    return first, np.maximum(np.searchsorted(places, floor + np.maximum(moments, 0)), first)
