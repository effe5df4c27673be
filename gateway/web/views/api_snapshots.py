"""Snapshots in the API: the same services as the pages."""

from typing import Any

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.snapshots import difference
from gateway.services import snapshots
from gateway.services.snapshots import as_fields
from gateway.web import apijson, offering
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.views.api import bp
from gateway.web.views.snapshots import refresh


@bp.get("/snapshots")
@requires(Permission.USE_PORTAL)
def snapshot_list() -> ResponseReturnValue:
    """What one may choose, newest first; `q` has words that it must hold."""
    look, known = refresh(), offering.environments()
    with deps().read() as session:
        rows = snapshots.listed(session, viewer(), text=request.args.get("q", "")[:200])
        doubts = snapshots.doubts_of(session, rows, known)
    listed = [as_fields(row, doubts[row.id]) for row in rows]
    return jsonify(snapshots=listed, store_error=look.code)


@bp.get("/snapshots/<name>")
@requires(Permission.USE_PORTAL)
def snapshot_show(name: str) -> ResponseReturnValue:
    """With all its packages and layers."""
    return jsonify(_one(name))


@bp.get("/snapshots/<name>/diff/<other>")
@requires(Permission.USE_PORTAL)
def snapshot_diff(name: str, other: str) -> ResponseReturnValue:
    """From the packages of `other` to those of `name`."""
    with deps().read() as session:
        new = snapshots.get(session, viewer(), name)
        old = snapshots.get(session, viewer(), other)
    found = difference(old.document.packages, new.document.packages)
    return jsonify(apijson.dump(found))


@bp.post("/snapshots/<name>/share")
@requires(Permission.USE_PORTAL)
def snapshot_share(name: str) -> ResponseReturnValue:
    """`to`: a group's name or `site`; empty takes it back."""
    to = apijson.text(apijson.body(request), "to")
    snapshots.share(viewer(), name, to=to, begin=deps().begin)
    return jsonify(_one(name))


@bp.delete("/snapshots/<name>")
@requires(Permission.USE_PORTAL)
def snapshot_delete(name: str) -> ResponseReturnValue:
    """Nobody is offered it any more."""
    have = deps()
    snapshots.delete(viewer(), name, begin=have.begin, now=have.clock())
    return "", 204


def _one(name: str) -> dict[str, Any]:
    known = offering.environments()
    with deps().read() as session:
        row = snapshots.get(session, viewer(), name)
        doubts = snapshots.doubts_of(session, [row], known)
    return as_fields(row, doubts[row.id], whole=True)
