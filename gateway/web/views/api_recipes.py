"""Recipes in the API. The command line asks the same functions (`sluice recipe`)."""

import json
from typing import Any
from uuid import uuid4

from flask import Response, jsonify, request
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from gateway.core.access import Permission
from gateway.core.ask import Ask
from gateway.core.recipe_match import differences
from gateway.core.recipes import Visibility
from gateway.services import recipe_code, recipe_file, recipe_hide, recipe_publish, recipe_reruns
from gateway.services.recipe_json import clone_fields, fields, rerun_fields
from gateway.services.recipe_publish import Typed
from gateway.services.submit import InvalidAsk
from gateway.store import recipe_reruns as reruns
from gateway.store import recipes as store
from gateway.web import apijson, sending
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.messages import shown
from gateway.web.views import recipeview
from gateway.web.views.api import bp


def listed(args: MultiDict[str, str]) -> dict[str, Any]:
    """The same filters as the page's address; `page` counts from 1."""
    page = min(max(args.get("page", 1, type=int), 1), 1000)
    with deps().read() as session:
        rows, more = store.search(
            session, viewer(), recipeview.found(args), skip=(page - 1) * store.PAGE
        )
        known = reruns.tallies(session, [row.id for row in rows])
    found = [fields(row, known.get(row.id)) for row in rows]
    return {"recipes": found, "next": page + 1 if more else None}


def told(recipe_id: int) -> dict[str, Any]:
    """All of one, with its reruns and what was cloned from it."""
    with deps().read() as session:
        row = recipeview.one(session, recipe_id)
        repeated = reruns.of_recipe(session, recipe_id)
        tally = reruns.tallies(session, [recipe_id]).get(recipe_id)
        forks = [one.id for one in store.children(session, recipe_id, viewer())]
    found = fields(row, tally, whole=True)
    return found | {"runs": [rerun_fields(one) for one in repeated], "clones": forks}


def published(job_id: int, sent: dict[str, Any]) -> dict[str, Any]:
    """`title`, and what else services.recipe_publish.Typed has; `code` true: with the code."""
    have, metrics = deps(), sent.get("metrics")
    texts = {
        name: apijson.typed(sent[name], name)
        for name in Typed.__slots__
        if name in sent and name != "metrics"
    }
    typed = Typed(
        **({"title": ""} | texts),
        metrics=None if metrics is None else [str(one) for one in metrics],
    )
    made = recipe_publish.publish(
        job_id,
        typed,
        viewer=viewer(),
        begin=have.begin,
        cards=have.cards,
        now=have.clock(),
        files=recipeview.captured(job_id).files if sent.get("code") is True else None,
    )
    return told(made)


def cloned(recipe_id: int) -> dict[str, Any]:
    """The form, filled, and what has moved."""
    with deps().read() as session:
        row = recipeview.one(session, recipe_id)
    made = recipeview.cloned(row)
    texts = [recipeview.moved_text(one) for one in made.moved]
    return clone_fields(made) | {"texts": texts}


def sent(recipe_id: int, ask: Ask, key: str, *, is_check: bool) -> dict[str, Any]:
    """Submit a form that was made from it. Raises InvalidAsk."""
    have = deps()
    with have.read() as session:
        row = recipeview.one(session, recipe_id)
    found = sending.send(ask, key).now
    recipe_reruns.note(
        found.row.id,
        row.id,
        row.recipe,
        ask,
        is_check=is_check,
        begin=have.begin,
        now=have.clock(),
    )
    return apijson.submission(found)


def compared(left: int, right: int) -> dict[str, Any]:
    with deps().read() as session:
        one, other = recipeview.one(session, left), recipeview.one(session, right)
    return {
        "left": fields(one),
        "right": fields(other),
        "differences": [apijson.dump(d) for d in differences(one.recipe, other.recipe)],
    }


def taken(content: bytes) -> dict[str, Any]:
    have = deps()
    made = recipe_file.take(
        content,
        visibility=Visibility.ME,
        group="",
        viewer=viewer(),
        begin=have.begin,
        now=have.clock(),
    )
    return told(made)


def exported(recipe_id: int) -> str:
    with deps().read() as session:
        return recipe_file.export(session, recipeview.one(session, recipe_id))


def code(recipe_id: int) -> dict[str, Any]:
    """The files that were captured with it, by their paths."""
    with deps().read() as session:
        return {"files": dict(recipe_code.files(session, recipe_id, viewer()))}


