"""`sluice budget`: plans of groups with dates, what is spent of them, and what happens then."""

from datetime import datetime, tzinfo
from typing import Any

import click

from gateway.cli.common import database, now, said, settings
from gateway.cli.output import (
    FORCE,
    JSON,
    MOMENT,
    SIGNED,
    amounts,
    iso,
    local,
    plain,
    put,
    require_group,
    table,
)
from gateway.core.budgets import DEFAULT_THRESHOLDS, Action, Category, Threshold
from gateway.core.credits import parse_credits
from gateway.services import budgets
from gateway.services.budgets import BudgetShown

CATEGORY = click.Choice([one.value for one in Category])
_DEFAULT = ", ".join(f"{one.percent}:{one.action.value}" for one in DEFAULT_THRESHOLDS)


class _ThresholdType(click.ParamType[Threshold]):
    name = "PERCENT:ACTION"

    def convert(self, value: Any, param: Any, ctx: Any) -> Threshold:
        percent, _, action = str(value).partition(":")
        if not percent.isascii() or not percent.isdigit() or action not in set(Action):
            self.fail(f"{value!r} is not like 95:approve (notify, approve, stop).", param, ctx)
        return Threshold(int(percent), Action(action))


@click.group()
def budget() -> None:
    """Budgets: what a group plans to spend, and what happens when it comes near."""


