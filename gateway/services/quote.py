"""What a job would cost, before it is sent. Reads the database, writes nothing, asks nobody."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

from gateway.core import pots as laying
from gateway.core import quoting
from gateway.core.access import Viewer
from gateway.core.ask import FieldProblem
from gateway.core.credits import Credits
from gateway.core.months import month_start
from gateway.core.offer import Offer, PartitionChoice
from gateway.core.policy import Reading
from gateway.core.pots import Cover, Pot, PotKind
from gateway.core.pricing import Bill, NoPrice, PriceList
from gateway.core.quoting import Cheaper, Expected, Shape
from gateway.services import budgets
from gateway.store import ledger, prices
from gateway.store.queries import run_times
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Paid:
    """What one pot pays of a quote. A package gives `unit_seconds` at its own `per_hour`."""

    kind: PotKind
    resource: str | None
    expires: datetime | None
    amount: Credits
    unit_seconds: int = 0
    per_hour: int | None = None


@dataclass(frozen=True, slots=True)
class NotYet:
    """A field that costs money cannot be read yet."""


@dataclass(frozen=True, slots=True)
class Quote:
    """`worst` is the whole limit of every task at the list price, `cover` who pays it: that is
    held. `free` is what the group may spend now, `after` what is left then. `cap_left` is what
    the member's own cap leaves this month, where there is one; `stop` is the budget that stands
    against the job."""

    group: str
    shape: Shape
    task: Bill
    worst: Bill
    cover: Cover
    paid: tuple[Paid, ...]
    free: Credits
    expected: Expected | None
    likely: Credits | None
    cheaper: tuple[Cheaper, ...]
    cap_left: Credits | None = None
    stop: FieldProblem | None = None

    @property
    def held(self) -> Credits:
        return self.cover.total

    @property
    def after(self) -> Credits:
        return Credits(self.free - self.cover.total)

    @property
    def missing(self) -> Credits:
        """What the group lacks for the worst case: the same that a submit is refused for."""
        return Credits(max(self.cover.short, -self.after, 0)) if self.held else Credits(0)

    @property
    def over_cap(self) -> Credits:
        """By how much the worst case goes beyond the member's cap."""
        return Credits(0 if self.cap_left is None else max(0, self.held - self.cap_left))

    @property
    def is_enough(self) -> bool:
        return not self.missing and not self.over_cap and self.stop is None


def quote(
    reading: Reading,
    offer: Offer,
    *,
    template: str,
    viewer: Viewer,
    begin: Begin,
    now: datetime,
    zone: tzinfo = UTC,
) -> Quote | NoPrice | NotYet | None:
    """NotYet while the form cannot be priced, None on a site that charges nothing. `zone` says
    when a member's month begins."""
    with begin() as session:
        price_list = prices.load(session)
        if not price_list.is_on(now):
            return None
        shape = shape_of(reading, offer)
        if shape is None or reading.group is None:
            return NotYet()
        others = list(_others(reading, offer, shape))
        return quote_in(
            session,
            shape,
            group=reading.group,
            user=viewer.unix_user,
            template=template,
            price_list=price_list,
            others=others,
            now=now,
            zone=zone,
        )


def quote_in(
    session: "Session",
    shape: Shape,
    *,
    group: str,
    user: str,
    template: str | None,
    price_list: PriceList,
    others: Iterable[tuple[str, str, Shape]] = (),
    now: datetime,
    zone: tzinfo = UTC,
) -> Quote | NoPrice:
    """The same for a shape, inside a transaction that is open already."""
    task = quoting.price(shape, seconds=shape.minutes * 60, at=now, prices=price_list)
    if isinstance(task, NoPrice):
        return task
    worst = quoting.times(task, shape.tasks)
    pots = laying.usable(_with_balance(ledger.pots(session, group), now), now=now, started=now)
    cover = laying.lay(worst, pots)
    account = ledger.account(session, group)
    resources = {item.resource for item in worst.items}
    serving = [pot.left for pot in pots if pot.resource is None or pot.resource in resources]
    free = sum(serving) - (account.committed if account else 0)
    before = _expected(session, shape, group=group, user=user, template=template)
    return Quote(
        group=group,
        shape=shape,
        task=task,
        worst=worst,
        cover=cover,
        paid=_paid(cover, pots),
        free=Credits(free),
        expected=before,
        likely=_likely(shape, before, at=now, prices=price_list),
        cheaper=quoting.cheaper(
            shape, worst.total, [*others, *_shorter(shape, before)], at=now, prices=price_list
        ),
        cap_left=_cap_left(session, group, user, since=month_start(now, zone)),
        stop=_stop(session, group, worst.total, now=now),
    )


