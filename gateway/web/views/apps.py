"""Notebooks and other applications: start one, follow it until it can be used, keep it, end it."""

from typing import Any
from uuid import uuid4

from flask import Blueprint, flash, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from wtforms import StringField

from gateway.core.access import Permission
from gateway.errors import NotFound, Refused
from gateway.services import app_acts, apps
from gateway.services import offer as offers
from gateway.services.submit import InvalidAsk
from gateway.store import apps as store
from gateway.store.apps import AppRow
from gateway.web import sending
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.formbase import Posted, at_most, needed
from gateway.web.frontdoor import is_passed
from gateway.web.messages import error_sentence
from gateway.web.texts import gettext
from gateway.web.views import appform, appview, earlier, snapshots

bp = Blueprint("apps", __name__, url_prefix="/notebooks")
MORE_MINUTES = (60, 120, 240, 480)


class GuestForm(Posted):
    login = StringField(validators=[needed(), at_most(200)])


@bp.get("")
@requires(Permission.SUBMIT_JOB)
def index() -> ResponseReturnValue:
    """One's own that are open, those one was named for, and the form for another."""
    return _index(appform.view(request.args))


@bp.post("")
@requires(Permission.SUBMIT_JOB)
def start() -> ResponseReturnValue:
    """One submission a form key, however often the button is pressed."""
    if request.form.get("again"):
        return _again(request.form["again"])
    form = appform.view(request.form)
    if form.template is None:
        raise NotFound("application")
    try:
        sent = sending.send(form.ask, form.key)
    except InvalidAsk as invalid:
        return _index(appform.view(request.form, problems=tuple(invalid.problems))), 422
    return _on_its_way(sent.now.row.id)


@bp.post("/price")
@requires(Permission.SUBMIT_JOB)
def price() -> ResponseReturnValue:
    """The form again with the price and the choices of what is chosen now."""
    if not request.headers.get("HX-Request"):
        return _index(appform.view(request.form))
    return render_template("fragments/app_form.html", form=appform.view(request.form))


@bp.get("/<int:submission_id>")
@requires(Permission.USE_PORTAL)
def show(submission_id: int) -> ResponseReturnValue:
    """The owner's page, or the guest's: first of all whom one trusts by opening it."""
    row, guest = apps.seen(submission_id, viewer=viewer(), read=deps().read)
    page = _view(row)
    if row.person_id != viewer().person_id:
        agreed = guest is not None and guest.agreed_at is not None
        return render_template("pages/app_guest.html", app=page, agreed=agreed)
    if page.stage is appview.Stage.OVER and page.job_page and not request.args.get("stay"):
        return redirect(page.job_page)
    return render_template(
        "pages/app.html", app=page, open=bool(request.args.get("open")), **_own(page)
    )


@bp.get("/<int:submission_id>/state")
@requires(Permission.USE_PORTAL)
def state(submission_id: int) -> ResponseReturnValue:
    """How it does now. When it comes or goes the page is brought anew; once ready it opens where
    that was asked for."""
    row, _ = apps.seen(submission_id, viewer=viewer(), read=deps().read)
    page = _view(row)
    answer = make_response(render_template("fragments/app_state.html", app=page))
    if page.stage is appview.Stage.STARTING:
        answer.headers["HX-Trigger"] = "soon"  # a second is long for somebody who waits for it
    shown = request.args.get("stage", "")
    if page.stage != shown and not (page.is_coming and shown in appview.COMING):
        opens = request.args.get("open") and page.url and row.person_id == viewer().person_id
        answer.headers["HX-Redirect"] = page.url if opens else page.page
    return answer


@bp.post("/<int:submission_id>/stop")
@requires(Permission.SUBMIT_JOB)
def stop(submission_id: int) -> ResponseReturnValue:
    have, row = deps(), _mine(submission_id)
    app_acts.stop(row, viewer=viewer(), begin=have.begin, broker=have.broker, now=have.clock())
    flash(gettext("It is being ended. Files stay; what runs in it does not."), "good")
    return redirect(url_for(".index"), code=303)


@bp.post("/<int:submission_id>/extend")
@requires(Permission.SUBMIT_JOB)
def extend(submission_id: int) -> ResponseReturnValue:
    """`minutes`: the whole new limit, as the button that was pressed says with its price."""
    row = _mine(submission_id)
    minutes = request.form.get("minutes", "")
    if not (minutes.isascii() and minutes.isdigit() and len(minutes) < 9):
        raise Refused("bad_request")
    lengthen(row, int(minutes))
    flash(
        gettext("It has more time. The page shows it as soon as Slurm has told the portal."), "good"
    )
    return redirect(url_for(".show", submission_id=row.id), code=303)


@bp.post("/<int:submission_id>/keep")
@requires(Permission.SUBMIT_JOB)
def keep(submission_id: int) -> ResponseReturnValue:
    return _done(submission_id, app_acts.keep, gettext("Good: it goes on."))


@bp.post("/<int:submission_id>/save")
@requires(Permission.SUBMIT_JOB)
def save(submission_id: int) -> ResponseReturnValue:
    words = gettext("The snapshot is being made; you can go on working meanwhile.")
    return _done(submission_id, app_acts.save, words)


