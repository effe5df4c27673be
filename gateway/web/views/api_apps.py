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
from gateway.web.views.apps import lengthen

_SHORT = ("group", "partition", "gpu_type", "cards", "hours", "environment")


@bp.get("/notebooks")
@requires(Permission.SUBMIT_JOB)
def notebooks() -> ResponseReturnValue:
    """One's own that are open, and those one was named for."""
    have, who = deps(), viewer()
    with have.read() as session:
        mine = store.own(session, who.person_id, apps.names(have.catalogue), open_only=True)
        others = store.shared_with(session, who.person_id)
    return jsonify(own=[_dump(row) for row in mine], shared=[_dump(row) for row in others])


@bp.post("/notebooks")
@requires(Permission.SUBMIT_JOB)
def start_notebook() -> ResponseReturnValue:
    """`application`, and what of the short form is not left to the defaults."""
    body, have = apijson.body(request), deps()
    template = have.catalogue.get(apijson.text(body, "application"))
    if template is None or template.manifest.app is None:
        raise NotFound("application")
    ask = appask.ask(template.manifest, _typed(body), offers.offer(viewer(), begin=have.read))
    apijson.require_known(ask, template)
    try:
        sent = sending.send(ask, request.headers.get("Idempotency-Key") or str(uuid4()))
    except InvalidAsk as invalid:
        return jsonify(apijson.problems([shown(one) for one in invalid.problems])), 422
    row = apps.own(sent.now.row.id, viewer=viewer(), read=have.read)
    place = url_for("api.notebook", submission_id=row.id)
    return jsonify(_dump(row)), 201, {"Location": place}


@bp.get("/notebooks/<int:submission_id>")
@requires(Permission.USE_PORTAL)
def notebook(submission_id: int) -> ResponseReturnValue:
    """How it does now, and with whom its owner has shared it."""
    have = deps()
    row, _ = apps.seen(submission_id, viewer=viewer(), read=have.read)
    found = _dump(row)
    if row.person_id == viewer().person_id:
        with have.read() as session:
            found["guests"] = [one.login for one in store.guests(session, row.id)]
    return jsonify(found)


@bp.post("/notebooks/<int:submission_id>/<action>")
@requires(Permission.SUBMIT_JOB)
def notebook_act(submission_id: int, action: str) -> ResponseReturnValue:
    """stop, keep, save, extend `{minutes}` (the whole new limit), share `{login}`, unshare
    `{login}`."""
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
            lengthen(row, _minutes())
        case "share":
            login = apijson.text(apijson.body(request), "login")
            apps.share(row.id, login, viewer=who, begin=begin, read=read, now=now)
        case "unshare":
            login = apijson.text(apijson.body(request), "login")
            apps.unshare(row.id, login, viewer=who, begin=begin, read=read)
        case _:
            raise NotFound(f"action {action}")
    return "", 204


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


def _minutes() -> int:
    found = apijson.body(request).get("minutes")
    if not isinstance(found, int) or isinstance(found, bool) or not 0 < found < 2**31:
        raise Refused("bad_request", field="minutes")
    return found


def _looked(row: AppRow) -> AppRow:
    have = deps()
    return apps.look(row, begin=have.begin, read=have.read, broker=have.broker)


def _dump(row: AppRow) -> dict[str, Any]:
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
