"""Environments: the matrix of what works where, one environment, publishing and checking."""

from collections.abc import Callable

from flask import Blueprint, flash, jsonify, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.errors import BrokerRefused, NotFound, Refused
from gateway.services import environment_checks, environment_publish
from gateway.services.environment_publish import Entry
from gateway.services.site_jobs import Desk
from gateway.services.submit import InvalidAsk
from gateway.store import environments as store
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.environment_forms import CheckForm, EnvironmentForm, FileForm
from gateway.web.messages import error_sentence, shown
from gateway.web.texts import gettext
from gateway.web.views import environmentview
from gateway.web.views.acted import acted

bp = Blueprint("environments", __name__, url_prefix="/library/environments")


def desk() -> Desk:
    """What it takes to send a job of the portal itself."""
    have = deps()
    return Desk(
        begin=have.begin,
        read=have.read,
        broker=have.broker,
        catalogue=have.catalogue,
        cluster=have.settings.cluster_name,
        zone=have.settings.timezone,
        service_login=have.settings.service_login,
    )


@bp.get("")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    """The matrix: environments by types of cards."""
    have = deps()
    found = environment_checks.matrix(viewer(), begin=have.read, file=have.environments)
    return render_template(
        "pages/environments.html",
        page=environmentview.matrix(found, viewer()),
        form=CheckForm(),
        as_whom=have.settings.service_login,
    )


@bp.get("/new")
@requires(Permission.USE_PORTAL)
def new() -> ResponseReturnValue:
    return _new_page(_form())


@bp.post("/new")
@requires(Permission.USE_PORTAL)
def create() -> ResponseReturnValue:
    return _publish(_form(), _new_page)


@bp.post("/import")
@requires(Permission.USE_PORTAL)
def import_file() -> ResponseReturnValue:
    form = FileForm()
    form.group.choices = [(one, one) for one in environment_publish.publishes_for(viewer())]
    return _publish(form, lambda one: _new_page(_form(), file=one))


@bp.get("/<name>")
@requires(Permission.USE_PORTAL)
def show(name: str) -> ResponseReturnValue:
    """What is known of it, what it goes with, and its checks."""
    entry, have = entry_of(name), deps()
    with have.read() as session:
        history = store.checks_of(session, name)
    cells = environment_checks.cells(entry, begin=have.read)
    return render_template(
        "pages/environment.html",
        page=environmentview.one(entry, cells, history, viewer=viewer(), have=have),
        form=CheckForm(),
        as_whom=have.settings.service_login,
    )


@bp.get("/<name>/export.json")
@requires(Permission.USE_PORTAL)
def export(name: str) -> ResponseReturnValue:
    answer = jsonify(environment_publish.export(entry_of(name).environment))
    answer.headers["Content-Disposition"] = f"attachment; filename={name}.json"
    return answer


@bp.get("/<name>/edit")
@requires(Permission.USE_PORTAL)
def edit(name: str) -> ResponseReturnValue:
    entry, form = _own(name), _form()
    form.fill(entry.environment)
    return _edit_page(entry, form)


@bp.post("/<name>/edit")
@requires(Permission.USE_PORTAL)
def update(name: str) -> ResponseReturnValue:
    entry, form, have = _own(name), _form(), deps()
    form.name.data, form.group.data = name, entry.environment.group  # neither can be changed

    def act() -> str:
        environment_publish.change(
            form.table(), viewer=viewer(), begin=have.begin, now=have.clock()
        )
        return gettext("%(name)s is changed and offered.", name=name)

    return acted(
        form, act, again=lambda one: _edit_page(entry, one), to="environments.show", name=name
    )


@bp.post("/<name>/retire")
@requires(Permission.USE_PORTAL)
def retire(name: str) -> ResponseReturnValue:
    have = deps()

    def act() -> str:
        environment_publish.retire(name, viewer=viewer(), begin=have.begin, now=have.clock())
        return gettext("%(name)s is not offered any more. Old jobs still tell it.", name=name)

    return _done(name, act)


@bp.post("/<name>/check")
@requires(Permission.USE_PORTAL)
def check(name: str) -> ResponseReturnValue:
    form, entry = CheckForm(), entry_of(name)

    def act() -> str:
        if not form.validate():
            raise Refused("bad_request")
        environment_checks.start(
            entry,
            form.gpu_type.data or "",
            viewer=viewer(),
            desk=desk(),
            form_key=str(form.key.data),
            now=deps().clock(),
        )
        return gettext("The check is on its way. Its result appears here.")

    return _done(name, act)


@bp.post("/<name>/adopt")
@requires(Permission.USE_PORTAL)
def adopt(name: str) -> ResponseReturnValue:
    """What the newest check on a type of card has found becomes what is known."""
    have, form = deps(), CheckForm()

    def act() -> str:
        environment_publish.adopt(
            name,
            form.gpu_type.data or "",
            viewer=viewer(),
            begin=have.begin,
            file=have.environments,
            now=have.clock(),
        )
        return gettext("What the check has found is what is known of %(name)s now.", name=name)

    return _done(name, act)


def _publish(form: EnvironmentForm | FileForm, again: Callable[..., str]) -> ResponseReturnValue:
    have = deps()
    if not form.validate():
        return again(form), 422
    try:
        made = environment_publish.publish(
            form.table(),
            group=form.group.data or "",
            viewer=viewer(),
            begin=have.begin,
            file=have.environments,
            now=have.clock(),
        )
    except Refused as refusal:
        form.refused(refusal)
        return again(form), 422
    flash(gettext("%(name)s is published and offered.", name=made.name), "good")
    return redirect(url_for("environments.show", name=made.name), code=303)


def _done(name: str, act: Callable[[], str]) -> ResponseReturnValue:
    """Do it, and say what is so now or why not."""
    try:
        flash(act(), "good")
    except InvalidAsk as invalid:
        flash(shown(invalid.problems[0]).text, "bad")
    except (Refused, BrokerRefused) as refusal:
        flash(error_sentence(refusal), "bad")
    return redirect(url_for("environments.show", name=name), code=303)


def entry_of(name: str) -> Entry:
    """One that this person may see. NotFound."""
    have = deps()
    return environment_publish.entry(name, viewer(), begin=have.read, file=have.environments)


def _own(name: str) -> Entry:
    entry = entry_of(name)
    if not entry.may_change:
        raise NotFound(f"{name} is not this person's to change")
    return entry


def _form() -> EnvironmentForm:
    groups = environment_publish.publishes_for(viewer())
    if not groups:
        raise NotFound("who publishes nothing")
    return EnvironmentForm().offer(groups)


def _new_page(form: EnvironmentForm, file: FileForm | None = None) -> str:
    other = file or FileForm(formdata=None)
    other.group.choices = form.group.choices
    return render_template("pages/environment_new.html", form=form, file=other)


def _edit_page(entry: Entry, form: EnvironmentForm) -> str:
    return render_template("pages/environment_edit.html", entry=entry, form=form)
