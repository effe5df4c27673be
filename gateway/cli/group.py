"""`sluice group`: who is in a group, leads it, and has it as the default."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from gateway.brokerclient.client import SocketBroker
from gateway.cli.common import database, now, said, settings
from gateway.cli.output import JSON, iso, put, require_group, table
from gateway.services import members as acts
from gateway.services.membership import Outcome
from gateway.store.queries import members as reads
from gateway.store.queries.members import MemberLine


@click.group()
def group() -> None:
    """People of groups, as Slurm has them: add, remove, make leaders."""


@group.command()
@click.argument("name")
@JSON
@said
def members(name: str, as_json: bool) -> None:
    """Print the people of a group: role, default group, jobs, and what is not so yet."""
    with database(read_only=True) as begin:
        require_group(begin, name, force=False)
        with begin() as session:
            found = reads.members(session, name)
    head = ("user", "role", "default", ">running", ">waiting", "not yet")
    rows = [_cells(line) for line in found]
    put(
        {"group": name, "members": [_facts(line) for line in found]},
        table(head, rows),
        as_json=as_json,
    )


@group.command()
@click.argument("name")
@click.argument("who")
@JSON
@said
def add(name: str, who: str, as_json: bool) -> None:
    """Add WHO, a Unix account or a login, to the group NAME on every partition."""
    with _acting() as have:
        done = acts.add(name, who, **have)
    _tell(name, done, f"{done.user} is in {name} now.", as_json=as_json)


@group.command()
@click.argument("name")
@click.argument("user")
@click.option("--cancel-waiting", is_flag=True, help="Cancel their jobs that wait.")
@JSON
@said
def remove(name: str, user: str, cancel_waiting: bool, as_json: bool) -> None:
    """Remove USER. Who has jobs is shut out at once, and leaves with the last of them."""
    with _acting() as have:
        done = acts.remove(name, user, cancel_waiting=cancel_waiting, **have)
    _tell(name, done, f"{user} is not in {name} any more.", as_json=as_json)


@group.command()
@click.argument("name")
@click.argument("user")
@click.option("--no", "no_more", is_flag=True, help="Lead it no more.")
@JSON
@said
def lead(name: str, user: str, no_more: bool, as_json: bool) -> None:
    """Make USER a leader of the group NAME."""
    with _acting() as have:
        done = acts.set_leader(name, user, leads=not no_more, **have)
    words = "does not lead" if no_more else "leads"
    _tell(name, done, f"{user} {words} {name} now.", as_json=as_json)


@group.command()
@click.argument("name")
@click.argument("user")
@JSON
@said
def default(name: str, user: str, as_json: bool) -> None:
    """Let jobs of USER that name no group go to the group NAME."""
    with _acting() as have:
        done = acts.set_default(name, user, **have)
    _tell(name, done, f"{name} is the default group of {user} now.", as_json=as_json)


@contextmanager
def _acting() -> Iterator[dict[str, Any]]:
    """What each act needs; nobody's name stands in the history but the host's."""
    found = settings()
    broker = SocketBroker(found.broker_socket, timeout_seconds=found.broker_timeout_seconds)
    with database() as begin:
        yield {"begin": begin, "broker": broker, "now": now()}


def _tell(name: str, done: Outcome, text: str, *, as_json: bool) -> None:
    facts = {"group": name, "user": done.user, "pending": done.pending, "code": done.code}
    facts |= {"cancelled": done.cancelled, "not_cancelled": done.left}
    if done.code == acts.HAS_JOBS:
        text = f"{name} takes no new jobs of {done.user}, who leaves it with the last one."
    elif done.pending:
        text = f"Not yet ({done.code}): the worker goes on until it is so."
    lines = [text]
    if done.cancelled or done.left:
        lines.append(f"Cancelled {done.cancelled} jobs that waited, {done.left} could not be.")
    put(facts, lines, as_json=as_json)


def _cells(line: MemberLine) -> list[str]:
    role = "leader" if line.leads else "member"
    wish = line.wish.wanted.value if line.wish else ""
    return [line.user, role, line.default or "-", str(line.running), str(line.waiting), wish]


def _facts(line: MemberLine) -> dict[str, Any]:
    wish = line.wish
    return {
        "user": line.user,
        "name": line.display_name,
        "role": "leader" if line.leads else "member",
        "default_group": line.default,
        "partitions": list(line.partitions),
        "running": line.running,
        "waiting": line.waiting,
        "wanted": wish.wanted.value if wish else None,
        "wanted_since": iso(wish.at) if wish else None,
        "code": wish.code if wish else None,
    }
