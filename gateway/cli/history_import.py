"""`sluice history import`: what a cluster ran before there was a portal."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from gateway.cli.common import database, now, said, settings
from gateway.cli.history_sets import Options, import_columns, zone_named
from gateway.cli.output import local
from gateway.services.import_feed import Source, feed, rarely_collect
from gateway.services.import_history import ImportReport, import_history
from gateway.store import prices

_EVERY_SECONDS = 2.0


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--format", "kind", type=click.Choice(["sacct", "sacct-json", "csv", "swf"]), required=True
)
@click.option("--cluster", help="Store all rows under this name, whatever the file says.")
@click.option("--timezone", "zone", help="Of times without one. [default: the site's]")
@click.option("--delimiter", help="What stands between two columns, where it is a rare one.")
@click.option("--name", help="csv, swf: the set's name. [default: the file's]")
@click.option(
    "--mapping",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="csv, swf: a TOML file that says which column is what.",
)
@click.option(
    "--dry-run", is_flag=True, help="csv, swf: say what each column is taken for, store nothing."
)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@said
def import_file(file: str, kind: str, **options: Any) -> None:
    """Import FILE (also compressed by gzip, or - for standard input).

    sacct: as `sacct -P` wrote it, with its header; sacct-json: as `sacct --json` did. Their jobs
    become jobs of the portal, and are charged. csv and swf (Standard Workload Format): histories of
    other sites or of earlier years, for statistics alone; they charge nothing and are a set with a
    name: `sluice history sets`.

    Nothing is dropped, and importing twice changes nothing. Exit 1 when the file ends in the middle
    (its whole rows are imported) or the count of rows does not tie. Rows held for review fail
    nothing.
    """
    given = Options(**options)
    if kind in {"csv", "swf"}:
        import_columns(file, kind, given)
    else:
        _import_jobs(file, kind, given)


def _import_jobs(file: str, kind: str, given: Options) -> None:
    if given.name or given.mapping or given.dry_run:
        raise click.UsageError("--name, --mapping and --dry-run are for csv and swf.")
    found, moment = settings(), now()
    source = Source(
        path=file,
        zone=zone_named(given.zone) if given.zone else found.timezone.key,
        home=found.cluster_name,
        cluster=given.cluster,
        delimiter=given.delimiter,
        now=moment,
        kind=kind,
    )
    rarely_collect()
    with database(make=True) as begin:
        with begin() as session:
            price_list = prices.load(session)
        if price_list.terms:
            source = replace(source, needs=("QOS",))
        report = import_history(
            feed(source),
            begin=begin,
            now=moment,
            told=_progress(),
            any_cluster=given.cluster is not None,
        )
    facts = asdict(report) | {"ties": report.ties}
    since = price_list.begins
    charged = local(since, found.timezone) if since else None
    click.echo(json.dumps(facts) if given.as_json else _sentence(report, charged))
    if not report.ties or report.cut:
        sys.exit(1)


def _progress() -> Callable[[ImportReport], None]:
    began = last = time.monotonic()

    def told(report: ImportReport) -> None:
        nonlocal last
        at = time.monotonic()
        if at - last >= _EVERY_SECONDS:
            last = at
            rows = report.stored + report.steps + report.held
            click.echo(f"{rows:,} rows, {rows / (at - began):,.0f} a second", err=True)

    return told


def _sentence(report: ImportReport, charged_since: str | None) -> str:
    lines = [
        f"{report.records:,} rows in the file: {report.stored:,} stored, {report.steps:,} steps "
        f"left out, {report.held:,} held for review.",
        f"{report.changed:,} jobs and runs of the database are new or changed, stored as those of "
        f"the cluster {', '.join(report.clusters) or '–'}.",
    ]
    if charged_since:
        lines.append(f"Runs that started since {charged_since} are charged by the worker.")
    if report.held:
        lines.append(
            f"Rows that could not be understood are kept with their text ({report.newly_held:,} of "
            "them new); an operator sees them on the page Admin. They charge nothing."
        )
    if report.cut:
        lines.append(f"The end is missing: {report.cut}. What is whole was imported.")
    if not report.ties:
        lines.append("The counts do not tie: rows were lost on the way. Tell the makers of Sluice.")
    return "\n".join(lines)
