"""The queue of a limit's keys, replayed: who would have waited for the limit, and how long.

Jobs come as columns, sorted by key and then by the moment at which they want to start. Jobs of a
key start in that order; each waits until it fits beside those of its key that still run. Times
and durations are whole seconds. A job that alone is above the limit must not be among them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush


@dataclass(frozen=True, slots=True)
class Asked:
    """Jobs of one limit, a column each: the key, when each wants to start, how long it runs, how
    much it holds (below 16 million), its time limit."""

    keys: Sequence[int]
    wanted: Sequence[int]
    seconds: Sequence[int]
    amounts: Sequence[int]
    limits: Sequence[int]


# A job's end and what it holds in one number, so that the heap compares nothing but integers.
_BITS = 24
_HELD = (1 << _BITS) - 1


def waits(asked: Asked, limit: int) -> list[int]:
    """Seconds that each job would wait where the amounts of a key's running jobs may add up to
    `limit`. Some 0.5 s for a million jobs."""
    found: list[int] = []
    tell = found.append  # this loop is most of the time: no call in it that can be spared
    running: list[int] = []
    key, free, earliest = -1, limit, 0
    for of, start, duration, amount in zip(
        asked.keys, asked.wanted, asked.seconds, asked.amounts, strict=True
    ):
        if of != key:
            key, free, earliest, running = of, limit, start, []
        at = start if start > earliest else earliest
        while free < amount:
            ended = heappop(running)
            free += ended & _HELD
            if (end := ended >> _BITS) > at:
                at = end
        free -= amount
        heappush(running, (at + duration) << _BITS | amount)
        earliest = at
        tell(at - start)
    return found


def waits_for_run_minutes(asked: Asked, limit: int) -> list[int]:
    """The same where each running job counts as its amount times what is left of its time limit
    (`limits`, seconds); `limit` in resource-seconds.

    What runs together counts `held - amount * t` at t: it falls as time passes, and by what is
    left of a job when that ends early.
    """
    found: list[int] = []
    running: list[tuple[int, int, int]] = []  # end, amount, its part of `held`
    key, held, amount_now, earliest = -1, 0, 0, 0
    columns = (asked.keys, asked.wanted, asked.seconds, asked.amounts, asked.limits)
    for of, start, duration, amount, allowed in zip(*columns, strict=True):
        if of != key:
            key, held, amount_now, earliest, running = of, 0, 0, start, []
        at = max(start, earliest)
        while True:
            while running and running[0][0] <= at:
                _, ended, part = heappop(running)
                held, amount_now = held - part, amount_now - ended
            over = held - amount_now * at + amount * allowed - limit
            if over <= 0 or not running:
                break
            at = min(running[0][0], at - (-over // amount_now))
        part = amount * (at + max(allowed, duration))
        heappush(running, (at + duration, amount, part))
        held, amount_now = held + part, amount_now + amount
        earliest = at
        found.append(at - start)
    return found
