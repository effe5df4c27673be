"""`sluice notebook`: applications as their page and the API have them, for scripts on the host."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from flask import g

from gateway.cli.common import database, said, settings
from gateway.cli.output import JSON, put, table
from gateway.core.access import Viewer
from gateway.errors import NotFound
from gateway.services.submit import InvalidAsk
from gateway.store import people
from gateway.store.uow import Begin
from gateway.web.app import create_app
from gateway.web.messages import shown
from gateway.web.views import api_apps

BY = click.option("--by", "login", required=True, help="The person (login) who does it.")
ID = click.argument("number", metavar="ID", type=click.IntRange(min=1))
_PROXIED = {"sluice.proxied": True}  # addresses are told as nginx serves them


@click.group()
def notebook() -> None:
    """Notebooks and other applications: list, start, share, extend, stop."""


@notebook.command("list")
@BY
@JSON
@said
def list_(login: str, as_json: bool) -> None:
    """Print the person's open ones, and those that they were named for."""
    with _as(login):
        found = api_apps.listed()
    rows = [_cells(one) for one in (*found["own"], *found["shared"])]
    head = (">id", "application", "owner", "state", ">GPUs", "ends", "address")
    put(found, table(head, rows), as_json=as_json)


@notebook.command()
@ID
@BY
@JSON
@said
def show(number: int, login: str, as_json: bool) -> None:
    """Print one."""
    with _as(login):
        found = api_apps.told(number)
    put(found, [f"{name}: {'-' if v is None else v}" for name, v in found.items()], as_json=as_json)


@notebook.command()
@click.argument("application", default="notebook")
@click.option("--group")
@click.option("--partition")
@click.option("--gpu-type", "gpu_type")
@click.option("--cards", help="GPUs.")
@click.option("--hours", help="The time limit: 8, 0.5 or 12:00:00.")
@click.option("--environment", help="A name of the list of environments.")
@click.option("--set", "values", multiple=True, metavar="NAME=VALUE", help="A field of its own.")
@click.option("--key", help="Sent twice with the same one, it is started once.")
@BY
@JSON
@said
def start(application: str, login: str, key: str | None, as_json: bool, **given: Any) -> None:
    """Start one. What is not said is the person's default."""
    values = dict(one.partition("=")[::2] for one in given.pop("values"))
    body = {name: value for name, value in given.items() if value is not None}
    with _as(login):
        try:
            found = api_apps.started(body | {"application": application, "values": values}, key)
        except InvalidAsk as invalid:
            told = "; ".join(f"{one.field}: {shown(one).text}" for one in invalid.problems)
            raise click.ClickException(told) from invalid
    put(found, [f"{found['id']}: {found['state']}"], as_json=as_json)


@notebook.command()
@ID
@BY
@JSON
@said
def stop(number: int, login: str, as_json: bool) -> None:
    """End it, or take it out of the queue."""
    _act(login, number, "stop", as_json=as_json)


@notebook.command()
@ID
@click.option("--hours", type=float, required=True, help="How much more than its limit now.")
@BY
@JSON
@said
def extend(number: int, hours: float, login: str, as_json: bool) -> None:
    """Give it more time; the price is held in addition."""
    with _as(login):
        limit = int(api_apps.told(number)["time_limit_minutes"])
    _act(login, number, "extend", {"minutes": limit + round(hours * 60)}, as_json=as_json)


@notebook.command()
@ID
@click.argument("person")
@BY
@JSON
@said
def share(number: int, person: str, login: str, as_json: bool) -> None:
    """Let PERSON (login) open it."""
    _act(login, number, "share", {"login": person}, as_json=as_json)


@notebook.command()
@ID
@click.argument("person")
@BY
@JSON
@said
def unshare(number: int, person: str, login: str, as_json: bool) -> None:
    """Take it back."""
    _act(login, number, "unshare", {"login": person}, as_json=as_json)


@notebook.command("open")
@ID
@BY
@JSON
@said
def open_(number: int, login: str, as_json: bool) -> None:
    """Print the address at which the person opens it in a browser. Exit 1 while it is not ready."""
    with _as(login):
        found = api_apps.told(number)
    if not found["url"]:
        raise click.ClickException(f"It cannot be opened now: {found['state']}.")
    address = f"http://{settings().listen}{found['url']}"
    put({"id": number, "url": address}, [address], as_json=as_json)


def _act(
    login: str, number: int, action: str, body: dict[str, Any] | None = None, *, as_json: bool
) -> None:
    with _as(login):
        api_apps.do(number, action, body or {})
        found = api_apps.told(number)
    put(found, [f"{number}: {found['state']}"], as_json=as_json)


def _cells(found: dict[str, Any]) -> tuple[str, ...]:
    ends = found["ends_at"] or "-"
    return (
        str(found["id"]),
        found["application"],
        found["owner"],
        found["state"],
        str(found["gpus"]),
        ends,
        found["url"] or "-",
    )


@contextmanager
def _as(login: str) -> Iterator[None]:
    """Inside, the functions of the API speak for this person."""
    with database() as begin:
        who = _viewer(begin, login)
        app = create_app(settings(), begin=begin)
        with app.test_request_context(environ_overrides=_PROXIED):
            g.viewer = who
            yield


def _viewer(begin: Begin, login: str) -> Viewer:
    with begin() as session:
        person = people.by_login(session, login)
        if person is None or person.disabled_at is not None:
            raise NotFound(f"no person {login}")
        member = people.memberships(session, person.unix_user)
    return Viewer(
        person_id=person.id,
        session_id=0,
        login=person.login,
        unix_user=person.unix_user,
        display_name=person.display_name,
        role=person.role,
        groups=member.groups,
        leads=member.leads,
    )
