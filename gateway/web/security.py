"""Headers, cookies, the secret key and CSRF: what protects every page alike."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from flask import Flask, Response, request
from flask_wtf import CSRFProtect
from werkzeug.middleware.proxy_fix import ProxyFix

from gateway.config import Settings

# No unsafe-*: our templates hold no inline script or style. Pico draws the arrows of its
# selects as data: images. form-action stops a planted form from sending a password elsewhere.
CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
MAX_BODY_BYTES = 2 * 2**20
SESSION_COOKIE = "sluice"


def init_security(app: Flask, settings: Settings) -> CSRFProtect:
    """Configure cookies, limits and headers; return the CSRF guard of every form."""
    app.config.update(
        SECRET_KEY=secret_key(settings.home / "secret_key"),
        SESSION_COOKIE_NAME=SESSION_COOKIE,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=settings.behind_tls,
        MAX_CONTENT_LENGTH=MAX_BODY_BYTES,
        MAX_FORM_MEMORY_SIZE=MAX_BODY_BYTES,
        # The token lives as long as the session: a form that was open over lunch still works.
        WTF_CSRF_TIME_LIMIT=None,
        WTF_CSRF_SSL_STRICT=settings.behind_tls,
    )
    app.after_request(_headers)
    if settings.behind_tls:
        # The proxy's own address would make the sign-in throttle count everybody as one.
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=1, x_proto=1)  # type: ignore[method-assign]
    guard = CSRFProtect()
    guard.init_app(app)
    return guard


def _headers(response: Response) -> Response:
    headers = response.headers
    headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
    headers["X-Content-Type-Options"] = "nosniff"
    headers["X-Frame-Options"] = "DENY"
    headers["Referrer-Policy"] = "same-origin"
    headers["Cross-Origin-Opener-Policy"] = "same-origin"
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
    headers["Permissions-Policy"] = "camera=(), geolocation=(), microphone=(), payment=()"
    if request.endpoint != "static":
        headers.setdefault("Cache-Control", "no-store")
        headers.add("Vary", "HX-Request")
    return response


def secret_key(path: Path) -> bytes:
    """Read the key that signs cookies; make it once, readable by its owner alone.

    Two web workers may start at once: the one who links first wins, the other reads.
    """
    with suppress(FileNotFoundError):
        return path.read_bytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(32))
    with suppress(FileExistsError):
        os.link(draft, path)
    draft.unlink()
    return path.read_bytes()
