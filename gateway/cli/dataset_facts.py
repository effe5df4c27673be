"""What `sluice dataset` prints of entries and versions, and as whom it acts."""

from typing import Any

from gateway.brokerclient.client import SocketBroker
from gateway.brokerclient.port import Broker
from gateway.cli.common import settings
from gateway.cli.output import iso, table
from gateway.core.access import Viewer
from gateway.errors import NotFound
from gateway.services.dataset_catalogue import Card, Page
from gateway.store import people
from gateway.store.datasets import VersionRow
from gateway.store.uow import Begin


def size(count: int | None) -> str:
    """Bytes in powers of ten, as disks are sold: `12.3 GB`."""
    if count is None:
        return "-"
    for unit, least in (("PB", 10**15), ("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 1000)):
        if count >= least:
            return f"{count / least:.1f} {unit}"
    return f"{count} B"


def card_cells(one: Card) -> list[str]:
    newest = one.newest
    facts = ["-"] * 4
    if newest is not None:
        speed = "-" if newest.read_mbps is None else f"{newest.read_mbps:.0f}"
        facts = [str(newest.version), size(newest.bytes), str(newest.files), speed]
    health = newest.health if newest else "-"
    who = one.row.visibility
    middle = [facts[0], one.row.licence, *facts[1:], str(one.jobs)]
    return [one.row.name, *middle, who, health]


def card_facts(one: Card) -> dict[str, Any]:
    row = one.row
    return {
        "name": row.name,
        "title": row.title,
        "licence": row.licence,
        "description": row.description,
        "visibility": row.visibility,
        "group": row.group,
        "newest": version_facts(one.newest) if one.newest else None,
        "jobs": one.jobs,
        "people": one.people,
        "card_seconds": sum(used.card_seconds for used in one.usage),
    }


def version_facts(one: VersionRow) -> dict[str, Any]:
    return {
        "version": one.version,
        "state": one.state,
        "path": one.path,
        "bytes": one.bytes,
        "files": one.files,
        "manifest": one.manifest,
        "manifest_path": one.manifest_path,
        "note": one.note,
        "made_by": one.made_by,
        "published": iso(one.published_at),
        "withdrawn": iso(one.withdrawn_at),
        "withdrawn_why": one.withdrawn_why,
        "health": one.health,
        "checked": iso(one.checked_at),
        "read_mbps": one.read_mbps,
    }


def page_facts(found: Page) -> dict[str, Any]:
    return card_facts(found.card) | {
        "owner": found.owner,
        "versions": [
            version_facts(one)
            | {
                "parent": found.lineage[one.id].parent,
                "children": list(found.lineage[one.id].children),
            }
            for one in found.versions
        ],
        "readers": [f"{kind}:{name}" for kind, name in found.readers],
        "checks": [
            {"version_id": one.version_id, "at": iso(one.at), "health": one.health, **one.facts}
            for one in found.checks
        ],
    }


def page_lines(found: Page) -> list[str]:
    row = found.card.row
    lines = [f"{row.name}: {row.title}", f"licence {row.licence}, owner {found.owner}"]
    lines += [row.description] if row.description else []
    head = (">version", "state", ">size", ">files", "health", ">MB/s", "from", "path")
    cells = [
        [
            str(one.version),
            one.state,
            size(one.bytes),
            str(one.files or "-"),
            one.health,
            "-" if one.read_mbps is None else f"{one.read_mbps:.0f}",
            found.lineage[one.id].parent or "-",
            one.path,
        ]
        for one in found.versions
    ]
    return [*lines, *table(head, cells)]


def broker() -> Broker:
    found = settings()
    return SocketBroker(found.broker_socket, timeout_seconds=found.broker_timeout_seconds)


def viewer_of(begin: Begin, login: str) -> Viewer:
    """The person of this login, as if signed in."""
    with begin() as session:
        person = people.by_login(session, login)
        if person is None:
            raise NotFound(f"no person {login}")
        member = people.memberships(session, person.unix_user)
    return Viewer(
        person.id,
        0,
        person.login,
        person.unix_user,
        person.display_name,
        person.role,
        member.groups,
        member.leads,
    )
