"""`sluice contribution run` and `runs`: shares brought to Slurm, and what earlier runs did."""

import click

from gateway.brokerclient.client import SocketBroker
from gateway.cli.common import database, now, said, settings
from gateway.cli.output import JSON, iso, local, put, table
from gateway.services import contribution as contributions
from gateway.services import policy_apply
from gateway.store import contribution as rows
from gateway.store.contribution import Run
from gateway.store.queries import policy_changes
from gateway.store.uow import Begin


@click.command()
@click.option("--propose", is_flag=True, help="An administrator has to approve it in the portal.")
@click.option("--key", help="The same key runs it once. [default: this moment]")
@JSON
@said
def run(propose: bool, key: str | None, as_json: bool) -> None:
    """Compute shares from what was brought, and apply what differs."""
    found, moment = settings(), now()
    broker = SocketBroker(found.broker_socket, timeout_seconds=found.broker_timeout_seconds)
    with database() as begin:
        done = contributions.compute(
            f"host:{key or moment.isoformat()}",
            second_approval=propose or found.policy_second_approval,
            viewer=None,
            begin=begin,
            now=moment,
            zone=found.timezone,
        )
        if done.change_id is not None:
            policy_apply.apply(done.change_id, viewer=None, begin=begin, broker=broker, now=moment)
        state = _state(begin, done.change_id)
    facts = {"run": done.id, "groups": done.groups, "differing": done.differing}
    facts |= {"change": done.change_id, "state": state}  # type: ignore[dict-item]
    put(facts, [_said(done, state)], as_json=as_json)


@click.command()
@JSON
@said
def runs(as_json: bool) -> None:
    """Print the last runs, the newest first, with the change that each proposed."""
    zone = settings().timezone
    with database(read_only=True) as begin:
        with begin() as session:
            found = rows.runs(session)
        states = [_state(begin, one.change_id) for one in found]
    cells = [
        [
            str(one.id),
            local(one.at, zone),
            one.key.partition(":")[0],
            str(one.version),
            str(one.groups),
            str(one.differing),
            str(one.change_id or "-"),
            state or one.error_code or "",
        ]
        for one, state in zip(found, states, strict=True)
    ]
    facts = [
        {
            "run": one.id,
            "at": iso(one.at),
            "done_at": iso(one.done_at),
            "day": one.day.isoformat(),
            "key": one.key,
            "version": one.version,
            "groups": one.groups,
            "differing": one.differing,
            "change": one.change_id,
            "state": state,
            "code": one.error_code,
            "by": one.by,
        }
        for one, state in zip(found, states, strict=True)
    ]
    head = [">run", "at", "", ">rules", ">groups", ">differing", ">change", "state"]
    put(facts, table(head, cells), as_json=as_json)


def _state(begin: Begin, change_id: int | None) -> str | None:
    if change_id is None:
        return None
    with begin() as session:
        row = policy_changes.change(session, change_id)
    return row.state.value if row else None


def _said(done: Run, state: str | None) -> str:
    if done.change_id is None:
        return f"Nothing differs for {done.groups} groups: nothing is written."
    return f"Change {done.change_id}: {done.differing} of {done.groups} groups differ; {state}."
