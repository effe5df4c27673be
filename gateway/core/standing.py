"""Who stands before whom, and why: Slurm's own priority points, factor by factor.

A job's priority is the sum of its points; `nice` takes off. Of two that are equal the one with the
lower number goes first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.core.tres import parse_tres

if TYPE_CHECKING:
    from gateway.wire import policy as p

# Every factor, in the order of pages; each has a text.
FACTORS = (
    "of_qos",
    "fair_share",
    "age",
    "job_size",
    "of_partition",
    "association",
    "tres",
    "site",
    "nice",
)


@dataclass(frozen=True, slots=True)
class Factor:
    """`points` of nice are below zero, unless the job was made more urgent. `most` is what the
    factor can give by its weight; None: not a question of weights."""

    key: str
    points: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Difference:
    """One factor of two jobs; `ahead` of the first by so many points when above zero."""

    key: str
    own: int
    other: int

    @property
    def ahead(self) -> int:
        return self.own - self.other


@dataclass(frozen=True, slots=True)
class Other:
    """A job to compare with. Without an `id` it is one that the reader may not see: it has no name
    and no number, only its points."""

    id: int | None
    number: str
    user: str
    qos: str
    priority: int
    differences: tuple[Difference, ...]  # of the reader's job, from the largest on


@dataclass(frozen=True, slots=True)
class Standing:
    """`before`: jobs of the partition that stand before it; `waiting`: all that wait there.
    `next`: the nearest before it. `compared`: the one that the reader named."""

    partition: str
    priority: int
    factors: tuple[Factor, ...]
    before: int
    waiting: int
    next: Other | None
    compared: Other | None = None


def factors(own: "p.PriorityFactors", weights: "p.PriorityWeights") -> tuple[Factor, ...]:
    """Those that give or take points, or could by their weight."""
    found = (Factor(key, points(own, key), _most(key, weights)) for key in FACTORS)
    return tuple(one for one in found if one.points or one.most)


def points(of: "p.PriorityFactors", key: str) -> int:
    if key == "nice":
        return -of.nice
    if key == "tres":
        return sum(_tres(of.tres).values())
    found: int = getattr(of, key)
    return found


def differences(own: "p.PriorityFactors", other: "p.PriorityFactors") -> tuple[Difference, ...]:
    """Where the two differ, what counts most first."""
    found = [Difference(key, points(own, key), points(other, key)) for key in FACTORS]
    return tuple(sorted((d for d in found if d.ahead), key=lambda d: -abs(d.ahead)))


def deciding(found: Sequence[Difference], *, for_own: bool) -> Difference | None:
    """The factor that puts the one before the other more than any else does."""
    fit = [one for one in found if (one.ahead > 0) is for_own]
    return max(fit, key=lambda one: abs(one.ahead), default=None)


def _most(key: str, weights: "p.PriorityWeights") -> int | None:
    if key == "tres":
        return sum(_tres(weights.tres).values())
    name = {"of_qos": "qos", "of_partition": "partition"}.get(key, key)
    found: int | None = getattr(weights, name, None)
    return found


def _tres(text: str) -> dict[str, int]:
    """Names with points; what is no such text has none."""
    try:
        return parse_tres(text)
    except ValueError:
        return {}
