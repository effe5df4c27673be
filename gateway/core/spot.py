"""Spot or not: when a job that may be preempted will probably be done, and what it will cost.

The model: preemptions come by chance, at one mean time on nodes between them. A preempted job
loses what it did since its last checkpoint, waits to be put on nodes again, and spends the restart
before it goes on. All times are seconds; what is said here are estimates, and the pages say so.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from gateway.core.credits import MILLION, Credits
from gateway.core.planner.figures import above_zero, real, whole
from gateway.core.planner.plan import SPOT_HOURS
from gateway.core.planner.waste import daly, young
from gateway.core.pricing import cost
from gateway.core.spot_record import Rate
from gateway.core.spot_spread import Spread, quantile

_HOUR, _MINUTE = 3600.0, 60.0
ASSUMED_WAIT = 15 * _MINUTE  # from preempted to running again, where the record does not say
MOST_HOURS = 20_000.0
_LEAST_INTERVAL = _MINUTE
_TOO_OFTEN = 25.0  # so many mean times without a preemption: it never gets there
_MOST_PIECES = 5000
_FAR = 2.0  # so far from the best interval the waste is a quarter more; closer, hardly any


class Origin(StrEnum):
    """Where the time between preemptions is from."""

    ASKED = "asked"
    SITE = "site"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Between:
    """Mean time on nodes from one preemption to the next. `events` of `runs` are behind it, and
    `low` to `high` is its 95 % interval, where it is the site's own."""

    seconds: float
    origin: Origin
    events: int = 0
    runs: int = 0
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """`seconds` of work on `cards`; a checkpoint every `interval`, which holds the work up for
    `save`; `restart` is lost at each preemption, after a `wait` in the queue."""

    seconds: float
    cards: int
    interval: float
    save: float
    restart: float
    wait: float


@dataclass(frozen=True, slots=True)
class Outlook:
    """From the first start to the end: `mean`, `p50` and `p90`, with the waits of `preemptions`.
    `on_nodes` is what the nodes are held for, `lost` the work in it that is made again, `last_run`
    the part after the last preemption: all that is charged where preempted runs are given back."""

    mean: float
    p50: float
    p90: float
    on_nodes: float
    last_run: float
    preemptions: float
    lost: float


@dataclass(frozen=True, slots=True)
class Prices:
    """Of a card-hour, and the factors of both QoS in millionths. `gives_back`: the site's rule for
    preempted runs."""

    per_hour: Credits
    spot_factor: int = MILLION
    normal_factor: int = MILLION
    gives_back: bool = False


@dataclass(frozen=True, slots=True)
class Costs:
    """Expected: spot where preempted runs are paid, where they are given back, and normal."""

    spot: Credits | None
    spot_given_back: Credits | None
    normal: Credits
    gives_back: bool

    @property
    def by_rule(self) -> Credits | None:
        return self.spot_given_back if self.gives_back else self.spot


@dataclass(frozen=True, slots=True)
class Advice:
    """`spot` None: with this interval it would practically never end. `at_best` is the same work
    with the best interval, `best` seconds (`young` is the simpler formula's)."""

    work: Work
    between: Between
    best: float
    young: float
    spot: Outlook | None
    at_best: Outlook | None
    normal: Outlook
    costs: Costs | None


def work(
    *,
    hours: float,
    cards: float,
    interval_minutes: float,
    save_minutes: float,
    restart_minutes: float,
    wait_minutes: float,
) -> Work:
    """From what a person typed. Refused, with the field: plan_number, plan_above, plan_range,
    plan_whole."""
    minutes = real(
        "interval_minutes", interval_minutes, least=_LEAST_INTERVAL / _MINUTE, most=MOST_HOURS * 60
    )
    return Work(
        seconds=above_zero("hours", hours, most=MOST_HOURS) * _HOUR,
        cards=whole("cards", cards, most=100_000),
        interval=minutes * _MINUTE,
        save=above_zero("save_minutes", save_minutes, most=MOST_HOURS) * _MINUTE,
        restart=real("restart_minutes", restart_minutes, most=MOST_HOURS) * _MINUTE,
        wait=real("wait_minutes", wait_minutes, most=MOST_HOURS) * _MINUTE,
    )


def between(asked_hours: float | None, found: Rate | None, runs: int) -> Between:
    """What was typed, else the site's own where enough is known of it, else an assumption."""
    if asked_hours is not None:
        hours = above_zero("between_hours", asked_hours, most=MOST_HOURS * 10)
        return Between(hours * _HOUR, Origin.ASKED)
    if found is None or found.between_hours is None:
        return Between(SPOT_HOURS * _HOUR, Origin.ASSUMED)
    return Between(
        # It divides: a QoS that is preempted at once, always, must not make infinities.
        max(found.between_hours * _HOUR, _MINUTE),
        Origin.SITE,
        found.events,
        runs,
        _HOUR / found.high,
        _HOUR / found.low,
    )


