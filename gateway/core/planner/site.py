"""What a site knows of itself: the share of the peak that its jobs reached, and how often runs of
a QoS were preempted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

LEAST_JOBS = 5  # fewer say nothing of the next one
LEAST_PREEMPTIONS = 5
# Cards of a job from which on the network weighs differently: one, a node, a few, many.
_SIZES = (1, 8, 64)
_SECONDS_AN_HOUR, _MINUTE = 3600, 1 / 60


@dataclass(frozen=True, slots=True)
class MeasuredMfu:
    """Of `jobs` that ended here: their median, and the middle half of them."""

    share: float
    low: float
    high: float
    jobs: int


@dataclass(frozen=True, slots=True)
class Preemptions:
    """Seconds that the runs of a QoS were on nodes, and how many of them were preempted."""

    events: int
    seconds: int

    @property
    def hours_between(self) -> float | None:
        """None where too few are known."""
        if self.events < LEAST_PREEMPTIONS or self.seconds <= 0:
            return None
        # It divides: a QoS that is preempted at once, always, must not make infinities.
        return max(self.seconds / self.events / _SECONDS_AN_HOUR, _MINUTE)


@dataclass(frozen=True, slots=True)
class Site:
    """`mfu` is of jobs on such cards and of such a size; `preemptions` are by QoS."""

    mfu: MeasuredMfu | None = None
    preemptions: Mapping[str, Preemptions] = field(default_factory=dict)


NOTHING_KNOWN = Site()


def measured(shares: Sequence[float]) -> MeasuredMfu | None:
    """One share a job, each above 0 and at most 1. None for too few of them."""
    sound = sorted(share for share in shares if 0 < share <= 1)
    if len(sound) < LEAST_JOBS:
        return None
    low, _, high = quantiles(sound, n=4)
    # The estimate of a quartile may lie outside of what few jobs show.
    return MeasuredMfu(median(sound), max(low, sound[0]), min(high, sound[-1]), len(sound))


def sizes_like(gpus: int) -> tuple[int, int | None]:
    """The least and the most cards of jobs that are compared with one of so many."""
    least = 1
    for most in _SIZES:
        if gpus <= most:
            return least, most
        least = most + 1
    return least, None
