"""`sluice qos what-if`: the past against the limits of a file, and against other prices."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TextIO

import click

from gateway.cli.common import database, now, said, settings
from gateway.cli.output import JSON, SHARE, amounts, iso, local, plain, put, table
from gateway.cli.qos_file import FILE, items_of
from gateway.core.credits import parse_credits
from gateway.core.what_if import GroupEffects, LimitEffects, ProposedPrices, WhatIf
from gateway.services.what_if import replay

MOST_DAYS = 3660
_HOUR = 3600


@click.command("what-if")
@FILE
@click.option("--days", type=click.IntRange(1, MOST_DAYS), default=90, show_default=True)
@click.option("--price", "prices", multiple=True, metavar="RESOURCE=AMOUNT", help="Per hour.")
@click.option("--factor", "factors", multiple=True, metavar="QOS=NUMBER", help="Of the price.")
@JSON
@said
def what_if(
    *, file: TextIO, days: int, prices: tuple[str, ...], factors: tuple[str, ...], as_json: bool
) -> None:
    """Replay the last days' runs against FILE: who would have been refused, who would have waited.

    People are taken to submit the same, and each limit is looked at by itself; see
    docs/engineering/history.md. FILE may be empty where only prices are asked about.
    """
    proposed = _proposed(prices, factors)
    with database(read_only=True) as begin:
        found = replay(
            items_of(file, begin),
            days=days,
            prices=proposed,
            history=settings().home / "history",
            read=begin,
            now=now(),
        )
    put(_facts(found), _lines(found), as_json=as_json)


def _proposed(prices: Sequence[str], factors: Sequence[str]) -> ProposedPrices:
    given = dict(map(_pair, prices)), dict(map(_pair, factors))
    try:
        return ProposedPrices(
            {name: parse_credits(amount) for name, amount in given[0].items()},
            {name.lower(): SHARE.convert(text, None, None) for name, text in given[1].items()},
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _pair(text: str) -> tuple[str, str]:
    name, equals, number = text.partition("=")
    if not name or not equals:
        raise click.UsageError(f"{text!r} is not NAME=NUMBER.")
    return name, number


def _facts(found: WhatIf) -> dict[str, Any]:
    return {
        "since": iso(found.since),
        "until": iso(found.until),
        "history_until": iso(found.history_until),
        "runs": found.runs,
        "unpriced": found.unpriced,
        "limits": [_limit_facts(one) for one in found.limits],
        "groups": [
            {"group": one.group}
            | asdict(one.effects)
            | amounts(cost_before=one.cost_before, cost_after=one.cost_after)
            for one in found.groups
        ],
        "not_replayed": [
            {"of": one.kind, "name": one.name, "field": one.field.key, "tres": one.tres}
            for one in found.not_replayed
        ],
    }


def _limit_facts(one: LimitEffects) -> dict[str, Any]:
    facts = {"of": one.kind, "name": one.name, "field": one.field.key, "tres": one.tres}
    return facts | {"before": one.before, "after": one.after} | asdict(one.effects)


def _lines(found: WhatIf) -> list[str]:
    zone = settings().timezone
    if found.history_until is None:
        return ["There is no history yet: the worker makes it, or `sluice history rebuild`."]
    lines = [f"{found.runs:,} runs since {local(found.since, zone)}"]
    for limit in found.limits:
        lines.append(_limit_line(limit))
    for left in found.not_replayed:
        what = f"{left.field.option}={left.tres}" if left.tres else left.field.option
        lines.append(f"{left.kind}:{left.name} {what}: cannot be replayed, or only in part")
    touched = [one for one in found.groups if _is_touched(one)]
    if touched:
        lines += ["", *_table(touched)]
    if found.unpriced:
        lines.append(f"{found.unpriced:,} runs have no price and are in no cost.")
    return lines


def _limit_line(one: LimitEffects) -> str:
    what = f"{one.field.option}={one.tres}" if one.tres else one.field.option
    effects = one.effects
    return (
        f"{one.kind}:{one.name} {what}: {effects.refused:,} refused, "
        f"{effects.later:,} later by {effects.later_seconds / _HOUR:,.1f} h in all, "
        f"{effects.sooner:,} sooner by {effects.sooner_seconds / _HOUR:,.1f} h"
    )


def _is_touched(one: GroupEffects) -> bool:
    effects = one.effects
    return bool(effects.refused or effects.later or effects.sooner) or (
        one.cost_before != one.cost_after
    )


def _table(groups: Sequence[GroupEffects]) -> list[str]:
    head = ("group", ">runs", ">refused", ">later", ">hours", ">sooner", ">hours", ">cost", ">then")
    return table(
        head,
        [
            (
                one.group,
                f"{one.effects.runs:,}",
                f"{one.effects.refused:,}",
                f"{one.effects.later:,}",
                f"{one.effects.later_seconds / _HOUR:,.1f}",
                f"{one.effects.sooner:,}",
                f"{one.effects.sooner_seconds / _HOUR:,.1f}",
                "-" if one.cost_before is None else plain(one.cost_before),
                "-" if one.cost_after is None else plain(one.cost_after),
            )
            for one in groups
        ],
    )
