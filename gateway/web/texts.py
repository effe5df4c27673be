"""Texts in the reader's language: the typed door to Flask-Babel, which has no types."""

from datetime import datetime
from typing import Any, Protocol

import flask_babel  # type: ignore[import-untyped]


class Lazy(Protocol):
    """A text that is looked up when it is shown, in the language of whoever reads it then."""

    def __str__(self) -> str: ...


def gettext(text: str, **facts: Any) -> str:
    return str(flask_babel.gettext(text, **facts))


def ngettext(one: str, many: str, num: int, **facts: Any) -> str:
    return str(flask_babel.ngettext(one, many, num, **facts))


def lazy_gettext(text: str) -> Lazy:
    found: Lazy = flask_babel.lazy_gettext(text)
    return found


def format_datetime(at: datetime, pattern: str) -> str:
    return str(flask_babel.format_datetime(at, pattern))


def refresh() -> None:
    """Forget which language this request has: it has just been changed."""
    flask_babel.refresh()
