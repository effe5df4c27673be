"""`sluice qos`: policy of QoS and groups as the page has it, and as a file for a site's git."""

import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TextIO
from uuid import uuid4

import click

from gateway.brokerclient.client import SocketBroker
from gateway.cli import qos_lines as lines
from gateway.cli.common import database, now, said, settings
from gateway.cli.output import JSON, MOMENT, put
from gateway.cli.qos_file import FILE, items_of
from gateway.cli.qos_what_if import what_if
from gateway.core.policy_change import ChangeState, Item, Of, Source
from gateway.core.policy_file import dump
from gateway.core.qos import Policy
from gateway.errors import NotFound
from gateway.services import (
    policy_apply,
    policy_changes,
    policy_drift,
    policy_history,
    policy_impact,
)
from gateway.services.policy_present import Present, present
from gateway.store.queries import policy_changes as rows
from gateway.store.uow import Begin

NAME = click.argument("name", metavar="NAME")
YES = click.option("--yes", is_flag=True, help="Do not ask.")
REASON = click.option("--reason", default="", help="Kept with the change, for those who ask why.")
_LAST_VERSION = 2**31 - 1  # that the database can hold
_WELL = frozenset({ChangeState.APPLIED, ChangeState.APPROVED, ChangeState.PROPOSED})


@click.group()
def qos() -> None:
    """QoS and groups' policies: look, compare with a file, apply, undo.

    NAME is that of a QoS, or group:NAME for a group's policy.
    """


qos.add_command(what_if)


@qos.command("list")
@JSON
@said
def list_qos(as_json: bool) -> None:
    """Print a line for each QoS. Retired ones, and what differs from its version, are marked."""
    with database(read_only=True) as begin, begin() as session:
        there = present(session)
        drift = {one.name for one in policy_drift.find(session) if one.of is Of.QOS}
    found = [there.qos[name] for name in sorted(there.qos)]
    groups = {one.name: len(there.groups_with(one.name)) for one in found}
    facts = [
        lines.policy_facts(one)
        | {"retired": one.name in there.retired, "drift": one.name in drift}
        | {"groups": groups[one.name]}
        for one in found
    ]
    words = dict.fromkeys(drift, "drift") | dict.fromkeys(there.retired, "retired")
    put(facts, lines.list_lines(found, groups, words), as_json=as_json)


@qos.command()
@NAME
@JSON
@said
def show(name: str, as_json: bool) -> None:
    """Print what is set, which groups may use it, and its newest version."""
    kind, short = _object(name)
    with database(read_only=True) as begin, begin() as session:
        there = present(session)
        version = rows.newest(session).get((kind, short))
        drift = [one for one in policy_drift.find(session) if (one.of, one.name) == (kind, short)]
    found = _known(there, kind, short)
    groups = [one.name for one in there.groups_with(short)] if kind is Of.QOS else []
    number = version.number if version else None
    facts = lines.policy_facts(found) | {"version": number, "groups": groups}
    text = [f"{kind}:{short}, version {number or '-'}", *lines.policy_lines(found)]
    if groups:
        text.append(f"  groups: {', '.join(groups)}")
    if kind is Of.QOS and short in there.retired:
        text.append("  retired")
    if drift:
        text.append("  Slurm has something else than this version says: see the page of drift.")
    more = {"retired": short in there.retired and kind is Of.QOS, "drift": bool(drift)}
    put(facts | more, text, as_json=as_json)


@qos.command()
@FILE
@JSON
@said
def diff(file: TextIO, as_json: bool) -> None:
    """Print what FILE would change. Exit code 1 when it would change anything, else 0."""
    with database(read_only=True) as begin:
        items = items_of(file, begin)
    put([lines.item_facts(one) for one in items], _or_none(items), as_json=as_json)
    sys.exit(1 if items else 0)


@qos.command()
@FILE
@YES
@click.option("--dry-run", is_flag=True, help="Only print what would change.")
@REASON
@click.option("--starts", type=MOMENT, help="From when on. [default: now]")
@click.option("--ends", type=MOMENT, help="When it goes back by itself. [default: never]")
@JSON
@said
def apply(
    *,
    file: TextIO,
    yes: bool,
    dry_run: bool,
    reason: str,
    starts: datetime | None,
    ends: datetime | None,
    as_json: bool,
) -> None:
    """Make Slurm have what FILE says. QoS and groups that it does not name stay as they are."""
    with database() as begin:
        items = items_of(file, begin)
        if dry_run or not items:
            shown = _shown(items, begin) if items and not as_json else _or_none(items)
            put([lines.item_facts(one) for one in items], shown, as_json=as_json)
            return
        _ask(items, begin, yes=yes, quiet=as_json)
        change_id = policy_changes.propose(
            items,
            viewer=None,
            reason=reason,
            source=Source.FILE,
            second_approval=settings().policy_second_approval,
            key=uuid4().hex,
            begin=begin,
            now=now(),
            starts_at=starts,
            ends_at=ends,
        )
        _apply(change_id, begin, as_json=as_json)


