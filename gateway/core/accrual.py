"""What a job has cost so far, before anybody charged it: an estimate, and pages call it one."""

from dataclasses import dataclass
from datetime import datetime

from gateway.core.credits import Credits
from gateway.core.pricing import Item, NoPrice, PriceList, Usage, bill, cost


@dataclass(frozen=True, slots=True)
class OnNodes:
    """A stretch on nodes that is not charged yet. `kind` None: nobody knows the cards' type."""

    start: datetime
    until: datetime
    limit_minutes: int | None
    gpus: int
    kind: str | None
    cpus: int
    qos: str | None


def accrued(stretch: OnNodes, prices: PriceList) -> Credits | None:
    """By the prices in force at its start, never beyond its limit. None: nobody can say, or it
    began before there were prices."""
    if not prices.is_on(stretch.start) or (stretch.gpus and stretch.kind is None):
        return None
    seconds = max(0, int((stretch.until - stretch.start).total_seconds()))
    if stretch.limit_minutes is not None:
        seconds = min(seconds, stretch.limit_minutes * 60)
    gpus = {stretch.kind: stretch.gpus} if stretch.gpus and stretch.kind else {}
    found = bill(
        Usage(seconds, gpus, stretch.cpus), qos=stretch.qos, at=stretch.start, prices=prices
    )
    return None if isinstance(found, NoPrice) else found.total


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The same card-hours in a cheaper QoS. `saves` is against the list price of its own."""

    qos: str
    total: Credits
    saves: Credits


def in_cheapest_qos(
    used: list[tuple[Item, datetime]], own: str | None, prices: PriceList
) -> Elsewhere | None:
    """What the items, each with the start of its run, would have cost in the QoS with the least
    factor of all; None when there is no cheaper one."""
    names = {row.qos for row in prices.terms if row.qos.casefold() != (own or "").casefold()}
    paid = sum(item.amount for item, _ in used)
    found = [
        (
            sum(
                cost(item.unit_seconds, item.per_hour, prices.factor_millionths(name, at))
                for item, at in used
            ),
            name,
        )
        for name in names
    ]
    total, name = min(found, default=(paid, ""))
    return Elsewhere(name, Credits(total), Credits(paid - total)) if total < paid else None
