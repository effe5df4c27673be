"""The picture of a card's memory: its parts in a row, against what the card has.

Numbers are percents of the picture's width. Each part has a pattern besides its colour, and its
name where there is room.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gateway.core.planner.figures import Figure

_ROOM_FOR_NAME = 14.0  # percent: a narrower part is told by its pattern alone
_MARGIN = 1.02


@dataclass(frozen=True, slots=True)
class Part:
    """`place` is the number of its pattern."""

    name: str
    label: str
    place: int
    at: float
    wide: float
    has_name: bool

    @property
    def middle(self) -> float:
        return round(self.at + self.wide / 2, 2)


@dataclass(frozen=True, slots=True)
class Bar:
    """`limit` is where the card ends, `low` and `high` the band of the sum."""

    parts: tuple[Part, ...]
    limit: float
    total: float
    low: float
    high: float


def bar(parts: Sequence[tuple[str, str, Figure]], total: Figure, capacity: float) -> Bar:
    """Names, labels and bytes; `capacity` of the card."""
    whole = max(total.high, capacity) * _MARGIN

    def percent(value: float) -> float:
        return round(value / whole * 100, 2)

    found, at = [], 0.0
    for place, (name, label, figure) in enumerate(parts):
        wide = percent(figure.value)
        if wide:
            found.append(Part(name, label, place, round(at, 2), wide, wide >= _ROOM_FOR_NAME))
        at += figure.value / whole * 100
    return Bar(
        tuple(found),
        percent(capacity),
        percent(total.value),
        percent(total.low),
        percent(total.high),
    )
