"""What was typed outlives an ended session or an old page: it travels with the sign-in form."""

import json

from flask import render_template, request
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import MultiDict

from gateway.web.access import local_path, viewer_or_none
from gateway.web.forms import SignInForm
from gateway.web.texts import gettext
from gateway.web.views import formpage

_DROPPED = {"csrf_token", "password", "kept"}
_FORM_ENDPOINTS = {"submit.create", "submit.choices", "submit.preview"}


def sign_in_with_kept_form() -> ResponseReturnValue:
    """The sign-in page, with the form that met an ended session in a hidden field."""
    target, kept = _back(), ""
    if request.endpoint in _FORM_ENDPOINTS:
        kept = json.dumps([pair for pair in request.form.items(multi=True) if _stays(pair[0])])
    form = SignInForm(formdata=None, data={"next": target, "kept": kept})
    return sign_in_page(form, trouble=_reason(kept)), 401


def sign_in_page(form: SignInForm, *, trouble: str = "") -> str:
    """Where it leads afterwards is a path of this portal, or nothing."""
    form.next.data = local_path(form.next.data) or ""
    return render_template("pages/sign_in.html", form=form, trouble=trouble)


def show_again(trouble: str) -> ResponseReturnValue | None:
    """The submit form as it was typed, when that is what was sent."""
    if request.endpoint not in _FORM_ENDPOINTS or viewer_or_none() is None:
        return None
    return formpage.page(request.form, notice=trouble), 400


def restore(kept: str | None) -> ResponseReturnValue | None:
    """The submit form with what the sign-in page carried; None when it carried nothing."""
    if not kept:
        return None
    try:
        pairs = json.loads(kept)
        form = MultiDict([(str(name), str(value)) for name, value in pairs])
    except (ValueError, TypeError, RecursionError):
        return None
    return formpage.page(
        form,
        notice=gettext(
            "You are signed in again. Nothing was lost: look at the form, then press Submit."
        ),
    )


def _stays(name: str) -> bool:
    return name not in _DROPPED


def _back() -> str:
    if request.method == "GET":
        return local_path(request.full_path.rstrip("?")) or ""
    if request.endpoint in _FORM_ENDPOINTS:
        return "/submit"
    return "" if request.endpoint in {"auth.sign_in_post", "auth.language"} else "/jobs"


def _reason(kept: str) -> str:
    if kept:
        return gettext("Your session has ended. Sign in again: what you had typed is kept.")
    if request.endpoint == "auth.sign_in_post":
        return gettext("The page was open too long. Sign in again.")
    return gettext("Your session has ended. Nothing was done: sign in, then do it again.")
