"""When a run that is still there has stopped getting on: the signs, decided without a clock.

A guard is told every few seconds what is seen, and when. What it cannot see is no sign: without
telemetry it knows of no ranks and no cards, without reported steps of no steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

RANKS, STEPS, LOG, CARDS = "ranks", "steps", "log", "cards"
IDLE_PERCENT = 1.0
STEP_FACTOR = 10  # a step may take so many times the usual: an evaluation, a slow disk


@dataclass(frozen=True)
class Limits:
    """Seconds for which a sign must hold; `save` is how long a save may take."""

    ranks: float = 60
    steps: float = 300
    log: float = 1800
    cards: float = 900
    save: float = 1800

    @classmethod
    def of_environment(cls, given: Mapping[str, str]) -> Limits:
        """SLUICE_STALL_RANKS_SECONDS and so on; SLUICE_STALL_SECONDS is for those not given.

        ValueError where one is no number.
        """
        for_all = given.get("SLUICE_STALL_SECONDS")
        chosen = {}
        for name in ("ranks", "steps", "log", "cards", "save"):
            text = given.get(f"SLUICE_STALL_{name.upper()}_SECONDS") or for_all
            if text:
                chosen[name] = float(text)
        return cls(**chosen)


@dataclass(frozen=True)
class Seen:
    """One look at the run; None is what cannot be seen.

    `alive` and `expected` count ranks of all nodes, `step_seconds` is the median of late steps,
    `log_bytes` the size of the job's log, `busiest` the use of the busiest card in percent.
    """

    alive: int | None = None
    expected: int | None = None
    step: int | None = None
    step_seconds: float | None = None
    saving: bool = False
    log_bytes: int | None = None
    busiest: float | None = None


@dataclass(frozen=True)
class Stall:
    """The signs that a run has stalled, and a sentence of them."""

    signs: tuple[str, ...]
    text: str


class Guard:
    """Remembers since when each sign holds. Tells of a stall once, until there was progress."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._were_all = False
        self._were_busy = False
        self._step: int | None = None
        self._step_at = 0.0
        self._log_bytes: int | None = None
        self._log_at = 0.0
        self._short_since: float | None = None
        self._idle_since: float | None = None
        self._saving_since: float | None = None
        self._told = False

    def look(self, now: float, seen: Seen) -> Stall | None:
        """A stall that was not told of yet, `now` being any clock's seconds."""
        self._note_ranks(now, seen)
        self._note_save(now, seen)
        self._note_step(now, seen)
        self._note_log(now, seen)
        self._note_cards(now, seen)
        found = self._signs(now, seen)
        if not found:
            self._told = False
            return None
        if self._told:
            return None
        self._told = True
        return Stall(tuple(found), "; ".join(found.values()))

    def log_is(self, size: int | None) -> None:
        """The log has this size by what the guard itself wrote, which is no progress."""
        if self._log_bytes is not None:
            self._log_bytes = size

    def _note_ranks(self, now: float, seen: Seen) -> None:
        if seen.alive is None or seen.expected is None:
            self._short_since = None
            return
        short = seen.alive < seen.expected
        self._were_all = self._were_all or not short
        self._short_since = _since(self._short_since, now, holds=short and self._were_all)

    def _note_save(self, now: float, seen: Seen) -> None:
        if self._saving_since is not None and not seen.saving:
            self._step_at = self._log_at = now
        self._saving_since = _since(self._saving_since, now, holds=seen.saving)

    def _note_step(self, now: float, seen: Seen) -> None:
        # A restart can count from a lower step: what is another step is progress.
        if seen.step != self._step:
            self._step, self._step_at = seen.step, now

    def _note_log(self, now: float, seen: Seen) -> None:
        if seen.log_bytes != self._log_bytes:
            self._log_bytes, self._log_at = seen.log_bytes, now

    def _note_cards(self, now: float, seen: Seen) -> None:
        idle = seen.busiest is not None and seen.busiest < IDLE_PERCENT
        self._were_busy = self._were_busy or (seen.busiest is not None and not idle)
        self._idle_since = _since(self._idle_since, now, holds=idle and not self._in_save(now))

    def _in_save(self, now: float) -> bool:
        since = self._saving_since
        return since is not None and now - since < self._limits.save

    def _signs(self, now: float, seen: Seen) -> dict[str, str]:
        limits, found = self._limits, {}
        short = _held(self._short_since, now)
        if short > limits.ranks:
            found[RANKS] = f"{seen.alive} of {seen.expected} ranks are alive, for {short:.0f} s"
        if self._in_save(now):
            return found
        still, silent = now - self._step_at, now - self._log_at
        patience = max(STEP_FACTOR * (seen.step_seconds or 0), limits.steps)
        if seen.step is not None and still >= patience:
            found[STEPS] = f"no step after {seen.step} for {still:.0f} s"
        idle = _held(self._idle_since, now)
        if seen.step is None and seen.log_bytes is not None and min(silent, idle) >= limits.log:
            found[LOG] = f"the log is silent for {silent:.0f} s, and the cards are idle"
        # Whoever makes steps gets on, be it without the cards.
        stepping = seen.step is not None and still < patience
        if self._were_busy and idle >= limits.cards and not stepping:
            found[CARDS] = f"all cards are idle for {idle:.0f} s"
        return found


def _since(before: float | None, now: float, *, holds: bool) -> float | None:
    if not holds:
        return None
    return now if before is None else before


def _held(since: float | None, now: float) -> float:
    """Seconds for which it holds; less than none where it does not."""
    return -1.0 if since is None else now - since
