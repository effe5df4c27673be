"""`sluice volume`: groups' storage, as the host's administrator or, by `--by`, as a person."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import click

from gateway.brokerclient.client import SocketBroker
from gateway.cli import volume_money
from gateway.cli.common import database, now, said, settings, viewer_of
from gateway.cli.output import JSON, put
from gateway.cli.volume_lines import areas_value, request_lines, shown_lines, size, volume_table
from gateway.core.access import Viewer
from gateway.core.volumes import parse_size
from gateway.errors import GatewayError
from gateway.services import volume_entries as entries
from gateway.services import volume_pages as pages
from gateway.services import volume_read, volume_rights
from gateway.services import volume_requests as requests
from gateway.services.volume_entries import Wish
from gateway.store.uow import Begin
from gateway.store.volume_work import RequestRow

BY = click.option("--by", "login", default=None, help="Act as this person (login).")


@click.group()
def volume() -> None:
    """Volumes: groups' folders with limits; NAME may be AREA/NAME."""


@volume.command("list")
@click.option("--look", is_flag=True, help="Read the file systems first, by the broker.")
@BY
@JSON
@said
def list_(look: bool, login: str | None, as_json: bool) -> None:
    """Print volumes, areas, and what lies in them that is no volume."""
    with _as(login, read_only=not look) as (begin, who):
        code = _look(begin) if look else None
        if code is not None:
            click.echo(f"The file systems could not be read ({code}): as it was.", err=True)
        with begin() as session:
            found = pages.listed(session, who, now=now(), zone=settings().timezone)
            manages = volume_rights.manages(who)
            areas = areas_value(session) if manages else None
    value: dict[str, Any] = {"volumes": [pages.as_fields(one) for one in found]}
    lines = volume_table(found)
    if areas is not None:
        value |= areas.value
        lines += ["", *areas.lines]
    put(value, lines, as_json=as_json)


@volume.command()
@click.argument("name")
@BY
@JSON
@said
def show(name: str, login: str | None, as_json: bool) -> None:
    """Print one volume: figures, forecast, requests, charges."""
    with _as(login, read_only=True) as (begin, who):
        page = _page(begin, name, who)
    value = pages.as_fields(page.picture) | {
        "requests": [pages.request_fields(one) for one in page.requests],
        "charges": [volume_money.charge_fields(one) for one in page.charges],
        "per_gb_month_millionths": page.price,
    }
    put(value, shown_lines(page), as_json=as_json)


@volume.command()
@click.argument("name")
@click.option("--csv", "as_csv", is_flag=True, help="As CSV.")
@BY
@JSON
@said
def usage(name: str, as_csv: bool, login: str | None, as_json: bool) -> None:
    """Print what was used on each of the last 180 days."""
    with _as(login, read_only=True) as (begin, who):
        days = _page(begin, name, who).days
    rows = [pages.day_fields(one) for one in days]
    lines = [f"{one.day}  {size(one.used):>10}  of {size(one.limit)}" for one in days]
    if as_csv:
        lines = ["day,used_bytes,limit_bytes"]
        lines += [",".join("" if v is None else str(v) for v in row.values()) for row in rows]
    put({"days": rows}, lines or ["Nothing was read yet."], as_json=as_json)


@volume.command()
@click.argument("area")
@click.argument("name")
@click.argument("group")
@click.option("--limit", "limit", default=None, help="Such as 2TB. Default: none.")
@click.option("--unix-group", default="", help="Where it is not called as Slurm's group.")
@click.option("--existing", is_flag=True, help="A folder that is there becomes the volume.")
@BY
@JSON
@said
def create(
    *,
    area: str,
    name: str,
    group: str,
    limit: str | None,
    unix_group: str,
    existing: bool,
    login: str | None,
    as_json: bool,
) -> None:
    """Make the volume NAME of GROUP in AREA."""
    with _as(login) as (begin, who):
        _known_areas(begin)
        if existing:
            row = entries.take_in(area, name, group, viewer=who, begin=begin, now=now())
        else:
            wish = Wish(area, name, group, _size(limit), unix_group)
            row = entries.create(wish, viewer=who, begin=begin, broker=_broker(), now=now())
    value = {"id": row.id, "area": area, "name": name, "state": row.state.value, "path": row.path}
    put(value, [f"{area}/{name}: {row.state.value} {row.path}"], as_json=as_json)


