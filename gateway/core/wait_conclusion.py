"""One conclusion about where waits went, from the seconds alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gateway.core.wait_causes import Cause

LEAST_JOBS = 10  # fewer say nothing about the next one
_MUCH = 0.25  # of the wait: nobody is told that a larger limit would not have helped
_LIMITS = (Cause.USER_LIMIT, Cause.GROUP_LIMIT, Cause.QOS_LIMIT)


class Conclusion(StrEnum):
    TOO_FEW = "too_few"
    NO_WAIT = "no_wait"
    NOBODY_LOOKED = "nobody_looked"
    OWN_CHOICE = "own_choice"
    USER_LIMIT = "user_limit"
    GROUP_LIMIT = "group_limit"
    QOS_LIMIT = "qos_limit"
    FULL = "full"  # behind others, or first in line with nothing free: no limit stood before it
    FULL_AND_LIMITS = "full_and_limits"  # the same, but limits had a good part of the wait, too
    NODES_DOWN = "nodes_down"
    RESERVATION = "reservation"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`share` of the wait, 0 to 1, that the conclusion rests on. MIXED: `largest` has that share,
    less than half. FULL_AND_LIMITS: `limits` is the share of all limits together."""

    conclusion: Conclusion
    share: float = 0.0
    largest: Conclusion | None = None
    limits: float = 0.0


# In this order where two are alike: what one can do something about comes first.
_PARTS: dict[Conclusion, tuple[Cause, ...]] = {
    Conclusion.OWN_CHOICE: (Cause.DEFERRAL, Cause.ARRAY_THROTTLE),
    Conclusion.USER_LIMIT: (Cause.USER_LIMIT,),
    Conclusion.GROUP_LIMIT: (Cause.GROUP_LIMIT,),
    Conclusion.QOS_LIMIT: (Cause.QOS_LIMIT,),
    Conclusion.FULL: (Cause.PRIORITY, Cause.NO_GPUS),
    Conclusion.NODES_DOWN: (Cause.NODES_DOWN,),
    Conclusion.RESERVATION: (Cause.RESERVATION,),
    Conclusion.NOBODY_LOOKED: (Cause.UNKNOWN,),
}


def conclude(jobs: int, seconds: Mapping[Cause, int]) -> Verdict:
    """Of `jobs` whose waits went into `seconds` by cause."""
    whole = sum(seconds.values())
    if jobs < LEAST_JOBS:
        return Verdict(Conclusion.TOO_FEW)
    if not whole:
        return Verdict(Conclusion.NO_WAIT)
    sums = {
        conclusion: sum(seconds.get(cause, 0) for cause in causes)
        for conclusion, causes in _PARTS.items()
    }
    largest = max(sums, key=sums.__getitem__)
    share = sums[largest] / whole
    if share < 0.5:
        return Verdict(Conclusion.MIXED, share, largest)
    limits = sum(seconds.get(cause, 0) for cause in _LIMITS) / whole
    if largest is Conclusion.FULL and limits >= _MUCH:
        return Verdict(Conclusion.FULL_AND_LIMITS, share, limits=limits)
    return Verdict(largest, share)
