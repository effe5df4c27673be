"""How often the ranks of a run ask each other: often enough, and never felt."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS_BETWEEN = 1.0
STEPS_BETWEEN = 64  # at most: after quick steps slow ones may come


class Questions:
    """After how many steps the ranks ask each other: about a second apart, the same for all."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._every = 1
        self._steps = 0
        self._asked_at = now()

    def begin(self) -> None:
        """The first step begins now."""
        self._asked_at = self._now()

    def due(self) -> bool:
        """Count a step; whether to ask after it, which all ranks answer alike."""
        self._steps += 1
        return self._steps >= self._every

    def seconds(self) -> float:
        """Of a step on this rank, on average since the last time."""
        return max(0.0, self._now() - self._asked_at) / max(1, self._steps)

    def answered(self, slowest: float) -> None:
        """`slowest` is the highest of all ranks' seconds."""
        fitting = int(SECONDS_BETWEEN / max(slowest, 1e-6))
        self._every = max(1, min(fitting, 2 * self._every, STEPS_BETWEEN))
        self._steps = 0
        self._asked_at = self._now()