@budget.command()
@click.argument("group")
@click.argument("name")
@click.argument("amount")
@click.option("--starts", type=MOMENT, required=True)
@click.option("--ends", type=MOMENT, required=True, help="The first moment after it.")
@click.option(
    "--threshold",
    "thresholds",
    type=_ThresholdType(),
    multiple=True,
    help=f"May be repeated. [default: {_DEFAULT}]",
)
@FORCE
@JSON
@said
def add(
    *,
    group: str,
    name: str,
    amount: str,
    starts: datetime,
    ends: datetime,
    thresholds: tuple[Threshold, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Plan AMOUNT for GROUP. Card-hours count by themselves; `sluice budget line` adds the rest."""
    with database() as begin:
        require_group(begin, group, force=force)
        made = budgets.add(
            group,
            name,
            parse_credits(amount),
            starts=starts,
            ends=ends,
            thresholds=thresholds or DEFAULT_THRESHOLDS,
            begin=begin,
            now=now(),
        )
    _print_one(made, as_json=as_json)


@budget.command(context_settings=SIGNED)
@click.argument("budget_id", type=int, metavar="ID")
@click.argument("category", type=CATEGORY)
@click.argument("amount")
@click.option("--note", required=True, help="What it was for.")
@click.option("--at", type=MOMENT, help="When it was spent. [default: now]")
@JSON
@said
def line(
    *, budget_id: int, category: str, amount: str, note: str, at: datetime | None, as_json: bool
) -> None:
    """Enter what was paid outside the ledger; a negative AMOUNT takes it back."""
    with database() as begin:
        budgets.add_line(
            budget_id,
            Category(category),
            parse_credits(amount),
            note=note,
            at=at,
            begin=begin,
            now=now(),
        )
    _print_one(budget_id, as_json=as_json)


@budget.command()
@click.argument("budget_id", type=int, metavar="ID")
@click.argument("percent", type=int)
@JSON
@said
def approve(budget_id: int, percent: int, as_json: bool) -> None:
    """Let new jobs go on up to PERCENT of the budget; 0 takes that back."""
    with database() as begin:
        budgets.approve(budget_id, percent, begin=begin)
    _print_one(budget_id, as_json=as_json)


@budget.command()
@click.argument("budget_id", type=int, metavar="ID")
@JSON
@said
def end(budget_id: int, as_json: bool) -> None:
    """End a budget now: it counts no further and stops nothing any more."""
    with database() as begin:
        budgets.end(budget_id, begin=begin, now=now())
    _print_one(budget_id, as_json=as_json)


@budget.command()
@click.argument("budget_id", type=int, metavar="ID")
@click.argument("thresholds", type=_ThresholdType(), nargs=-1, required=True)
@click.option("--remove", is_flag=True, help="Take these thresholds away.")
@JSON
@said
def threshold(
    budget_id: int, thresholds: tuple[Threshold, ...], remove: bool, as_json: bool
) -> None:
    """Set what happens at some percent, such as 95:approve, or take it away."""
    with database() as begin:
        for one in thresholds:
            action = None if remove else one.action
            budgets.set_threshold(budget_id, one.percent, action, begin=begin)
    _print_one(budget_id, as_json=as_json)


@budget.command()
@click.argument("budget_id", type=int, required=False, metavar="[ID]")
@click.option("--group", help="All budgets of a group. [default: of all groups]")
@JSON
@said
def show(budget_id: int | None, group: str | None, as_json: bool) -> None:
    """Print one budget with its lines, or a line for each."""
    if budget_id is not None:
        _print_one(budget_id, as_json=as_json)
        return
    zone = settings().timezone
    with database(read_only=True) as begin, begin() as session:
        found = budgets.of_group(session, group, now=now(), zone=zone)
    cells = [
        [
            str(one.row.id),
            one.row.group,
            one.row.name,
            local(one.row.starts, zone),
            local(one.row.ends, zone),
            plain(one.row.amount),
            plain(one.standing.spent),
            f"{one.standing.percent} %",
            local(one.outlook.dry_at, zone),
        ]
        for one in found
    ]
    head = [">id", "group", "budget", "from", "until", ">planned", ">spent", ">", "runs dry about"]
    put([facts(one) for one in found], table(head, cells), as_json=as_json)


def facts(one: BudgetShown) -> dict[str, Any]:
    row, standing = one.row, one.standing
    found: dict[str, Any] = {"id": row.id, "group": row.group, "name": row.name}
    found |= {"starts": iso(row.starts), "ends": iso(row.ends), "percent": standing.percent}
    found |= {"approved_until": row.approved_until}
    found |= amounts(
        amount=row.amount,
        spent=standing.spent,
        left=standing.left,
        held=standing.held,
        charged=standing.charged,
    )
    found["categories"] = {
        category.value: amounts(amount=amount) for category, amount in standing.by_category.items()
    }
    found["thresholds"] = [
        {"percent": t.percent, "action": t.action.value, "reached_at": iso(t.reached_at)}
        for t in one.thresholds
    ]
    found["lines"] = [
        {"id": entered.id, "category": entered.category, "note": entered.note}
        | {"at": iso(entered.at), "by": entered.by}
        | amounts(amount=entered.amount)
        for entered in one.lines
    ]
    found["outlook"] = {"days": one.outlook.days, "dry_at": iso(one.outlook.dry_at)}
    found["outlook"] |= amounts(per_day=one.outlook.per_day)
    found["burn_down"] = [
        {"day": day.isoformat()} | amounts(left=left) for day, left in one.burn_down
    ]
    return found


def _print_one(budget_id: int, *, as_json: bool) -> None:
    found = settings()
    with database(read_only=True) as begin, begin() as session:
        one = budgets.shown(session, budget_id, now=now(), zone=found.timezone)
    put(facts(one), _lines(one, found.timezone, found.currency), as_json=as_json)


def _lines(one: BudgetShown, zone: tzinfo, currency: str) -> list[str]:
    row, standing = one.row, one.standing
    sums = [[name.value, plain(amount)] for name, amount in standing.by_category.items()]
    sums += [
        [f"spent, {standing.percent} %", plain(standing.spent)],
        [f"left of {plain(row.amount)}", plain(standing.left)],
        ["held for jobs beside that", plain(standing.held)],
    ]
    steps = [[f"{t.percent} %", t.action.value, local(t.reached_at, zone)] for t in one.thresholds]
    entered = [
        [local(each.at, zone), each.category, plain(each.amount), each.note] for each in one.lines
    ]
    lines = [f"Budget {row.id} of {row.group}: {row.name}"]
    lines.append(f"{local(row.starts, zone)} to {local(row.ends, zone)}")
    lines += ["", *table(["", f">{currency}"], sums), "", outlook_words(one, zone), ""]
    lines += table([">at", "then", "reached"], steps)
    if row.approved_until:
        lines.append(f"Jobs may go on up to {row.approved_until} %.")
    return lines if not entered else [*lines, "", *table(["at", "line", ">", "note"], entered)]


def outlook_words(one: BudgetShown, zone: tzinfo) -> str:
    """An estimate says that it is one, and of what."""
    outlook = one.outlook
    days = "day" if outlook.days == 1 else f"{outlook.days} days"
    if outlook.dry_at is None and outlook.per_day:
        return f"At the pace of the last {days} it lasts for more than a century."
    if outlook.dry_at is None:
        return f"Nothing was spent in the last {days}, so nobody can say when it runs dry."
    pace = f"{plain(outlook.per_day)} a day, the pace of the last {days}"
    if one.standing.left <= 0:
        return f"It has run dry; {pace}."
    when = local(outlook.dry_at, zone)[:10]
    after = ", after its end" if outlook.dry_at >= one.row.ends else ""
    return f"At {pace}, it runs dry about {when}{after}."
