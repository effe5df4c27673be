"""`sluice usage`: GPU-hours and charges of a period, from the columnar history."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import click

from gateway.cli.common import now, said, settings
from gateway.cli.output import JSON, MOMENT, amounts, card_hours, iso, plain, put, table
from gateway.cli.past import history_in_step
from gateway.core.usage_figures import By, Use, facts, ways
from gateway.core.wait_figures import Dimension, Question
from gateway.services.usage_history import past_use

_FILTERS = (
    Dimension.GROUP,
    Dimension.USER,
    Dimension.GPU_TYPE,
    Dimension.GPU_CLASS,
    Dimension.PARTITION,
    Dimension.QOS,
    Dimension.TEMPLATE,
    Dimension.STATE,
    Dimension.CLUSTER,
    Dimension.SOURCE,
)


def _filters(command: Any) -> Any:
    for one in reversed(_FILTERS):
        name = one.value.replace("_", "-")
        option = click.option(
            f"--{name}", one.value, multiple=True, metavar="NAME", help="Only these; '' is unknown."
        )
        command = option(command)
    return command


@click.command()
@click.option(
    "--by",
    "by",
    type=click.Choice([one.value for one in By]),
    multiple=True,
    help="Once or twice. [default: group]",
)
@click.option("--from", "since", type=MOMENT, help="From this moment or day on.")
@click.option("--to", "until", type=MOMENT, help="Until before it.")
@_filters
@JSON
@said
def usage(
    *,
    by: tuple[str, ...],
    since: datetime | None,
    until: datetime | None,
    as_json: bool,
    **only: tuple[str, ...],
) -> None:
    """GPU-hours and charges by group, person, GPU type, month and more.

    Of a run over the edge of the period the part inside counts; its charge counts whole where it
    ended, refunds not taken off. Needs no Slurm, and of imported sets no database either.
    """
    try:
        along = ways(by)
    except ValueError as error:
        raise click.UsageError("--by: one or two different ones.") from error
    found = settings()
    question = Question(
        now=now(),
        since=since,
        until=until,
        only={Dimension(name): values for name, values in only.items() if values},
        zone=found.timezone.key,
    )
    with past_use(history_in_step(found)) as past:
        shown, whole = past.use_and_total(question, along)
    rows, total = shown.rows, whole or Use()
    put(_facts(question, along, rows, total), _lines(along, rows, total), as_json=as_json)


def _facts(question: Question, by: Sequence[By], rows: Sequence[Use], total: Use) -> dict[str, Any]:
    return {
        "since": iso(question.since),
        "until": iso(question.until),
        "zone": question.zone,
        "by": [one.value for one in by],
        "rows": [
            dict(zip((one.value for one in by), row.keys, strict=True)) | _figures(row)
            for row in rows
        ],
        "total": _figures(total),
    }


def _figures(row: Use) -> dict[str, Any]:
    return {**facts(row), **amounts(charged=row.charge)}


def _lines(by: Sequence[By], rows: Sequence[Use], total: Use) -> list[str]:
    if not rows:
        return ["No run held anything in this period."]
    head = (*(one.value for one in by), ">GPU-hours", ">runs", ">people", ">charged")
    return table(
        head,
        [(*row.keys, *_cells(row)) for row in (*rows, _whole(by, total))],
    )


def _whole(by: Sequence[By], total: Use) -> Use:
    return replace(total, keys=("all", *("" for _ in by[1:])))


def _cells(row: Use) -> tuple[str, ...]:
    charged = "-" if row.charge is None else plain(row.charge)
    return card_hours(row.gpu_seconds), f"{row.runs:,}", f"{row.people:,}", charged
