"""The price of a job before it is sent: for the worst case, for the expected time, and for
shapes that cost less."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import median_low

from gateway.core.credits import Credits
from gateway.core.pricing import Bill, NoPrice, PriceList, Usage, bill

LEAST_RUNS = 5  # fewer than this say too little about the next one
# A shorter limit is proposed only with room above what such runs took.
_ROOM = 2


@dataclass(frozen=True, slots=True)
class Shape:
    """What is asked for, as far as money goes. `kinds`: the GPU types it could be given;
    empty where it asks for none. `tasks` of an array cost each the same."""

    kinds: tuple[str, ...]
    gpus: int
    cpus: int
    qos: str
    minutes: int
    partition: str = ""
    tasks: int = 1


@dataclass(frozen=True, slots=True)
class Expected:
    """What earlier runs of the template took: their median, of whom, and how many."""

    seconds: int
    longest_seconds: int
    runs: int
    whose: str  # person, group


@dataclass(frozen=True, slots=True)
class Cheaper:
    """The same work for less: `change` is gpu_type, qos or time_limit, `value` what to set.
    `partition` is where that GPU type is."""

    change: str
    value: str
    partition: str
    total: Credits
    saves: Credits


def price(shape: Shape, *, seconds: int, at: datetime, prices: PriceList) -> Bill | NoPrice:
    """One task of the shape. Of several types that Slurm may give, the dearest."""
    found = [
        bill(_usage(shape, kind, seconds), qos=shape.qos, at=at, prices=prices)
        for kind in (shape.kinds or ("",))
    ]
    lacking = [one for one in found if isinstance(one, NoPrice)]
    if lacking:
        return lacking[0]
    return max((one for one in found if isinstance(one, Bill)), key=lambda one: one.total)


def times(one: Bill, tasks: int) -> Bill:
    """The bill of `tasks` alike."""
    return Bill(tuple(replace(item, units=item.units * tasks) for item in one.items))


def expected(own: Sequence[int], groups: Sequence[int], *, limit_seconds: int) -> Expected | None:
    """From run times in seconds, the person's own before the group's; never above the limit."""
    for seconds, whose in ((own, "person"), (groups, "group")):
        if len(seconds) >= LEAST_RUNS:
            usual = min(median_low(seconds), limit_seconds)
            return Expected(usual, max(seconds), len(seconds), whose)
    return None


def cheaper(
    shape: Shape,
    total: Credits,
    others: Iterable[tuple[str, str, Shape]],
    *,
    at: datetime,
    prices: PriceList,
) -> tuple[Cheaper, ...]:
    """Those of `others` (change, value, shape) that cost less than `total`, cheapest first."""
    found = []
    for change, value, other in others:
        one = price(other, seconds=other.minutes * 60, at=at, prices=prices)
        if isinstance(one, NoPrice):
            continue
        cost = times(one, other.tasks).total
        if cost < total:
            saves = Credits(total - cost)
            found.append(Cheaper(change, value, other.partition or shape.partition, cost, saves))
    return tuple(sorted(found, key=lambda one: (one.total, one.change, one.value)))


def shorter(limit_minutes: int, before: Expected | None) -> int | None:
    """A limit that leaves twice the longest of the earlier runs, in round numbers, when that is a
    real saving."""
    if before is None:
        return None
    needed = -(-before.longest_seconds * _ROOM // 60)
    step = 10 if needed <= 240 else 60
    minutes = max(10, -(-needed // step) * step)
    return minutes if minutes * 4 <= limit_minutes * 3 else None


def _usage(shape: Shape, kind: str, seconds: int) -> Usage:
    return Usage(seconds, {kind: shape.gpus} if shape.gpus and kind else {}, shape.cpus)
