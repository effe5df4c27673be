"""`sluice recipe`: the Library's recipes as its pages and the API have them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import click
from flask import g
from werkzeug.datastructures import MultiDict

from gateway.cli.common import database, said, settings, viewer_of
from gateway.cli.output import JSON, put, table
from gateway.core.credits import format_credits
from gateway.services.recipe_file import LARGEST
from gateway.services.submit import InvalidAsk
from gateway.web import apijson
from gateway.web.app import create_app
from gateway.web.messages import shown
from gateway.web.views import api_recipes

BY = click.option("--by", "login", required=True, help="The person (login) who does it.")
ID = click.argument("number", metavar="ID", type=click.IntRange(1, 2**31 - 1))
KEY = click.option("--key", help="Sent twice with the same one, it is sent once.")


@click.group()
def recipe() -> None:
    """Recipes: runs that worked, found, cloned, and checked by doing them again."""


def _filters(command: Any) -> Any:
    names = ("template", "model", "gpus", "gpu-type", "cost", "dataset", "tag", "order", "page")
    for name in reversed(names):
        command = click.option(f"--{name}", name.replace("-", "_"))(command)
    return command


@recipe.command("list")
@_filters
@BY
@JSON
@said
def list_(login: str, as_json: bool, **given: str | None) -> None:
    """What the person may see; --gpus and --cost are the most."""
    _list(login, "", as_json=as_json, given=given)


@recipe.command()
@click.argument("words", nargs=-1, required=True)
@_filters
@BY
@JSON
@said
def search(words: tuple[str, ...], login: str, as_json: bool, **given: str | None) -> None:
    """Those in which all WORDS (or their beginnings) are found."""
    _list(login, " ".join(words), as_json=as_json, given=given)


@recipe.command()
@ID
@BY
@JSON
@said
def show(number: int, login: str, as_json: bool) -> None:
    """All of one."""
    with _as(login):
        found = api_recipes.told(number)
    put(found, _lines(found), as_json=as_json)


@click.argument("job", type=click.IntRange(1, 2**31 - 1))
@click.option("--title", required=True)
@click.option("--summary", default="")
@click.option("--model", default="")
@click.option("--tags", default="")
@click.option("--visibility", type=click.Choice(["me", "group", "site"]), default="site")
@click.option("--group", default="")
@click.option("--checkpoints", default="", help="A folder that others may read.")
@click.option("--code", is_flag=True, help="With the files of code in its working folder.")
@BY
@JSON
@said
def _publish(job: int, login: str, as_json: bool, **given: str | bool) -> None:
    """Make a recipe of JOB (the portal's number, as in its address), which ended well."""
    with _as(login):
        found = api_recipes.published(job, dict(given))
    put(found, _lines(found), as_json=as_json)


recipe.command("publish")(_publish)
recipe.command("create")(_publish)


@recipe.command("code")
@ID
@click.option("--to", "folder", help="A new folder of the person's, which it is put into.")
@BY
@JSON
@said
def code(number: int, folder: str | None, login: str, as_json: bool) -> None:
    """The code that goes with it; with --to, in a folder of one's own."""
    with _as(login):
        if folder is not None:
            found = api_recipes.laid(number, folder)
            put(found, [found["folder"]], as_json=as_json)
            return
        found = api_recipes.code(number)
    put(found, sorted(found["files"]), as_json=as_json)


@recipe.command()
@ID
@click.option("--submit", is_flag=True, help="Send it at once.")
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Another value.")
@KEY
@BY
@JSON
@said
def clone(number: int, changes: tuple[str, ...], key: str | None, login: str, **how: bool) -> None:
    """Print the form that it fills and what has moved; with --submit, send it."""
    _clone(number, changes, key, login, is_check=False, **how)


@recipe.command()
@ID
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Another value.")
@KEY
@BY
@JSON
@said
def rerun(
    number: int, changes: tuple[str, ...], key: str | None, login: str, as_json: bool
) -> None:
    """Send the same job again as the person; its figures are compared when it is over."""
    _clone(number, changes, key, login, submit=True, is_check=True, as_json=as_json)


@recipe.command()
@click.argument("left", type=click.IntRange(1, 2**31 - 1))
@click.argument("right", type=click.IntRange(1, 2**31 - 1))
@BY
@JSON
@said
def compare(left: int, right: int, login: str, as_json: bool) -> None:
    """What two do not have in common."""
    with _as(login):
        found = api_recipes.compared(left, right)
    rows = [(f"{d['part']}.{d['name']}", d["left"], d["right"]) for d in found["differences"]]
    put(found, table(("part", str(left), str(right)), rows), as_json=as_json)


@recipe.command("export")
@ID
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False))
@BY
@JSON
@said
def export_(number: int, output: Path | None, login: str, as_json: bool) -> None:  # noqa: ARG001  # it is JSON anyhow
    """Print it as one file, or write that."""
    with _as(login):
        text = api_recipes.exported(number)
    if output is None:
        click.echo(text, nl=False)
        return
    output.write_text(text, encoding="utf-8")


