"""Datasets in the API: the same services as the pages, the same rule of who sees what."""

from typing import Any

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.services import dataset_catalogue as catalogue
from gateway.services import dataset_entries as entries
from gateway.services import dataset_requests as asked
from gateway.services import dataset_versions as versions
from gateway.services.dataset_entries import Entry
from gateway.services.dataset_versions import NewVersion
from gateway.web import apijson
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.views.api import bp
from gateway.web.views.datasetview import facts_of, version_facts

_ENTRY = ("name", "title", "licence", "description", "visibility", "group")
_VERSION = ("path", "manifest_path", "note", "parent", "made_by")


@bp.get("/datasets")
@requires(Permission.USE_PORTAL)
def datasets() -> ResponseReturnValue:
    """?q= holds words to search for."""
    with deps().read() as session:
        cards = catalogue.cards(session, viewer(), words=request.args.get("q", "")[:200])
    return jsonify(datasets=[facts_of(one) for one in cards])


@bp.get("/datasets/<name>")
@requires(Permission.USE_PORTAL)
def dataset(name: str) -> ResponseReturnValue:
    """The entry, its versions with their lineage, and its newest verifications."""
    with deps().read() as session:
        found = catalogue.page(session, name, viewer())
    usable = found.card.usable or found.steers
    rows = [
        version_facts(one, usable=usable)
        | {"parent": found.lineage[one.id].parent, "children": [*found.lineage[one.id].children]}
        for one in found.versions
    ]
    checks = [
        {"version_id": one.version_id, "at": one.at.isoformat(), "health": one.health} | one.facts
        for one in found.checks
    ]
    return jsonify(facts_of(found.card) | {"versions": rows, "checks": checks})


@bp.post("/datasets")
@requires(Permission.USE_PORTAL)
def create_dataset() -> ResponseReturnValue:
    body = _body(_ENTRY)
    name = body.pop("name", "")
    entry = Entry(
        body.get("title", ""),
        body.get("licence", ""),
        body.get("description", ""),
        body.get("visibility", "everyone"),
        body.get("group") or None,
    )
    entries.create(
        name,
        entry,
        owner_id=viewer().person_id,
        viewer=viewer(),
        begin=deps().begin,
        now=deps().clock(),
    )
    return jsonify(name=name), 201


@bp.post("/datasets/<name>/versions")
@requires(Permission.USE_PORTAL)
def create_dataset_version(name: str) -> ResponseReturnValue:
    number = versions.add(
        name,
        NewVersion(**{"path": "", **_body(_VERSION)}),
        created_by=viewer().person_id,
        viewer=viewer(),
        begin=deps().begin,
        now=deps().clock(),
    )
    return jsonify(name=name, version=number, state="draft"), 201


@bp.post("/datasets/<name>/versions/<int:number>/publish")
@requires(Permission.USE_PORTAL)
def publish_dataset(name: str, number: int) -> ResponseReturnValue:
    """Publishes it, or for who may not, asks for that: `state` says which."""
    have = deps()
    state = versions.publish(
        name, number, viewer=viewer(), begin=have.begin, now=have.clock(), broker=have.broker
    )
    return jsonify(name=name, version=number, state=state)


@bp.post("/datasets/<name>/versions/<int:number>/withdraw")
@requires(Permission.USE_PORTAL)
def withdraw_dataset(name: str, number: int) -> ResponseReturnValue:
    """{"why": …}"""
    why = _body(("why",)).get("why", "")
    have = deps()
    versions.withdraw(name, number, why, viewer=viewer(), begin=have.begin, now=have.clock())
    return "", 204


@bp.post("/datasets/<name>/access")
@requires(Permission.USE_PORTAL)
def ask_for_dataset(name: str) -> ResponseReturnValue:
    """{"text": …, "group": …}: access for the group, or without one for oneself."""
    body = _body(("text", "group"))
    made = asked.ask_access(
        name,
        group=body.get("group") or None,
        text=body.get("text", ""),
        viewer=viewer(),
        begin=deps().begin,
        now=deps().clock(),
    )
    return jsonify(request=made), 201


def _body(known: tuple[str, ...]) -> dict[str, str]:
    """An object of texts with these names and no others."""
    body: dict[str, Any] = dict(apijson.body(request))
    wrong = {
        name: "unknown_field" if name not in known else "not_a_text"
        for name, value in body.items()
        if name not in known or not isinstance(value, str)
    }
    if wrong:
        raise apijson.BadFields(wrong)
    return body
