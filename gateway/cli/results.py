"""`sluice results`: what jobs reported, and jobs side by side."""

from collections.abc import Sequence
from datetime import timedelta

import click

from gateway.cli.common import database, now, said, viewer_of
from gateway.cli.output import JSON, plain, put, table
from gateway.errors import NotFound
from gateway.services import compare as service
from gateway.services.compare import Compared
from gateway.store.queries import job as jobs

BY = click.option("--by", "login", required=True, help="The person (login) who asks.")
CLUSTER = click.option("--cluster", help="Of several clusters, the jobs' own.")


@click.group()
def results() -> None:
    """What jobs reported under names of their own, and jobs side by side."""


@results.command()
@click.argument("job", type=click.IntRange(min=1))
@BY
@CLUSTER
@JSON
@said
def show(job: int, login: str, cluster: str | None, as_json: bool) -> None:
    """The last, lowest and highest value of each metric of JOB (Slurm's number)."""
    [one] = _compared([job], login, cluster)
    rows = [
        (
            result.name,
            *map(_number, (result.last, result.low, result.high)),
            "" if result.step is None else str(result.step),
            str(result.count),
            str(result.odd),
        )
        for result in one.results
    ]
    head = ("metric", ">last", ">lowest", ">highest", ">step", ">values", ">not finite")
    lines = table(head, rows) if rows else ["This job has reported nothing."]
    put(service.facts(one), lines, as_json=as_json)


@results.command()
@click.argument("job", nargs=-1, required=True, type=click.IntRange(min=1))
@BY
@CLUSTER
@JSON
@said
def compare(job: tuple[int, ...], login: str, cluster: str | None, as_json: bool) -> None:
    """Up to eight JOBs (Slurm's numbers): what differs, what they reached, waited and cost."""
    if len(set(job)) > service.MOST_JOBS:
        raise click.UsageError(f"At most {service.MOST_JOBS} jobs.")
    found = _compared(job, login, cluster)
    put(service.all_facts(found), _lines(found), as_json=as_json)


def _compared(numbers: Sequence[int], login: str, cluster: str | None) -> list[Compared]:
    with database(read_only=True) as begin:
        viewer = viewer_of(begin, login)
        with begin() as session:
            ids = []
            for number in numbers:
                found = jobs.job_by_slurm_id(session, number, cluster=cluster)
                if found is None:
                    raise NotFound(f"no job {number}")
                ids.append(found.row.id)
            return service.compare(session, ids, viewer=viewer, now=now())


def _lines(found: Sequence[Compared]) -> list[str]:
    rows: list[tuple[str, ...]] = []
    for name in service.names(found):
        given = [next((r for r in one.results if r.name == name), None) for one in found]
        won = service.winners(given)
        rows.append(
            (
                name,
                *(
                    ("* " if n in won else "") + _number(result.last if result else None)
                    for n, result in enumerate(given)
                ),
            )
        )
    rows.append(("queue wait s", *(_seconds(one.wait) for one in found)))
    rows.append(("run s", *(_seconds(one.run_time) for one in found)))
    rows.append(("cost", *("-" if one.cost is None else plain(one.cost) for one in found)))
    rows += [
        (name, *("-" if value is None else value for value in values))
        for name, values in service.differing(found).items()
    ]
    return table(("", *(f">{one.job.slurm_id}" for one in found)), rows)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.5g}"


def _seconds(value: timedelta | None) -> str:
    return "-" if value is None else str(int(value.total_seconds()))
