"""`sluice environment`: which environments there are, which work on which card, and who may have
them."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from gateway.brokerclient.client import SocketBroker
from gateway.cli.common import database, now, said, sentence, settings, viewer_of
from gateway.cli.output import JSON, local, put, table
from gateway.core.environments import EnvironmentKind
from gateway.errors import Refused
from gateway.services import environment_checks as checks
from gateway.services import environment_publish as publishing
from gateway.services import environment_tell as tell
from gateway.services.environment_checks import Cell
from gateway.services.environments import Environment, load_environments
from gateway.services.site_jobs import Desk
from gateway.services.submit import InvalidAsk
from gateway.services.templates import Catalogue
from gateway.store.uow import Begin

BY = click.option("--by", "login", required=True, help="The person (login) who does it.")
GPU = click.option("--gpu", "gpu_type", default="", help="The type of card; none: without one.")
GROUP = click.option("--group", default="", help="Of this group alone; by default the site's.")
KINDS = click.Choice([kind.value for kind in EnvironmentKind if kind is not EnvironmentKind.NONE])


@click.group()
def environment() -> None:
    """Environments: what there is, what works where, and who may have it."""


@environment.command("list")
@BY
@JSON
@said
def list_(login: str, as_json: bool) -> None:
    """What this person may choose."""
    with database(read_only=True) as begin:
        found = checks.matrix(viewer_of(begin, login), begin=begin, file=_file())
    rows = [
        (
            one.entry.environment.name,
            one.entry.environment.kind.value,
            one.entry.environment.group or ("site" if one.entry.row else "file"),
            " ".join(f"{n} {v}" for n, v in one.entry.environment.facts.versions.items()),
        )
        for one in found.lines
    ]
    head = ("name", "kind", "whose", "versions")
    put(tell.matrix_facts(found), table(head, rows), as_json=as_json)


@environment.command()
@BY
@JSON
@said
def matrix(login: str, as_json: bool) -> None:
    """Which environment works on which type of card."""
    with database(read_only=True) as begin:
        found = checks.matrix(viewer_of(begin, login), begin=begin, file=_file())
    head = ("environment", *(one or "no card" for one in found.gpu_types))
    rows = [(one.entry.environment.name, *map(_cell, one.cells)) for one in found.lines]
    put(tell.matrix_facts(found), table(head, rows), as_json=as_json)


@environment.command()
@click.argument("name")
@BY
@JSON
@said
def show(name: str, login: str, as_json: bool) -> None:
    """One of them, retired ones too: what it sets up, what is known, its newest checks."""
    with database(read_only=True) as begin:
        facts = _facts(begin, name, login)
    lines = [f"{key}: {_word(value)}" for key, value in facts.items() if key != "checks" and value]
    for one in facts["checks"]:
        lines.append(f"on {one['gpu_type'] or 'no card'}: {one['state']} {one['code'] or ''}")
        newest = one["newest"] or {"steps": []}
        lines += [
            f"  {'ok' if step['ok'] else 'FAILED'} {step['name']} {step['text']}".rstrip()
            for step in newest["steps"]
        ]
    put(facts, lines, as_json=as_json)


@environment.command()
@click.argument("name")
@BY
@GROUP
@click.option("--kind", type=KINDS, required=True)
@click.option("--title", required=True)
@click.option("--title-zh", default="", help="In Chinese; by default as in English.")
@click.option("--path", default="", help="Of a venv, a Conda installation, or a prefix.")
@click.option("--conda-env", default="")
@click.option("--module", "modules", multiple=True)
@click.option("--module-path", default="")
@click.option("--image", default="")
@click.option("--bind", "binds", multiple=True)
@JSON
@said
def create(
    *, name: str, login: str, group: str, title: str, title_zh: str, as_json: bool, **keys: Any
) -> None:
    """Publish NAME for the site or a group."""
    given = {key: list(one) if isinstance(one, tuple) else one for key, one in keys.items() if one}
    written = {"name": name, "title": {"en": title, "zh_Hans": title_zh or title}, **given}
    _publish(written, login=login, group=group, as_json=as_json)


@environment.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@BY
@GROUP
@JSON
@said
def import_(file: Path, login: str, group: str, as_json: bool) -> None:
    """Publish what FILE, an exported environment, has."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Refused("environment_file") from error
    written = publishing.imported(document)
    _publish(written, login=login, group=group, as_json=as_json)


