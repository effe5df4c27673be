"""`sluice history`: import what a cluster ran before there was a portal, and keep the columns."""

import json
from dataclasses import asdict
from datetime import tzinfo

import click

from gateway.cli.common import database, now, said, settings
from gateway.cli.history_import import import_file
from gateway.cli.output import local
from gateway.services import keep_history


@click.group()
def history() -> None:
    """The job history: import it from a file, look at its columnar copy, make that anew."""


history.add_command(import_file)


@history.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@said
def info(as_json: bool) -> None:
    """Print what the columnar history holds, and how far it is behind the database."""
    found = settings()
    with database(read_only=True) as begin:
        known = keep_history.info(found.home / "history", read=begin)
    click.echo(json.dumps(_facts(known)) if as_json else _told(known, found.timezone))


@history.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@said
def rebuild(as_json: bool) -> None:
    """Make the columnar history anew from the database. Readers have the old one until then."""
    found = settings()
    folder = found.home / "history"
    with database() as begin, database(read_only=True) as read:
        keep_history.rebuild(folder, begin=begin, read=read, now=now())
        known = keep_history.info(folder, read=read)
    click.echo(json.dumps(_facts(known)) if as_json else _told(known, found.timezone))


def _facts(known: keep_history.Known) -> dict[str, object]:
    made_at = known.made_at.isoformat() if known.made_at else None
    return asdict(known) | {"made_at": made_at}


def _told(known: keep_history.Known, zone: tzinfo) -> str:
    if known.made_at is None:
        return "There is no columnar history: the worker makes it, or `sluice history rebuild`."
    behind = f", {known.to_make:,} of them to be made again" if known.to_make else ""
    return (
        f"{known.runs:,} runs in {known.blocks:,} blocks{behind}, {known.bytes / 2**20:,.1f} MB, "
        f"as of {local(known.made_at, zone)}"
    )
