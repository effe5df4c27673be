"""`sluice snapshot`: what people added to environments and saved."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import click

from gateway.brokerclient.client import SocketBroker
from gateway.cli.common import database, now, said, settings, viewer_of
from gateway.cli.output import JSON, local, put, table
from gateway.core.access import Viewer
from gateway.core.snapshots import Shared, difference, form_name
from gateway.services import snapshots
from gateway.services.environments import load_environments, offered
from gateway.store.snapshots import SnapshotRow
from gateway.store.uow import Begin

BY = click.option("--by", "login", required=True, help="The person (login) who does it.")


@click.group()
def snapshot() -> None:
    """Snapshots of what people installed above an environment."""


@snapshot.command("list")
@click.argument("words", nargs=-1)
@BY
@click.option("--look/--no-look", default=True, help="Read their store first, by the broker.")
@JSON
@said
def list_command(words: tuple[str, ...], login: str, look: bool, as_json: bool) -> None:
    """What a person may choose; WORDS are looked for in names, notes, packages, bases and jobs."""
    with _as(login, read_only=not look) as (begin, who):
        code = _look(begin, who) if look else None
        with begin() as session:
            rows = snapshots.listed(session, who, text=" ".join(words))
            known = offered(who, session, load_environments(settings().environments_file))
            doubts = snapshots.doubts_of(session, rows, known)
    if code is not None:
        click.echo(f"The store of {login} could not be read ({code}): this is as it was.", err=True)
    zone = settings().timezone
    head = ("environment", "name", "owner", "base", ">MB", "saved", "shared with")
    lines = table(
        head,
        [
            (
                form_name(row.digest),
                row.name,
                row.login,
                row.document.base.name + (" (!)" if doubts[row.id] else ""),
                f"{row.bytes / 1e6:,.1f}",
                local(row.saved_at, zone),
                row.group or row.shared.value,
            )
            for row in rows
        ],
    )
    value = [snapshots.as_fields(row, doubts[row.id]) for row in rows]
    put(value, lines if rows else ["There are none."], as_json=as_json)


@snapshot.command("show")
@click.argument("name")
@BY
@JSON
@said
def show(name: str, login: str, as_json: bool) -> None:
    """All of one: NAME is its id, or what that begins with (six characters or more)."""
    with _as(login, read_only=True) as (begin, who), begin() as session:
        row = snapshots.get(session, who, name)
        known = offered(who, session, load_environments(settings().environments_file))
        doubts = snapshots.doubts_of(session, [row], known)[row.id]
    value = snapshots.as_fields(row, doubts, whole=True)
    put(value, _lines(row, [one.value for one in doubts]), as_json=as_json)


@snapshot.command("share")
@click.argument("name")
@click.option("--group", help="With this group of theirs.")
@click.option("--site", is_flag=True, help="With everybody, once an administrator agrees.")
@BY
@JSON
@said
def share(name: str, group: str | None, site: bool, login: str, as_json: bool) -> None:
    """Let others choose it."""
    if (group is None) is not site:
        raise click.UsageError("Say --group NAME or --site.")
    _shared(name, login, group or Shared.SITE.value, as_json=as_json)


@snapshot.command("unshare")
@click.argument("name")
@BY
@JSON
@said
def unshare(name: str, login: str, as_json: bool) -> None:
    """Take it back: jobs that have it already go on."""
    _shared(name, login, "", as_json=as_json)


@snapshot.command("agree")
@click.argument("name")
@click.option("--refuse", is_flag=True, help="Not, or not any more.")
@BY
@JSON
@said
def agree(name: str, refuse: bool, login: str, as_json: bool) -> None:
    """An administrator's word on what is asked to be the site's."""
    with _as(login) as (begin, who):
        snapshots.agree(who, name, yes=not refuse, begin=begin)
    shared = Shared.NONE if refuse else Shared.SITE
    put({"id": name, "shared": shared.value}, [f"{name}: {shared.value}"], as_json=as_json)


@snapshot.command("rename")
@click.argument("name")
@click.argument("title")
@BY
@said
def rename(name: str, title: str, login: str) -> None:
    """Give it another name."""
    with _as(login) as (begin, who):
        snapshots.rename(who, name, title=title, begin=begin)


@snapshot.command("delete")
@click.argument("name")
@BY
@said
def delete(name: str, login: str) -> None:
    """Offer it to nobody any more; its files go with the owner's next job that uses a snapshot."""
    with _as(login) as (begin, who):
        snapshots.delete(who, name, begin=begin, now=now())


@snapshot.command("diff")
@click.argument("before")
@click.argument("after")
@BY
@JSON
@said
def diff(before: str, after: str, login: str, as_json: bool) -> None:
    """What differs in their packages, those of the bases too."""
    with _as(login, read_only=True) as (begin, who), begin() as session:
        old = snapshots.get(session, who, before)
        new = snapshots.get(session, who, after)
    found = difference(old.document.packages, new.document.packages)
    lines = [f"  {name} {was} -> {now_is}" for name, was, now_is in found.changed]
    lines += [f"+ {one}" for one in found.added] + [f"- {one}" for one in found.removed]
    put(asdict(found), lines or ["The packages are the same."], as_json=as_json)


@contextmanager
def _as(login: str, *, read_only: bool = False) -> Iterator[tuple[Begin, Viewer]]:
    with database(read_only=read_only) as begin:
        yield begin, viewer_of(begin, login)


def _look(begin: Begin, who: Viewer) -> str | None:
    found = settings()
    broker = SocketBroker(found.broker_socket, timeout_seconds=found.broker_timeout_seconds)
    looked = snapshots.refresh(
        who, begin=begin, broker=broker, now=now(), area=found.snapshot_area, force=True
    )
    return looked.code


def _shared(name: str, login: str, to: str, *, as_json: bool) -> None:
    with _as(login) as (begin, who):
        shared = snapshots.share(who, name, to=to, begin=begin)
    value: dict[str, Any] = {"id": name, "shared": shared.value}
    put(value, [f"{name}: {shared.value}"], as_json=as_json)


def _lines(row: SnapshotRow, doubts: list[str]) -> list[str]:
    document = row.document
    facts = [
        f"{form_name(row.digest)}  {row.name}",
        f"of {row.login}, saved {local(row.saved_at, settings().timezone)} by job {document.job}",
        f"above {document.base.name} (Python {document.base.python}, {document.base.path})",
        f"{row.bytes / 1e6:,.1f} MB in {len(document.layers)} layers, shared: {row.shared.value}",
        *doubts,
        "",
    ]
    return [*facts, *document.added]
