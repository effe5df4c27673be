"""What nginx asks before it lets anybody through to an application, and where it sends whom it did
not let through, or could not: see cli/nginx_conf.py."""

from flask import Blueprint, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.apps import KEY_HEADER, WHO_HEADER, base
from gateway.errors import NotFound
from gateway.services import apps
from gateway.store.apps import AppRow
from gateway.web.access import requires, viewer, viewer_or_none
from gateway.web.deps import deps
from gateway.web.frontdoor import is_passed

bp = Blueprint("appgate", __name__)


@bp.get("/apps-gate/<int:slurm_id>")
def gate(slurm_id: int) -> ResponseReturnValue:
    """204 with the door and its key, for nginx alone; 401 and 403 say no more than that."""
    who = viewer_or_none()
    if not is_passed():
        raise NotFound("apps-gate")
    if who is None:
        return "", 401
    have = deps()
    door = apps.gate(slurm_id, viewer=who, read=have.read, cluster=have.settings.cluster_name)
    if door is None:
        return "", 403
    host = f"[{door.address}]" if ":" in door.address else door.address
    headers = {
        "X-Sluice-Address": f"{host}:{door.port}",
        KEY_HEADER: door.key,
        WHO_HEADER: f"{who.person_id}.{who.session_id}",
    }
    return "", 204, headers


@bp.get("/apps-away/<int:slurm_id>")
@requires(Permission.USE_PORTAL)
def away(slurm_id: int) -> ResponseReturnValue:
    """Who was not let through: to sign in, to the application's page, or nowhere (404)."""
    row = _row(slurm_id)
    have, fresh = deps(), _look(row)
    cluster = have.settings.cluster_name
    if is_passed() and apps.gate(slurm_id, viewer=viewer(), read=have.read, cluster=cluster):
        return redirect(base(slurm_id))
    return redirect(url_for("apps.show", submission_id=fresh.id))


@bp.get("/apps-down/<int:slurm_id>")
@requires(Permission.USE_PORTAL)
def down(slurm_id: int) -> ResponseReturnValue:
    """Its door does not answer: the node is gone, the program has ended, or it has moved."""
    row = _row(slurm_id)
    fresh = _look(row)
    if row.active and fresh.door != row.door:
        return redirect(base(slurm_id))
    return render_template("pages/app_down.html", row=fresh, address=base(slurm_id)), 503


def _row(slurm_id: int) -> AppRow:
    have = deps()
    cluster = have.settings.cluster_name
    return apps.of_slurm_job(slurm_id, viewer=viewer(), read=have.read, cluster=cluster)


def _look(row: AppRow) -> AppRow:
    have = deps()
    return apps.look(row, begin=have.begin, read=have.read, broker=have.broker)
