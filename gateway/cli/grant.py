"""`sluice grant`: credit for a group, for good or for a time."""

from datetime import datetime, timedelta

import click

from gateway.cli.common import database, now, said, settings
from gateway.cli.ledger import pot_facts, pot_words
from gateway.cli.output import (
    FORCE,
    JSON,
    MOMENT,
    SHARE,
    SIGNED,
    amounts,
    iso,
    local,
    plain,
    put,
    require_group,
    table,
)
from gateway.core.credits import parse_credits
from gateway.services import credit
from gateway.store.queries import balances

NOTE = click.option("--note", default="", help="Kept with it, and shown on the statement.")
KEY = click.option("--key", help="The same key gives it once, however often it is repeated.")


@click.group()
def grant() -> None:
    """Give credit to groups: grants that lapse, and money in the balance."""


@grant.command(context_settings=SIGNED)
@click.argument("group")
@click.argument("amount")
@click.option("--reason", required=True, help="A word such as trial, award, teaching.")
@click.option("--starts", type=MOMENT, help="From when on. [default: now]")
@click.option("--expires", type=MOMENT, help="What is left lapses then.")
@click.option("--days", type=click.IntRange(1, 3660), help="Expire that long after the start.")
@click.option(
    "--carry-over",
    type=SHARE,
    default="0",
    help="The share of the rest that lives once more as long, such as 0.5.",
)
@NOTE
@KEY
@FORCE
@JSON
@said
def add(
    *,
    group: str,
    amount: str,
    reason: str,
    starts: datetime | None,
    expires: datetime | None,
    days: int | None,
    carry_over: int,
    note: str,
    key: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Give GROUP a grant of AMOUNT. It is used before the balance."""
    if expires is not None and days is not None:
        raise click.UsageError("Choose one of --expires and --days.")
    moment, millionths = now(), parse_credits(amount)
    if days is not None:
        expires = (starts or moment) + timedelta(days=days)
    with database() as begin:
        require_group(begin, group, force=force)
        pot = credit.grant(
            group,
            millionths,
            reason=reason,
            begin=begin,
            now=moment,
            key=key,
            starts=starts,
            expires=expires,
            note=note,
            carry_over_millionths=carry_over,
        )
        with begin() as session:  # as it is: a key that comes again gives what was given then
            (row,) = [row for _, row in balances.grants(session, group=group) if row.id == pot]
    facts = {"pot": pot, "group": group, "reason": row.reason, "note": row.note}
    facts |= {"starts": iso(row.starts), "expires": iso(row.expires)}
    until = f", until {local(row.expires, settings().timezone)}" if row.expires else ""
    text = f"{group} has a grant of {plain(millionths)} {settings().currency}{until} (pot {pot})."
    put(facts | amounts(amount=millionths), [text], as_json=as_json)


@grant.command("top-up", context_settings=SIGNED)
@click.argument("group")
@click.argument("amount")
@NOTE
@KEY
@FORCE
@JSON
@said
def top_up(
    *, group: str, amount: str, note: str, key: str | None, force: bool, as_json: bool
) -> None:
    """Add AMOUNT to GROUP's balance, or take from it with a negative one."""
    moment, millionths = now(), parse_credits(amount)
    with database() as begin:
        require_group(begin, group, force=force)
        credit.top_up(group, millionths, begin=begin, now=moment, key=key, note=note)
        with begin() as session:
            found = balances.balance(session, group, now=moment)
    facts = {"group": group} | amounts(amount=millionths, available=found.available)
    text = f"{group} may spend {plain(found.available)} {settings().currency} now."
    put(facts, [text], as_json=as_json)


@grant.command("list")
@click.option("--group", help="[default: all]")
@FORCE
@JSON
@said
def list_grants(group: str | None, force: bool, as_json: bool) -> None:
    """Print grants, packages and loans, the newest first, with what is left of each."""
    zone = settings().timezone
    with database(read_only=True) as begin:
        if group is not None:
            require_group(begin, group, force=force)
        with begin() as session:
            found = balances.grants(session, group=group)
    cells = [
        [
            str(pot.id),
            name,
            pot.kind,
            pot_words(pot),
            plain(pot.given),
            plain(pot.left),
            plain(pot.held),
            local(pot.starts, zone),
            local(pot.expires, zone),
            pot.note,
        ]
        for name, pot in found
    ]
    head = [">pot", "group", "kind", "", ">given", ">left", ">held", "from", "until", "note"]
    facts = [{"group": name} | pot_facts(pot) for name, pot in found]
    put(facts, table(head, cells), as_json=as_json)