@qos.command()
@NAME
@JSON
@said
def history(name: str, as_json: bool) -> None:
    """Print the versions, the newest first."""
    kind, short = _object(name)
    with database(read_only=True) as begin, begin() as session:
        versions = rows.versions(session, kind, short)
    if not versions:
        raise NotFound(f"no version of {kind}:{short}")
    text = lines.version_lines(versions, settings().timezone)
    put([lines.version_facts(one) for one in versions], text, as_json=as_json)


@qos.command()
@NAME
@click.argument("version", type=click.IntRange(1, _LAST_VERSION))
@YES
@REASON
@JSON
@said
def undo(*, name: str, version: int, yes: bool, reason: str, as_json: bool) -> None:
    """Go back to what VERSION of it says."""
    kind, short = _object(name)
    with database() as begin:
        items = policy_history.undo(kind, short, version, begin=begin)
        _ask(items, begin, yes=yes, quiet=as_json)
        change_id = policy_changes.propose(
            items,
            viewer=None,
            reason=reason,
            source=Source.UNDO,
            second_approval=settings().policy_second_approval,
            key=uuid4().hex,
            begin=begin,
            now=now(),
        )
        _apply(change_id, begin, as_json=as_json)


@qos.command()
@click.option("--groups", "with_groups", is_flag=True, help="Groups' policies too.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path))
@JSON
@said
def export(*, with_groups: bool, output: Path | None, as_json: bool) -> None:
    """Print policy as a file for `diff` and `apply`."""
    with database(read_only=True) as begin, begin() as session:
        there = present(session)
    groups = tuple(there.groups.values()) if with_groups else ()
    text = dump(there.qos.values(), groups)
    if output is not None:
        output.write_text(text, encoding="utf-8")
        return
    found = sorted(there.qos.values(), key=lambda one: one.name)
    facts = {"qos": [lines.policy_facts(one) for one in found]}
    facts["groups"] = [lines.policy_facts(one) for one in sorted(groups, key=lambda one: one.name)]
    put(facts, [text.removesuffix("\n")], as_json=as_json)


def _object(name: str) -> tuple[Of, str]:
    kind, colon, short = name.partition(":")
    if not colon:
        return Of.QOS, name
    if kind not in set(Of):
        raise click.UsageError(f"{name!r} is neither a QoS nor group:NAME.")
    return Of(kind), short


def _known(there: Present, kind: Of, name: str) -> Policy:
    found = there.policy(kind, name)
    if found is None:
        raise NotFound(f"no {kind}:{name}")
    return found


def _or_none(items: Sequence[Item]) -> list[str]:
    return lines.item_lines(items) or ["Slurm has what the file says."]


def _ask(items: Sequence[Item], begin: Begin, *, yes: bool, quiet: bool) -> None:
    if yes:
        return
    if quiet:
        raise click.UsageError("--json asks nothing: add --yes, or --dry-run to look.")
    click.echo("\n".join(_shown(items, begin)))
    click.confirm("Change this in Slurm?", abort=True)


def _apply(change_id: int, begin: Begin, *, as_json: bool) -> None:
    """Exit code 1 where Slurm does not have all of it, though it was due and approved."""
    found = settings()
    broker = SocketBroker(found.broker_socket, timeout_seconds=found.broker_timeout_seconds)
    state = policy_apply.apply(change_id, viewer=None, begin=begin, broker=broker, now=now())
    with begin() as session:
        change = rows.change(session, change_id)
    if change is None:
        raise NotFound(f"no change {change_id}")
    text = lines.change_lines(change)
    if state is ChangeState.PROPOSED:
        text.append("An administrator has to approve it in the portal.")
    elif state is ChangeState.APPROVED:
        text.append("The worker applies it when it is due and Slurm is there.")
    put(lines.change_facts(change), text, as_json=as_json)
    sys.exit(0 if state in _WELL else 1)


def _shown(items: Sequence[Item], begin: Begin) -> list[str]:
    impact = policy_impact.preview(items, read=begin, now=now())
    return [*lines.item_lines(items), *lines.impact_lines(impact)]
