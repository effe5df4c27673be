"""What all pages of waits have in common: the question of the address, tabs, filters, freshness."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from flask import Response, current_app, request, url_for

from gateway.services.seen_waits import SeenWaits, Standing, seen_waits, standing
from gateway.web import wait_filter_form, wait_filters
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.texts import Lazy
from gateway.web.texts import lazy_gettext as _l
from gateway.web.wait_filter_form import FilterView
from gateway.web.wait_filters import FILTERS, Asked

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
_MOST_PROPOSED = 200  # values of one filter; others can be typed


@dataclass(frozen=True, slots=True)
class Tab:
    word: str
    url: str
    on: bool


@dataclass(frozen=True, slots=True)
class Frame:
    """What fragments/waits_head.html shows. `least` people at least stand behind a figure."""

    asked: Asked
    tabs: tuple[Tab, ...]
    filters: FilterView
    standing: Standing
    least: int
    zone: str
    all_url: str | None  # the same for all that is on record, where less is asked


def asked(**also: tuple[Lazy, Collection[str]]) -> Asked:
    """What this request's address asks. `also` as in wait_filters.read."""
    have = deps()
    zone = have.settings.timezone
    return wait_filters.read(request.args, now=have.clock(), zone=zone, also=also)


def asked_of_file(**also: tuple[Lazy, Collection[str]]) -> Asked:
    """The same for a CSV. Raises UnreadableAddress."""
    return wait_filters.whole(asked(**also))


def tabs(asked: Asked | None = None) -> tuple[Tab, ...]:
    """Filters go along to the pages that know them."""
    query: dict[str, Any] = {**asked.query} if asked else {}
    return tuple(
        Tab(str(word), url_for(name, **(query if filtered else {})), name == _tab())
        for name, word, filtered in _TABS
        if name in current_app.view_functions
    )


def _tab() -> str:
    """The tab of the page that is asked for: its own, or that of its subject's first page."""
    own, subject = request.endpoint or "", request.blueprint
    return own if any(own == name for name, _, _ in _TABS) else f"{subject}.index"


@contextmanager
def seen() -> Iterator[SeenWaits]:
    """The history as who looks may see it."""
    settings = deps().settings
    with seen_waits(settings.home / "history", viewer(), least=settings.waits_k) as past:
        yield past


def frame(
    asked: Asked, past: SeenWaits, *, keep: Mapping[str, str] | None = None, **place: Any
) -> Frame:
    """The frame of the page that is asked for. `keep` and `place` as in wait_filter_form.view."""
    have, endpoint = deps(), request.endpoint or ""
    wanted = (one for one, closed in FILTERS.items() if closed is None)
    known = {one: names[:_MOST_PROPOSED] for one, names in past.proposals(wanted).items()}
    with have.read() as session:
        how_far = standing(have.settings.home / "history", session)
    everything = {"period": "all", "from": None, "to": None}
    return Frame(
        asked,
        tabs(asked),
        wait_filter_form.view(asked, endpoint, known, keep=keep, **place),
        how_far,
        have.settings.waits_k,
        have.settings.timezone.key,
        None if asked.period == "all" else asked.url(endpoint, **place, **everything),
    )


def csv_answer(lines: Iterable[str], name: str) -> Response:
    """A file to keep."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response("".join(lines), mimetype="text/csv", headers=headers)
