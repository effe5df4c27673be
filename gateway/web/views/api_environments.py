"""Environments in the API: the same services as the pages."""

from typing import Any
from uuid import uuid4

from flask import jsonify, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.errors import Refused
from gateway.services import environment_checks, environment_publish, environment_tell
from gateway.services.submit import InvalidAsk
from gateway.web import apijson
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.messages import shown
from gateway.web.views.api import bp
from gateway.web.views.environments import desk, entry_of


@bp.get("/environments")
@requires(Permission.USE_PORTAL)
def environments() -> ResponseReturnValue:
    """What this person may choose, with the newest check on each type of card."""
    have = deps()
    found = environment_checks.matrix(viewer(), begin=have.read, file=have.environments)
    return jsonify(environment_tell.matrix_facts(found))


@bp.get("/environments/<name>")
@requires(Permission.USE_PORTAL)
def environment(name: str) -> ResponseReturnValue:
    return jsonify(_facts(name))


@bp.post("/environments")
@requires(Permission.USE_PORTAL)
def publish_environment() -> ResponseReturnValue:
    """`environment` as environments.toml has it, and `group` where it is a group's."""
    have, body = deps(), apijson.body(request)
    table, group = _table(body), body.get("group") or ""
    made = environment_publish.publish(
        table,
        group=str(group),
        viewer=viewer(),
        begin=have.begin,
        file=have.environments,
        now=have.clock(),
    )
    place = url_for("api.environment", name=made.name)
    return jsonify(_facts(made.name)), 201, {"Location": place}


@bp.put("/environments/<name>")
@requires(Permission.USE_PORTAL)
def change_environment(name: str) -> ResponseReturnValue:
    """Another text of it; a retired one is offered again."""
    have, table = deps(), _table(apijson.body(request))
    table["name"] = name
    environment_publish.change(table, viewer=viewer(), begin=have.begin, now=have.clock())
    return jsonify(_facts(name))


@bp.post("/environments/<name>/<action>")
@requires(Permission.USE_PORTAL)
def environment_act(name: str, action: str) -> ResponseReturnValue:
    """retire; check `{gpu_type}`; adopt `{gpu_type}`: what its newest check has found."""
    have, who, now = deps(), viewer(), deps().clock()
    gpu_type = "" if action == "retire" else str(apijson.body(request).get("gpu_type", ""))
    match action:
        case "retire":
            environment_publish.retire(name, viewer=who, begin=have.begin, now=now)
        case "check":
            key = request.headers.get("Idempotency-Key") or str(uuid4())
            try:
                environment_checks.start(
                    entry_of(name), gpu_type, viewer=who, desk=desk(), form_key=key, now=now
                )
            except InvalidAsk as invalid:
                return jsonify(apijson.problems([shown(one) for one in invalid.problems])), 422
        case "adopt":
            environment_publish.adopt(
                name, gpu_type, viewer=who, begin=have.begin, file=have.environments, now=now
            )
        case _:
            raise Refused("bad_request")
    return jsonify(_facts(name))


def _facts(name: str) -> dict[str, Any]:
    entry = entry_of(name)
    cells = environment_checks.cells(entry, begin=deps().read)
    return environment_tell.entry_facts(entry, cells)


def _table(body: dict[str, Any]) -> dict[str, Any]:
    table = body.get("environment")
    if not isinstance(table, dict) or body.keys() - {"environment", "group"}:
        raise Refused("bad_request", field="environment")
    return table
