"""What interruptions cost: the best interval between checkpoints, and the time lost."""

import math
from dataclasses import dataclass

from gateway.core.planner.figures import above_zero, real


@dataclass(frozen=True, slots=True)
class Interruptions:
    """Seconds: `save` blocks the training, `between` is the mean time between interruptions of
    the job, `restart` is lost beside what was not saved."""

    save: float
    between: float
    restart: float


def interruptions(*, save: float, between: float, restart: float) -> Interruptions:
    """Refused, with the field."""
    return Interruptions(
        above_zero("save_seconds", save, most=1e12),
        above_zero("between", between, most=1e10),
        real("restart", restart, most=1e7),
    )


def young(save: float, between: float) -> float:
    """sqrt(2 C M)"""
    return math.sqrt(2 * save * between)


def daly(save: float, between: float) -> float:
    """The higher order; M where a save takes longer than half the time to the next one."""
    if save >= 2 * between:
        return between
    part = save / (2 * between)
    return young(save, between) * (1 + math.sqrt(part) / 3 + part / 9) - save


def waste(interval: float, given: Interruptions) -> float:
    """Lost seconds for each useful one, to the first order: C/τ + (τ/2 + R)/M."""
    return given.save / interval + (interval / 2 + given.restart) / given.between
