"""A waiting job's place in the queue: its points, who stands before it, and what makes the
difference."""

from collections.abc import Sequence
from dataclasses import dataclass

from flask import url_for

from gateway.core.standing import Difference, Factor, Other, Standing, deciding
from gateway.services.standing import standing
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.texts import gettext, ngettext
from gateway.web.timeline import Share, shares
from gateway.web.views.jobview import JobView
from gateway.web.why_texts import FACTOR_HELPS, FACTOR_TEXTS

_COLOURS = 6  # of the parts of a bar


@dataclass(frozen=True, slots=True)
class FactorView:
    word: str
    help: str
    points: str
    most: str
    colour: int


@dataclass(frozen=True, slots=True)
class CompareLine:
    word: str
    own: str
    other: str
    ahead: str


@dataclass(frozen=True, slots=True)
class OtherView:
    """`title` names it as far as the reader may know; `sentence` says what decides."""

    title: str
    url: str
    sentence: str
    lines: list[CompareLine]
    priority: str


@dataclass(frozen=True, slots=True)
class StandingView:
    """`missing`: the number that was to be compared is of no waiting job that one may see."""

    words: str
    priority: str
    bar: list[Share]
    factors: list[FactorView]
    next: OtherView | None
    compared: OtherView | None
    missing: str
    typed: str


def build(page: JobView, typed: str) -> StandingView | None:
    """`typed`: the number of another job, as somebody typed it; empty: none."""
    if not page.active or page.job.start_time is not None or page.detail.left_queue_at is not None:
        return None
    digits = typed.strip().partition("_")[0]
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 12 else None
    with deps().read() as session:
        found = standing(session, page.job, viewer=viewer(), compare=number)
    return None if found is None else _view(found, page, typed.strip())


def _view(found: Standing, page: JobView, typed: str) -> StandingView:
    missing = ""
    if typed and found.compared is None:
        missing = gettext(
            "No job %(number)s that waits with points and that you may see.", number=typed[:20]
        )
    return StandingView(
        words=_words(found),
        priority=f"{found.priority:,}",
        bar=_bar(found.factors),
        factors=[_factor(one, place) for place, one in enumerate(found.factors)],
        next=_other(found, found.next, page) if found.next else None,
        compared=_other(found, found.compared, page) if found.compared else None,
        missing=missing,
        typed=typed[:20],
    )


def _words(found: Standing) -> str:
    if not found.before:
        return gettext("It stands first of those that wait in %(part)s.", part=found.partition)
    return ngettext(
        "%(num)d job stands before it in %(part)s, of %(all)s that wait there.",
        "%(num)d jobs stand before it in %(part)s, of %(all)s that wait there.",
        found.before,
        part=found.partition,
        all=found.waiting,
    )


def _bar(factors: Sequence[Factor]) -> list[Share]:
    """Each factor that gives points; what is taken off has no length."""
    return shares(
        *((f"part-{place % _COLOURS}", max(0, one.points)) for place, one in enumerate(factors))
    )


def _factor(one: Factor, place: int) -> FactorView:
    return FactorView(
        word=str(FACTOR_TEXTS[one.key]),
        help=str(FACTOR_HELPS[one.key]),
        points=f"{one.points:,}",
        most="–" if one.most is None else f"{one.most:,}",
        colour=place % _COLOURS,
    )


def _other(found: Standing, other: Other, page: JobView) -> OtherView:
    seen = other.id is not None
    if seen:
        title = gettext("Job %(number)s of %(user)s", number=other.number, user=other.user)
    else:
        title = gettext("A job that you may not see")
    return OtherView(
        title=title,
        url=url_for("jobs.show", job_id=other.id) if seen else "",
        sentence=_sentence(found, other, page.job.qos or ""),
        lines=[_line(one) for one in other.differences],
        priority=f"{other.priority:,}",
    )


def _sentence(found: Standing, other: Other, own_qos: str) -> str:
    """What decides between the two, in words."""
    is_behind = found.priority <= other.priority
    one = deciding(other.differences, for_own=not is_behind)
    if one is None:
        return gettext("Both have as many points: the lower number goes first.")
    if one.key == "of_qos" and is_behind:
        return gettext(
            "It stands before this one: its QoS %(other)s gives %(more)s points, yours (%(own)s) "
            "%(less)s.",
            other=other.qos, more=f"{one.other:,}", own=own_qos, less=f"{one.own:,}",
        )  # fmt: skip
    word = str(FACTOR_TEXTS[one.key])
    facts = {"factor": word, "own": f"{one.own:,}", "other": f"{one.other:,}"}
    if is_behind:
        text = gettext("It stands before this one: %(factor)s gives it %(other)s points, this one"
                       " %(own)s.")  # fmt: skip
    else:
        text = gettext("It stands behind this one: %(factor)s gives it %(other)s points, this one"
                       " %(own)s.")  # fmt: skip
    return text % facts


def _line(one: Difference) -> CompareLine:
    ahead = f"+{one.ahead:,}" if one.ahead > 0 else f"−{-one.ahead:,}"
    return CompareLine(str(FACTOR_TEXTS[one.key]), f"{one.own:,}", f"{one.other:,}", ahead)
