"""A plan in words and rows, for its page."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gateway.core.planner.figures import GB, Figure, Notice
from gateway.core.planner.plan import Plan
from gateway.core.planner.verdict import Change, Fewest, Fit
from gateway.web.planner_words import CHANGES, NOTICES, SYMBOLS, hours_figure, short
from gateway.web.show import duration
from gateway.web.texts import Lazy, gettext, ngettext
from gateway.web.texts import lazy_gettext as _l
from gateway.web.views import plancost
from gateway.web.views import plannumbers as numbers
from gateway.web.views.planbar import Bar, bar
from gateway.web.views.planform import PlanForm, address

_PARTS: Mapping[str, Lazy] = {
    "weights": _l("weights"),
    "gradients": _l("gradients"),
    "optimizer": _l("optimizer"),
    "activations": _l("activations"),
    "logits": _l("logits"),
    "overhead": _l("overhead"),
    "gathered": _l("overhead: layers put together"),
    "step": _l("overhead: the optimizer's step"),
    "buckets": _l("overhead: buckets of gradients"),
    "context": _l("overhead: context and NCCL"),
    "fragmentation": _l("overhead: fragmentation"),
}
_MARKS = {Fit.YES: "done", Fit.TIGHT: "waiting", Fit.NO: "failed"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """`word` and `mark` are the state; `room` says by how much."""

    word: str
    mark: str
    figure: str
    room: str
    host: str


@dataclass(frozen=True, slots=True)
class Link:
    """A change with the address of the plan that has it."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class FewestRow:
    strategy: str
    gpus: int | None
    memory: str
    host: str
    is_rough: bool
    is_this: bool
    url: str


@dataclass(frozen=True, slots=True)
class PlanView:
    head: str
    verdict: Verdict
    bar: Bar
    parts: tuple[numbers.Number, ...]
    total: numbers.Number
    memory: tuple[numbers.Number, ...]
    fewest: tuple[FewestRow, ...]
    changes: tuple[Link, ...]
    hours: str
    hours_band: str
    days: str
    mfu: str
    speed: tuple[numbers.Number, ...]
    offers: tuple[plancost.OfferRow, ...]
    said: tuple[str, ...]
    checkpoint: tuple[numbers.Number, ...]
    daly: str
    notices: tuple[str, ...]
    symbols: str


def view(plan: Plan, form: PlanForm) -> PlanView:
    speed = plan.speed.hours
    parts = [(name, str(_PARTS[name]), figure) for name, figure in plan.memory.parts]
    return PlanView(
        head=_head(plan),
        verdict=_verdict(plan),
        bar=bar(parts, plan.memory.total, plan.card.memory),
        parts=tuple(numbers.in_gb(label, one, place=n) for n, (_, label, one) in enumerate(parts)),
        total=numbers.in_gb(gettext("together"), plan.memory.total),
        memory=tuple(_memory(plan)),
        fewest=tuple(_fewest(one, plan, form) for one in plan.fewest),
        changes=tuple(_changes(plan, form)),
        hours=gettext("%(hours)s hours", hours=hours_figure(speed.value)),
        hours_band=numbers.from_to(hours_figure(speed.low), hours_figure(speed.high)),
        days=f"{speed.value / 24:,.1f}",
        mfu=_mfu(plan),
        speed=tuple(_speed(plan)),
        offers=plancost.offers(plan.cost),
        said=tuple(plancost.said(plan.cost)),
        checkpoint=tuple(_checkpoint(plan)),
        daly=duration(plan.checkpoint.interval_daly),
        notices=tuple(notice_words(one) for one in plan.notices),
        symbols=gettext(SYMBOLS),
    )


def notice_words(one: Notice) -> str:
    return gettext(NOTICES[one.code], **dict(one.facts))


def room_words(total: Figure, capacity: float) -> str:
    """61.2 of 80 GB."""
    return gettext(
        "%(need)s of %(have)s GB", need=numbers.gigabytes(total.value), have=f"{capacity / GB:g}"
    )


def fit_words(fit: Fit) -> tuple[str, str]:
    """The word, and its mark."""
    words = {
        Fit.YES: gettext("fits"),
        Fit.TIGHT: gettext("fits barely"),
        Fit.NO: gettext("does not fit"),
    }
    return words[fit], _MARKS[fit]


def _head(plan: Plan) -> str:
    used = plan.setup
    return gettext(
        "%(params)s parameters, %(tokens)s tokens, %(strategy)s on %(gpus)s × %(card)s in "
        "%(precision)s",
        params=short(plan.model.params),
        tokens=short(plan.tokens),
        strategy=used.strategy.name,
        gpus=used.gpus,
        card=plan.card.name,
        precision=used.precision.value,
    )


