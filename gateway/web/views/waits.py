"""Waits: how long one waits and runs, for whom, when, and whether it gets worse."""

from flask import Blueprint, render_template
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.web import wait_filters
from gateway.web.access import requires
from gateway.web.views import waits_frame

bp = Blueprint("waits", __name__, url_prefix="/waits")


@bp.get("")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    asked = waits_frame.asked()
    filters = wait_filters.view(asked, "waits.index", {})
    return render_template(
        "pages/waits.html", tabs=waits_frame.tabs(asked), filters=filters, asked=asked
    )