@volume.command()
@click.argument("name")
@click.argument("limit", metavar="SIZE|none")
@click.option("--below-use", is_flag=True, help="Even when more is used: writes are refused then.")
@click.option("--why", default="")
@BY
@JSON
@said
def limit(
    *, name: str, limit: str, below_use: bool, why: str, login: str | None, as_json: bool
) -> None:
    """Set a volume's limit now, as an administrator."""
    wanted = None if limit == "none" else parse_size(limit)
    with _as(login) as (begin, who):
        row_id = _id(begin, name, who)
        done = requests.set_limit(
            row_id,
            wanted,
            viewer=who,
            begin=begin,
            broker=_broker(),
            now=now(),
            below_use=below_use,
            text=why,
        )
    _told(done, as_json=as_json)


@volume.command()
@click.argument("name")
@click.argument("size_wanted", metavar="SIZE")
@click.option("--why", default="")
@click.option("--by", "login", required=True, help="Who asks (login).")
@JSON
@said
def request(name: str, size_wanted: str, why: str, login: str, as_json: bool) -> None:
    """Ask for a larger limit."""
    with _as(login) as (begin, who):
        asked = requests.ask(
            _id(begin, name, who), parse_size(size_wanted), why, viewer=who, begin=begin, now=now()
        )
    put({"request": asked}, [f"Request {asked} waits for an answer."], as_json=as_json)


@volume.command()
@click.argument("request_id", type=int)
@click.option("--refuse", is_flag=True, help="Refuse it; --why is needed then.")
@click.option("--why", default="")
@BY
@JSON
@said
def approve(request_id: int, refuse: bool, why: str, login: str | None, as_json: bool) -> None:
    """Agree to a request, write the limit and read it back; or refuse it."""
    with _as(login) as (begin, who):
        if refuse:
            requests.refuse(request_id, why, viewer=who, begin=begin, now=now())
            put({"request": request_id, "state": "refused"}, ["Refused."], as_json=as_json)
            return
        done = requests.agree(request_id, why, viewer=who, begin=begin, broker=_broker(), now=now())
    _told(done, as_json=as_json)


@volume.command()
@click.argument("name")
@JSON
@said
def retire(name: str, as_json: bool) -> None:
    """Show and charge it no more. Its folder stays as it is."""
    with _as(None) as (begin, who):
        entries.retire(_id(begin, name, who), viewer=who, begin=begin, now=now())
    put({"name": name, "state": "retired"}, [f"{name} is retired."], as_json=as_json)


for one in (volume_money.cap, volume_money.price, volume_money.prices):
    volume.add_command(one)


@contextmanager
def _as(login: str | None, *, read_only: bool = False) -> Iterator[tuple[Begin, Viewer | None]]:
    with database(read_only=read_only) as begin:
        yield begin, None if login is None else viewer_of(begin, login)


def _id(begin: Begin, name: str, who: Viewer | None) -> int:
    with begin() as session:
        return volume_rights.by_name(session, name, who).id


def _page(begin: Begin, name: str, who: Viewer | None) -> pages.VolumePage:
    with begin() as session:
        row = volume_rights.by_name(session, name, who)
        return pages.volume(session, row.id, who, now=now(), zone=settings().timezone)


def _size(text: str | None) -> int | None:
    return None if text in {None, "", "none"} else parse_size(str(text))


def _broker() -> SocketBroker:
    found = settings()
    return SocketBroker(found.broker_socket, timeout_seconds=found.broker_timeout_seconds)


def _look(begin: Begin) -> str | None:
    moment: datetime = now()
    zone = settings().timezone
    return volume_read.look(begin=begin, broker=_broker(), now=moment, zone=zone).code


def _known_areas(begin: Begin) -> None:
    """The areas are the broker's; a portal that has never asked asks now."""
    code = _look(begin)
    if code is not None:
        raise GatewayError("the broker does not answer", code=code)


def _told(done: RequestRow, *, as_json: bool) -> None:
    put(pages.request_fields(done), request_lines(done), as_json=as_json)
