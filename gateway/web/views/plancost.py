"""What a plan costs by each way to buy, and what is to be said of the cheaper ones."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.core.planner.money import Crossing, Priced
from gateway.core.planner.plan import Cost, Interrupted
from gateway.web.planner_words import hours_figure
from gateway.web.texts import gettext
from gateway.web.texts import lazy_gettext as _l

_KINDS = {"normal": _l("as listed"), "package": _l("package"), "spot": _l("may be preempted")}


@dataclass(frozen=True, slots=True)
class OfferRow:
    """Amounts in millionths."""

    name: str
    kind: str
    each: int
    work: int
    waste: str
    hours: str
    expected: int
    is_cheapest: bool


def offers(cost: Cost | None) -> tuple[OfferRow, ...]:
    """None of them where there is no price."""
    return tuple(_offer(one, cost) for one in cost.offers) if cost else ()


def _offer(one: Priced, cost: Cost) -> OfferRow:
    each = one.rate.exact
    return OfferRow(
        name=one.rate.name,
        kind=str(_KINDS[one.rate.kind]),
        each=round(each),
        work=one.work,
        waste=f"{one.waste * 100:.1f} %",
        hours=hours_figure(one.hours),
        expected=one.expected,
        is_cheapest=one is cost.cheapest,
    )


def said(cost: Cost | None) -> Iterator[str]:
    if cost is None:
        return
    for one in cost.interrupted:
        yield _often(one)
    for crossing in cost.crossings:
        yield _crossing(crossing)


def _often(one: Interrupted) -> str:
    hours = hours_figure(one.hours)
    if one.origin == "asked":
        return gettext(
            "%(name)s: preempted every %(hours)s h, as you said.", name=one.name, hours=hours
        )
    if one.origin == "assumed":
        return gettext(
            "%(name)s: preempted every %(hours)s h. That is an assumption: this site has too few "
            "preemptions on record.",
            name=one.name,
            hours=hours,
        )
    return gettext(
        "%(name)s: preempted every %(hours)s h, by this site's record of %(events)s preemptions.",
        name=one.name,
        hours=hours,
        events=one.events,
    )


def _crossing(one: Crossing) -> str:
    facts = {"cheap": one.cheap, "dear": one.dear, "waste": f"{float(one.waste) * 100:.1f}"}
    if one.is_passed:
        return gettext(
            "%(cheap)s costs more than %(dear)s in the end: it wastes more than %(waste)s %% of "
            "the useful hours besides.",
            **facts,
        )
    return gettext(
        "%(cheap)s costs less than %(dear)s as long as it wastes no more than %(waste)s %% of the "
        "useful hours besides.",
        **facts,
    )
