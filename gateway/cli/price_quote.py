"""`sluice price quote`: the price of a shape, itemised, with who pays it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from gateway.cli.common import database, now, said, settings
from gateway.cli.output import (
    FORCE,
    JSON,
    SHARE,
    amounts,
    card_hours,
    iso,
    local,
    plain,
    put,
    require_group,
    table,
)
from gateway.core import elsewhere, quoting
from gateway.core.credits import MILLION
from gateway.core.pricing import Bill, NoPrice
from gateway.core.quoting import Shape
from gateway.services.quote import Quote, quote_in
from gateway.store import prices
from gateway.store.prices import SITE
from gateway.store.uow import Begin


@dataclass(frozen=True, slots=True)
class _Found:
    """`other` is the second list's answer, where one was asked for."""

    bill: Bill
    quote: Quote | None
    other_name: str | None
    other: Bill | NoPrice | None


@click.command()
@click.option("--gpu", required=True, help="The GPU type, such as rtx4090.")
@click.option("--gpus", type=click.IntRange(0), required=True, help="Cards of one task in all.")
@click.option("--hours", type=SHARE, required=True, help="The time limit, such as 8 or 0.5.")
@click.option("--qos", default="", help="Its factor counts.")
@click.option("--group", help="Show who would pay, and what is left then.")
@click.option("--user", default="", help="Also obey this member's cap. With --group.")
@click.option("--tasks", type=click.IntRange(1), default=1, show_default=True, help="Of an array.")
@click.option("--cpus", type=click.IntRange(0), default=0, show_default=True, help="Of one task.")
@click.option("--list", "other", help="Another price list, to compare with.")
@FORCE
@JSON
@said
def quote(
    *,
    gpu: str,
    gpus: int,
    hours: int,
    qos: str,
    group: str | None,
    user: str,
    tasks: int,
    cpus: int,
    other: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Quote the worst case: the whole time limit of every task, by the prices of now."""
    minutes = -(-hours * 60 // MILLION)
    if minutes <= 0:
        raise click.UsageError("--hours must be more than 0.")
    shape = Shape((gpu,) if gpus else (), gpus, cpus, qos, minutes, tasks=tasks)
    with database(read_only=True) as begin:
        if group is not None:
            require_group(begin, group, force=force)
        found = _ask(begin, shape, group=group, user=user, other=other, at=now())
    put(_facts(found, shape), _lines(found), as_json=as_json)


def _ask(
    begin: Begin, shape: Shape, *, group: str | None, user: str, other: str | None, at: datetime
) -> _Found:
    with begin() as session:
        site = prices.load(session)
        task = quoting.price(shape, seconds=shape.minutes * 60, at=at, prices=site)
        if isinstance(task, NoPrice):
            raise click.ClickException(f"{task.resource} has no price. `sluice price set` it.")
        asked: Quote | None = None
        if group is not None:
            answer = quote_in(
                session, shape, group=group, user=user, template=None, price_list=site, now=at
            )
            asked = answer if isinstance(answer, Quote) else None
        there = None
        if other is not None and other != SITE:
            if other not in prices.lists(session):
                known = ", ".join(prices.lists(session))
                raise click.ClickException(f"There is no price list {other!r}. There are: {known}.")
            there = elsewhere.quote(shape, at=at, prices=prices.load(session, other))
    return _Found(quoting.times(task, shape.tasks), asked, other, there)


def _facts(found: _Found, shape: Shape) -> dict[str, Any]:
    facts: dict[str, Any] = {"currency": settings().currency, "qos": shape.qos or None}
    facts |= {"minutes": shape.minutes, "tasks": shape.tasks, "items": _items(found.bill)}
    facts |= amounts(total=found.bill.total)
    if found.quote is not None:
        asked = found.quote
        facts |= {"group": asked.group, "is_enough": asked.is_enough}
        facts |= amounts(free=asked.free, held=asked.held, after=asked.after)
        facts["pots"] = [
            {"kind": p.kind.value, "resource": p.resource, "expires": iso(p.expires)}
            | amounts(amount=p.amount)
            for p in asked.paid
        ]
    if isinstance(found.other, Bill):
        facts["elsewhere"] = {"list": found.other_name, "items": _items(found.other)}
        facts["elsewhere"] |= amounts(total=found.other.total)
    elif found.other is not None:
        facts["elsewhere"] = {"list": found.other_name, "no_price": found.other.resource}
    return facts


def _items(bill: Bill) -> list[dict[str, Any]]:
    return [
        {"resource": one.resource, "units": one.units, "seconds": one.seconds}
        | amounts(per_hour=one.per_hour, factor=one.factor_millionths, amount=one.amount)
        for one in bill.items
    ]


def _lines(found: _Found) -> list[str]:
    currency, zone = settings().currency, settings().timezone
    cells = [
        [
            f"{one.units} × {one.resource}",
            card_hours(one.unit_seconds),
            plain(one.per_hour),
            plain(one.factor_millionths),
            plain(one.amount),
        ]
        for one in found.bill.items
    ]
    cells.append(["total", "", "", "", plain(found.bill.total)])
    lines = table(["", ">unit-hours", ">an hour", ">factor", f">{currency}"], cells)
    if found.quote is not None:
        asked = found.quote
        paid = [[_pot(p), local(p.expires, zone), plain(p.amount)] for p in asked.paid]
        paid.append(["held, of what is free now: " + plain(asked.free), "", plain(asked.held)])
        paid.append(["left then" if asked.is_enough else "not enough", "", plain(asked.after)])
        lines += ["", *table([f"paid by {asked.group}", "until", f">{currency}"], paid)]
    if isinstance(found.other, Bill):
        lines += ["", f"At the prices of {found.other_name}: {plain(found.other.total)} {currency}"]
    elif found.other is not None:
        lines += ["", f"{found.other_name} has no price for {found.other.resource}."]
    return lines


def _pot(paid: Any) -> str:
    return f"{paid.kind.value} ({paid.resource})" if paid.resource else str(paid.kind.value)
