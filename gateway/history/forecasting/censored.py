"""Kaplan–Meier: quantiles of durations of which some are only known to be longer."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, Any]


def survival(values: "Numbers", seen: "Numbers") -> "tuple[Numbers, Numbers]":
    """The sorted values, and the share that is longer than each. `seen`: the value is an end;
    where not, it is known to be longer. At equal values the ends come first."""
    import numpy as np  # noqa: PLC0415

    order = np.lexsort((~seen, values))
    at_risk = np.arange(len(values), 0, -1)
    return values[order], np.cumprod(1 - seen[order] / at_risk)


def quantile(values: "Numbers", seen: "Numbers", share: float) -> float:
    """The least value that `share` of all are not longer than; the largest value where the curve
    does not fall so far. ValueError where there is none."""
    import numpy as np  # noqa: PLC0415

    if not len(values):
        raise ValueError("a quantile of nothing")
    ordered, longer = survival(values, seen)
    place = int(np.searchsorted(-longer, -(1 - share) - 1e-12))
    return float(ordered[min(place, len(ordered) - 1)])


def weights(values: "Numbers", seen: "Numbers", *, most: float = 20.0) -> "Numbers":
    """For those that were seen, for how many they stand: one over the chance not to have been cut
    off before (zero for the others). So the long ones, which are cut off most, count in full."""
    import numpy as np  # noqa: PLC0415

    ordered, kept = survival(values, ~seen)
    before = np.searchsorted(ordered, values)  # not counting what was cut off at the same value
    chance = np.concatenate([[1.0], kept])[before]
    result: Numbers = np.where(seen, 1 / np.maximum(chance, 1 / most), 0.0)
    return result
