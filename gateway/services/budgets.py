"""Budgets of groups: plan, enter by hand what the ledger does not know, tell, and stop.

What a budget stops, it stops at Submit: jobs that run go on, and plain sbatch does not pass here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from gateway.core import budgets as rules
from gateway.core.budgets import (
    DEFAULT_THRESHOLDS,
    Action,
    Barrier,
    Category,
    Outlook,
    Standing,
    Threshold,
)
from gateway.core.credits import Credits
from gateway.errors import NotFound, Refused
from gateway.store import budgets, ledger, notices
from gateway.store.budgets import BudgetRow, LineRow
from gateway.store.queries import spending
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_LONGEST_NAME, _LONGEST_NOTE = 120, 2000
_LONGEST = timedelta(days=3660)
_PRESSED_TWICE = timedelta(seconds=10)
_MOST_PERCENT = 1000
_CODES = {Action.STOP: "budget_stopped", Action.APPROVE: "budget_needs_approval"}


@dataclass(frozen=True, slots=True)
class BudgetShown:
    """A budget as a page shows it. `burn_down` is what was left at the end of each day by the
    charges and the lines; `outlook` is an estimate."""

    row: BudgetRow
    standing: Standing
    thresholds: tuple[Threshold, ...]
    lines: tuple[LineRow, ...]
    outlook: Outlook
    burn_down: tuple[tuple[date, Credits], ...]


def add(
    group: str,
    name: str,
    amount: int,
    *,
    starts: datetime,
    ends: datetime,
    begin: Begin,
    now: datetime,
    thresholds: Sequence[Threshold] = DEFAULT_THRESHOLDS,
    person_id: int | None = None,
) -> int:
    """A budget from `starts` until before `ends`; its id, also of one that says just this already.
    Refused: budget_name, ends_before_start, amount_not_positive, percent_out_of_range."""
    if not 0 < len(name.strip()) <= _LONGEST_NAME or not name.strip().isprintable():
        raise Refused("budget_name", field="name", longest=_LONGEST_NAME)
    if amount <= 0:
        raise Refused("amount_not_positive", field="amount")
    if ends <= starts:
        raise Refused("ends_before_start", field="ends")
    if ends - starts > _LONGEST or abs(starts - now) > _LONGEST:
        raise Refused("budget_too_long", field="ends")
    for one in thresholds:
        _percent(one.percent, "thresholds", least=1)
    if len({one.percent for one in thresholds}) != len(thresholds):
        raise Refused("percent_twice", field="thresholds")
    with begin() as session:
        plan: dict[str, Any] = {"group": group, "name": name.strip(), "amount": amount}
        plan |= {"starts": starts, "ends": ends}
        there = budgets.same(session, **plan)
        if there is not None:
            return there
        return budgets.add(
            session,
            **plan,
            thresholds=thresholds,
            now=now,
            person_id=person_id,
        )


def add_line(
    budget_id: int,
    category: Category,
    amount: int,
    *,
    note: str,
    begin: Begin,
    now: datetime,
    at: datetime | None = None,
    person_id: int | None = None,
) -> int:
    """Enter what was paid outside the ledger; a negative amount takes it back. The same line by
    the same person within seconds is a button pressed twice. NotFound, Refused amount_is_zero,
    note_missing."""
    if amount == 0:
        raise Refused("amount_is_zero", field="amount")
    if not note.strip():
        raise Refused("note_missing", field="note")
    with begin() as session:
        _get(session, budget_id)
        line: dict[str, Any] = {"category": category.value, "amount": amount}
        line |= {"note": note.strip()[:_LONGEST_NOTE], "person_id": person_id}
        if at is None:
            there = budgets.same_line(session, budget_id, **line, since=now - _PRESSED_TWICE)
            if there is not None:
                return there
        return budgets.add_line(session, budget_id, **line, at=at or now)


def set_threshold(budget_id: int, percent: int, action: Action | None, *, begin: Begin) -> None:
    """Add a threshold, change what it does, or take it away with None. NotFound, Refused
    percent_out_of_range."""
    _percent(percent, "percent", least=1)
    with begin() as session:
        _get(session, budget_id)
        budgets.set_threshold(session, budget_id, percent, action)


def end(budget_id: int, *, begin: Begin, now: datetime) -> None:
    """It counts no further and stops nothing any more; what it had stays. NotFound. One that has
    not begun is as if it had never been."""
    with begin() as session:
        row = _get(session, budget_id)
        budgets.end(session, budget_id, at=max(now, row.starts + timedelta(seconds=1)))


def approve(budget_id: int, percent: int, *, begin: Begin) -> None:
    """Let new jobs go on up to this percent of the budget; 0 takes the approval back. NotFound,
    Refused percent_out_of_range. Who may is for the caller to ask."""
    _percent(percent, "percent", least=0)
    with begin() as session:
        _get(session, budget_id)
        budgets.approve(session, budget_id, percent)


def shown(session: "Session", budget_id: int, *, now: datetime, zone: tzinfo = UTC) -> BudgetShown:
    """Everything about one. NotFound."""
    return _shown(session, _get(session, budget_id), now=now, zone=zone)


def of_group(
    session: "Session", group: str | None, *, now: datetime, zone: tzinfo = UTC
) -> list[BudgetShown]:
    """All budgets of a group, or of all groups for None, the newest first."""
    rows = budgets.of_group(session, group)
    return [_shown(session, row, now=now, zone=zone) for row in rows]


def barrier(
    session: "Session", group: str, worst: int, *, now: datetime
) -> tuple[BudgetRow, Barrier] | None:
    """What stands against a new job of this worst case, for showing it before Submit."""
    found = []
    for row in budgets.in_force(session, group, now=now):
        against = rules.barrier(
            budgets.standing(session, row),
            budgets.thresholds(session, row.id),
            worst=worst,
            approved_until=row.approved_until,
        )
        if against is not None:
            found.append((row, against))
    return min(found, key=lambda one: one[1].action is Action.APPROVE, default=None)


def refusal(row: BudgetRow, against: Barrier) -> Refused:
    """`need` and `free` are millionths."""
    return Refused(
        _CODES[against.action],
        field="group",
        budget=row.name,
        percent=against.percent,
        need=against.worst,
        free=against.free,
    )


def check(session: "Session", group: str, worst: int, now: datetime) -> None:
    """Raise Refused budget_stopped or budget_needs_approval. Inside the transaction that holds
    the worst case: the group is locked first, so that two at the same time see each other."""
    if not budgets.in_force(session, group, now=now):
        return
    ledger.lock(session, [group], now=now)
    found = barrier(session, group, worst, now=now)
    if found is not None:
        raise refusal(*found)


def tell_due(*, begin: Begin, read: Begin, now: datetime) -> int:
    """Make a notice for each threshold that was reached, once; how many. Safe to run again."""
    with read() as session:
        waiting = [
            budget_id
            for budget_id in budgets.waiting(session, now=now)
            if _reached(session, budget_id)
        ]
    told = 0
    for budget_id in waiting:
        with begin() as session:
            told += _tell(session, budget_id, now=now)
    return told


def _reached(session: "Session", budget_id: int) -> list[Threshold]:
    standing = budgets.standing(session, _get(session, budget_id))
    return rules.reached(standing, budgets.thresholds(session, budget_id))


def _tell(session: "Session", budget_id: int, *, now: datetime) -> int:
    row = _get(session, budget_id)
    standing = budgets.standing(session, row)
    fresh = _reached(session, budget_id)
    for one in fresh:
        facts = {"budget_id": row.id, "budget": row.name, "percent": one.percent}
        facts |= {"action": one.action.value, "spent": standing.spent, "amount": row.amount}
        key = f"budget:{row.id}:{one.percent}"
        notices.tell(session, key, kind="budget", facts=facts, now=now, group=row.group)
    budgets.mark_reached(session, row.id, [one.percent for one in fresh], now=now)
    return len(fresh)


def _shown(session: "Session", row: BudgetRow, *, now: datetime, zone: tzinfo) -> BudgetShown:
    standing = budgets.standing(session, row)
    lines = budgets.lines(session, row.id)
    until = min(now, row.ends)
    days = rules.pace_days(row.starts, until)
    since = max(row.starts, until - timedelta(days=days))
    recent = spending.spent(session, row.group, since=since, until=row.ends)
    recent += budgets.by_hand_since(session, row.id, since)
    used = _by_day(session, row, lines, zone)
    today = until.astimezone(zone).date()
    return BudgetShown(
        row=row,
        standing=standing,
        thresholds=tuple(budgets.thresholds(session, row.id)),
        lines=tuple(lines),
        outlook=rules.outlook(standing.left, recent=recent, days=days, now=now),
        burn_down=tuple(rules.burn_down(row.amount, used, until=today)),
    )


def _by_day(
    session: "Session", row: BudgetRow, lines: Sequence[LineRow], zone: tzinfo
) -> list[tuple[date, int]]:
    window = {"since": row.starts, "until": row.ends}
    found = spending.by_day(session, row.group, **window, zone=zone)
    used = {one.day: one.spent for one in found}
    for line in lines:
        # A line from before or after the budget's dates counts on its first or last day.
        day = min(max(line.at.astimezone(zone).date(), found[0].day), found[-1].day)
        used[day] += line.amount
    return sorted(used.items())


def _get(session: "Session", budget_id: int) -> BudgetRow:
    row = budgets.get(session, budget_id)
    if row is None:
        raise NotFound(f"no budget {budget_id}")
    return row


def _percent(percent: int, field: str, *, least: int) -> None:
    if not least <= percent <= _MOST_PERCENT:
        raise Refused("percent_out_of_range", field=field, least=least, most=_MOST_PERCENT)
