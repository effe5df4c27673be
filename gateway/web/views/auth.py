"""Signing in and out, one's sessions, language and zone."""

from zoneinfo import available_timezones

from flask import Blueprint, flash, g, redirect, render_template, request, session, url_for
from flask.typing import ResponseReturnValue
from flask_login import current_user, login_user, logout_user

from gateway.core.access import Permission
from gateway.errors import Refused
from gateway.services import people, signin
from gateway.web.access import SignedIn, local_path, requires, viewer, viewer_or_none
from gateway.web.deps import deps
from gateway.web.i18n import LANGUAGES, zone_named
from gateway.web.messages import error_sentence
from gateway.web.texts import gettext, refresh
from gateway.web.views import kept

bp = Blueprint("auth", __name__)


@bp.get("/sign-in")
def sign_in() -> ResponseReturnValue:
    target = local_path(request.args.get("next")) or ""
    if viewer_or_none() is not None:
        return redirect(target or url_for("jobs.index"))
    return render_template("pages/sign_in.html", target=target, kept="", trouble="", login="")


@bp.post("/sign-in")
def sign_in_post() -> ResponseReturnValue:
    login, target = request.form.get("login", ""), local_path(request.form.get("next")) or ""
    held = request.form.get("kept", "")
    try:
        _begin_session(login, request.form.get("password", ""))
    except Refused as refusal:
        page = render_template(
            "pages/sign_in.html",
            target=target,
            kept=held,
            trouble=error_sentence(refusal),
            login=login,
        )
        return page, 429 if refusal.code == "too_many_attempts" else 422
    return kept.restore(held) or redirect(target or url_for("jobs.index"), code=303)


@bp.post("/sign-out")
@requires(Permission.USE_PORTAL)
def sign_out() -> ResponseReturnValue:
    signin.sign_out(current_user.id, begin=deps().begin, now=deps().clock())
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
    signin.end_session(session_id, viewer=viewer(), begin=have.begin, now=have.clock())
    flash(gettext("The session has ended."), "good")
    return redirect(url_for("auth.sessions"), code=303)


@bp.get("/settings")
@requires(Permission.USE_PORTAL)
def settings() -> ResponseReturnValue:
    zones = sorted(name for name in available_timezones() if "/" in name or name == "UTC")
    return render_template("pages/settings.html", zones=zones, site_zone=deps().settings.timezone)


@bp.post("/settings")
@requires(Permission.USE_PORTAL)
def save_settings() -> ResponseReturnValue:
    chosen, zone = request.form.get("language", ""), request.form.get("timezone", "")
    _prefer(
        locale=chosen if chosen in LANGUAGES else None,
        timezone=zone if zone_named(zone) else None,
    )
    session.pop("language", None)
    refresh()
    flash(gettext("Saved."), "good")
    return redirect(url_for("auth.settings"), code=303)


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