def shape_of(reading: Reading, offer: Offer) -> Shape | None:
    """The reading as a shape; None while a field that costs money is not readable."""
    needed = (reading.gpus, reading.qos, reading.time_limit_minutes, reading.nodes)
    partition = _partition(reading, offer)
    if partition is None or any(value is None for value in needed):
        return None
    gpus, per_node = reading.gpus or 0, reading.gpus_per_node or 0
    fitting = tuple(kind.name for kind in partition.gpus if kind.per_node >= per_node)
    kinds = (reading.gpu_type,) if reading.gpu_type else fitting
    return Shape(
        kinds=kinds if gpus else (),
        gpus=gpus,
        cpus=(reading.nodes or 1) * (reading.cpus_per_task or 1),
        qos=reading.qos or "",
        minutes=reading.time_limit_minutes or 0,
        partition=partition.name,
        tasks=reading.tasks,
    )


def no_price(reason: NoPrice) -> FieldProblem:
    """For the form: nobody has set a price for these cards yet."""
    return FieldProblem("partition", "no_price", {"resource": reason.resource})


def _with_balance(pots: list[Pot], now: datetime) -> list[Pot]:
    """A group that was never given credit has an empty balance."""
    if any(pot.kind is PotKind.BALANCE for pot in pots):
        return pots
    return [*pots, Pot(0, PotKind.BALANCE, 0, now)]


def _partition(reading: Reading, offer: Offer) -> PartitionChoice | None:
    group = offer.find_group(reading.group or "")
    return group.find_partition(reading.partition or "") if group else None


def _expected(
    session: "Session", shape: Shape, *, group: str, user: str, template: str | None
) -> Expected | None:
    if template is None:
        return None
    found = run_times.of_template(session, template, group=group)
    own = [seconds for who, seconds in found if who == user]
    everybody = [seconds for _, seconds in found]
    return quoting.expected(own, everybody, limit_seconds=shape.minutes * 60)


def _likely(
    shape: Shape, before: Expected | None, *, at: datetime, prices: PriceList
) -> Credits | None:
    if before is None:
        return None
    found = quoting.price(shape, seconds=before.seconds, at=at, prices=prices)
    return None if isinstance(found, NoPrice) else quoting.times(found, shape.tasks).total


def _others(reading: Reading, offer: Offer, shape: Shape) -> Iterator[tuple[str, str, Shape]]:
    """Other QoS of this partition, and other GPU types of this group's partitions."""
    group = offer.find_group(reading.group or "")
    for partition in group.partitions if group else ():
        if partition.name == shape.partition:
            for qos in partition.qos:
                if qos.name != shape.qos:
                    yield "qos", qos.name, replace(shape, qos=qos.name)
        for kind in partition.gpus if partition.is_up and shape.gpus else ():
            fits = kind.per_node >= (reading.gpus_per_node or 0)
            enough = kind.nodes >= (reading.nodes or 1)
            if fits and enough and (kind.name,) != shape.kinds and partition.find_qos(shape.qos):
                other = replace(shape, kinds=(kind.name,), partition=partition.name)
                yield "gpu_type", kind.name, other


def _shorter(shape: Shape, before: Expected | None) -> Iterator[tuple[str, str, Shape]]:
    minutes = quoting.shorter(shape.minutes, before)
    if minutes is not None:
        yield "time_limit", str(minutes), replace(shape, minutes=minutes)


def _cap_left(session: "Session", group: str, user: str, *, since: datetime) -> Credits | None:
    cap = ledger.cap(session, group, user)
    if cap is None:
        return None
    return Credits(cap - ledger.spent(session, group, user, since=since))


def _stop(session: "Session", group: str, worst: int, *, now: datetime) -> FieldProblem | None:
    found = budgets.barrier(session, group, worst, now=now)
    if found is None:
        return None
    refused = budgets.refusal(*found)
    return FieldProblem("group", refused.code, dict(refused.facts))


def _paid(cover: Cover, pots: list[Pot]) -> tuple[Paid, ...]:
    by_pot = cover.by_pot()
    return tuple(
        Paid(
            pot.kind,
            pot.resource,
            pot.expires,
            Credits(by_pot[pot.id]),
            sum(line.unit_seconds for line in cover.lines if line.pot_id == pot.id),
            pot.per_hour,
        )
        for pot in pots
        if pot.id in by_pot
    )
