"""Notebooks and other applications in the API: the same services as the pages."""

from typing import Any
from uuid import uuid4

from flask import jsonify, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.errors import NotFound, Refused
from gateway.services import app_acts, apps
from gateway.services import offer as offers
from gateway.services.submit import InvalidAsk
from gateway.store import apps as store
from gateway.store.apps import AppRow
from gateway.web import apijson, appask, sending
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.messages import shown
from gateway.web.views import appview
from gateway.web.views.api import bp
from gateway.web.views.apps import lengthen, take_back

_SHORT = ("group", "partition", "gpu_type", "cards", "hours", "environment")
_FORM = frozenset({"group", appask.KIND, appask.CARDS, appask.HOURS, "environment"})
_WITH_BODY = frozenset({"extend", "share", "unshare"})


@bp.get("/notebooks")
@requires(Permission.SUBMIT_JOB)
def notebooks() -> ResponseReturnValue:
    """One's own that are open, and those one was named for."""
    return jsonify(listed())


@bp.post("/notebooks")
@requires(Permission.SUBMIT_JOB)
def start_notebook() -> ResponseReturnValue:
    """`application`, and what of the short form is not left to the defaults."""
    try:
        found = started(apijson.body(request), request.headers.get("Idempotency-Key"))
    except InvalidAsk as invalid:
        return jsonify(apijson.problems([shown(one) for one in invalid.problems])), 422
    return jsonify(found), 201, {"Location": url_for("api.notebook", submission_id=found["id"])}


@bp.get("/notebooks/<int:submission_id>")
@requires(Permission.USE_PORTAL)
def notebook(submission_id: int) -> ResponseReturnValue:
    """How it does now, and with whom its owner has shared it."""
    return jsonify(told(submission_id))


@bp.post("/notebooks/<int:submission_id>/<action>")
@requires(Permission.SUBMIT_JOB)
def notebook_act(submission_id: int, action: str) -> ResponseReturnValue:
    """stop, keep, save, extend `{minutes}` (the whole new limit), share `{login}`, unshare
    `{login}`."""
    body = apijson.body(request) if action in _WITH_BODY else {}
    do(submission_id, action, body)
    return "", 204


def listed() -> dict[str, Any]:
    have, who = deps(), viewer()
    with have.read() as session:
        mine = store.own(session, who.person_id, apps.names(have.catalogue), open_only=True)
        others = store.shared_with(session, who.person_id)
    return {"own": [_facts(row) for row in mine], "shared": [_facts(row) for row in others]}


def started(body: dict[str, Any], key: str | None) -> dict[str, Any]:
    """Raises InvalidAsk with problems at the fields of the whole form."""
    have = deps()
    template = have.catalogue.get(apijson.text(body, "application"))
    if template is None or template.manifest.app is None:
        raise NotFound("application")
    typed = _typed(body)
    unknown = typed.keys() - {f"v-{one.name}" for one in template.manifest.fields} - _FORM
    if unknown:
        raise apijson.BadFields({f"values.{one[2:]}": "unknown_field" for one in sorted(unknown)})
    ask = appask.ask(template.manifest, typed, offers.offer(viewer(), begin=have.read))
    sent = sending.send(ask, key or str(uuid4()))
    return _facts(apps.own(sent.now.row.id, viewer=viewer(), read=have.read))


def told(submission_id: int) -> dict[str, Any]:
    have = deps()
    row, _ = apps.seen(submission_id, viewer=viewer(), read=have.read)
    found = _facts(row)
    if row.person_id == viewer().person_id:
        with have.read() as session:
            found["guests"] = [one.login for one in store.guests(session, row.id)]
    return found


def do(submission_id: int, action: str, body: dict[str, Any]) -> None:
    have, who = deps(), viewer()
    row = apps.own(submission_id, viewer=who, read=have.read)
    begin, read, now = have.begin, have.read, have.clock()
    match action:
        case "stop":
            app_acts.stop(row, viewer=who, begin=begin, broker=have.broker, now=now)
        case "keep":
            app_acts.keep(_looked(row))
        case "save":
            app_acts.save(_looked(row))
        case "extend":
            lengthen(row, _minutes(body))
        case "share":
            login = apijson.text(body, "login")
            apps.share(row.id, login, viewer=who, begin=begin, read=read, now=now)
        case "unshare":
            if not take_back(row, apijson.text(body, "login")):
                raise Refused("app_silent")
        case _:
            raise NotFound(f"action {action}")


def _typed(body: dict[str, Any]) -> dict[str, str]:
    values = body.get("values", {})
    if not isinstance(values, dict):
        raise apijson.BadFields({"values": "not_an_object"})
    unknown = body.keys() - {*_SHORT, "application", "values"}
    if unknown:
        raise apijson.BadFields(dict.fromkeys(sorted(unknown), "unknown_field"))
    given = {name: apijson.typed(body[name], name) for name in _SHORT if name in body}
    kind = f"{given.pop('partition', '')}|{given.pop('gpu_type', '')}"
    own = {f"v-{name}": apijson.typed(value, f"values.{name}") for name, value in values.items()}
    return given | own | ({appask.KIND: kind} if kind != "|" else {})


def _minutes(body: dict[str, Any]) -> int:
    found = body.get("minutes")
    if not isinstance(found, int) or isinstance(found, bool) or not 0 < found < 2**31:
        raise Refused("bad_request", field="minutes")
    return found


def _looked(row: AppRow) -> AppRow:
    have = deps()
    return apps.look(row, begin=have.begin, read=have.read, broker=have.broker)


def _facts(row: AppRow) -> dict[str, Any]:
    """Never the door or its key: who may open it goes through the portal's address."""
    fresh, state = appview.read(row)
    page = appview.build(fresh, state=state)
    found: dict[str, Any] = apijson.dump(
        {
            "id": fresh.id,
            "application": fresh.template,
            "owner": fresh.owner,
            "state": page.stage.value,
            "job_id": fresh.job_id,
            "slurm_id": fresh.slurm_id,
            "group": fresh.group,
            "gpus": fresh.gpus,
            "gpu_type": fresh.gpu_type,
            "created_at": fresh.created_at,
            "started_at": fresh.start_time,
            "ready_at": fresh.ready_at,
            "ends_at": page.ends_at,
            "time_limit_minutes": fresh.time_limit_minutes,
            "url": page.url or None,
            "idle_stop_at": state.stops_at if page.can_keep and state else None,
            "saving": bool(state and state.saving),
            "snapshot": (state.saved or None) if state else None,
        }
    )
    return found
