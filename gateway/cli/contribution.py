"""`sluice contribution`: what groups brought, by which rules it counts, and the shares it gives."""

from dataclasses import replace
from datetime import date
from typing import Any

import click

from gateway.cli import contribution_rules
from gateway.cli.common import database, now, said, settings
from gateway.cli.contribution_facts import amount_text, entry_facts, result_facts, result_lines
from gateway.cli.output import JSON, iso, local, plain, put, table
from gateway.cli.run_contribution import run, runs
from gateway.core.contribution import Rules, scores
from gateway.core.credits import parse_credits
from gateway.errors import NotFound
from gateway.services import contribution as contributions
from gateway.services import contribution_book as book
from gateway.store import contribution as rows


class Day(click.ParamType[date]):
    """`2026-11-30`, a day of the site's zone."""

    name = "DAY"

    def convert(self, value: Any, param: Any, ctx: Any) -> date:
        try:
            return value if isinstance(value, date) else date.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no day such as 2026-11-30.", param, ctx)


DAY = Day()
NOTE = click.option("--note", default="", help="Kept with it; the group's people read it.")


@click.group()
def contribution() -> None:
    """What groups bring, and the shares of the cluster that they get for it."""


contribution.add_command(run)
contribution.add_command(runs)
contribution.add_command(contribution_rules.kind)
contribution.add_command(contribution_rules.formula)


@contribution.command("list")
@click.option("--group", help="[default: all]")
@click.option("--history", is_flag=True, help="Also lines that were corrected, as they were.")
@JSON
@said
def list_lines(group: str | None, history: bool, as_json: bool) -> None:
    """Print what was brought, and what is left of it today in points."""
    zone, moment = settings().timezone, now()
    with database(read_only=True) as begin, begin() as session:
        if history:
            _print_history(rows.lines(session, group=group, limit=10_000), as_json=as_json)
            return
        held = rows.version(session)
        rules = held.rules if held else Rules()
        found = scores(
            rules, contributions.entries(session, rules, zone, group=group), _today(moment)
        )
    kinds = {one.key: one for one in rules.kinds}
    parts = [part for _, score in sorted(found.items()) for part in score.parts]
    cells = [
        [
            str(part.entry.id or "ledger"),
            part.entry.group,
            part.entry.kind,
            amount_text(part.entry.amount, kinds[part.entry.kind].unit),
            part.entry.day.isoformat(),
            part.entry.ended_on.isoformat() if part.entry.ended_on else "-",
            plain(part.full),
            plain(part.left),
            part.entry.note,
        ]
        for part in parts
    ]
    head = [">line", "group", "kind", ">amount", "from", "until", ">gave", ">left", "note"]
    put([entry_facts(part) for part in parts], table(head, cells), as_json=as_json)


@contribution.command()
@click.argument("group")
@click.argument("kind")
@click.argument("amount")
@click.option("--day", type=DAY, help="From when on it counts. [default: today]")
@NOTE
@click.option("--key", help="The same key enters it once, however often it is repeated.")
@JSON
@said
def add(
    *,
    group: str,
    kind: str,
    amount: str,
    day: date | None,
    note: str,
    key: str | None,
    as_json: bool,
) -> None:
    """Enter AMOUNT of KIND that GROUP brought."""
    moment, millionths = now(), parse_credits(amount)
    from_day = day or _today(moment)
    with database() as begin:
        line = book.add(
            group, kind, millionths, day=from_day, note=note, key=key, begin=begin, now=moment
        )
    _put_line(line, f"Line {line}: {group} brought {plain(millionths)} of {kind}.", as_json=as_json)


@contribution.command()
@click.argument("line", type=int)
@click.option("--amount", help="[default: as it is]")
@click.option("--day", type=DAY, help="[default: as it is]")
@click.option("--ended", type=DAY, help="From that day on it is there no more.")
@click.option("--note", help="[default: as it is]")
@JSON
@said
def correct(
    *,
    line: int,
    amount: str | None,
    day: date | None,
    ended: date | None,
    note: str | None,
    as_json: bool,
) -> None:
    """Put a new line in the place of LINE. An amount of 0 takes it back."""
    with database() as begin:
        with begin() as session:
            found = rows.line(session, line)
        if found is None:
            raise NotFound(f"no contribution line {line}")
        old = found.entry
        new = replace(
            old,
            amount=old.amount if amount is None else parse_credits(amount),
            day=day or old.day,
            ended_on=ended or old.ended_on,
            note=old.note if note is None else note,
        )
        made = book.correct(
            line,
            amount=new.amount,
            day=new.day,
            ended_on=new.ended_on,
            note=new.note,
            begin=begin,
            now=now(),
        )
    _put_line(made, f"Line {made} stands for line {line} from now on.", as_json=as_json)


@contribution.command()
@click.argument("line", type=int)
@click.option("--on", type=DAY, help="The first day without it. [default: today]")
@JSON
@said
def end(line: int, on: date | None, as_json: bool) -> None:
    """What LINE brought is there no more."""
    moment = now()
    day = on or _today(moment)
    with database() as begin:
        made = book.end(line, on=day, begin=begin, now=moment)
    _put_line(made, f"Line {made} stands for line {line}: it ended on {day}.", as_json=as_json)


@contribution.command()
@click.option("--changes", is_flag=True, help="Only groups that something changes for.")
@JSON
@said
def preview(changes: bool, as_json: bool) -> None:
    """Print each group's score, shares now and new, by what Slurm had at the last poll."""
    with database(read_only=True) as begin, begin() as session:
        held = rows.version(session)
        rules = held.rules if held else Rules()
        found = contributions.preview(session, rules, now=now(), zone=settings().timezone)
    shown = found.changed if changes else found.results
    facts = {
        "day": found.day.isoformat(),
        "version": held.number if held else None,
        "groups": len(found.results),
        "differing": len(found.changed),
        "results": [result_facts(one) for one in shown],
    }
    put(facts, result_lines(shown), as_json=as_json)


def _today(moment: Any) -> date:
    day: date = moment.astimezone(settings().timezone).date()
    return day


def _put_line(line: int, text: str, *, as_json: bool) -> None:
    put({"line": line}, [text], as_json=as_json)


def _print_history(written: list[rows.LineRow], *, as_json: bool) -> None:
    zone = settings().timezone
    cells = [
        [
            str(row.entry.id),
            row.entry.group,
            row.entry.kind,
            plain(row.entry.amount),
            row.entry.day.isoformat(),
            row.entry.ended_on.isoformat() if row.entry.ended_on else "-",
            str(row.replaces_id or "-"),
            "replaced" if row.replaced else "",
            local(row.at, zone),
            row.by or "host",
            row.entry.note,
        ]
        for row in written
    ]
    head = [">line", "group", "kind", ">amount", "from", "until", ">for", "", "entered", "by"]
    facts = [
        {
            "line": row.entry.id,
            "group": row.entry.group,
            "kind": row.entry.kind,
            "amount": plain(row.entry.amount),
            "amount_millionths": row.entry.amount,
            "day": row.entry.day.isoformat(),
            "ended_on": row.entry.ended_on.isoformat() if row.entry.ended_on else None,
            "replaces": row.replaces_id,
            "replaced": row.replaced,
            "entered_at": iso(row.at),
            "by": row.by,
            "note": row.entry.note,
        }
        for row in written
    ]
    put(facts, table([*head, "note"], cells), as_json=as_json)
