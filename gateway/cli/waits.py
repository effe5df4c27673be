"""`sluice waits`: how long jobs waited and ran, from the columnar history."""

from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import click

from gateway.cli import waits_causes, waits_json, waits_table
from gateway.cli.common import now, said, settings
from gateway.cli.history_sets import zone_named
from gateway.cli.output import JSON, put
from gateway.cli.past import history_in_step
from gateway.core.wait_figures import Dimension, Figures, Question, Wait
from gateway.core.wait_shapes import LOG_BOUNDS, XDMOD_BOUNDS
from gateway.services.waits import PastWaits, past_waits

_FILTERS = tuple(
    one
    for one in Dimension
    if not one.value.endswith(("_day", "_month")) and one is not Dimension.HOUR_OF_WEEK
)
_BOUNDS = {"log": LOG_BOUNDS, "xdmod": XDMOD_BOUNDS}


def _filters(command: Any) -> Any:
    for one in reversed(_FILTERS):
        option = click.option(
            f"--{one.value.replace('_', '-')}",
            one.value,
            multiple=True,
            metavar="NAME",
            help="Only these; '' is unknown.",
        )
        command = option(command)
    return command


@click.command()
@click.option("--by", type=click.Choice([one.value for one in Dimension]), help="A row for each.")
@click.option("--from", "since", metavar="TIME", help="Submitted at or after it.")
@click.option("--to", "until", metavar="TIME", help="Submitted before it.")
@_filters
@click.option("--min-gpus", "least_gpus", type=click.IntRange(min=0), default=0)
@click.option(
    "--wait",
    type=click.Choice([one.value for one in Wait]),
    default=Wait.ELIGIBLE.value,
    show_default=True,
    help="What the wait counts from.",
)
@click.option("--timezone", "zone", help="Of days, hours and times. [default: the site's]")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many rows.")
@click.option("--causes", is_flag=True, help="Where the wait went instead of how long it was.")
@click.option("--histogram", type=click.Choice(list(_BOUNDS)), help="Also how many took how long.")
@JSON
@said
def waits(**given: Any) -> None:
    """How long jobs waited and ran: medians and percentiles, of which how many never started or
    still wait, and by what; or where their wait went.

    Needs no Slurm and no worker: what the database has and the history does not is put there first.
    """
    if given["causes"] and given["histogram"]:
        raise click.UsageError("--causes has no --histogram.")
    found = settings()
    folder = history_in_step(found)
    zone = ZoneInfo(zone_named(given["zone"])) if given["zone"] else found.timezone
    question = _question(given, zone)
    with past_waits(folder) as past:
        if given["causes"]:
            _tell_causes(past, question, given)
        else:
            _tell(past, question, zone, given)


def _tell_causes(past: PastWaits, question: Question, given: dict[str, Any]) -> None:
    along = Dimension(given["by"]) if given["by"] else None
    whole = next(iter(past.causes(question, None)), None)
    rows = past.causes(question, along)[: given["limit"]] if along else []
    facts = waits_causes.facts(question, whole, along, rows)
    put(facts, waits_causes.lines(whole, rows), as_json=given["as_json"])


def _tell(past: PastWaits, question: Question, zone: tzinfo, given: dict[str, Any]) -> None:
    dimension = Dimension(given["by"]) if given["by"] else None
    rows: Sequence[tuple[str, Figures]] = ()
    if dimension is None:
        whole = past.figures(question)
    else:
        whole, rows = past.all_and_by(question, dimension)
        rows = rows[: given["limit"]]
    bars = None
    if given["histogram"]:
        bars = past.distribution(question, _BOUNDS[given["histogram"]]).bars
    if given["as_json"]:
        facts = waits_json.facts(question, whole, past.span(question), zone)
        if dimension is not None:
            facts |= {"by": dimension.value, "rows": waits_json.rows(dimension.value, rows)}
        if bars is not None:
            facts["histogram"] = waits_json.bars(bars)
        put(facts, (), as_json=True)
        return
    name = dimension.value if dimension else ""
    lines = waits_table.lines(question, name, rows, whole)
    put(None, [*lines, *(["", *waits_table.bar_lines(bars)] if bars else ())], as_json=False)


def _question(given: dict[str, Any], zone: tzinfo) -> Question:
    return Question(
        now=now(),
        since=_moment(given["since"], zone, "--from"),
        until=_moment(given["until"], zone, "--to"),
        only={one: given[one.value] for one in _FILTERS if given[one.value]},
        least_gpus=given["least_gpus"],
        wait=Wait(given["wait"]),
        zone=str(zone),
    )


def _moment(text: str | None, zone: tzinfo, option: str) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.UsageError(
            f"{option}: {text!r} is no day or time: 2026-11-30T14:00."
        ) from error
    return found if found.tzinfo else found.replace(tzinfo=zone)
