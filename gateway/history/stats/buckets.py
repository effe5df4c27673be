"""Numbers in buckets: a float's exponent and the first bits of its fraction."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

FINE, COARSE = 7, 5  # bits of the fraction: buckets of at most 0.8 %, or 3 %
_STEP = 1 << 16


class Buckets:
    """Places of numbers >= 0 among buckets; whole numbers below 2^31, or ratios of two such."""

    def __init__(self, fine: int, *, whole: bool) -> None:
        octaves = 32 if whole else 64
        self._shift = 23 - fine
        self.halvings = FINE - fine  # how often each is halved to be one of FINE
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

    def wider(self, fine: "Numbers") -> "Numbers":
        """Buckets of FINE as buckets of these."""
        found: Numbers = (fine + ((1 << self.halvings) - 1)) >> self.halvings
        return found if self.halvings else fine

    def parts(self, fine: "Numbers") -> "Numbers":
        """Which part each bucket of FINE is of its bucket here, in order."""
        power = 1 << self.halvings
        found: Numbers = (fine + (power - 1)) & (power - 1)
        return found

    def lowest(self, buckets: "Numbers") -> "Numbers":
        """The lowest number of each bucket; that of the first is 0."""
        raised = ((buckets + self._base) << self._shift).astype(np.int32).view(np.float32)
        return np.where(buckets > 0, raised.astype(np.float64), 0)
