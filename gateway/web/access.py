"""Who may open which route: every view carries one `@requires`, or stands in PUBLIC."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from flask import Flask, current_app, g, request
from flask_login import LoginManager, UserMixin, current_user
from werkzeug.exceptions import Unauthorized

from gateway.core.access import Permission, Viewer
from gateway.errors import NotFound
from gateway.services import signin
from gateway.web.deps import deps

View = TypeVar("View", bound=Callable[..., Any])

# Before sign-in: the page to sign in, its language, files of the front end, and the probe.
PUBLIC = frozenset(
    {
        "auth.sign_in",
        "auth.sign_in_post",
        "auth.language",
        "api.create_session",
        "health.alive",
        "appgate.gate",  # says nothing but to our nginx, which asks for whoever comes
        "static",
    }
)


class SignedIn(UserMixin):  # type: ignore[misc]  # the package has no types
    """What Flask-Login carries: the token is the id, so that the cookie names a session."""

    def __init__(self, token: str, viewer: Viewer) -> None:
        self.id = token
        self.viewer = viewer


def init_access(app: Flask) -> None:
    """Sessions are rows: the cookie holds a token, and each request asks whether it lives."""
    manager = LoginManager()
    manager.session_protection = None  # a phone changes its address; the table can end a session
    manager.user_loader(_load)
    manager.init_app(app)


def requires(permission: Permission) -> Callable[[View], View]:
    """Let in who holds the permission. Others are told nothing (404), strangers may sign in."""

    def decorate(view: View) -> View:
        @wraps(view)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            viewer = viewer_or_none()
            if viewer is None:
                raise Unauthorized
            if not viewer.may(permission):
                raise NotFound(f"{viewer.login} lacks {permission}")
            return current_app.ensure_sync(view)(*args, **kwargs)

        cast(Any, guarded).required_permission = permission
        return cast(View, guarded)

    return decorate


def viewer() -> Viewer:
    """Who looks; for views behind `requires`."""
    found = viewer_or_none()
    if found is None:
        raise Unauthorized
    return found


def viewer_or_none() -> Viewer | None:
    """Who looks. The API knows bearer tokens and no cookies, pages know cookies alone."""
    if "viewer" not in g:
        g.viewer = _bearer() if request.blueprint == "api" else _from_cookie()
    return cast(Viewer | None, g.viewer)


def local_path(target: str | None) -> str | None:
    """`target` when it is a path of this portal, else None: no redirect leads elsewhere."""
    if not target or not target.startswith("/") or target.startswith(("//", "/\\")):
        return None
    if any(ord(character) < 32 or character == "\\" for character in target):
        return None
    parts = urlsplit(target)
    return None if parts.scheme or parts.netloc else target


def _from_cookie() -> Viewer | None:
    return current_user.viewer if current_user.is_authenticated else None


def _bearer() -> Viewer | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        return None
    return _holder(token.strip())


def _load(token: str) -> SignedIn | None:
    found = _holder(token)
    return None if found is None else SignedIn(token, found)


def _holder(token: str) -> Viewer | None:
    have = deps()
    return signin.viewer(token, begin=have.begin, read=have.read, now=have.clock())
