"""`sluice history`: import what a cluster ran before there was a portal, and keep the columns."""

import json
from dataclasses import asdict
from datetime import datetime, tzinfo
from pathlib import Path

import click

from gateway.cli.common import database, has_database, now, said, settings
from gateway.cli.history_import import import_file
from gateway.cli.history_sets import forget_set, list_sets
from gateway.cli.output import JSON, Moment, local
from gateway.cli.past import history_in_step
from gateway.config import Settings
from gateway.history.export import export as export_rows
from gateway.services import history_facts, keep_history


@click.group()
def history() -> None:
    """The job history: import it from a file, look at its columnar copy, make that anew."""


for command in (import_file, list_sets, forget_set):
    history.add_command(command)


@history.command()
@JSON
@said
def info(as_json: bool) -> None:
    """Print what the columnar history holds, and how far it is behind the database."""
    _print(settings(), as_json=as_json)


@history.command()
@JSON
@said
def rebuild(as_json: bool) -> None:
    """Make the columnar history anew from the database. Readers have the old one until then.

    Imported sets are no part of the database, and stay as they are."""
    found = settings()
    with database() as begin, database(read_only=True) as read:
        keep_history.rebuild(found.home / "history", begin=begin, read=read, now=now())
    _print(found, as_json=as_json)


@history.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--from", "since", type=Moment(), help="Submitted then or later.")
@click.option("--to", "until", type=Moment(), help="Submitted before then.")
@JSON
@said
def export(file: Path, since: datetime | None, until: datetime | None, as_json: bool) -> None:
    """Write all rows and columns to FILE as Parquet, with those of imported sets.

    A row is a run, or a job that never started or waits. docs/admin.md names the columns."""
    folder = history_in_step(settings())
    try:
        rows = export_rows(folder, file, since=since, until=until)
    except OSError as error:
        raise click.ClickException(f"{file} cannot be written: {error}") from error
    size = file.stat().st_size
    told = f"{rows:,} rows in {file}, {size / 2**20:,.1f} MB."
    facts = {"file": str(file), "rows": rows, "bytes": size}
    click.echo(json.dumps(facts) if as_json else told)


def _print(found: Settings, *, as_json: bool) -> None:
    folder = found.home / "history"
    if has_database(found):
        with database(read_only=True) as read:
            known = history_facts.known(folder, read=read)
    else:
        known = history_facts.known(folder, read=None)
    click.echo(json.dumps(_facts(known)) if as_json else _told(known, found.timezone))


def _facts(known: history_facts.Known) -> dict[str, object]:
    made_at = known.made_at.isoformat() if known.made_at else None
    sets = [asdict(one) | {"added_at": one.added_at.isoformat()} for one in known.sets]
    return asdict(known) | {"made_at": made_at, "sets": sets}


def _told(known: history_facts.Known, zone: tzinfo) -> str:
    lines = _own(known, zone)
    for one in known.sets:
        lines.append(
            f"Imported set {one.name} ({one.format}): {one.rows:,} rows, {one.held:,} held, "
            f"{local(one.added_at, zone)}."
        )
    return "\n".join(lines)


def _own(known: history_facts.Known, zone: tzinfo) -> list[str]:
    """What is there of the portal's own jobs."""
    if known.made_at is not None:
        behind = f", {known.to_make:,} of them to be made again" if known.to_make else ""
        return [
            f"{known.runs:,} runs, {known.never_started:,} jobs that never started, "
            f"{known.waiting:,} that wait.",
            f"{known.blocks:,} blocks{behind}, in {known.files:,} files of "
            f"{known.bytes / 2**20:,.1f} MB, as of {local(known.made_at, zone)}.",
        ]
    if not known.to_make:
        return ["Of the portal's own jobs there is none."]
    return [
        f"There is no columnar history of the portal's own jobs yet, {known.to_make:,} blocks of "
        "them are to be made: the worker does it, or the first question (`sluice waits`), or "
        "`sluice history rebuild`."
    ]
