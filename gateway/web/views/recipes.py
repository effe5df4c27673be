"""Recipes: one with its receipt, publishing, comparing, files, and checking by doing it again."""

from flask import Blueprint, Response, flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.recipe_match import differences
from gateway.core.recipes import Visibility
from gateway.errors import NotFound, Refused
from gateway.services import recipe_clone, recipe_code, recipe_file, recipe_hide, recipe_publish
from gateway.services.recipe_code import Captured
from gateway.services.recipe_publish import Typed
from gateway.store import recipe_hiding
from gateway.store import recipe_reruns as reruns
from gateway.store import recipes as store
from gateway.store.recipe_reruns import Tally
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.formbase import Posted
from gateway.web.messages import error_sentence
from gateway.web.recipe_texts import CHECKPOINTS, NOT_READABLE, VISIBILITY
from gateway.web.texts import gettext
from gateway.web.views import recipeview

bp = Blueprint("recipes", __name__, url_prefix="/library/recipes")


@bp.get("/<int:recipe_id>")
@requires(Permission.USE_PORTAL)
def show(recipe_id: int) -> ResponseReturnValue:
    return _page(recipe_id)


@bp.post("/<int:recipe_id>/checkpoints")
@requires(Permission.USE_PORTAL)
def checkpoints(recipe_id: int) -> ResponseReturnValue:
    """Whether who asks can read them: the broker looks as that person."""
    with deps().read() as session:
        row = recipeview.one(session, recipe_id)
    if not row.recipe.checkpoints:
        raise NotFound("checkpoints")
    state = recipe_clone.checkpoints_state(row.recipe, viewer=viewer(), broker=deps().broker)
    return _page(recipe_id, told=str(CHECKPOINTS.get(state, NOT_READABLE)))


def _page(recipe_id: int, *, told: str = "") -> str:
    with deps().read() as session:
        row = recipeview.one(session, recipe_id)
        parent = store.get(session, row.parent_id, viewer()) if row.parent_id else None
        forks = store.children(session, recipe_id, viewer())
        repeated = reruns.of_recipe(session, recipe_id)
        tally = reruns.tallies(session, [recipe_id]).get(recipe_id, Tally())
        has_code = row.recipe.code is not None and row.recipe.code.captured
        files = recipe_code.files(session, recipe_id, viewer()) if has_code else {}
        hidings = recipe_hiding.of_recipe(session, recipe_id)
    made = recipeview.cloned(row)
    return render_template(
        "pages/recipe.html",
        row=row,
        recipe=row.recipe,
        facts=recipeview.facts(row.recipe.receipt),
        moved=[(one, recipeview.moved_text(one)) for one in made.moved],
        parent=parent,
        forks=forks,
        reruns=repeated,
        rating=recipeview.rating(tally),
        figure_name=recipeview.figure_name,
        told=told,
        own=row.person_id == viewer().person_id,
        files=files,
        hidings=hidings,
        hidden=bool(hidings) and hidings[0].hidden,
        administrator=viewer().may(Permission.MANAGE_RECIPES),
        visibility=VISIBILITY,
        groups=viewer().groups,
    )


@bp.get("/new")
@requires(Permission.SUBMIT_JOB)
def new() -> ResponseReturnValue:
    """The form for one's own job that ended well (?job=)."""
    return _new_page(request.args.get("job", 0, type=int))


@bp.post("/new")
@requires(Permission.SUBMIT_JOB)
def publish() -> ResponseReturnValue:
    have, sent = deps(), request.form
    job_id = sent.get("job", 0, type=int)
    typed = Typed(
        title=sent.get("title", ""),
        summary=sent.get("summary", ""),
        model=sent.get("model", ""),
        tags=sent.get("tags", ""),
        visibility=sent.get("visibility", ""),
        group=sent.get("group", ""),
        checkpoints=sent.get("checkpoints", ""),
        metrics=sent.getlist("metric"),
    )
    try:
        code = recipeview.captured(job_id) if sent.get("code") else None
        if code is not None and sent.get("seen") != code.digest:
            return _new_page(job_id, code=code)  # what goes out is looked at first
        made = recipe_publish.publish(
            job_id,
            typed,
            viewer=viewer(),
            begin=have.begin,
            cards=have.cards,
            now=have.clock(),
            files=code.files if code else None,
        )
    except Refused as refusal:
        return _new_page(job_id, refused=refusal), 422
    flash(gettext("It is in the Library now."), "good")
    return redirect(url_for("recipes.show", recipe_id=made), code=303)


def _new_page(job_id: int, *, refused: Refused | None = None, code: Captured | None = None) -> str:
    found = recipeview.candidate(job_id)
    return render_template(
        "pages/recipe_new.html",
        job_id=job_id,
        recipe=found.recipe,
        facts=recipeview.facts(found.recipe.receipt),
        saved=found.saved[:20],
        folder=found.folder,
        code=code,
        group=found.group,
        groups=viewer().groups,
        sent=request.form,
        trouble=error_sentence(refused) if refused else "",
        field=refused.field if refused else "",
        visibility=VISIBILITY,
    )


