"""What a stretch of cards costs: dated prices, a factor per QoS, one rounding, upward.

A run is charged by the prices in force when it started. An amount is units x seconds x price an
hour x factor, rounded up to a whole millionth item by item, so that a run in two parts never
costs less than in one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from gateway.core.credits import MILLION, Credits

CPU = "cpu"  # the resource name of a CPU; all others are GPU types
SECONDS_AN_HOUR = 3600
# unit-seconds x credits an hour x factor in millionths, over this, are credits
_SCALE = SECONDS_AN_HOUR * MILLION


class Preempted(StrEnum):
    """Whether the group pays for a run that Slurm ended for somebody else's job."""

    PAY = "pay"
    FREE = "free"


@dataclass(frozen=True, slots=True)
class Price:
    """Per card-hour (or CPU-hour), from `starts` on, until a later row of the resource."""

    resource: str
    per_hour: Credits
    starts: datetime
    set_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.per_hour < 0:
            raise ValueError("a price cannot be negative")


@dataclass(frozen=True, slots=True)
class QosTerms:
    """In millionths: 820,000 is 0.82. A QoS without a row has the factor 1 and pays."""

    qos: str
    factor_millionths: int
    preempted: Preempted
    starts: datetime
    set_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.factor_millionths < 0:
            raise ValueError("a factor cannot be negative")


@dataclass(frozen=True, slots=True)
class PriceList:
    """All rows of one list. Empty: the site charges nothing."""

    prices: tuple[Price, ...] = ()
    terms: tuple[QosTerms, ...] = ()

    @property
    def begins(self) -> datetime | None:
        """When charging began: runs that started earlier are not charged. None: it never did."""
        return min((row.starts for row in self.prices), default=None)

    def is_on(self, at: datetime) -> bool:
        return self.begins is not None and self.begins <= at

    def known_at(self, moment: datetime) -> "PriceList":
        """The rows that had been set by then: what was charged by them stays priced by them."""
        prices = tuple(p for p in self.prices if p.set_at is None or p.set_at <= moment)
        terms = tuple(t for t in self.terms if t.set_at is None or t.set_at <= moment)
        return PriceList(prices, terms)

    def price(self, resource: str, at: datetime) -> Credits | None:
        """None: nobody has set one, which is not the same as free."""
        rows = [row for row in self.prices if row.resource == resource and row.starts <= at]
        return max(rows, key=lambda row: row.starts).per_hour if rows else None

    def factor_millionths(self, qos: str | None, at: datetime) -> int:
        row = self._terms(qos, at)
        return row.factor_millionths if row else MILLION

    def preempted(self, qos: str | None, at: datetime) -> Preempted:
        row = self._terms(qos, at)
        return row.preempted if row else Preempted.PAY

    def resources(self, at: datetime) -> tuple[str, ...]:
        """What has a price, by name."""
        return tuple(sorted({row.resource for row in self.prices if row.starts <= at}))

    def _terms(self, qos: str | None, at: datetime) -> QosTerms | None:
        # Slurm stores QoS names in lower case and compares them without regard to it.
        name = (qos or "").casefold()
        rows = [row for row in self.terms if row.qos.casefold() == name and row.starts <= at]
        return max(rows, key=lambda row: row.starts) if rows else None


@dataclass(frozen=True, slots=True)
class Usage:
    """What was held, or would be, for how long. `seconds` are those of each unit."""

    seconds: int
    gpus: Mapping[str, int] = field(default_factory=dict)  # by type
    cpus: int = 0

    def __post_init__(self) -> None:
        if self.seconds < 0 or self.cpus < 0 or min(self.gpus.values(), default=0) < 0:
            raise ValueError("usage cannot be negative")

    @property
    def card_seconds(self) -> int:
        return self.seconds * sum(self.gpus.values())


@dataclass(frozen=True, slots=True)
class Item:
    """One line of a quote or a bill, at the list price."""

    resource: str
    units: int
    seconds: int
    per_hour: Credits
    factor_millionths: int

    @property
    def unit_seconds(self) -> int:
        return self.units * self.seconds

    @property
    def amount(self) -> Credits:
        return cost(self.unit_seconds, self.per_hour, self.factor_millionths)


@dataclass(frozen=True, slots=True)
class Bill:
    items: tuple[Item, ...]

    @property
    def total(self) -> Credits:
        return Credits(sum(item.amount for item in self.items))


@dataclass(frozen=True, slots=True)
class NoPrice:
    """A resource was used that has no price: hold for review, never charge 0."""

    resource: str


def cost(unit_seconds: int, per_hour: int, factor_millionths: int) -> Credits:
    """Rounded up to a whole millionth: one second is never free."""
    return Credits(-(-unit_seconds * per_hour * factor_millionths // _SCALE))


def affordable(credit: int, per_hour: int, factor_millionths: int) -> int | None:
    """The most unit-seconds that cost no more than `credit`; None: as many as one likes."""
    rate = per_hour * factor_millionths
    return None if rate == 0 else max(0, credit) * _SCALE // rate


def bill(usage: Usage, *, qos: str | None, at: datetime, prices: PriceList) -> Bill | NoPrice:
    """Itemised, by the prices in force at `at`. CPUs cost only where the site prices them."""
    factor = prices.factor_millionths(qos, at)
    items: list[Item] = []
    for resource, units in sorted(usage.gpus.items()):
        if not units:
            continue
        per_hour = prices.price(resource, at)
        if per_hour is None:
            return NoPrice(resource)
        items.append(Item(resource, units, usage.seconds, per_hour, factor))
    cpu_price = prices.price(CPU, at)
    if cpu_price is not None and usage.cpus:
        items.append(Item(CPU, usage.cpus, usage.seconds, cpu_price, factor))
    return Bill(tuple(items))
