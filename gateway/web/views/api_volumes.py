"""Volumes in the API: the same services as the pages. Sizes go in as texts such as `2 TB`."""

from typing import Any

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.volumes import parse_size
from gateway.errors import NotFound
from gateway.services import volume_pages as pages
from gateway.services import volume_requests as acts
from gateway.store import volume_work as work
from gateway.web import apijson
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.views.api import bp


@bp.get("/volumes")
@requires(Permission.USE_PORTAL)
def volume_list() -> ResponseReturnValue:
    """All that one may see."""
    have = deps()
    with have.read() as session:
        found = pages.listed(session, viewer(), now=have.clock(), zone=have.settings.timezone)
    return jsonify(volumes=[pages.as_fields(one) for one in found])


@bp.get("/volumes/<int:volume_id>")
@requires(Permission.USE_PORTAL)
def volume_show(volume_id: int) -> ResponseReturnValue:
    """With its days, requests and charges."""
    have = deps()
    with have.read() as session:
        page = pages.volume(
            session, volume_id, viewer(), now=have.clock(), zone=have.settings.timezone
        )
    found = pages.as_fields(page.picture)
    found["days"] = [pages.day_fields(one) for one in page.days]
    found["requests"] = [pages.request_fields(one) for one in page.requests]
    found["charges"] = [
        {"month": one.month, "gb_days": one.gb_days / 1000, "amount_millionths": one.amount}
        for one in page.charges
    ]
    return jsonify(found)


@bp.post("/volumes/<int:volume_id>/request")
@requires(Permission.USE_PORTAL)
def volume_request(volume_id: int) -> ResponseReturnValue:
    """`size`, `text`: ask for more."""
    have, sent = deps(), apijson.body(request)
    made = acts.ask(
        volume_id,
        parse_size(apijson.text(sent, "size")),
        apijson.text(sent, "text"),
        viewer=viewer(),
        begin=have.begin,
        now=have.clock(),
    )
    return jsonify(_request(made)), 201


@bp.post("/volumes/<int:volume_id>/limit")
@requires(Permission.MANAGE_VOLUMES)
def volume_limit(volume_id: int) -> ResponseReturnValue:
    """`size` (empty: no limit), `text`, `below_use` (`yes` where more is used)."""
    sent = apijson.body(request)
    size = apijson.text(sent, "size")
    done = acts.set_limit(
        volume_id,
        parse_size(size) if size else None,
        **_given(),
        below_use=apijson.text(sent, "below_use") == "yes",
        text=apijson.text(sent, "text"),
    )
    return jsonify(pages.request_fields(done))


@bp.post("/volume-requests/<int:request_id>/<act>")
@requires(Permission.USE_PORTAL)
def volume_answer(request_id: int, act: str) -> ResponseReturnValue:
    """agree, refuse, withdraw; `text` is the answer."""
    have, words = deps(), apijson.text(apijson.body(request), "text")
    given: dict[str, Any] = {"viewer": viewer(), "begin": have.begin, "now": have.clock()}
    if act == "agree":
        acts.agree(request_id, words, **_given())
    elif act == "refuse":
        acts.refuse(request_id, words, **given)
    elif act == "withdraw":
        acts.withdraw(request_id, **given)
    else:
        raise NotFound(f"act {act}")
    return jsonify(_request(request_id))


def _request(request_id: int) -> dict[str, Any]:
    with deps().read() as session:
        one = work.request(session, request_id)
    if one is None:
        raise NotFound(f"request {request_id}")
    return pages.request_fields(one)


def _given() -> dict[str, Any]:
    have = deps()
    return {"viewer": viewer(), "begin": have.begin, "broker": have.broker, "now": have.clock()}