def _verdict(plan: Plan) -> Verdict:
    total, card = plan.memory.total, plan.card
    word, mark = fit_words(plan.fit)
    left = card.memory - total.value
    room = gettext("%(gb)s GB of a card are left.", gb=numbers.gigabytes(left))
    if plan.fit is Fit.TIGHT:
        room = gettext(
            "%(gb)s GB are left by the estimate; at the upper end of its band, %(high)s GB, it "
            "would not fit.",
            gb=numbers.gigabytes(left),
            high=numbers.gigabytes(total.high),
        )
    if plan.fit is Fit.NO:
        room = gettext("%(gb)s GB too much for a card.", gb=numbers.gigabytes(-left))
    host = ""
    if plan.fits_host is False:
        host = gettext("It does not fit into the memory of a node.")
    return Verdict(word, mark, room_words(total, card.memory), room, host)


def _memory(plan: Plan) -> Iterator[numbers.Number]:
    """All parts of the sum, those of the overhead one by one."""
    needed = plan.memory
    for name, figure in needed.parts:
        if name != "overhead":
            yield numbers.in_gb(str(_PARTS[name]), figure)
    for name, figure in needed.overheads:
        yield numbers.in_gb(str(_PARTS[name]), figure)
    yield numbers.in_gb(gettext("memory of a node"), needed.host)


def _fewest(one: Fewest, plan: Plan, form: PlanForm) -> FewestRow:
    changes = {"strategy": one.strategy} | ({"gpus": str(one.gpus)} if one.gpus else {})
    return FewestRow(
        strategy=one.strategy,
        gpus=one.gpus,
        memory=numbers.gigabytes(one.total.value),
        host=numbers.gigabytes(one.host.value),
        is_rough=one.is_rough,
        is_this=one.strategy == plan.setup.strategy.name,
        url=address(form, **changes),
    )


_FIELD = {"card": "gpu"}


def _changes(plan: Plan, form: PlanForm) -> Iterator[Link]:
    """Each value of each change is a plan of its own."""
    for one in plan.changes:
        for value in one.values:
            changed = {_FIELD.get(one.kind, one.kind): value}
            yield Link(_change(one, value, plan), address(form, **changed))


def _change(one: Change, value: str, plan: Plan) -> str:
    would, end = CHANGES[one.kind]
    return gettext(would if plan.fit is Fit.NO else end, values=value)


def _mfu(plan: Plan) -> str:
    found = plan.speed.mfu
    share = f"{found.figure.value * 100:.3g}"
    if found.origin == "asked":
        return gettext("at an MFU of %(share)s %%, as you said", share=share)
    if found.origin == "usual":
        return gettext(
            "at an MFU of %(share)s %%: usual for %(card)s cards, nothing was measured here",
            share=share,
            card=plan.card.name,
        )
    if not found.jobs:
        return gettext("at an MFU of %(share)s %%, as this site has written down", share=share)
    return ngettext(
        "at an MFU of %(share)s %%: the median of %(num)d job here on such cards",
        "at an MFU of %(share)s %%: the median of %(num)d jobs here on such cards",
        found.jobs,
        share=share,
    )


def _speed(plan: Plan) -> Iterator[numbers.Number]:
    speed = plan.speed
    yield numbers.row(gettext("parameters"), plan.model.counted, short(plan.model.params))
    work = speed.flops_per_token
    yield numbers.row(gettext("FLOPs of a token"), work, short(work.value))
    share = speed.mfu.figure
    percents = [f"{value * 100:.3g} %" for value in (share.value, share.low, share.high)]
    yield numbers.row(gettext("MFU"), share, percents[0], numbers.from_to(*percents[1:]))
    found = speed.hours
    band = numbers.from_to(hours_figure(found.low), hours_figure(found.high))
    yield numbers.row(gettext("hours"), found, hours_figure(found.value), band)


def _checkpoint(plan: Plan) -> Iterator[numbers.Number]:
    found = plan.checkpoint
    yield numbers.in_gb(gettext("size of a checkpoint"), found.size)
    yield numbers.in_gb(gettext("disk, with those kept"), found.disk)
    yield numbers.in_time(gettext("time of a save"), found.save)
    yield numbers.in_time(gettext("best interval"), found.interval)
    lost = f"{found.waste.value * 100:.1f} %"
    yield numbers.row(gettext("lost to saves and restarts"), found.waste, lost)
