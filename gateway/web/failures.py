"""Errors as pages: what happened, what was kept, what to do. Never an exception's text."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog
from flask import Flask, jsonify, make_response, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue
from flask_wtf.csrf import CSRFError
from werkzeug.exceptions import HTTPException, Unauthorized

from gateway.errors import GatewayError, Refused
from gateway.web.access import viewer_or_none
from gateway.web.apijson import BadFields
from gateway.web.messages import error_sentence, sentence
from gateway.web.texts import gettext
from gateway.web.views import kept

log = structlog.get_logger(__name__)

_CODES = {
    400: "bad_request",
    401: "not_signed_in",
    403: "refused",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    429: "too_many_attempts",
    503: "busy",
}


@dataclass(frozen=True, slots=True)
class Failed:
    """One failure as it is told."""

    status: int
    code: str
    text: str
    fields: Mapping[str, str] = field(default_factory=dict)


def init_failures(app: Flask) -> None:
    app.register_error_handler(GatewayError, _ours)
    app.register_error_handler(CSRFError, _forged)
    app.register_error_handler(Unauthorized, _stranger)
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(Exception, _bug)


def _ours(error: GatewayError) -> ResponseReturnValue:
    if error.status >= 500:
        log.error("request_failed", code=error.code, path=request.path, detail=str(error))
    status = 429 if error.code == "too_many_attempts" else error.status
    return tell(Failed(status, error.code, error_sentence(error), _fields(error)))


def _fields(error: GatewayError) -> dict[str, str]:
    """What is said at which field of the request."""
    if isinstance(error, BadFields):
        return {name: sentence(code) for name, code in error.fields.items()}
    if isinstance(error, Refused) and error.field:
        return {error.field: error_sentence(error)}
    return {}


def _forged(_error: CSRFError) -> ResponseReturnValue:
    if viewer_or_none() is None and not request.headers.get("HX-Request"):
        return kept.sign_in_with_kept_form()
    again = kept.show_again(
        gettext(
            "The page was open too long. Nothing was sent: everything you "
            "typed is still here, so send it again."
        )
    )
    return again or tell(Failed(400, "bad_csrf", sentence("bad_csrf")))


def _stranger(_error: Unauthorized) -> ResponseReturnValue:
    if _wants_json():
        return tell(Failed(401, "not_signed_in", sentence("not_signed_in")))
    if request.headers.get("HX-Request"):
        # The page keeps what was typed: only a line above it says what to do.
        return _notice(gettext("Your session has ended."), 401, sign_in=True)
    if request.method == "POST":
        return kept.sign_in_with_kept_form()
    target = request.full_path.rstrip("?")
    return redirect(url_for("auth.sign_in", next=None if target == "/" else target))


def _http(error: HTTPException) -> ResponseReturnValue:
    if error.code is None or error.code < 400:
        return error
    code = _CODES.get(error.code, "internal" if error.code >= 500 else "bad_request")
    return tell(Failed(error.code, code, sentence(code)))


def _bug(error: Exception) -> ResponseReturnValue:
    log.error("bug", path=request.path, exc_info=error)
    return tell(Failed(500, "internal", sentence("internal")))


def tell(failed: Failed) -> ResponseReturnValue:
    """As JSON, as a line above the page, or as a page: as the caller can use it."""
    if _wants_json():
        body = {"code": failed.code, "message": failed.text, "fields": failed.fields}
        return jsonify(body), failed.status
    if request.headers.get("HX-Request"):
        return _notice(failed.text, failed.status)
    page = render_template(
        "pages/error.html", failed=failed, advice=_advice(failed.status), posted=_posted()
    )
    return page, failed.status


def _advice(status: int) -> str:
    if status == 404:
        return gettext("Look for it in your list of jobs, or by its id in the search box.")
    if status == 413:
        return gettext("Put large files into a folder on the cluster, and give the job their path.")
    if status == 429:
        return gettext(
            "This protects accounts from guessed passwords. Nobody is locked out for long."
        )
    if status >= 500:
        return gettext("Jobs in Slurm are not affected. Try again in a minute.")
    return gettext("Go back, change what is said here, and try again.")


def _posted() -> bool:
    return request.method == "POST"


def _wants_json() -> bool:
    if request.path.startswith("/api/"):
        return True
    return request.accept_mimetypes.best == "application/json"


def _notice(text: str, status: int, *, sign_in: bool = False) -> ResponseReturnValue:
    body = render_template("fragments/notice.html", text=text, sign_in=sign_in)
    response = make_response(body, status)
    response.headers["HX-Retarget"] = "#notice"
    response.headers["HX-Reswap"] = "innerHTML"
    return response
