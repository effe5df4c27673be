"""The spot adviser's answer in words: estimates, each with what is behind it."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.core.spot import Advice, Origin, Outlook, is_far
from gateway.services.spot import Advised
from gateway.web.planner_words import hours_figure
from gateway.web.show import duration
from gateway.web.texts import gettext, ngettext


@dataclass(frozen=True, slots=True)
class OutlookRow:
    """`money` None: no price, or no end."""

    name: str
    note: str
    mean: str
    p50: str
    p90: str
    preempted: str
    lost: str
    money: int | None
    never: bool


@dataclass(frozen=True, slots=True)
class AdviceView:
    rows: tuple[OutlookRow, ...]
    behind: tuple[str, ...]
    best: str
    far: str
    given_back: int | None
    paid: int | None
    gives_back: bool
    saves: int | None
    later: str


def advice_view(found: Advised) -> AdviceView:
    advice, costs = found.advice, found.advice.costs
    spot, normal = found.qos or gettext("spot"), found.normal or gettext("normal")
    rows = [
        _outlook(spot, _every(advice.work.interval), advice.spot, costs.by_rule if costs else None)
    ]
    if is_far(advice.work.interval, advice.best):
        rows.append(_outlook(spot, _every(advice.best), advice.at_best, None))
    rows.append(_outlook(normal, "", advice.normal, costs.normal if costs else None))
    by_rule = costs.by_rule if costs else None
    return AdviceView(
        rows=tuple(rows),
        behind=tuple(_behind(found)),
        best=duration(advice.best),
        far=_far(advice),
        given_back=costs.spot_given_back if costs else None,
        paid=costs.spot if costs else None,
        gives_back=bool(costs and costs.gives_back),
        saves=costs.normal - by_rule if costs and by_rule is not None else None,
        later=duration(advice.spot.mean - advice.normal.mean) if advice.spot else "",
    )


def _every(interval: float) -> str:
    return gettext("a checkpoint every %(time)s", time=duration(interval))


def _outlook(name: str, note: str, found: Outlook | None, money: int | None) -> OutlookRow:
    if found is None:
        return OutlookRow(name, note, "", "", "", "", "", None, never=True)
    return OutlookRow(
        name=name,
        note=note,
        mean=duration(found.mean),
        p50=duration(found.p50),
        p90=duration(found.p90),
        preempted=f"{found.preemptions:.1f}",
        lost=duration(found.lost) if found.preemptions else "–",
        money=money,
        never=False,
    )


def _behind(found: Advised) -> Iterator[str]:
    """What is behind the numbers, and how good it is."""
    yield _between_words(found)
    wait = duration(found.advice.work.wait)
    if found.requeues:
        yield ngettext(
            "From preempted to running again: %(time)s, the mean of %(num)d requeue here.",
            "From preempted to running again: %(time)s, the mean of %(num)d requeues here.",
            found.requeues,
            time=wait,
        )
    elif not found.wait_is_typed:
        yield gettext("From preempted to running again: %(time)s, an assumption.", time=wait)


def _between_words(found: Advised) -> str:
    mean = found.advice.between
    hours = hours_figure(mean.seconds / 3600)
    match mean.origin:
        case Origin.ASKED:
            return gettext("Preempted every %(hours)s h on nodes, as you said.", hours=hours)
        case Origin.ASSUMED:
            return gettext(
                "Preempted every %(hours)s h on nodes: an assumption. This site has too few "
                "preemptions on record to say; type what you expect.",
                hours=hours,
            )
        case Origin.SITE:
            return gettext(
                "Preempted every %(hours)s h on nodes (95 %%: %(low)s to %(high)s h), by this "
                "site's record of %(events)s preemptions in %(runs)s runs on %(type)s.",
                hours=hours,
                low=hours_figure((mean.low or 0) / 3600),
                high=hours_figure((mean.high or 0) / 3600),
                events=f"{mean.events:,}",
                runs=f"{mean.runs:,}",
                type=found.gpu_type or gettext("all types"),
            )


def _far(advice: Advice) -> str:
    if not is_far(advice.work.interval, advice.best):
        return ""
    return gettext(
        "A checkpoint every %(time)s is far from the best interval, which is about %(best)s.",
        time=duration(advice.work.interval),
        best=duration(advice.best),
    )
