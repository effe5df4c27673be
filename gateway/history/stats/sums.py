"""Adding up by whole numbers below a size, to the last digit."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

_EXACT = 2**53  # below it whole numbers are exact where floats are added up


def counted(code: "Numbers", size: int) -> "Numbers":
    """How many have each code below `size`."""
    return np.bincount(code, minlength=size)[:size]


def summed(code: "Numbers", values: "Numbers", size: int) -> "Numbers":
    """Sums of whole numbers that are not negative, by code; of the code `size` none is told."""
    if values.sum(dtype=np.int64) < _EXACT:
        return np.bincount(code, values, minlength=size)[:size].astype(np.int64)
    found = np.zeros(size + 1, np.int64)
    np.add.at(found, code, values)
    return found[:size]