def laid(recipe_id: int, folder: str) -> dict[str, Any]:
    """Its code in a new folder of the viewer's."""
    have = deps()
    path = recipe_code.lay(recipe_id, folder, viewer=viewer(), begin=have.read, broker=have.broker)
    return {"folder": path}


def hidden(recipe_id: int, why: str, *, hide: bool) -> None:
    have = deps()
    act = recipe_hide.hide if hide else recipe_hide.unhide
    act(recipe_id, why, viewer=viewer(), begin=have.begin, now=have.clock())


def retracted(recipe_id: int) -> None:
    have = deps()
    recipe_publish.retract(recipe_id, viewer=viewer(), begin=have.begin, now=have.clock())


@bp.get("/recipes")
@requires(Permission.USE_PORTAL)
def recipe_list() -> ResponseReturnValue:
    return jsonify(listed(request.args))


@bp.get("/recipes/<int:recipe_id>")
@requires(Permission.USE_PORTAL)
def recipe_show(recipe_id: int) -> ResponseReturnValue:
    return jsonify(told(recipe_id))


@bp.post("/jobs/<int:job_id>/recipe")
@requires(Permission.SUBMIT_JOB)
def recipe_publish_job(job_id: int) -> ResponseReturnValue:
    return jsonify(published(job_id, apijson.body(request))), 201


@bp.get("/recipes/<int:recipe_id>/clone")
@requires(Permission.SUBMIT_JOB)
def recipe_clone(recipe_id: int) -> ResponseReturnValue:
    return jsonify(cloned(recipe_id))


@bp.post("/recipes/<int:recipe_id>/<any(clone, rerun):how>")
@requires(Permission.SUBMIT_JOB)
def recipe_send(recipe_id: int, how: str) -> ResponseReturnValue:
    """Submit its form: with a body as of /submissions in the place of what `clone` answers."""
    found = apijson.body(request) or cloned(recipe_id)["ask"]
    key = request.headers.get("Idempotency-Key") or str(uuid4())
    try:
        made = sent(recipe_id, apijson.ask(found), key, is_check=how == "rerun")
    except InvalidAsk as invalid:
        return jsonify(apijson.problems([shown(one) for one in invalid.problems])), 422
    return jsonify(made), 201


@bp.get("/recipes/<int:recipe_id>/code")
@requires(Permission.USE_PORTAL)
def recipe_code_show(recipe_id: int) -> ResponseReturnValue:
    return jsonify(code(recipe_id))


@bp.post("/recipes/<int:recipe_id>/code")
@requires(Permission.SUBMIT_JOB)
def recipe_code_lay(recipe_id: int) -> ResponseReturnValue:
    """Into a new `folder`."""
    folder = apijson.typed(apijson.body(request).get("folder", ""), "folder")
    return jsonify(laid(recipe_id, folder)), 201


@bp.get("/recipes/<int:left>/compare/<int:right>")
@requires(Permission.USE_PORTAL)
def recipe_compare(left: int, right: int) -> ResponseReturnValue:
    return jsonify(compared(left, right))


@bp.get("/recipes/<int:recipe_id>/export")
@requires(Permission.USE_PORTAL)
def recipe_export(recipe_id: int) -> ResponseReturnValue:
    return Response(exported(recipe_id), mimetype="application/json")


@bp.post("/recipes/import")
@requires(Permission.USE_PORTAL)
def recipe_import() -> ResponseReturnValue:
    """The file as the body."""
    apijson.body(request)  # says what is no JSON object as the whole API does
    content = request.get_data(cache=True) or json.dumps({}).encode()
    return jsonify(taken(content)), 201


@bp.post("/recipes/<int:recipe_id>/<any(hide, unhide):how>")
@requires(Permission.MANAGE_RECIPES)
def recipe_hiding_act(recipe_id: int, how: str) -> ResponseReturnValue:
    """An administrator's act, with `why`."""
    why = apijson.typed(apijson.body(request).get("why", ""), "why")
    hidden(recipe_id, why, hide=how == "hide")
    return "", 204


@bp.delete("/recipes/<int:recipe_id>")
@requires(Permission.USE_PORTAL)
def recipe_retract(recipe_id: int) -> ResponseReturnValue:
    retracted(recipe_id)
    return "", 204
