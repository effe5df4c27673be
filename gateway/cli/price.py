"""`sluice price`: price lists, terms of QoS, packages on offer, and what a job would cost."""

from datetime import datetime, tzinfo
from typing import Any

import click

from gateway.cli.common import database, now, said, settings
from gateway.cli.output import JSON, MOMENT, SIGNED, amounts, iso, local, plain, put, table
from gateway.cli.price_quote import quote
from gateway.core.credits import parse_credits
from gateway.core.price_rows import Rows, told_apart
from gateway.core.pricing import Preempted, Price, QosTerms
from gateway.services import prices
from gateway.store import prices as rows
from gateway.store.prices import SITE, OfferRow

STARTS = click.option("--starts", type=MOMENT, help="From when on. [default: now]")
BACKDATED = click.option(
    "--backdated", is_flag=True, help="Allow a past start; what was charged stays as it is."
)
LIST = click.option(
    "--list", "list_name", default=SITE, show_default=True, help="Others are for comparison."
)


@click.group()
def price() -> None:
    """Prices: set, list, and quote."""


price.add_command(quote)


@price.command("set", context_settings=SIGNED)
@click.argument("resource")
@click.argument("per_hour")
@STARTS
@LIST
@BACKDATED
@JSON
@said
def set_price(
    *,
    resource: str,
    per_hour: str,
    starts: datetime | None,
    list_name: str,
    backdated: bool,
    as_json: bool,
) -> None:
    """Set the price of one card of RESOURCE (a GPU type) for an hour, or of one CPU (`cpu`)."""
    moment = now()
    with database() as begin:
        prices.set_price(
            resource,
            per_hour,
            starts=starts,
            list_name=list_name,
            begin=begin,
            now=moment,
            backdated=backdated,
        )
    amount, at = parse_credits(per_hour), starts or moment
    facts = {"list": list_name, "resource": resource, "starts": iso(at)}
    facts |= amounts(per_hour=amount)
    text = f"{resource} costs {plain(amount)} {settings().currency} an hour in {list_name}"
    put(facts, [f"{text} from {local(at, settings().timezone)}."], as_json=as_json)


@price.command()
@click.argument("qos")
@click.argument("factor")
@click.option(
    "--preempted",
    type=click.Choice([one.value for one in Preempted]),
    default=Preempted.PAY.value,
    show_default=True,
    help="Whether a run that was preempted is paid.",
)
@STARTS
@BACKDATED
@JSON
@said
def terms(
    *,
    qos: str,
    factor: str,
    preempted: str,
    starts: datetime | None,
    backdated: bool,
    as_json: bool,
) -> None:
    """Multiply prices by FACTOR (such as 0.82) for jobs of the QoS."""
    moment = now()
    with database() as begin:
        prices.set_terms(
            qos,
            factor,
            preempted=preempted,
            starts=starts,
            begin=begin,
            now=moment,
            backdated=backdated,
        )
    at, millionths = starts or moment, parse_credits(factor)
    facts = {"qos": qos, "preempted": preempted, "starts": iso(at)} | amounts(factor=millionths)
    text = f"{qos} costs {plain(millionths)} of the price; preempted runs: {preempted}"
    put(facts, [f"{text}; from {local(at, settings().timezone)}."], as_json=as_json)


@price.command()
@click.argument("name")
@click.argument("resource")
@click.argument("per_hour")
@click.option("--days", type=int, default=7, show_default=True, help="How long a package lasts.")
@JSON
@said
def offer(*, name: str, resource: str, per_hour: str, days: int, as_json: bool) -> None:
    """Offer packages of prepaid card-hours of RESOURCE at PER_HOUR from now on."""
    moment = now()
    with database() as begin:
        made = prices.add_offer(name, resource, per_hour, days=days, begin=begin, now=moment)
    row = OfferRow(made, name, resource, parse_credits(per_hour), days, moment, None)
    put(_offer(row), [f"Package {name} is offered: {resource}, {days} days long."], as_json=as_json)


@price.command("list")
@LIST
@JSON
@said
def list_prices(list_name: str, as_json: bool) -> None:
    """Print what is in force, what was, and what is to come."""
    moment, found = now(), settings()
    with database(read_only=True) as begin, begin() as session:
        price_list, names = rows.load(session, list_name), rows.lists(session)
        offers = rows.offers(session, now=moment) if list_name == SITE else []
    prices_ = told_apart(price_list.prices, lambda one: one.resource, moment)
    terms_ = told_apart(price_list.terms if list_name == SITE else (), lambda one: one.qos, moment)
    facts = {
        "list": list_name,
        "lists": names,
        "currency": found.currency,
        "prices": _sorted(prices_, _price),
        "qos": _sorted(terms_, _terms),
        "offers": [_offer(one) for one in offers],
    }
    lines = [f"List {list_name}; all lists: {', '.join(names) or 'none yet'}."]
    lines += _price_lines(prices_, found.timezone, found.currency)
    lines += _terms_lines(terms_, found.timezone) + _offer_lines(offers)
    put(facts, lines, as_json=as_json)


def _sorted(found: Rows[Any], one: Any) -> dict[str, list[Any]]:
    return {
        name: [one(row) for row in getattr(found, name)]
        for name in ("in_force", "history", "to_come")
    }


def _price(row: Price) -> dict[str, Any]:
    return {"resource": row.resource, "starts": iso(row.starts)} | amounts(per_hour=row.per_hour)


def _terms(row: QosTerms) -> dict[str, Any]:
    facts = {"qos": row.qos, "preempted": row.preempted.value, "starts": iso(row.starts)}
    return facts | amounts(factor=row.factor_millionths)


def _offer(row: OfferRow) -> dict[str, Any]:
    facts = {"id": row.id, "name": row.name, "resource": row.resource, "days": row.days}
    return facts | amounts(per_hour=row.per_hour)


def _price_lines(found: Rows[Price], zone: tzinfo, currency: str) -> list[str]:
    cells = [
        [row.resource, plain(row.per_hour), local(row.starts, zone), word]
        for word, row in _with_word(found)
    ]
    return table(["resource", f">{currency} an hour", "from", ""], cells) if cells else []


def _terms_lines(found: Rows[QosTerms], zone: tzinfo) -> list[str]:
    cells = [
        [row.qos, plain(row.factor_millionths), row.preempted.value, local(row.starts, zone), word]
        for word, row in _with_word(found)
    ]
    return ["", *table(["QoS", ">factor", "preempted", "from", ""], cells)] if cells else []


def _offer_lines(offers: list[OfferRow]) -> list[str]:
    cells = [
        [str(row.id), row.name, row.resource, plain(row.per_hour), str(row.days)] for row in offers
    ]
    return ["", *table([">id", "package", "resource", ">an hour", ">days"], cells)] if cells else []


def _with_word(found: Rows[Any]) -> list[tuple[str, Any]]:
    return [
        *(("in force", row) for row in found.in_force),
        *(("to come", row) for row in found.to_come),
        *(("was", row) for row in found.history),
    ]
