"""What the same work would have cost at another price list.

Another list knows nothing of this site's QoS: its prices count as they are, without a factor.
What it lacks is named, never counted as 0.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from gateway.core import quoting
from gateway.core.credits import MILLION, Credits
from gateway.core.pricing import Bill, NoPrice, PriceList, cost
from gateway.core.quoting import Shape


@dataclass(frozen=True, slots=True)
class Used:
    """Unit-seconds of a resource in a run that began at `at`, and what they cost here."""

    resource: str
    at: datetime
    unit_seconds: int
    amount: int


@dataclass(frozen=True, slots=True)
class There:
    """One resource in both lists. `there` None: the other list has no price for it."""

    resource: str
    unit_seconds: int
    here: Credits
    there: Credits | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """`here` counts only what the other list has prices for, so that both sums are of the same
    hours; `lacking` are the types that are left out of both."""

    lines: tuple[There, ...]

    @property
    def here(self) -> Credits:
        return Credits(sum(line.here for line in self.lines if line.there is not None))

    @property
    def there(self) -> Credits:
        return Credits(sum(line.there for line in self.lines if line.there is not None))

    @property
    def lacking(self) -> tuple[str, ...]:
        return tuple(line.resource for line in self.lines if line.there is None)


def quote(shape: Shape, *, at: datetime, prices: PriceList) -> Bill | NoPrice:
    """All tasks of the shape at the other list."""
    plain = replace(shape, qos="")
    task = quoting.price(plain, seconds=shape.minutes * 60, at=at, prices=prices)
    return task if isinstance(task, NoPrice) else quoting.times(task, shape.tasks)


def compare(used: Iterable[Used], prices: PriceList) -> Comparison:
    """By resource. A run counts at the price in force when it began, or at the list's first
    price where the list begins later."""
    seconds: dict[str, int] = {}
    here: dict[str, int] = {}
    by_price: dict[tuple[str, int | None], int] = {}
    for one in used:
        seconds[one.resource] = seconds.get(one.resource, 0) + one.unit_seconds
        here[one.resource] = here.get(one.resource, 0) + one.amount
        key = one.resource, _price(prices, one.resource, one.at)
        by_price[key] = by_price.get(key, 0) + one.unit_seconds
    there: dict[str, int] = {}
    for (resource, per_hour), amount in by_price.items():
        if per_hour is not None:
            there[resource] = there.get(resource, 0) + cost(amount, per_hour, MILLION)
    return Comparison(
        tuple(
            There(
                name,
                seconds[name],
                Credits(here[name]),
                Credits(there[name]) if name in there else None,
            )
            for name in sorted(seconds)
        )
    )


def _price(prices: PriceList, resource: str, at: datetime) -> int | None:
    found = prices.price(resource, at)
    if found is not None:
        return found
    later = [row for row in prices.prices if row.resource == resource]
    return min(later, key=lambda row: row.starts).per_hour if later else None
