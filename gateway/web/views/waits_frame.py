"""What all pages of waits have in common: the question of the address, and their tabs."""

from dataclasses import dataclass
from typing import Any

from flask import current_app, request, url_for

from gateway.web import wait_filters
from gateway.web.deps import deps
from gateway.web.texts import Lazy
from gateway.web.texts import lazy_gettext as _l
from gateway.web.wait_filters import Asked

# A tab is there when its page is. False: a page without these filters.
_TABS: tuple[tuple[str, Lazy, bool], ...] = (
    ("waits.index", _l("Overview"), True),
    ("waits.by", _l("By …"), True),
    ("waits.distribution", _l("Distribution"), True),
    ("waits.over_time", _l("Over time"), True),
    ("waits.week", _l("Hours of the week"), True),
    ("wait_causes.index", _l("Where the wait went"), True),
    ("forecast_record.index", _l("Forecast record"), False),
    ("usage.index", _l("Usage"), True),
)


@dataclass(frozen=True, slots=True)
class Tab:
    word: str
    url: str
    on: bool


def asked() -> Asked:
    """What this request's address asks."""
    have = deps()
    return wait_filters.read(request.args, now=have.clock(), zone=have.settings.timezone)


def tabs(asked: Asked | None = None) -> tuple[Tab, ...]:
    """Filters go along to the pages that know them."""
    query: dict[str, Any] = {**asked.query} if asked else {}
    return tuple(
        Tab(str(word), url_for(name, **(query if filtered else {})), name == request.endpoint)
        for name, word, filtered in _TABS
        if name in current_app.view_functions
    )
