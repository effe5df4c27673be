"""When a job that may be preempted is done with a given probability: its p50 and p90."""

import math
from dataclasses import dataclass

_MANY = 40.0  # preemptions from which on their sum is as good as normal


@dataclass(frozen=True, slots=True)
class Spread:
    """Seconds. Each preemption puts off the end by `each` in the mean, on top of the `whole` time
    that nothing disturbs; they come every `mean` seconds on nodes, and a piece that was preempted
    begins again with the `restart`. `pieces`: how many, and how long they are."""

    whole: float
    each: float
    mean: float
    restart: float
    pieces: tuple[tuple[int, float], ...]


def quantile(spread: Spread, wanted: float) -> float:
    """By halving: the time by which it is done with this probability."""
    parts = tuple(_part(spread, count, length) for count, length in spread.pieces if count)
    events = sum(part.events for part in parts)
    chances = _chances(parts) if events <= _MANY else None
    sigma = math.sqrt(sum(part.events * part.sigma**2 for part in parts) / events) if events else 0

    def done_by(late: float) -> float:
        if chances is None:
            variance = sum(part.variance for part in parts) * spread.each**2
            return _normal(late - events * spread.each, math.sqrt(variance + events * sigma**2))
        return chances[0] + sum(
            chance * _normal(late - count * spread.each, sigma * math.sqrt(count))
            for count, chance in enumerate(chances[1:], start=1)
        )

    low, high = 0.0, 1.0
    while done_by(high) < wanted:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if done_by(middle) < wanted else (low, middle)
    return spread.whole + high


@dataclass(frozen=True, slots=True)
class _Part:
    """Pieces of one length: `first` is the chance that one is preempted at its first try, `again`
    at a later one; `sigma` says when within it, which is as good as even."""

    count: int
    first: float
    again: float
    sigma: float

    @property
    def events(self) -> float:
        return self.count * self.first / (1 - self.again)

    @property
    def variance(self) -> float:
        """Of the number of preemptions."""
        return self.count * self.first * (1 + self.again - self.first) / (1 - self.again) ** 2


def _part(spread: Spread, count: int, length: float) -> _Part:
    first = -math.expm1(-length / spread.mean)
    again = -math.expm1(-(length + spread.restart) / spread.mean)
    return _Part(count, first, again, length / math.sqrt(12))


def _chances(parts: tuple[_Part, ...]) -> list[float]:
    """Of 0, 1, 2 … preemptions."""
    mean = sum(part.events for part in parts)
    most = int(mean + 12 * math.sqrt(sum(part.variance for part in parts))) + 10
    found = [1.0]
    for part in parts:
        own = _of_part(part, most)
        found = [
            sum(found[k] * own[n - k] for k in range(max(0, n - most), min(n + 1, len(found))))
            for n in range(most + 1)
        ]
    return found


def _of_part(part: _Part, most: int) -> list[float]:
    """So many pieces are hit at all, and each of these again until it gets through."""
    hit = _binomial(part.count, part.first, most)
    found = [0.0] * (most + 1)
    found[0] = hit[0]
    for pieces in range(1, len(hit)):
        chance = hit[pieces] * (1 - part.again) ** pieces
        for more in range(most - pieces + 1):
            found[pieces + more] += chance
            chance *= part.again * (pieces + more) / (more + 1)
    return found


def _binomial(count: int, chance: float, most: int) -> list[float]:
    found = [math.exp(count * math.log1p(-chance))]
    for k in range(min(count, most)):
        found.append(found[-1] * (count - k) / (k + 1) * chance / (1 - chance))
    return found


def _normal(at: float, sigma: float) -> float:
    return 0.5 * math.erfc(-at / sigma / math.sqrt(2))
