"""`sluice history import`: what a cluster ran before there was a portal."""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from zoneinfo import ZoneInfo

import click

from gateway.cli.common import database, now, said, settings
from gateway.cli.output import local
from gateway.services.import_feed import Source, feed, rarely_collect
from gateway.services.import_history import ImportReport, import_history
from gateway.store import prices

_EVERY_SECONDS = 2.0


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--format", "kind", type=click.Choice(["sacct"]), required=True)
@click.option("--cluster", help="Store all rows under this name, whatever the file says.")
@click.option("--timezone", "zone", help="Of times without one. [default: the site's]")
@click.option("--delimiter", help="What stands between two columns, where it is a rare one.")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@said
def import_file(  # noqa: PLR0917  # click gives them by name
    file: str,
    kind: str,
    cluster: str | None,
    zone: str | None,
    delimiter: str | None,
    as_json: bool,
) -> None:
    """Import FILE (also compressed by gzip, or - for standard input), as `sacct -P` wrote it
    with its header. Nothing is dropped, and importing twice changes nothing.

    Exit 1 when the count of rows does not tie. Rows held for review fail nothing.
    """
    assert kind == "sacct"
    found, moment = settings(), now()
    source = Source(
        path=file,
        zone=_zone(zone) if zone else found.timezone.key,
        home=found.cluster_name,
        cluster=cluster,
        delimiter=delimiter,
        now=moment,
    )
    rarely_collect()
    with database() as begin:
        with begin() as session:
            price_list = prices.load(session)
        if price_list.terms:
            source = replace(source, needs=("QOS",))
        report = import_history(
            feed(source),
            begin=begin,
            now=moment,
            told=_progress(),
            any_cluster=cluster is not None,
        )
    facts = asdict(report) | {"ties": report.ties}
    since = price_list.begins
    charged = local(since, found.timezone) if since else None
    click.echo(json.dumps(facts) if as_json else _sentence(report, charged))
    if not report.ties:
        sys.exit(1)


def _zone(name: str) -> str:
    try:
        return ZoneInfo(name).key
    except (KeyError, ValueError, OSError) as error:
        raise click.ClickException(f"{name!r} is no time zone.") from error


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
    if not report.ties:
        lines.append("The counts do not tie: rows were lost on the way. Tell the makers of Sluice.")
    return "\n".join(lines)
