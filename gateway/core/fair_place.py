"""Where a group stands among those beside it, by Slurm's fair share of accounts.

Slurm's fair tree sorts the accounts below one parent by their level, entitled over used: whoever
has used least of its part comes first, and all jobs of a group stand before all of the next one,
as far as fair share goes.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Line:
    """Fractions of what the accounts beside it have together. `level` None: nothing used yet, so
    it stands before all that used something."""

    group: str
    entitled: float
    used: float
    level: float | None


class Pace(StrEnum):
    """Used against entitled, in whole percents, as people read them."""

    NOTHING = "nothing"
    LESS = "less"
    EVEN = "even"
    MORE = "more"


@dataclass(frozen=True, slots=True)
class Place:
    """`place` counts from 1; equal levels share one. `order` is everybody, the first first."""

    own: Line
    place: int
    order: tuple[tuple[int, Line], ...]

    @property
    def of(self) -> int:
        return len(self.order)

    @property
    def pace(self) -> Pace:
        if self.own.used <= 0:
            return Pace.NOTHING
        used, entitled = percent(self.own.used), percent(self.own.entitled)
        if used == entitled:
            return Pace.EVEN
        return Pace.MORE if used > entitled else Pace.LESS


def place(group: str, beside: Sequence[Line]) -> Place | None:
    """None when Slurm has told nothing of the group."""
    own = next((line for line in beside if line.group == group), None)
    if own is None:
        return None
    order = sorted(beside, key=lambda line: (_behind(line), line.group))
    levels = [_behind(line) for line in order]
    placed = tuple((1 + bisect_left(levels, _behind(line)), line) for line in order)
    return Place(own, next(at for at, line in placed if line.group == group), placed)


def percent(fraction: float) -> int:
    """Whole percents, halves up."""
    return int(fraction * 100 + 0.5)


def _behind(line: Line) -> float:
    """The smaller, the sooner."""
    return float("-inf") if line.level is None else -line.level
