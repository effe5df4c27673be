"""What open jobs may still cost: the part that no hold covers, by their limit and the prices.

Only money counts here, never Slurm's usage: that decays, and spent hours would come back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from gateway.core.credits import MILLION
from gateway.core.pots import Pot
from gateway.core.pricing import (
    CPU,
    SECONDS_AN_HOUR,
    Bill,
    NoPrice,
    PriceList,
    Usage,
    affordable,
    bill,
)

# Slurm takes run-minutes off only once in PriorityCalcPeriod (5 minutes unless the site says
# otherwise): a cap that follows the clock more closely would keep out what is paid for.
_SLURM_LAGS = timedelta(minutes=6)
MOST_MINUTES = 2**40  # as the broker takes it


@dataclass(frozen=True, slots=True)
class Shape:
    """What a hold was for."""

    kinds: tuple[str, ...]
    gpus: int
    cpus: int
    qos: str | None


@dataclass(frozen=True, slots=True)
class OpenJob:
    """A job of a group that is not charged yet, the oldest first by `order`.

    `kinds`: the GPU types it has or could be given. `minutes`: its limit, or that of its
    partition; None: no limit anywhere. `covered_minutes`: how long a hold has paid for, and
    `shortage` what that hold lacks since the job was requeued. `paid`: the cards it was for.
    """

    id: int
    user: str
    order: tuple[datetime, int]
    kinds: tuple[str, ...]
    gpus: int
    cpus: int
    qos: str | None
    minutes: int | None
    tasks: int = 1
    started: datetime | None = None
    ended: datetime | None = None
    covered_minutes: int = 0
    shortage: int = 0
    paid: Shape | None = None

    @property
    def waits(self) -> bool:
        return self.started is None


@dataclass(frozen=True, slots=True)
class Weighed:
    """`bill` is the worst case that nothing covers; None: without a limit, so everything.

    `accrued` is what of it has been used by now, `under_hold` what was used of a hold.
    `card_minutes` is what Slurm counts against the group's run-minutes.
    """

    job: OpenJob
    bill: Bill | None
    accrued: int
    under_hold: int
    card_minutes: int
    no_price: str | None = None

    @property
    def total(self) -> int:
        return (self.bill.total if self.bill else 0) + self.job.shortage


class Rates:
    """What shapes cost at one list's prices; a queue has many jobs of few shapes."""

    def __init__(self, prices: PriceList) -> None:
        self.prices = prices
        self._known: dict[tuple[object, ...], Bill | NoPrice] = {}

    def bill(self, job: OpenJob, seconds: int, *, at: datetime) -> Bill | NoPrice:
        """Of several types that Slurm may give, the dearest that has a price."""
        key = (job.kinds, job.gpus, job.cpus, job.qos, job.tasks, at)
        one = self._known.get(key)
        if one is None:
            one = self._known[key] = self._an_hour(job, at)
        if isinstance(one, NoPrice):
            return one
        return Bill(tuple(replace(item, seconds=seconds) for item in one.items))

    def _an_hour(self, job: OpenJob, at: datetime) -> Bill | NoPrice:
        kinds = job.kinds if job.gpus else ("",)
        if job.gpus and not kinds:
            kinds = tuple(name for name in self.prices.resources(at) if name != CPU)
        found = [
            bill(_usage(job, kind, SECONDS_AN_HOUR), qos=job.qos, at=at, prices=self.prices)
            for kind in kinds
        ]
        priced = [one for one in found if isinstance(one, Bill)]
        if not priced:
            lacking = next((one for one in found if isinstance(one, NoPrice)), None)
            return lacking or NoPrice("gpu")
        return max(priced, key=lambda one: one.total)


def weigh(job: OpenJob, *, rates: Rates, now: datetime) -> Weighed:
    """By the prices at its start, or those of now for a job that waits."""
    minutes = _card_minutes(job, now)
    used, covered = _elapsed(job, now), _covered(job, rates, job.started or now)
    longest = used if job.ended is not None else max((job.minutes or 0) * 60, used)

    def cost(seconds: int) -> Bill | NoPrice:
        return rates.bill(job, max(0, seconds), at=job.started or now)

    worst = cost(longest - covered)
    if isinstance(worst, NoPrice):
        return Weighed(job, Bill(()), 0, 0, minutes, worst.resource)
    endless = job.ended is None and job.minutes is None and _total(cost(SECONDS_AN_HOUR)) > 0
    accrued = under_hold = 0
    if job.started is not None:
        accrued, under_hold = _total(cost(used - covered)), _total(cost(min(used, covered)))
    return Weighed(job, None if endless else worst, accrued, under_hold, minutes)


def _covered(job: OpenJob, rates: Rates, at: datetime) -> int:
    """Seconds of the job as it is now that its hold has paid for. Dearer cards than those that
    were asked for use it up sooner."""
    seconds, paid = job.covered_minutes * 60, job.paid
    if not seconds or paid is None:
        return seconds
    asked = replace(job, kinds=paid.kinds, gpus=paid.gpus, cpus=paid.cpus, qos=paid.qos)
    then = _total(rates.bill(asked, SECONDS_AN_HOUR, at=at))
    now = _total(rates.bill(job, SECONDS_AN_HOUR, at=at))
    return seconds if now <= then else seconds * then // now


def _total(found: Bill | NoPrice) -> int:
    return found.total if isinstance(found, Bill) else 0


def cheapest(pots: Sequence[Pot], *, prices: PriceList, now: datetime) -> tuple[int, int] | None:
    """The least that a card-hour can cost this group, as price and factor; None: nothing costs.

    What is free is left out: it would make the cap endless for everything else.
    """
    of_list = (prices.price(resource, now) for resource in prices.resources(now))
    cards = zip(prices.resources(now), of_list, strict=True)
    rates = [int(price) for resource, price in cards if resource != CPU and price]
    rates += [pot.per_hour for pot in pots if pot.per_hour and pot.left > 0]
    names = {row.qos.casefold() for row in prices.terms if row.starts <= now}
    factors = [prices.factor_millionths(name, now) for name in names]
    least = min((factor for factor in factors if factor), default=MILLION)
    return (min(rates), min(least, MILLION)) if rates else None


def minutes_for(credit: int, rate: tuple[int, int]) -> int:
    """Card-minutes that cost no more than `credit`, rounded down."""
    seconds = affordable(credit, *rate)
    assert seconds is not None, "what is free has no rate"
    return min(MOST_MINUTES, seconds // 60)


def _elapsed(job: OpenJob, now: datetime) -> int:
    if job.started is None:
        return 0
    return max(0, int(((job.ended or now) - job.started).total_seconds()))


def _card_minutes(job: OpenJob, now: datetime) -> int:
    if job.ended is not None or job.minutes is None:
        return 0
    if job.started is None:
        return job.gpus * job.tasks * job.minutes
    gone = max(timedelta(0), now - job.started - _SLURM_LAGS)
    return job.gpus * max(0, job.minutes - int(gone.total_seconds()) // 60)


def _usage(job: OpenJob, kind: str, seconds: int) -> Usage:
    cards = {kind: job.gpus * job.tasks} if job.gpus else {}
    return Usage(seconds, cards, job.cpus * job.tasks)