def best_interval(save: float, between: float, length: float) -> float:
    """Seconds of work from one checkpoint to the next at which least is lost: the higher-order
    estimate of J. T. Daly (A higher order estimate of the optimum checkpoint interval for restart
    dumps, Future Generation Computer Systems 22, 2006, 303-312, eq. 37), which refines sqrt(2 C M)
    of J. W. Young (A first order approximation to the optimum checkpoint interval, Comm. ACM 17,
    1974, 530-531). Never beyond the length of the job, nor below a minute."""
    return min(max(daly(save, between), _LEAST_INTERVAL), max(length, _LEAST_INTERVAL))


def is_far(interval: float, best: float) -> bool:
    """Whether an interval wastes clearly more than the best one."""
    return not best / _FAR <= interval <= best * _FAR


def advise(asked: Work, mean: Between, prices: Prices | None = None) -> Advice:
    """What spot and normal come to for the same work."""
    best = best_interval(asked.save, mean.seconds, asked.seconds)
    spot = outlook(asked, mean.seconds)
    normal = _undisturbed(asked)
    return Advice(
        work=asked,
        between=mean,
        best=best,
        young=min(young(asked.save, mean.seconds), asked.seconds),
        spot=spot,
        at_best=outlook(_with_interval(asked, best), mean.seconds),
        normal=normal,
        costs=_costs(asked.cards, spot, normal, prices) if prices else None,
    )


def outlook(asked: Work, mean: float) -> Outlook | None:
    """With preemptions every `mean` seconds on nodes; None: practically never done.

    A piece of s seconds between two safe points takes M e^(R/M) (e^(s/M) - 1) on nodes in the mean
    (Daly 2006, eq. 20), and is preempted as often as that time has mean times in it.
    """
    pieces, piece, last = _pieces(asked)
    if (max(piece, last) + asked.restart) / mean > _TOO_OFTEN:
        return None
    whole_time = (pieces - 1) * piece + last
    on_nodes = (pieces - 1) * _mean_time(piece, asked.restart, mean)
    on_nodes += _mean_time(last, asked.restart, mean)
    events = on_nodes / mean
    restarting = events * -math.expm1(-asked.restart / mean) * mean
    lost = (on_nodes - whole_time) / events if events else 0.0
    spread = Spread(
        whole_time, asked.wait + lost, mean, asked.restart, ((pieces - 1, piece), (1, last))
    )
    return Outlook(
        mean=on_nodes + events * asked.wait,
        p50=quantile(spread, 0.5),
        p90=quantile(spread, 0.9),
        on_nodes=on_nodes,
        last_run=_last_run(asked, mean),
        preemptions=events,
        lost=max(0.0, on_nodes - whole_time - restarting),
    )


def _undisturbed(asked: Work) -> Outlook:
    pieces, piece, last = _pieces(asked)
    whole_time = (pieces - 1) * piece + last
    return Outlook(whole_time, whole_time, whole_time, whole_time, whole_time, 0.0, 0.0)


def _with_interval(asked: Work, interval: float) -> Work:
    return Work(asked.seconds, asked.cards, interval, asked.save, asked.restart, asked.wait)


def _pieces(asked: Work) -> tuple[int, float, float]:
    """How many, the length of each with its checkpoint, and of the last one, which has none."""
    pieces = max(1, math.ceil(asked.seconds / asked.interval - 1e-9))
    last = asked.seconds - (pieces - 1) * asked.interval
    return pieces, asked.interval + asked.save, last


def _mean_time(piece: float, restart: float, mean: float) -> float:
    return mean * math.exp(restart / mean) * math.expm1(piece / mean)


def _last_run(asked: Work, mean: float) -> float:
    """The mean length of the run that comes to the end. It begins at piece j, after a restart, with
    probability e^(-S(j+1)/M) - e^(-S(j)/M), where S(j) is what is left from there on; or it is the
    first and only one, with e^(-S(1)/M)."""
    pieces, piece, last = _pieces(asked)
    whole_time = (pieces - 1) * piece + last
    steps = min(pieces, _MOST_PIECES)  # of very many pieces, several as one
    found, before, left = 0.0, 0.0, 0.0
    for number in range(steps):
        before = left
        left = last + (whole_time - last) * number / max(1, steps - 1) if number else last
        found += (math.exp(-before / mean) - math.exp(-left / mean)) * (asked.restart + left)
    return found + math.exp(-whole_time / mean) * whole_time


def _costs(cards: int, spot: Outlook | None, normal: Outlook, prices: Prices) -> Costs:
    def price(seconds: float, factor: int) -> Credits:
        return cost(cards * math.ceil(seconds), prices.per_hour, factor)

    return Costs(
        spot=price(spot.on_nodes, prices.spot_factor) if spot else None,
        spot_given_back=price(spot.last_run, prices.spot_factor) if spot else None,
        normal=price(normal.on_nodes, prices.normal_factor),
        gives_back=prices.gives_back,
    )
