"""`sluice ledger`: what groups have, what happened to it, and whether all of it adds up."""

import sys
from dataclasses import asdict
from datetime import datetime, tzinfo
from typing import Any

import click

from gateway.cli.common import database, now, said, settings
from gateway.cli.ledger_close import close, elsewhere
from gateway.cli.ledger_statement import statement
from gateway.cli.output import (
    FORCE,
    JSON,
    amounts,
    card_hours,
    iso,
    local,
    plain,
    put,
    require_group,
    table,
)
from gateway.core.credits import MILLION
from gateway.services import review
from gateway.services.verify import verify as prove
from gateway.store.queries import balances
from gateway.store.queries.balances import Balance, PotRow


@click.group()
def ledger() -> None:
    """Credit: balances, statements, proof, and the closing of months."""


for command in (statement, close, elsewhere):
    ledger.add_command(command)


@ledger.command("release-hold")
@click.argument("hold_id", type=int, metavar="ID")
@said
def release_hold(hold_id: int) -> None:
    """Give back what is held for a job that Slurm lost before it ran."""
    with database() as begin:
        review.release_lost(hold_id, begin=begin, now=now())
    click.echo("Given back. Should the job run after all, it is charged all the same.")


@ledger.command()
@click.option("--group", help="One group, pot by pot. [default: all]")
@FORCE
@JSON
@said
def balance(group: str | None, force: bool, as_json: bool) -> None:
    """Print what groups may spend now, what is held, and what waits for a decision."""
    moment = now()
    with database(read_only=True) as begin:
        if group is not None:
            require_group(begin, group, force=force)
        with begin() as session:
            names = [group] if group is not None else balances.groups(session)
            found = [balances.balance(session, name, now=moment) for name in names]
    facts = [balance_facts(one) for one in found]
    if group is not None:
        put(facts[0], _one(found[0], settings().timezone, moment), as_json=as_json)
        return
    cells = [
        [
            one.group,
            plain(one.available - one.in_packages),
            *(plain(n) for n in (one.in_packages, one.held, one.committed, one.pending)),
            str(one.reviews),
        ]
        for one in found
    ]
    head = ["group", ">available", ">in packages", ">held", ">committed", ">pending", ">in review"]
    put(facts, table(head, cells), as_json=as_json)


@ledger.command()
@JSON
@said
def verify(as_json: bool) -> None:
    """Prove that every sum equals its entries. Exit 1 with a list of what does not hold."""
    with database(read_only=True) as begin:
        found = prove(read=begin)
    facts = {"holds": not found.broken, "looked_at": found.looked_at}
    lines = [f"{one.what}: {one.rule}{_numbers(one.expected, one.found)}" for one in found.broken]
    seen = ", ".join(f"{count} {name}" for name, count in found.looked_at.items() if name != "sum")
    lines.append(f"Looked at {seen}: {len(found.broken) or 'nothing'} wrong.")
    put(facts | {"broken": [asdict(one) for one in found.broken]}, lines, as_json=as_json)
    if found.broken:
        sys.exit(1)


def balance_facts(one: Balance) -> dict[str, Any]:
    facts: dict[str, Any] = {"group": one.group, "reviews": one.reviews, "at_zero": one.at_zero}
    facts |= amounts(
        available=one.available - one.in_packages,
        in_packages=one.in_packages,
        held=one.held,
        committed=one.committed,
        pending=one.pending,
        to_come=one.to_come,
        overdraft=one.overdraft,
    )
    return facts | {"pots": [pot_facts(pot) for pot in one.pots]}


def pot_facts(pot: PotRow) -> dict[str, Any]:
    facts: dict[str, Any] = {"id": pot.id, "kind": pot.kind, "reason": pot.reason}
    facts |= {"note": pot.note, "resource": pot.resource}
    facts |= {"starts": iso(pot.starts), "expires": iso(pot.expires)}
    facts |= amounts(left=pot.left, held=pot.held, given=pot.given, per_hour=pot.per_hour)
    return facts | amounts(carry_over=pot.carry_over_millionths)


def _one(one: Balance, zone: tzinfo, moment: datetime) -> list[str]:
    figures = [
        ["available", plain(one.available - one.in_packages)],
        ["and in packages", plain(one.in_packages)],
        ["held", plain(one.held)],
        ["committed to running jobs without a hold", plain(one.committed)],
        [f"pending, {one.reviews} in review", plain(one.pending)],
    ]
    if one.to_come:
        figures.append(["to come", plain(one.to_come)])
    cells = [
        [pot.kind, pot_words(pot), plain(pot.left), plain(pot.held), _until(pot, zone, moment)]
        for pot in one.pots
    ]
    lines = table([one.group, f">{settings().currency}"], figures)
    return [*lines, "", *table(["in the order of use", "", ">left", ">held", "until"], cells)]


def pot_words(pot: PotRow) -> str:
    if pot.resource is None:
        return "" if pot.kind == "balance" else pot.reason
    hours = pot.left * 3600 // pot.per_hour if pot.per_hour else 0
    return f"{pot.reason}, {card_hours(hours)} hours of {pot.resource}"


def _until(pot: PotRow, zone: tzinfo, moment: datetime) -> str:
    if pot.starts > moment:
        return f"from {local(pot.starts, zone)}"
    share = f", {pot.carry_over_millionths * 100 // MILLION} % carried over"
    return local(pot.expires, zone) + (share if pot.carry_over_millionths else "")


def _numbers(expected: int | None, found: int | None) -> str:
    return "" if expected is None and found is None else f" (expected {expected}, found {found})"
