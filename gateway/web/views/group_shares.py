"""A group's shares: how many, how they came about, what it used, and where it stands."""

from flask import render_template
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.web.access import requires, viewer
from gateway.web.views import sharesview
from gateway.web.views.group import bp


@bp.get("/group/<name>/shares")
@requires(Permission.USE_PORTAL)
def shares(name: str) -> ResponseReturnValue:
    page = sharesview.build(viewer(), name)
    return render_template("pages/group_shares.html", page=page, name=name, rights=page.rights)
