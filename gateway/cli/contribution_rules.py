"""`sluice contribution kind` and `formula`: by which rules what groups bring counts."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from gateway.cli.common import database, now, said
from gateway.cli.output import JSON, SHARE, iso, plain, put, table
from gateway.core.contribution import Counted, Feed, Formula, Kind, Rules, Shape, Tier
from gateway.core.credits import BadCredits, parse_credits
from gateway.services import contribution_book as book
from gateway.store import contribution as rows
from gateway.store.contribution import Version
from gateway.wire import codec


class _TierType(click.ParamType[Tier]):
    name = "POINTS:QOS"

    def convert(self, value: Any, param: Any, ctx: Any) -> Tier:
        points, _, qos = str(value).partition(":")
        try:
            return Tier(parse_credits(points), qos.strip())
        except BadCredits:
            self.fail(f"{value!r} is not like 50:gold.", param, ctx)


@click.command()
@click.argument("key")
@click.option("--name", help="In words. [default: KEY]")
@click.option("--unit", help="What an amount is counted in, such as CNY or node.")
@click.option("--weight", type=SHARE, help="Points for one unit (and day).")
@click.option("--half-life", type=int, help="Days after which half is left; 0: it never fades.")
@click.option("--counted", type=click.Choice([one.value for one in Counted]))
@click.option(
    "--from",
    "feed",
    type=click.Choice([one.value for one in Feed]),
    help="`hand`, or read from the ledger: `loans`, `top_ups`.",
)
@click.option("--remove", is_flag=True, help="Only while no line is of it.")
@JSON
@said
def kind(key: str, remove: bool, as_json: bool, **given: Any) -> None:
    """Add a KIND of contribution, or change what is given here."""

    def changed(rules: Rules) -> Rules:
        if remove:
            return book.without_kind(rules, key)
        there = next((one for one in rules.kinds if one.key == key), None)
        made = there or Kind(key=key, name=given["name"] or key, unit=key, weight=1_000_000)
        return book.with_kind(rules, _with(made, given))

    _set(changed, as_json=as_json)


def _with(made: Kind, given: dict[str, Any]) -> Kind:
    if given["half_life"] is not None:
        made = replace(made, half_life_days=given["half_life"] or None)
    if given["counted"] is not None:
        made = replace(made, counted=Counted(given["counted"]))
    if given["feed"] is not None:
        made = replace(made, feed=Feed(given["feed"]))
    plainly = {name: given[name] for name in ("name", "unit", "weight") if given[name] is not None}
    return replace(made, **plainly)


@click.command()
@click.option("--shape", type=click.Choice([one.value for one in Shape]))
@click.option("--base", type=int, help="Shares of who brought nothing.")
@click.option("--scale", type=SHARE, help="Shares for one point, or for a root of one.")
@click.option("--cap", type=SHARE, help="Points above which nothing more counts, for `capped`.")
@click.option("--least", type=int, help="The fewest shares of a group.")
@click.option("--most", type=int, help="The most shares of a group.")
@click.option("--no-shares", is_flag=True, help="Shares are not set; the QoS below may be.")
@click.option("--tier", "tiers", type=_TierType(), multiple=True, help="QoS from points on.")
@click.option("--no-tiers", is_flag=True, help="No QoS is given or taken.")
@click.option("--leave", multiple=True, help="A group that keeps what it has; all of them, anew.")
@click.option("--leave-none", is_flag=True, help="No group is left alone.")
@click.option("--automatic/--proposed", default=None, help="What becomes of the night's change.")
@JSON
@said
def formula(as_json: bool, **given: Any) -> None:
    """Print the rules, or change what is given here."""
    if all(value in (None, False, ()) for name, value in given.items() if name != "automatic") and (
        given["automatic"] is None
    ):
        with database(read_only=True) as begin, begin() as session:
            _put(rows.version(session), as_json=as_json)
        return
    _set(lambda rules: _with_formula(rules, given), as_json=as_json)


def _with_formula(rules: Rules, given: dict[str, Any]) -> Rules:
    parts = {
        name: given[name]
        for name in ("base", "scale", "cap", "least", "most")
        if given[name] is not None
    }
    if given["shape"] is not None:
        parts["shape"] = Shape(given["shape"])
    if parts:
        rules = replace(rules, formula=replace(rules.formula or Formula(), **parts))
    if given["no_shares"]:
        rules = replace(rules, formula=None)
    if given["tiers"] or given["no_tiers"]:
        rules = replace(rules, tiers=tuple(sorted(given["tiers"], key=lambda one: one.points)))
    if given["leave"] or given["leave_none"]:
        rules = replace(rules, left_alone=tuple(sorted(set(given["leave"]))))
    if given["automatic"] is not None:
        rules = replace(rules, automatic=given["automatic"])
    return rules


def _set(changed: Callable[[Rules], Rules], *, as_json: bool) -> None:
    with database() as begin:
        with begin() as session:
            held = rows.version(session)
        rules = changed(held.rules if held else Rules())
        expected = held.number if held else None
        book.set_rules(rules, expected=expected, begin=begin, now=now())
        with begin() as session:
            _put(rows.version(session), as_json=as_json)


def _put(held: Version | None, *, as_json: bool) -> None:
    if held is None:
        return put(None, ["No rules yet: add kinds, then a formula."], as_json=as_json)
    facts = {"version": held.number, "at": iso(held.at), "by": held.by}
    put(facts | {"rules": codec.dump(held.rules)}, _lines(held), as_json=as_json)
    return None


def _lines(held: Version) -> list[str]:
    rules = held.rules
    cells = [
        [
            one.key,
            one.name,
            one.unit,
            plain(one.weight),
            str(one.half_life_days or "-"),
            one.counted.value,
            one.feed.value,
        ]
        for one in rules.kinds
    ]
    head = ["kind", "name", "unit", ">points", ">half-life", "counted", "from"]
    lines = [f"Version {held.number}, set by {held.by or 'host'}.", *table(head, cells), ""]
    lines.append(_formula_line(rules.formula))
    lines += [f"From {plain(one.points)} points on: QoS {one.qos}." for one in rules.tiers]
    if rules.left_alone:
        lines.append(f"Left alone: {', '.join(rules.left_alone)}.")
    night = "applied" if rules.automatic else "proposed"
    return [*lines, f"The night's change is {night}."]


def _formula_line(formula: Formula | None) -> str:
    if formula is None:
        return "Shares are not set."
    points = {
        Shape.LINEAR: "points",
        Shape.SQUARE_ROOT: "root of points",
        Shape.CAPPED: f"points up to {plain(formula.cap or 0)}",
    }[formula.shape]
    scale = plain(formula.scale)
    return (
        f"Shares = {formula.base} + {scale} x {points},"
        f" at least {formula.least}, at most {formula.most}."
    )
