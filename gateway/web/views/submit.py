"""The submit form: shown, followed while somebody types, and sent."""

from flask import Blueprint, Response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from gateway.core.access import Permission
from gateway.errors import NotFound
from gateway.services.submit import InvalidAsk
from gateway.web import sending
from gateway.web.access import requires, viewer
from gateway.web.forms import SubmitForm
from gateway.web.texts import gettext
from gateway.web.views import earlier, formpage, planfill, recipeview, smokebox

bp = Blueprint("submit", __name__, url_prefix="/submit")


@bp.get("")
@requires(Permission.SUBMIT_JOB)
def new() -> ResponseReturnValue:
    """Empty, or with the values of an earlier submission (?from=), of a plan (?plan=), or as
    they were for a smoke job (?smoke=)."""
    planned = None if "smoke" in request.args else planfill.filled(request.args.get("plan", ""))
    if planned is not None:
        fields, told = planned
        notice = gettext("Filled from the plan. Say what runs, and look through the rest.")
        return formpage.page(fields, notice=notice, told=told)
    tried = smokebox.number(request.args.get("smoke", ""))
    if tried is not None:
        return formpage.page(_tried(tried))
    source = request.args.get("from", type=int)
    if source is None and "recipe" in request.args:
        return _cloned()
    if source is None:
        template = request.args.get("template", "")
        return formpage.page(
            MultiDict(earlier.habits() | ({"template": template} if template else {}))
        )
    form = formpage.from_ask(earlier.load(source))
    notice = gettext("These are the values of an earlier submission. Change what you like.")
    return formpage.page(form, notice=notice, source=source)


@bp.post("")
@requires(Permission.SUBMIT_JOB)
def create() -> ResponseReturnValue:
    """One submission a form key, however often the button is pressed."""
    if request.form.get("try") or request.form.get("set"):
        return choices()
    form = formpage.read(request.form)
    if not form.validate():
        return formpage.page(request.form, problems=formpage.judged(form)), 422
    try:
        seen = request.form.get("slurm_start", "")
        sent = sending.send(form.ask(), _key(form), slurm_seen=seen)
        recipeview.note(sent.now.row.id, form.ask())
    except InvalidAsk as invalid:
        return formpage.page(request.form, problems=tuple(invalid.problems)), 422
    return redirect(sent.url, code=303)


@bp.post("/smoke")
@requires(Permission.SUBMIT_JOB)
def try_it() -> ResponseReturnValue:
    """The form's smoke job; however often it is pressed, one for what the form says."""
    form = formpage.read(request.form)
    if not form.validate():
        return formpage.page(request.form, problems=formpage.judged(form)), 422
    key = _key(form)
    try:
        smoke_id = sending.send_smoke(
            form.ask(),
            key,
            previous=smokebox.over(request.form.get("smoke", "")),
            then_long=bool(request.form.get("then_long")),
        )
    except InvalidAsk as invalid:
        return formpage.page(request.form, problems=tuple(invalid.problems)), 422
    plan = request.form.get("plan") or None
    return redirect(url_for("submit.new", smoke=smoke_id, key=key, plan=plan), code=303)


@bp.post("/smoke/state")
@requires(Permission.SUBMIT_JOB)
def smoke_state() -> ResponseReturnValue:
    """How the smoke job does now, for the form as it stands; gone when it is none of one's own."""
    found = smokebox.view(request.form.get("smoke", ""), formpage.read(request.form).ask())
    return render_template("fragments/smoke.html", smoke=found) if found else ""


def _cloned() -> str:
    """The form of a recipe (?recipe=), with all that has moved; with ?check= to repeat it."""
    row = recipeview.chosen()
    if row is None:
        raise NotFound("recipe")
    made = recipeview.cloned(row)
    form = formpage.from_ask(made.ask)
    form["recipe"], form["check"] = str(row.id), request.args.get("check", "")[:1]
    if row.recipe.code and row.person_id == viewer().person_id:
        form["working_directory"] = row.recipe.code.folder
    if request.args.get("folder"):
        form["working_directory"] = request.args["folder"]
    notice = gettext("Filled from the recipe %(title)s. Look it through.", title=row.recipe.title)
    return formpage.page(form, notice=notice, told=[recipeview.moved_text(m) for m in made.moved])


def _key(form: SubmitForm) -> str:
    return smokebox.form_key(form.form_key.data or "", request.form.get("smoke", ""))


def _tried(submission_id: int) -> MultiDict[str, str]:
    """The form of a smoke job, under its own key: the long job is sent once."""
    form = formpage.from_ask(smokebox.own_ask(submission_id))
    form["smoke"] = str(submission_id)
    form["plan"] = request.args.get("plan", "")
    form["form_key"] = request.args.get("key", "")[:64]
    return form


@bp.post("/choices")
@requires(Permission.SUBMIT_JOB)
def choices() -> ResponseReturnValue:
    """The form again, with the choices that belong to what is chosen now."""
    if not request.headers.get("HX-Request"):
        return formpage.page(request.form)
    return render_template("fragments/form_fields.html", form=formpage.view(request.form))


@bp.post("/preview")
@requires(Permission.SUBMIT_JOB)
def preview() -> ResponseReturnValue:
    """Summary, script and the notes at the fields, while somebody types."""
    form = formpage.view(request.form, live=True)
    return render_template("fragments/preview.html", form=form, estimate=None)


@bp.post("/estimate")
@requires(Permission.SUBMIT_JOB)
def estimate() -> ResponseReturnValue:
    """Slurm's own estimate, only when somebody asks for it."""
    found = sending.estimate(formpage.read(request.form).ask())
    if not request.headers.get("HX-Request"):
        return formpage.page(request.form, estimate=found)
    return render_template("fragments/estimate.html", estimate=found)


@bp.post("/script")
@requires(Permission.SUBMIT_JOB)
def script() -> ResponseReturnValue:
    """The script as a file, to run it with plain sbatch."""
    form = formpage.view(request.form)
    if form.beside.script is None:
        return formpage.page(request.form), 422
    name = f"{form.ask.template or 'job'}.sbatch"
    return Response(
        form.beside.script,
        mimetype="text/x-shellscript",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
