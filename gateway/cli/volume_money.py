"""`sluice volume cap|price|prices`: what leaders may agree to, and what storage costs."""

from datetime import datetime
from typing import Any

import click

from gateway.cli.common import database, now, said, settings
from gateway.cli.output import JSON, MOMENT, SIGNED, amounts, iso, local, plain, put, table
from gateway.core.credits import parse_credits
from gateway.core.volumes import format_size, parse_size
from gateway.services import volume_entries as entries
from gateway.store import volume_work as work
from gateway.store.volume_work import ChargeRow


@click.command()
@click.argument("group")
@click.argument("size")
@JSON
@said
def cap(group: str, size: str, as_json: bool) -> None:
    """Let leaders of GROUP agree to limits up to SIZE together; 0: administrators alone."""
    most = 0 if size == "0" else parse_size(size)
    with database() as begin:
        entries.set_cap(group, most, viewer=None, begin=begin)
    lines = [f"Leaders of {group} agree up to {format_size(most)}."]
    put({"group": group, "most_bytes": most}, lines, as_json=as_json)


@click.command(context_settings=SIGNED)
@click.argument("per_gb_month")
@click.option("--area", default="", help="Of this area alone. Default: all without their own.")
@click.option("--starts", type=MOMENT, help="From when on. [default: now]")
@JSON
@said
def price(per_gb_month: str, area: str, starts: datetime | None, as_json: bool) -> None:
    """Set what a GB (2^30 bytes) costs a month; of a day it is the month's part."""
    moment = now()
    with database() as begin:
        entries.set_price(
            per_gb_month, area=area, starts=starts, viewer=None, begin=begin, now=moment
        )
    value = {"area": area or None, "starts": iso(starts or moment)}
    value |= amounts(per_gb_month=parse_credits(per_gb_month))
    put(value, [f"{per_gb_month} a GB and month."], as_json=as_json)


@click.command()
@JSON
@said
def prices(as_json: bool) -> None:
    """Print the prices of storage."""
    zone = settings().timezone
    with database(read_only=True) as begin, begin() as session:
        rows = work.prices(session)
    value: list[dict[str, Any]] = [
        {"area": one.area or None, "starts": iso(one.starts)}
        | amounts(per_gb_month=one.per_gb_month)
        for one in rows
    ]
    cells = [(one.area or "*", plain(one.per_gb_month), local(one.starts, zone)) for one in rows]
    lines = table(("area", ">GB-month", "from"), cells) if rows else ["Storage costs nothing."]
    put({"prices": value}, lines, as_json=as_json)


def charge_fields(one: ChargeRow) -> dict[str, Any]:
    """A month as it was charged."""
    return {"month": one.month, "gb_days": one.gb_days / 1000} | amounts(amount=one.amount)
