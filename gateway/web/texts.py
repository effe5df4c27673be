"""Texts in the reader's language: the typed door to Flask-Babel, which has no types.

The catalogue is looked up once a request: a list of a hundred jobs asks for a thousand texts.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import flask_babel  # type: ignore[import-untyped]
from babel import numbers
from flask import Flask, g


class Lazy:
    """A text that is looked up when it is shown, in the language of whoever reads it then."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    @property
    def english(self) -> str:
        """As the source has it: for the command line, which has no reader's language."""
        return self._text

    def __str__(self) -> str:
        return gettext(self._text)

    def __mod__(self, facts: Mapping[str, object]) -> str:
        return str(self) % facts


def gettext(text: str, **facts: Any) -> str:
    found = str(_catalogue().ugettext(text))
    return found % facts if facts else found


def ngettext(one: str, many: str, num: int, **facts: Any) -> str:
    return str(_catalogue().ungettext(one, many, num)) % {"num": num, **facts}


def lazy_gettext(text: str) -> Lazy:
    return Lazy(text)


def format_datetime(at: datetime, pattern: str) -> str:
    return str(flask_babel.format_datetime(at, pattern))


def format_currency(amount: Decimal, currency: str, *, exact: bool = False) -> str:
    """To the cent, or with every decimal it has."""
    locale = flask_babel.get_locale()
    written = numbers.format_currency(
        amount, currency, locale=locale, decimal_quantization=not exact
    )
    return str(written)


def refresh() -> None:
    """Forget which language this request has: it has just been changed."""
    flask_babel.refresh()
    g.pop("catalogue", None)


def init_texts(app: Flask) -> None:
    """Templates look texts up the same way."""
    app.jinja_env.install_gettext_callables(  # type: ignore[attr-defined]  # of the extension
        lambda text: _catalogue().ugettext(text),
        lambda one, many, num: _catalogue().ungettext(one, many, num),
        newstyle=True,
    )


def _catalogue() -> Any:
    if "catalogue" not in g:
        g.catalogue = flask_babel.get_translations()
    return g.catalogue
