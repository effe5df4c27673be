"""Which language and which zone a reader gets."""

from zoneinfo import ZoneInfo

from flask import Flask, request, session
from flask_babel import Babel  # type: ignore[import-untyped]

from gateway.config import Settings
from gateway.web.access import viewer_or_none
from gateway.web.texts import init_texts

LANGUAGES = {"en": "English", "zh_Hans": "简体中文"}
DEFAULT_LANGUAGE = "en"


def init_i18n(app: Flask, settings: Settings) -> None:
    """Texts in the reader's language, times in the reader's zone, else the site's."""
    app.config["BABEL_TRANSLATION_DIRECTORIES"] = "translations"
    Babel(
        app,
        default_locale=DEFAULT_LANGUAGE,
        locale_selector=language,
        timezone_selector=lambda: zone(settings.timezone).key,
    )
    init_texts(app)


def language() -> str:
    """The person's own choice, then the browser's last choice here, then what it accepts."""
    viewer = viewer_or_none()
    chosen = viewer.locale if viewer is not None and viewer.locale else session.get("language")
    return chosen if chosen in LANGUAGES else _accepted()


def language_tag() -> str:
    """For the page's `lang`: BCP 47 writes a hyphen."""
    return language().replace("_", "-")


def zone(default: ZoneInfo) -> ZoneInfo:
    """The viewer's zone, or the site's."""
    viewer = viewer_or_none()
    return zone_named(viewer.timezone if viewer is not None else None) or default


def zone_named(name: str | None) -> ZoneInfo | None:
    """The zone of that name, or None: names come from a form."""
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def _accepted() -> str:
    for tag, _ in request.accept_languages:
        if tag.lower().startswith("zh"):
            return "zh_Hans"
        if tag.lower().startswith("en"):
            return "en"
    return DEFAULT_LANGUAGE
