"""How `sluice contribution` prints lines and results."""

from collections.abc import Sequence
from typing import Any

from gateway.cli.output import amounts, plain, table
from gateway.core.contribution import Part, Result


def amount_text(amount: int, unit: str) -> str:
    return f"{plain(amount)} {unit}"


def entry_facts(part: Part) -> dict[str, Any]:
    """`line` None: it was read from the ledger. Points as decimals, and whole millionths."""
    entry = part.entry
    facts = {
        "line": entry.id,
        "group": entry.group,
        "kind": entry.kind,
        "day": entry.day.isoformat(),
        "ended_on": entry.ended_on.isoformat() if entry.ended_on else None,
        "note": entry.note,
    }
    return facts | amounts(amount=entry.amount, gave=part.full, left=part.left)


def result_facts(one: Result) -> dict[str, Any]:
    before, after = one.before, one.after
    facts = {
        "group": before.name,
        "shares_now": before.shares,
        "shares_new": after.shares,
        "qos_added": sorted(set(after.qos) - set(before.qos)),
        "qos_taken": sorted(set(before.qos) - set(after.qos)),
        "untouched": one.untouched.value if one.untouched else None,
    }
    return facts | amounts(points=one.score.points)


def result_lines(found: Sequence[Result]) -> list[str]:
    cells = [
        [
            one.before.name,
            plain(one.score.points),
            _shares(one.before.shares),
            _shares(one.after.shares),
            _difference(one),
            _qos(one),
            one.untouched.value if one.untouched else "",
        ]
        for one in found
    ]
    return table(["group", ">points", ">shares", ">new", ">difference", "QoS", ""], cells)


def _shares(shares: int | None) -> str:
    return "parent" if shares is None else str(shares)


def _difference(one: Result) -> str:
    before, after = one.before.shares, one.after.shares
    return f"{after - before:+d}" if before is not None and after is not None else ""


def _qos(one: Result) -> str:
    before, after = set(one.before.qos), set(one.after.qos)
    gained = [f"+{name}" for name in sorted(after - before)]
    return " ".join(gained + [f"-{name}" for name in sorted(before - after)])
