"""The nginx that stands before the web process: how the portal knows it, and what it then believes.

nginx sends a word with each request that only it and the portal know. Without the word nobody
learns where an application is (`/apps-gate`), and nobody's X-Forwarded-For counts.
"""

import hmac
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flask import request
from werkzeug.middleware.proxy_fix import ProxyFix

from gateway.web.security import secret_key

if TYPE_CHECKING:
    from flask import Flask

HEADER = "X-Sluice-Proxy"
_ENVIRON, _PASSED = "HTTP_X_SLUICE_PROXY", "sluice.proxied"


def word(home: Path) -> str:
    """Made from the key that signs cookies: as secret, and the same on each web host."""
    return hmac.digest(
        secret_key(home / "secret_key"), b"the proxy of applications", "sha256"
    ).hex()


def init_front_door(app: "Flask", home: Path) -> None:
    app.wsgi_app = _FrontDoor(app.wsgi_app, word(home))  # type: ignore[method-assign, assignment]


def is_passed() -> bool:
    """Whether this request came through our nginx, so that applications can be opened."""
    return bool(request.environ.get(_PASSED))


class _FrontDoor:
    def __init__(self, app: Any, expected: str) -> None:
        self._plain, self._expected = app, expected.encode()
        self._proxied = ProxyFix(app, x_for=1, x_proto=1)

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        given = environ.pop(_ENVIRON, "").encode()
        if not hmac.compare_digest(given, self._expected):
            found: Iterable[bytes] = self._plain(environ, start)
            return found
        environ[_PASSED] = True
        return self._proxied(environ, start)