@bp.post("/<int:submission_id>/share")
@requires(Permission.SUBMIT_JOB)
def share(submission_id: int) -> ResponseReturnValue:
    have, form = deps(), GuestForm()
    if not form.validate_on_submit():
        raise Refused("no_such_person")
    apps.share(
        submission_id,
        form.login.data or "",
        viewer=viewer(),
        begin=have.begin,
        read=have.read,
        now=have.clock(),
    )
    flash(gettext("Named. It stands under Notebooks for them, too."), "good")
    return redirect(url_for(".show", submission_id=submission_id), code=303)


@bp.post("/<int:submission_id>/unshare")
@requires(Permission.SUBMIT_JOB)
def unshare(submission_id: int) -> ResponseReturnValue:
    if take_back(_mine(submission_id), request.form.get("login", "")):
        flash(gettext("Taken back: nothing more is let through for them."), "good")
    else:
        words = gettext(
            "Taken back, but its node did not answer: what they have open stays open until they"
            " close it, or until you stop it."
        )
        flash(words, "bad")
    return redirect(url_for(".show", submission_id=submission_id), code=303)


@bp.post("/<int:submission_id>/agree")
@requires(Permission.USE_PORTAL)
def agree(submission_id: int) -> ResponseReturnValue:
    """A guest trusts the owner; from now on the application opens."""
    have = deps()
    row, _ = apps.seen(submission_id, viewer=viewer(), read=have.read)
    apps.agree(row.id, viewer=viewer(), begin=have.begin, read=have.read, now=have.clock())
    page = appview.build(row)
    return redirect(page.url or page.page, code=303)


def take_back(row: AppRow, login: str) -> bool:
    """The page's and the API's way. False: what the guest has open could not be closed."""
    have = deps()
    guest = apps.unshare(row.id, login, viewer=viewer(), begin=have.begin, read=have.read)
    return guest is None or app_acts.send_away(row, guest)


def lengthen(row: AppRow, minutes: int) -> None:
    """The page's and the API's way to more time."""
    have = deps()
    app_acts.extend(
        row,
        minutes,
        offers.offer(viewer(), begin=have.read),
        extension_hours=have.settings.app_extension_hours,
        viewer=viewer(),
        begin=have.begin,
        broker=have.broker,
        now=have.clock(),
        zone=have.settings.timezone,
    )


def longer_times(row: AppRow) -> list[app_acts.Longer]:
    have = deps()
    return app_acts.longer_times(
        row,
        offers.offer(viewer(), begin=have.read),
        MORE_MINUTES,
        extension_hours=have.settings.app_extension_hours,
        begin=have.read,
        now=have.clock(),
    )


def _index(form: appform.FormView) -> str:
    have, who = deps(), viewer()
    with have.read() as session:
        mine = store.own(session, who.person_id, apps.names(have.catalogue), open_only=True)
        others = store.shared_with(session, who.person_id)
    return render_template(
        "pages/apps.html",
        form=form,
        mine=[_listed(row) for row in mine],
        others=[_listed(row) for row in others],
        last=appform.last(),
        proxied=is_passed(),
    )


def _listed(row: AppRow) -> appview.AppView:
    """As the database knows it; only what is on its way asks for its file."""
    if row.door is None:
        row, state = appview.read(row)
        return appview.build(row, state=state)
    return appview.build(row)


def _view(row: AppRow) -> appview.AppView:
    have = deps()
    fresh, told = appview.read(row)
    text = saved_page = ""
    if fresh.person_id == viewer().person_id:
        failed = appview.stage_of(fresh, told) is appview.Stage.FAILED
        text = (told.text if told else "") or (
            apps.last_lines(fresh, broker=have.broker) if failed else ""
        )
        saved_page = snapshots.page_of(told.saved) if told and told.saved else ""
    trouble = appview.trouble(fresh)
    return appview.build(fresh, state=told, text=text, trouble=trouble, saved_page=saved_page)


def _own(page: appview.AppView) -> dict[str, Any]:
    """What the owner's page has beside the state."""
    have, row = deps(), page.row
    with have.read() as session:
        guests = store.guests(session, row.id)
    longer = longer_times(row) if page.stage in appview.OPEN else []
    return {"guests": guests, "longer": longer, "proxied": is_passed()}


def _mine(submission_id: int) -> AppRow:
    return apps.own(submission_id, viewer=viewer(), read=deps().read)


def _again(text: str) -> ResponseReturnValue:
    """Like last time, in one click: exactly the values of an earlier one of one's own."""
    if not (text.isascii() and text.isdigit()):
        raise NotFound("submission")
    row = _mine(int(text))
    try:
        sent = sending.send(earlier.load(row.id), f"{_key()}-{row.id}")
    except InvalidAsk as invalid:
        form = appform.of_ask(earlier.load(row.id), problems=tuple(invalid.problems))
        return _index(form), 422
    return _on_its_way(sent.now.row.id)


def _key() -> str:
    """One of the page, and with the id one of each of its buttons."""
    return request.form.get("form_key", "")[:36] or str(uuid4())


def _on_its_way(submission_id: int) -> ResponseReturnValue:
    opens = "1" if request.form.get("open") else None
    return redirect(url_for(".show", submission_id=submission_id, open=opens), code=303)


def _done(submission_id: int, act: Any, words: str) -> ResponseReturnValue:
    """Tell the node, and say what came of it on the page."""
    row = _mine(submission_id)
    try:
        act(row)
        flash(words, "good")
    except Refused as error:
        flash(error_sentence(error), "bad")
    return redirect(url_for(".show", submission_id=row.id), code=303)