@bp.post("/<int:recipe_id>/code")
@requires(Permission.SUBMIT_JOB)
def code(recipe_id: int) -> ResponseReturnValue:
    """Its files into a new folder of the person's own; then the form, in that folder."""
    have, sent = deps(), request.form
    try:
        folder = recipe_code.lay(
            recipe_id,
            sent.get("folder", ""),
            viewer=viewer(),
            begin=have.read,
            broker=have.broker,
        )
    except Refused as refusal:
        flash(error_sentence(refusal), "bad")
        return redirect(url_for("recipes.show", recipe_id=recipe_id), code=303)
    flash(gettext("Its code lies in %(folder)s now.", folder=folder), "good")
    check = "1" if sent.get("check") else None
    place = url_for("submit.new", recipe=recipe_id, folder=folder, check=check)
    return redirect(place, code=303)


@bp.post("/<int:recipe_id>/share")
@requires(Permission.USE_PORTAL)
def share(recipe_id: int) -> ResponseReturnValue:
    sent = request.form
    try:
        recipe_publish.share(
            recipe_id,
            visibility=sent.get("visibility", ""),
            group=sent.get("group", ""),
            viewer=viewer(),
            begin=deps().begin,
        )
        flash(gettext("Who may see it is changed."), "good")
    except Refused as refusal:
        flash(error_sentence(refusal), "bad")
    return redirect(url_for("recipes.show", recipe_id=recipe_id), code=303)


@bp.post("/<int:recipe_id>/retract")
@requires(Permission.USE_PORTAL)
def retract(recipe_id: int) -> ResponseReturnValue:
    have = deps()
    recipe_publish.retract(recipe_id, viewer=viewer(), begin=have.begin, now=have.clock())
    flash(gettext("Taken back: nobody finds it any more."), "good")
    return redirect(url_for("library.index"), code=303)


@bp.post("/<int:recipe_id>/hide")
@requires(Permission.MANAGE_RECIPES)
def hide(recipe_id: int) -> ResponseReturnValue:
    """From the Library (`hidden` 1), or there again; an administrator's act with a reason."""
    have, sent = deps(), request.form
    act = recipe_hide.hide if sent.get("hidden") == "1" else recipe_hide.unhide
    try:
        act(
            recipe_id,
            sent.get("why", ""),
            viewer=viewer(),
            begin=have.begin,
            now=have.clock(),
        )
        flash(gettext("Done, and on record."), "good")
    except Refused as refusal:
        flash(error_sentence(refusal), "bad")
    return redirect(url_for("recipes.show", recipe_id=recipe_id), code=303)


@bp.get("/compare")
@requires(Permission.USE_PORTAL)
def compare() -> ResponseReturnValue:
    """Two side by side: ?left= and ?right=, or ?recipe= twice."""
    given = request.args
    ticked = [one for name in ("recipe", "left", "right") for one in given.getlist(name, type=int)]
    if len(ticked) != 2:
        flash(gettext("Tick two recipes."), "bad")
        return redirect(url_for("library.index"), code=303)
    with deps().read() as session:
        left, right = (recipeview.one(session, one) for one in ticked)
    mine, theirs = (
        dict(recipeview.facts(left.recipe.receipt)),
        dict(recipeview.facts(right.recipe.receipt)),
    )
    names = dict.fromkeys([*mine, *theirs])
    return render_template(
        "pages/recipe_compare.html",
        left=left,
        right=right,
        figures=[(name, mine.get(name, "–"), theirs.get(name, "–")) for name in names],
        differences=differences(left.recipe, right.recipe),
    )


@bp.get("/<int:recipe_id>/export.json")
@requires(Permission.USE_PORTAL)
def export(recipe_id: int) -> ResponseReturnValue:
    with deps().read() as session:
        row = recipeview.one(session, recipe_id)
        text = recipe_file.export(session, row)
    name = f"recipe-{row.fingerprint[:12]}.json"
    return Response(
        text,
        mimetype="application/json",
        headers={"Content-Disposition": f"attachment; filename={name}"},
    )


@bp.post("/import")
@requires(Permission.USE_PORTAL)
def take() -> ResponseReturnValue:
    """A file of elsewhere; seen by who brought it alone until they share it."""
    have, sent = deps(), request.files.get("file")
    if not Posted().validate_on_submit() or sent is None or not sent.filename:
        flash(gettext("Choose a file."), "bad")
        return redirect(url_for("library.index"), code=303)
    content = sent.stream.read(recipe_file.LARGEST + 1)
    try:
        made = recipe_file.take(
            content,
            visibility=Visibility.ME,
            group="",
            viewer=viewer(),
            begin=have.begin,
            now=have.clock(),
        )
    except Refused as refusal:
        flash(error_sentence(refusal), "bad")
        return redirect(url_for("library.index"), code=303)
    return redirect(url_for("recipes.show", recipe_id=made), code=303)