@recipe.command("import")
@click.argument("file", type=click.File("rb"))
@BY
@JSON
@said
def import_(file: Any, login: str, as_json: bool) -> None:
    """Take an exported file as from elsewhere; the person alone sees it."""
    with _as(login):
        found = api_recipes.taken(file.read(LARGEST + 1))
    put(found, _lines(found), as_json=as_json)


@recipe.command()
@ID
@BY
@said
def retract(number: int, login: str) -> None:
    """Take one's own back: nobody finds it any more."""
    with _as(login):
        api_recipes.retracted(number)


def _hiding(name: str, text: str) -> None:
    @recipe.command(name, help=text)
    @ID
    @click.option("--why", required=True, help="It stays on record, and its owner reads it.")
    @BY
    @said
    def act(number: int, why: str, login: str) -> None:
        with _as(login):
            api_recipes.hidden(number, why, hide=name == "hide")


_hiding("hide", "Take another's from the Library, as an administrator.")
_hiding("unhide", "Put it there again.")


@contextmanager
def _as(login: str) -> Iterator[None]:
    """Inside the portal as this person."""
    with database() as begin:
        who = viewer_of(begin, login)
        app = create_app(settings(), begin=begin)
        with app.test_request_context("/"):
            g.viewer = who
            yield


def _list(login: str, words: str, *, as_json: bool, given: dict[str, str | None]) -> None:
    args = MultiDict({name: value for name, value in given.items() if value} | {"q": words})
    with _as(login):
        found = api_recipes.listed(args)
    rows = [
        (
            str(one["id"]),
            one["title"],
            one["template"],
            f"{one['receipt']['gpus']} × {one['receipt']['gpu_type'] or '-'}",
            _money(one["receipt"]["cost"]),
            f"{one['reruns']['within_1_percent']}/{one['reruns']['compared']}",
            one["owner"],
        )
        for one in found["recipes"]
    ]
    head = (">id", "title", "template", "cards", ">cost", ">reruns within 1 %", "owner")
    put(found, table(head, rows) if rows else ["There are none."], as_json=as_json)


def _clone(
    number: int,
    changes: tuple[str, ...],
    key: str | None,
    login: str,
    *,
    submit: bool,
    is_check: bool,
    as_json: bool,
) -> None:
    with _as(login):
        found = api_recipes.cloned(number)
        for name, _, value in (one.partition("=") for one in changes):
            place = (
                found["ask"]
                if name in found["ask"] and name != "values"
                else found["ask"]["values"]
            )
            place[name] = value
        if submit:
            try:
                ask = apijson.ask(found["ask"])
                made = api_recipes.sent(number, ask, key or str(uuid4()), is_check=is_check)
            except InvalidAsk as invalid:
                told = "; ".join(f"{one.field}: {shown(one).text}" for one in invalid.problems)
                raise click.ClickException(told) from invalid
            found |= {"submission": made}
    ask = found["ask"]
    lines = [f"{name}: {value}" for name, value in ask.items() if name != "values" and value]
    lines += [f"  {name}: {value}" for name, value in ask["values"].items() if value]
    lines += [f"(!) {text}" for text in found["texts"]]
    if submit:
        lines.append(f"submission {made['id']}: {made['state']}")
    put(found, lines, as_json=as_json)


def _lines(found: dict[str, Any]) -> list[str]:
    receipt = found["receipt"]
    lines = [
        f"{found['id']}  {found['title']}",
        f"of {found['owner']}, template {found['template']}, SHA-256 {found['fingerprint']}",
        "measured elsewhere" if found["elsewhere"] else f"measured on {receipt['cluster']}",
    ]
    lines += [f"  {name}: {value}" for name, value in receipt.items() if value not in (None, {})]
    runs = found["reruns"]
    return [*lines, f"reruns: {runs['within_1_percent']} of {runs['compared']} within 1 %"]


def _money(amount: int | None) -> str:
    return "-" if amount is None else format_credits(amount)
