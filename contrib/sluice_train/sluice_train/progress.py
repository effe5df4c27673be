"""Progress in metrics.jsonl: what the script reports, at most a line a second."""

from __future__ import annotations

import resource
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Write = Callable[[Mapping[str, Any]], None]

SECONDS_BETWEEN = 1.0
SUMMED = ("tokens", "samples")


class Progress:
    """Gathers the numbers of the steps since the last line. `now` is seconds since 1970."""

    def __init__(self, write: Write, now: Callable[[], float]) -> None:
        self._write = write
        self._now = now
        self._written_at = now()
        self._first = True
        self._step = 0
        self._steps = 0
        self._numbers: dict[str, Any] = {}

    def report(self, numbers: Mapping[str, Any]) -> None:
        """Take numbers for the next line: tokens and samples are added up, others replaced.

        They stay as they are until then: to read a tensor of a card makes the card wait.
        """
        for name, given in numbers.items():
            # A loss holds on to what it was computed from, and warns when it is read.
            value = given.detach() if hasattr(given, "detach") else given
            summed = name in SUMMED and name in self._numbers
            self._numbers[name] = self._numbers[name] + value if summed else value

    def step(self, step: int) -> None:
        """Step `step` is done: the first goes out at once, later ones a second apart."""
        self._step = step
        self._steps += 1
        if self._first or self._now() - self._written_at >= SECONDS_BETWEEN:
            self.flush()

    def flush(self) -> None:
        """Write what has not been written."""
        if self._steps == 0:
            return
        now = self._now()
        line = {name: plain_number(value) for name, value in self._numbers.items()}
        line["step"] = self._step
        line["seconds"] = max(0.0, now - self._written_at) / self._steps
        line["peak_bytes"] = peak_bytes()
        self._write(line)
        self._written_at, self._first, self._steps = now, False, 0
        self._numbers.clear()

    def begin(self) -> None:
        """The first step begins now: what was before is not its time."""
        self._written_at = self._now()

    def skip(self, seconds: float) -> None:
        """These went by beside the steps: a save is no part of their time."""
        self._written_at += seconds


def plain_number(value: Any) -> float | int | None:
    """A plain number of whatever counts as one; None of what does not."""
    if isinstance(value, (bool, int, float)):
        return value
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        return None  # a tensor of many numbers raises RuntimeError


def peak_bytes() -> int:
    """The most memory that this process had: of its card where torch has one, else its own."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is not None and cuda.is_available() and cuda.is_initialized():
        return int(cuda.max_memory_allocated())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
