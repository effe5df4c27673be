"""`sluice ledger close` and `elsewhere`: a month against Slurm, and against other prices."""

import sys
from dataclasses import asdict
from datetime import tzinfo
from typing import Any

import click

from gateway.cli.common import database, now, said, settings
from gateway.cli.output import (
    FORCE,
    JSON,
    MONTH,
    amounts,
    card_hours,
    iso,
    local,
    plain,
    put,
    require_group,
    table,
)
from gateway.core.closing import Difference, Sums
from gateway.core.months import month_bounds
from gateway.services import close_month
from gateway.services.close_month import Closed
from gateway.services.elsewhere import Elsewhere, cost_elsewhere
from gateway.store.queries import close as reads
from gateway.store.queries.close import Correction


@click.command()
@click.argument("month", type=MONTH)
@click.option("--again", is_flag=True, help="Compare anew a month that was closed.")
@JSON
@said
def close(month: str, again: bool, as_json: bool) -> None:
    """Compare the ledger of MONTH with Slurm's accounting, run by run, and keep what is found.
    A month that was closed is shown, with what was corrected since. Exit 1 for differences."""
    found = settings()
    with database() as begin, database(read_only=True) as read:
        with read() as session:
            there = reads.closed(session, month)
        if there is None or again:
            one = close_month.close(
                month,
                begin=begin,
                read=read,
                now=now(),
                zone=found.timezone,
                suspended=found.bill_suspended,
                again=again,
            )
        else:
            with read() as session:
                one = close_month.shown(session, month, zone=found.timezone)
    put(_facts(one), _lines(one, found.timezone, found.currency), as_json=as_json)
    if one.differences:
        sys.exit(1)


@click.command()
@click.option("--list", "list_name", required=True, help="The other price list.")
@click.option("--month", type=MONTH, required=True, help="Such as 2026-11; by the runs' end.")
@click.option("--group", help="[default: the whole site]")
@FORCE
@JSON
@said
def elsewhere(*, list_name: str, month: str, group: str | None, force: bool, as_json: bool) -> None:
    """Print what the same card-hours would have cost at another price list, without QoS factors."""
    found = settings()
    since, until = month_bounds(month, found.timezone)
    with database(read_only=True) as read:
        if group is not None:
            require_group(read, group, force=force)
        one = cost_elsewhere(list_name, since=since, until=until, read=read, group=group)
    facts: dict[str, Any] = {"month": month, "currency": found.currency}
    put(facts | _elsewhere(one), _elsewhere_lines(one), as_json=as_json)


def _elsewhere(one: Elsewhere) -> dict[str, Any]:
    found = one.comparison
    facts: dict[str, Any] = {"list": one.list_name, "group": one.group}
    facts |= {"lacking": list(found.lacking)}
    facts |= amounts(here=found.here, elsewhere=found.there, refunded=one.refunded)
    facts["resources"] = [
        {"resource": line.resource, "unit_seconds": line.unit_seconds}
        | amounts(here=line.here, elsewhere=line.there)
        for line in found.lines
    ]
    return facts


def _elsewhere_lines(one: Elsewhere) -> list[str]:
    found = one.comparison
    cells = [
        [
            line.resource,
            card_hours(line.unit_seconds),
            plain(line.here),
            "no price" if line.there is None else plain(line.there),
        ]
        for line in found.lines
    ]
    cells.append(["total", "", plain(found.here), plain(found.there)])
    text = table(["resource", ">hours", ">charged here", f">at {one.list_name}"], cells)
    if found.lacking:
        missing = ", ".join(found.lacking)
        text.append(f"Left out of both totals, as {one.list_name} has no price: {missing}.")
    if one.refunded:
        text.append(f"Of what was charged here, {plain(one.refunded)} was given back.")
    return text


def _facts(one: Closed) -> dict[str, Any]:
    return {
        "month": one.month,
        "closed_at": iso(one.at),
        "total": _sums(one.total),
        "groups": [_sums(group) for group in one.groups],
        "differences": [_difference(found) for found in one.differences],
        "not_told": one.not_told,
        "corrections": [_correction(found) for found in one.corrections],
        "earlier": [{"closed_at": at, "differences": count} for at, count in one.earlier],
    }


def _sums(sums: Sums) -> dict[str, Any]:
    facts = asdict(sums)
    money = {name: facts.pop(name) for name in ("charged", "refunded", "pending")}
    return facts | amounts(**money, spent=sums.spent)


def _difference(found: Difference) -> dict[str, Any]:
    facts = asdict(found) | {"kind": found.kind.value, "end": iso(found.end)}
    return facts | amounts(amount=found.amount)


def _correction(found: Correction) -> dict[str, Any]:
    facts = asdict(found) | {"at": iso(found.at), "end": iso(found.end)}
    return facts | amounts(amount=found.amount)


def _lines(one: Closed, zone: tzinfo, currency: str) -> list[str]:
    cells = [
        [
            sums.group or "all",
            str(sums.runs),
            card_hours(sums.card_seconds),
            card_hours(sums.charged_card_seconds),
            plain(sums.charged),
            plain(sums.refunded),
            str(sums.reviews),
        ]
        for sums in (*one.groups, one.total)
    ]
    head = ["group", ">runs", ">card-hours", ">charged", f">{currency}", ">refunded", ">in review"]
    lines = [f"{one.month}, closed at {local(one.at, zone)}", *table(head, cells)]
    lines += _open_ends(one)
    lines += _difference_lines(one)
    if one.corrections:
        later = [
            [local(c.at, zone), c.kind, str(c.slurm_id), str(c.run_id), c.group, plain(c.amount)]
            for c in one.corrections
        ]
        head = ["after closing", "", ">job", ">run", "group", ">"]
        lines += ["", *table(head, later)]
    return lines


def _difference_lines(one: Closed) -> list[str]:
    if not one.differences:
        return ["", "Ledger and accounting agree on every run."]
    wrong = [
        [
            d.kind.value,
            str(d.slurm_id),
            str(d.run_id),
            d.group,
            d.expected,
            d.found,
            plain(d.amount),
        ]
        for d in one.differences
    ]
    head = ["differs in", ">job", ">run", "group", ">accounting", ">ledger", ">charged"]
    return ["", *table(head, wrong)]


def _open_ends(one: Closed) -> list[str]:
    found = []
    if one.total.before_charging:
        found.append(f"{one.total.before_charging} runs are from before there was a price.")
    if one.total.waived or one.total.decided:
        words = f"{one.total.decided} charged and {one.total.waived} waived"
        found.append(f"By a person's decision: {words}.")
    if one.not_told["jobs_without_end"]:
        found.append(f"{one.not_told['jobs_without_end']} jobs are gone without a known end.")
    if one.not_told["held_rows"]:
        found.append(f"{one.not_told['held_rows']} rows of accounting could not be read.")
    return found
