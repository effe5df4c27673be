"""The Library: has somebody done this? Recipes first, and the way to all else."""

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.store import recipes as store
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.i18n import language
from gateway.web.views import recipeview

bp = Blueprint("library", __name__, url_prefix="/library")


@bp.get("")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    """Recipes that are found; while somebody types, the list alone."""
    wanted = recipeview.found(request.args)
    page = min(max(request.args.get("page", 1, type=int), 1), 1000)
    live = request.headers.get("HX-Request") is not None
    with deps().read() as session:
        skip = (page - 1) * store.PAGE
        rows, more = store.search(session, viewer(), wanted, skip=skip)
        lines = recipeview.lines(session, rows)
        choices = {} if live else store.choices(session, viewer())
    kept = {name: text for name, text in request.args.items() if name != "page" and text}
    return render_template(
        "fragments/recipe_list.html" if live else "pages/library.html",
        lines=lines,
        more=more,
        page=page,
        kept=kept,
        choices=choices,
    )


@bp.get("/templates")
@requires(Permission.USE_PORTAL)
def templates() -> ResponseReturnValue:
    """What can be submitted, and what for."""
    where = language()
    found = [
        (one.name, one.manifest.title.get(where), one.manifest.summary.get(where))
        for one in deps().catalogue.all()
    ]
    return render_template("pages/library_templates.html", found=found)
