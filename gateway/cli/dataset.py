"""`sluice dataset`: the catalogue of datasets, as the host's administrator."""

from pathlib import Path
from typing import Any

import click

from gateway.cli import dataset_work
from gateway.cli.common import database, now, said
from gateway.cli.dataset_facts import (
    broker,
    card_cells,
    card_facts,
    page_facts,
    page_lines,
    viewer_of,
)
from gateway.cli.output import JSON, put, table
from gateway.core.datasets import VISIBILITY
from gateway.services import dataset_catalogue as catalogue
from gateway.services import dataset_entries as entries
from gateway.services import dataset_versions as versions
from gateway.services.dataset_entries import Entry
from gateway.services.dataset_versions import NewVersion

BY = click.option("--by", "login", required=True, help="The person (login) who does it.")


@click.group()
def dataset() -> None:
    """Datasets: entries, versions, manifests, who may use them, what used them."""


@dataset.command("list")
@click.option("--search", default="", help="Only those whose facts hold these words.")
@JSON
@said
def list_(search: str, as_json: bool) -> None:
    """Print the entries with their newest published version."""
    with database(read_only=True) as begin, begin() as session:
        found = catalogue.cards(session, None, words=search)
    head = ("name", "version", "licence", ">size", ">files", ">MB/s", ">jobs", "who", "health")
    rows = [card_cells(one) for one in found]
    put({"datasets": [card_facts(one) for one in found]}, table(head, rows), as_json=as_json)


@dataset.command()
@click.argument("name")
@JSON
@said
def show(name: str, as_json: bool) -> None:
    """Print one entry: versions, lineage, readers, verifications."""
    with database(read_only=True) as begin, begin() as session:
        found = catalogue.page(session, name, None)
    put(page_facts(found), page_lines(found), as_json=as_json)


@dataset.command()
@click.argument("name")
@BY
@click.option("--title", required=True)
@click.option("--licence", required=True, help="Such as CC-BY-4.0.")
@click.option("--description", default="")
@click.option("--visibility", type=click.Choice(VISIBILITY), default="everyone", show_default=True)
@click.option("--group", default=None, help="A group's own: its leaders publish it.")
@JSON
@said
def create(name: str, login: str, as_json: bool, **facts: Any) -> None:
    """Make an entry, still without a version."""
    with database() as begin:
        owner = viewer_of(begin, login).person_id
        entries.create(name, Entry(**facts), owner_id=owner, viewer=None, begin=begin, now=now())
    put({"name": name}, [f"{name} is made; add a version."], as_json=as_json)


@dataset.command()
@click.argument("name")
@click.argument("path")
@BY
@click.option("--manifest-path", default="", help="Where nodes see it. Default: PATH.manifest.")
@click.option("--note", default="")
@click.option("--parent", default="", help="The version (name@2) that it was made from.")
@click.option("--made-by", default="", help="The recipe or job that made it from that.")
@JSON
@said
def version(name: str, login: str, as_json: bool, **facts: Any) -> None:
    """Add a draft of the next version: the folder PATH, as the nodes see it."""
    with database() as begin:
        number = versions.add(
            name,
            NewVersion(**facts),
            created_by=viewer_of(begin, login).person_id,
            viewer=None,
            begin=begin,
            now=now(),
        )
    lines = [f"{name}@{number} is a draft; publish it when its manifest is there."]
    put({"name": name, "version": number, "state": "draft"}, lines, as_json=as_json)


@dataset.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@JSON
@said
def manifest(file: Path, as_json: bool) -> None:
    """Check a manifest and print its hash and sums. The node kit makes one:
    python3 -m sluice_train.data manifest FOLDER."""
    found = versions.totals_of(_text(file))
    facts = {"sha256": found.sha256, "bytes": found.bytes, "files": found.files}
    lines = [f"{found.sha256}  {found.files} files, {found.bytes} bytes"]
    put(facts, lines, as_json=as_json)


@dataset.command()
@click.argument("name")
@click.argument("number", type=int)
@click.option(
    "--manifest",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The manifest as this host sees it; needed unless it was requested with one.",
)
@JSON
@said
def publish(name: str, number: int, file: Path | None, as_json: bool) -> None:
    """Publish version NUMBER: from then on forms offer it."""
    totals = versions.totals_of(_text(file)) if file else None
    with database() as begin:
        state = versions.publish(
            name, number, viewer=None, begin=begin, now=now(), broker=broker(), totals=totals
        )
    facts = {"name": name, "version": number, "state": state}
    put(facts, [f"{name}@{number} is {state}."], as_json=as_json)


@dataset.command()
@click.argument("name")
@click.argument("number", type=int)
@click.option("--why", required=True)
@JSON
@said
def withdraw(name: str, number: int, why: str, as_json: bool) -> None:
    """Offer version NUMBER no more. What used it keeps its record."""
    with database() as begin:
        versions.withdraw(name, number, why, viewer=None, begin=begin, now=now())
    facts = {"name": name, "version": number, "state": "withdrawn"}
    put(facts, [f"{name}@{number} is withdrawn."], as_json=as_json)


@dataset.command()
@click.argument("name")
@click.argument("who")
@click.option("--no", "no_more", is_flag=True, help="No more.")
@JSON
@said
def share(name: str, who: str, no_more: bool, as_json: bool) -> None:
    """Let WHO (group:nlp or person:nlp-1) use an entry that is not everyone's."""
    with database() as begin:
        entries.set_reader(name, who, allowed=not no_more, viewer=None, begin=begin)
    words = "may not use" if no_more else "may use"
    put(
        {"name": name, "who": who, "allowed": not no_more},
        [f"{who} {words} {name}."],
        as_json=as_json,
    )


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{file} is no UTF-8.") from error


for one in (dataset_work.verify, dataset_work.request, dataset_work.approve, dataset_work.usage):
    dataset.add_command(one)
