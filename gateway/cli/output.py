"""What the commands about money print: tables for people, one JSON value for programs."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from decimal import Decimal, InvalidOperation
from typing import Any

import click

from gateway.cli.common import settings
from gateway.core.credits import MILLION, format_credits
from gateway.core.months import month_bounds
from gateway.store.queries.people import groups as known_groups
from gateway.store.uow import Begin

JSON = click.option("--json", "as_json", is_flag=True, help="For programs.")
# An amount may begin with a minus: it is then no option.
SIGNED = {"ignore_unknown_options": True}
FORCE = click.option("--force", is_flag=True, help="Also for a group that Slurm does not know.")


class Moment(click.ParamType[Any]):
    """`2026-11-30`, `2026-11-30T14:00` or with a zone; without one, in the site's."""

    name = "ISO"

    def convert(self, value: Any, param: Any, ctx: Any) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no date or time such as 2026-11-30T14:00.", param, ctx)
        return found if found.tzinfo else found.replace(tzinfo=settings().timezone)


class Month(click.ParamType[Any]):
    """`2026-11`."""

    name = "MONTH"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        try:
            since, _ = month_bounds(str(value), settings().timezone)
        except ValueError:
            self.fail(f"{value!r} is no month such as 2026-11.", param, ctx)
        return since.astimezone(settings().timezone).strftime("%Y-%m")


class Share(click.ParamType[Any]):
    """A decimal, in millionths: `0.5`."""

    name = "NUMBER"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, int):
            return value
        try:
            millionths = Decimal(value) * MILLION
        except InvalidOperation:
            self.fail(f"{value!r} is no number such as 0.5.", param, ctx)
        if not millionths.is_finite() or millionths != millionths.to_integral_value():
            self.fail(f"{value!r} has more than six decimals.", param, ctx)
        return int(millionths)


MOMENT, MONTH, SHARE = Moment(), Month(), Share()


def put(value: object, lines: Sequence[str], *, as_json: bool) -> None:
    """The value for programs, or the lines for people."""
    click.echo(json.dumps(value, ensure_ascii=False) if as_json else "\n".join(lines))


def plain(amount: int) -> str:
    """`1234.50`: as programs, and our own commands, read it."""
    return format_credits(amount).replace(",", "")


def amounts(**given: int | None) -> dict[str, Any]:
    """Each amount as a decimal in a string, and whole: `total`, `total_millionths`."""
    found: dict[str, Any] = {}
    for name, amount in given.items():
        found[name] = None if amount is None else plain(amount)
        found[f"{name}_millionths"] = amount
    return found


def iso(at: datetime | None) -> str | None:
    return at.astimezone(UTC).isoformat() if at else None


def local(at: datetime | None, zone: tzinfo) -> str:
    """For a table, in the site's zone."""
    return at.astimezone(zone).strftime("%Y-%m-%d %H:%M") if at else "-"


def card_hours(card_seconds: int) -> str:
    """`9.83`; what is charged is counted in whole seconds."""
    return f"{Decimal(card_seconds) / 3600:,.2f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side. A head that begins with `>` is for figures, set to the right."""
    right = [name.startswith(">") for name in head]
    lines = [[name.removeprefix(">") for name in head], *(_words(row) for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    return [
        "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]


def require_group(begin: Begin, group: str, *, force: bool) -> None:
    """A typing error must not open an account: the group must be one that Slurm knows, as far
    as the portal has read any."""
    if force:
        return
    with begin() as session:
        known = known_groups(session)
    if known and group not in known:
        raise click.ClickException(
            f"Slurm knows no group {group!r}. There are: {', '.join(known)}. --force overrides."
        )


def _words(row: Sequence[str]) -> list[str]:
    """One line each: names and notes are other people's text."""
    return ["".join(c if c.isprintable() else " " for c in str(cell)) for cell in row]