@environment.command()
@click.argument("name")
@BY
@said
def export(name: str, login: str) -> None:
    """Print NAME as one JSON document, which `import` takes."""
    with database(read_only=True) as begin:
        entry = publishing.entry(name, viewer_of(begin, login), begin=begin, file=_file())
    click.echo(json.dumps(publishing.export(entry.environment), ensure_ascii=False, indent=2))


@environment.command()
@click.argument("name")
@BY
@JSON
@said
def retire(name: str, login: str, as_json: bool) -> None:
    """Offer NAME no more. Old jobs and recipes still tell it, and its name stays taken."""
    with database() as begin:
        publishing.retire(name, viewer=viewer_of(begin, login), begin=begin, now=now())
        facts = _facts(begin, name, login)
    put(facts, [f"{name} is not offered any more."], as_json=as_json)


@environment.command()
@click.argument("name")
@GPU
@BY
@JSON
@said
def check(name: str, gpu_type: str, login: str, as_json: bool) -> None:
    """Try NAME on a type of card, as a job of the portal. The worker takes its result."""
    with database() as begin:
        who = viewer_of(begin, login)
        entry = publishing.entry(name, who, begin=begin, file=_file())
        try:
            checks.start(
                entry, gpu_type, viewer=who, desk=_desk(begin), form_key=str(uuid4()), now=now()
            )
        except InvalidAsk as invalid:
            told = [Refused(one.code, field=one.field, **one.facts) for one in invalid.problems]
            raise click.ClickException("\n".join(sentence(one) for one in told)) from invalid
        facts = _facts(begin, name, login)
    put(facts, ["The check is on its way: `sluice environment matrix`."], as_json=as_json)


@environment.command()
@click.argument("name")
@GPU
@BY
@JSON
@said
def adopt(name: str, gpu_type: str, login: str, as_json: bool) -> None:
    """Let what the newest check has found be what is known of NAME."""
    with database() as begin:
        who = viewer_of(begin, login)
        publishing.adopt(name, gpu_type, viewer=who, begin=begin, file=_file(), now=now())
        facts = _facts(begin, name, login)
    put(facts, [f"{key} {one}" for key, one in facts["facts"].items()], as_json=as_json)


def _publish(written: dict[str, object], *, login: str, group: str, as_json: bool) -> None:
    with database() as begin:
        made = publishing.publish(
            written,
            group=group,
            viewer=viewer_of(begin, login),
            begin=begin,
            file=_file(),
            now=now(),
        )
        facts = _facts(begin, made.name, login)
    put(facts, [f"{made.name} is published and offered."], as_json=as_json)


def _facts(begin: Begin, name: str, login: str) -> dict[str, Any]:
    entry = publishing.entry(name, viewer_of(begin, login), begin=begin, file=_file())
    return tell.entry_facts(entry, checks.cells(entry, begin=begin))


def _file() -> tuple[Environment, ...]:
    return load_environments(settings().environments_file)


def _desk(begin: Begin) -> Desk:
    found = settings()
    return Desk(
        begin=begin,
        read=begin,
        broker=SocketBroker(found.broker_socket, found.broker_timeout_seconds),
        catalogue=Catalogue.load(found.template_folders, kit=found.node_kit),
        cluster=found.cluster_name,
        zone=found.timezone,
        service_login=found.service_login,
    )


def _cell(cell: Cell) -> str:
    at = f" {local(cell.check.at, settings().timezone)}" if cell.check else ""
    return f"{tell.state_of(cell)}{at}"


def _word(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
