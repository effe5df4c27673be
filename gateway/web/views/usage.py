"""Use: hours and charges, time limits against run time, failures, how busy cards were, and who
waits for limits."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from flask import Blueprint, render_template, request
from flask.typing import ResponseReturnValue

from gateway.core.access import Permission
from gateway.core.usage_figures import By
from gateway.core.wait_conclusion import Conclusion, conclude
from gateway.errors import NotFound
from gateway.services import usage_history
from gateway.services.usage_history import PastUse, credit_seen, seen_use
from gateway.web.access import requires, viewer
from gateway.web.deps import deps
from gateway.web.texts import Lazy, gettext
from gateway.web.texts import lazy_gettext as _l
from gateway.web.usage_tables import BY_WORDS
from gateway.web.views import usagecards, waits_frame
from gateway.web.views import usageparts as parts
from gateway.web.views import usageview as view
from gateway.web.wait_filter_form import Choice
from gateway.web.wait_filters import Asked

bp = Blueprint("usage", __name__, url_prefix="/waits/usage")

_MOST_ADVICE = 5  # the rest is folded
_ALSO: dict[str, tuple[Lazy, Collection[str]]] = {
    "by": (_l("By what"), list(By)),
    "and": (_l("and also by"), parts.CROSSED),
}
_PAGES = (
    ("usage.index", _l("Hours and charges")),
    ("usage.limits", _l("Time limits")),
    ("usage.failures", _l("How runs ended")),
    ("usage.cards", _l("How busy cards were")),
    ("usage.larger", _l("Who waits for limits")),
)


@bp.get("")
@requires(Permission.USE_PORTAL)
def index() -> ResponseReturnValue:
    """Hours and charges by one thing, or by two."""
    asked = waits_frame.asked(**_ALSO)
    by, other = _by()
    with _past() as past:
        part, total = parts.use_and_total(past, asked.question, (by,))
        sections = [view.use(part, by, asked)]
        if other is not None:
            both = (by, other)
            sections.append(view.crossed(parts.use(past, asked.question, both), both, asked))
        ledger = parts.ledger(asked.question, past.first(asked.question))
    if ledger.rows:
        sections.append(view.ledger(ledger, asked))
    keep = {"by": by.value} | ({"and": other.value} if other else {})
    return _page(asked, sections, keep=keep, total=total, by=_choices(asked, by, other))


@bp.get("/limits")
@requires(Permission.USE_PORTAL)
def limits() -> ResponseReturnValue:
    """Time limits against run time, with advice."""
    asked = waits_frame.asked()
    with _past() as past:
        part = parts.limits(past, asked.question)
        own = past.own_limits(asked.question, viewer().unix_user)
        bins = parts.bins(past, asked.question)
    advice = [view.advice(own, gettext("My runs"))] if own else []
    leads = viewer().leads
    sees_all = viewer().may(Permission.SEE_ALL_JOBS)
    advice += [view.advice(row, keys[0]) for keys, row in part.rows if sees_all or keys[0] in leads]
    sections = [view.limits(part, asked), view.bins(bins, asked)]
    return _page(asked, sections, advice=[text for text in advice if text])


@bp.get("/failures")
@requires(Permission.USE_PORTAL)
def failures() -> ResponseReturnValue:
    """What became of runs that did not complete, and what they took."""
    asked = waits_frame.asked()
    with _past() as past:
        total = past.total(asked.question)
        everything = total.gpu_seconds if total else 0
        found = [
            view.failures(parts.failures(past, asked.question, (By.STATE,)), everything, asked)
        ]
        for by in (By.GROUP, By.GPU_TYPE):
            part = parts.failures(past, asked.question, (by, By.STATE))
            found.append(view.failures_by(part, by, asked))
    return _page(asked, found)


@bp.get("/cards")
@requires(Permission.USE_PORTAL)
def cards() -> ResponseReturnValue:
    """How busy the cards of each type were."""
    asked = waits_frame.asked()
    with _past() as past, deps().read() as session:
        found = parts.cards(past, asked.question, session)
        since = asked.question.since or past.first(asked.question) or asked.question.now
        told = usage_history.measured(session, asked.question, since)
    return _page(asked, usagecards.cards(found, told, asked))


@bp.get("/larger")
@requires(Permission.USE_PORTAL)
def larger() -> ResponseReturnValue:
    """Groups that a larger limit would serve: those that one leads, or all."""
    asked = waits_frame.asked()
    with _past() as past, deps().read() as session:
        part = parts.limit_waits(past, asked.question)
        busy = parts.cards(past, asked.question, session)
    shares = [
        (one.gpu_type, one.gpu_seconds / one.capacity_s * 100) for one in busy if one.capacity_s
    ]
    sees = viewer().may(Permission.SEE_ALL_JOBS) or bool(viewer().leads)
    sections = [view.larger(part, asked)] if part.rows else []
    blind = not sections and _nobody_looked(asked)
    return _page(asked, sections, busy=shares, sees=sees, blind=blind)


def _nobody_looked(asked: Asked) -> bool:
    """Whether most of the waits have no known cause: then "none waited for a limit" is a guess."""
    with waits_frame.seen() as past:
        whole = past.causes(asked.question)
    return whole is not None and (
        conclude(whole.jobs, whole.seconds).conclusion is Conclusion.NOBODY_LOOKED
    )


@bp.get("/<part>.csv")
@requires(Permission.USE_PORTAL)
def csv(part: str) -> ResponseReturnValue:
    """All rows of a part, with exact figures."""
    asked = waits_frame.asked_of_file(**_ALSO)
    with _past() as past:
        lines = _csv(part, past, asked)
    return waits_frame.csv_answer(lines, f"usage-{part}.csv")


def _csv(part: str, past: PastUse, asked: Asked) -> Iterator[str]:
    question = asked.question
    by, other = _by()
    match part:
        case "use":
            return parts.use(past, question, (by, other) if other else (by,)).csv()
        case "failures":
            given = parts.dimension(request.args, "by", None)
            both = (given, By.STATE) if given and given is not By.STATE else (By.STATE,)
            return parts.failures(past, question, both).csv()
        case "limits":
            return parts.limits(past, question).csv()
        case "bins":
            return parts.bins(past, question).csv()
        case "larger":
            return parts.limit_waits(past, question).csv()
        case "ledger":
            return parts.ledger(question, past.first(question)).csv()
        case "cards":
            with deps().read() as session:
                return parts.card_days(parts.cards(past, question, session)).csv()
        case _:
            raise NotFound(f"part {part}")


@contextmanager
def _past() -> Iterator[PastUse]:
    settings = deps().settings
    with seen_use(settings.home / "history", viewer(), least=settings.waits_k) as past:
        yield past


def _page(asked: Asked, sections: list[view.Section], **more: Any) -> str:
    keep = more.pop("keep", {})
    with waits_frame.seen() as seen:
        frame = waits_frame.frame(asked, seen, keep=keep)
    filters = replace(frame.filters, waits=())  # no figure here is a wait by its definition
    pages = [Choice(str(word), asked.url(name), name == request.endpoint) for name, word in _PAGES]
    given: dict[str, Any] = {"total": None, "by": None, "advice": [], "busy": [], "sees": True}
    given |= {"blind": False, "most_advice": _MOST_ADVICE}
    return render_template(
        "pages/usage.html",
        frame=replace(frame, filters=filters),
        pages=pages,
        sections=sections,
        page=(request.endpoint or "").removeprefix("usage."),
        credit=credit_seen(viewer()),
        **{**given, **more},
    )


def _by() -> tuple[By, By | None]:
    by = parts.dimension(request.args, "by", By.GROUP) or By.GROUP
    return by, parts.across(by, parts.dimension(request.args, "and", None))


def _choices(asked: Asked, by: By, other: By | None) -> list[list[Choice]]:
    """What to tell apart by, and what goes across."""
    name = "usage.index"
    kept = other.value if other else None
    downs = [
        Choice(str(word), asked.url(name, by=one.value, **{"and": kept}), one is by)
        for one, word in BY_WORDS.items()
    ]
    nothing = Choice(gettext("nothing else"), asked.url(name, by=by.value), other is None)
    return [
        downs,
        [nothing]
        + [
            Choice(
                str(BY_WORDS[one]), asked.url(name, by=by.value, **{"and": one.value}), one is other
            )
            for one in parts.CROSSED
            if one is not by
        ],
    ]
