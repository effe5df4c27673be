"""Signing in and out, one's sessions, language and zone."""

from zoneinfo import available_timezones

from flask import Blueprint, flash, g, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user, login_user, logout_user

from gateway.core.access import Permission
from gateway.errors import Refused
from gateway.services import app_acts, people, signin
from gateway.services.passwords import SHORTEST
from gateway.web.access import SignedIn, local_path, requires, viewer, viewer_or_none
from gateway.web.deps import deps
from gateway.web.forms import Confirmed, PasswordForm, SettingsForm, SignInForm
from gateway.web.i18n import LANGUAGES
from gateway.web.messages import error_sentence
from gateway.web.texts import gettext, refresh
from gateway.web.views import kept

bp = Blueprint("auth", __name__)


@bp.get("/sign-in")
def sign_in() -> ResponseReturnValue:
    target = local_path(request.args.get("next")) or ""
    if viewer_or_none() is not None:
        return redirect(target or url_for("jobs.index"))
    return kept.sign_in_page(SignInForm(data={"next": target}))


@bp.post("/sign-in")
def sign_in_post() -> ResponseReturnValue:
    form = SignInForm()
    if not form.validate():
        return kept.sign_in_page(form), 422
    try:
        _begin_session(form.login.data or "", form.password.data or "")
    except Refused as refusal:
        status = 429 if refusal.code == "too_many_attempts" else 422
        return kept.sign_in_page(form, trouble=error_sentence(refusal)), status
    target = local_path(form.next.data) or url_for("jobs.index")
    return kept.restore(form.kept.data) or redirect(target, code=303)


@bp.post("/sign-out")
@requires(Permission.USE_PORTAL)
def sign_out() -> ResponseReturnValue:
    signin.sign_out(current_user.id, begin=deps().begin, now=deps().clock())
    app_acts.end_of_session(viewer().person_id, viewer().session_id, read=deps().read)
    logout_user()
    session.clear()
    return redirect(url_for("auth.sign_in"), code=303)


@bp.post("/language")
def language() -> ResponseReturnValue:
    """Also before sign-in; a signed-in person's choice is kept with the account."""
    chosen = request.form.get("language", "")
    if chosen in LANGUAGES:
        session["language"] = chosen
        who = viewer_or_none()
        if who is not None:
            _prefer(locale=chosen, timezone=who.timezone)
    return redirect(local_path(request.form.get("next")) or "/", code=303)


@bp.get("/sessions")
@requires(Permission.USE_PORTAL)
def sessions() -> ResponseReturnValue:
    rows = signin.sessions(viewer(), begin=deps().read, now=deps().clock())
    return render_template("pages/sessions.html", rows=rows, own=viewer().session_id)


@bp.post("/sessions/<int:session_id>/end")
@requires(Permission.USE_PORTAL)
def end_session(session_id: int) -> ResponseReturnValue:
    have = deps()
    if Confirmed().validate():
        signin.end_session(session_id, viewer=viewer(), begin=have.begin, now=have.clock())
        app_acts.end_of_session(viewer().person_id, session_id, read=have.read)
        flash(gettext("The session has ended."), "good")
    return redirect(url_for("auth.sessions"), code=303)


@bp.route("/settings", methods=["GET", "POST"])
@requires(Permission.USE_PORTAL)
def settings() -> ResponseReturnValue:
    form = _settings_form()
    if not form.validate_on_submit():
        return render_template("pages/settings.html", form=form), 422 if form.errors else 200
    _prefer(locale=form.language.data or None, timezone=form.timezone.data or None)
    session.pop("language", None)
    refresh()
    flash(gettext("Saved."), "good")
    return redirect(url_for("auth.settings"), code=303)


@bp.route("/password", methods=["GET", "POST"])
@requires(Permission.USE_PORTAL)
def password() -> ResponseReturnValue:
    form, trouble = PasswordForm(data={"elsewhere": True}), None
    if form.validate_on_submit():
        trouble = _change_password(form)
        if trouble is None:
            flash(gettext("Your password is changed."), "good")
            return redirect(url_for("auth.settings"), code=303)
    page = render_template("pages/password.html", form=form, trouble=trouble, shortest=SHORTEST)
    return page, 422 if form.errors or trouble else 200


def _settings_form() -> SettingsForm:
    who = viewer()
    form = SettingsForm(data={"language": who.locale or "", "timezone": who.timezone or ""})
    zones = sorted(name for name in available_timezones() if "/" in name or name == "UTC")
    form.offer(languages=LANGUAGES, zones=zones, site_zone=deps().settings.timezone.key)
    return form


def _change_password(form: PasswordForm) -> str | None:
    """What stood in the way, if anything did."""
    have = deps()
    try:
        people.change_own_password(
            viewer(),
            old=form.old.data or "",
            new=form.new.data or "",
            end_others=form.elsewhere.data,
            address=request.remote_addr or "",
            begin=have.begin,
            now=have.clock(),
        )
    except Refused as refusal:
        return error_sentence(refusal)
    if form.elsewhere.data:  # one's own connections come again by themselves
        app_acts.end_of_session(viewer().person_id, None, read=have.read)
    return None


def _begin_session(login: str, password: str) -> None:
    """A new session for a new person: nothing of the old cookie stays but the language."""
    have = deps()
    token = signin.sign_in(
        login,
        password,
        kind="browser",
        address=request.remote_addr or "",
        agent=request.headers.get("User-Agent", ""),
        begin=have.begin,
        now=have.clock(),
    )
    found = signin.viewer(token, begin=have.begin, now=have.clock())
    assert found is not None  # it was made a moment ago
    chosen = session.get("language")
    session.clear()
    session.permanent = True
    if chosen:
        session["language"] = chosen
    login_user(SignedIn(token, found))
    g.viewer = found
    refresh()


def _prefer(*, locale: str | None, timezone: str | None) -> None:
    people.set_preferences(viewer().person_id, locale=locale, timezone=timezone, begin=deps().begin)
