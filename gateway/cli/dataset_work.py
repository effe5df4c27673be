"""`sluice dataset verify|request|approve|usage`: what goes on around datasets."""

import secrets
from typing import Any

import click

from gateway.cli.common import database, now, said, settings
from gateway.cli.dataset_facts import broker, viewer_of
from gateway.cli.output import JSON, card_hours, iso, put, table
from gateway.errors import NotFound
from gateway.services import dataset_catalogue as catalogue
from gateway.services import dataset_requests as asked
from gateway.services import dataset_verify as verifying
from gateway.services.site_jobs import Desk
from gateway.services.templates import Catalogue
from gateway.store.dataset_work import RequestRow
from gateway.store.queries.dataset_usage import Usage
from gateway.store.uow import Begin

BY = click.option("--by", "login", required=True, help="The person (login) who does it.")


@click.command()
@click.argument("name")
@click.argument("number", type=int)
@BY
@JSON
@said
def verify(name: str, number: int, login: str, as_json: bool) -> None:
    """Send a job that reads version NUMBER and compares it with its manifest: as the site's service
    person where there is one, else as the person given. `show` tells what it found."""
    with database() as begin:
        who = viewer_of(begin, login)
        job = verifying.start(
            name,
            number,
            viewer=who,
            desk=_desk(begin),
            form_key=secrets.token_hex(16),
            now=now(),
        )
    put(
        {"site_job": job},
        [f"Verification of {name}@{number} is sent: job {job} of the portal."],
        as_json=as_json,
    )


@click.command()
@click.option("--by", "login", default=None, help="Ask as this person; without, print them.")
@click.option("--name", default=None, help="Access to this entry; without: a new dataset.")
@click.option("--group", default=None, help="For this group; without: for the person alone.")
@click.option("--text", default="")
@JSON
@said
def request(
    login: str | None, name: str | None, group: str | None, text: str, as_json: bool
) -> None:
    """Print what is asked for, or ask for access or for a new dataset."""
    if login is None:
        with database(read_only=True) as begin, begin() as session:
            found, _ = asked.mine(session, None)
        head = ("id", "kind", "dataset", "who", "group", "text")
        put(
            {"requests": [_request(one) for one in found]},
            table(head, [_request_cells(one) for one in found]),
            as_json=as_json,
        )
        return
    with database() as begin:
        who = viewer_of(begin, login)
        if name is None:
            made = asked.ask_new(text, viewer=who, begin=begin, now=now())
        else:
            made = asked.ask_access(
                name, group=group, text=text, viewer=who, begin=begin, now=now()
            )
    put({"request": made}, [f"Request {made} is kept."], as_json=as_json)


@click.command()
@click.argument("request_id", type=int)
@click.option("--refuse", is_flag=True, help="Say no.")
@click.option("--answer", default="")
@JSON
@said
def approve(request_id: int, refuse: bool, answer: str, as_json: bool) -> None:
    """Answer a request. Access that is granted takes effect at once."""
    with database() as begin:
        asked.answer(
            request_id, granted=not refuse, text=answer, viewer=None, begin=begin, now=now()
        )
    state = "refused" if refuse else "granted"
    put(
        {"request": request_id, "state": state},
        [f"Request {request_id} is {state}."],
        as_json=as_json,
    )


@click.command()
@click.argument("name", required=False)
@JSON
@said
def usage(name: str | None, as_json: bool) -> None:
    """Print jobs, people and card-hours of each dataset and version."""
    with database(read_only=True) as begin, begin() as session:
        found = [one for one in catalogue.cards(session, None) if name in {None, one.row.name}]
    if name is not None and not found:
        raise NotFound(f"no dataset {name}")
    used = [(one.row.name, row) for one in found for row in one.usage]
    head = ("name", ">version", ">jobs", ">people", ">card-hours", "last")
    rows = [_usage(*one) for one in used]
    put({"usage": rows}, table(head, [_usage_cells(*one) for one in used]), as_json=as_json)


def _desk(begin: Begin) -> Desk:
    found = settings()
    return Desk(
        begin=begin,
        read=begin,
        broker=broker(),
        catalogue=Catalogue.load(
            found.template_folders, kit=found.node_kit, local=found.node_local
        ),
        cluster=found.cluster_name,
        zone=found.timezone,
        service_login=found.service_login,
    )


def _request(one: RequestRow) -> dict[str, Any]:
    return {
        "id": one.id,
        "kind": one.kind,
        "dataset": one.name,
        "login": one.login,
        "group": one.group,
        "text": one.text,
        "at": iso(one.at),
    }


def _request_cells(one: RequestRow) -> list[str]:
    who = [str(one.id), one.kind, one.name or "-", one.login, one.group or "-"]
    return [*who, one.text[:60]]


def _usage(name: str, used: Usage) -> dict[str, Any]:
    return {
        "name": name,
        "version": used.version,
        "jobs": used.jobs,
        "people": used.people,
        "card_seconds": used.card_seconds,
        "last": iso(used.last_at),
    }


def _usage_cells(name: str, used: Usage) -> list[str]:
    numbers = [str(used.version), str(used.jobs), str(used.people)]
    return [name, *numbers, card_hours(used.card_seconds), iso(used.last_at) or "-"]
