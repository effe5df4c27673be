"""When the job would start, beside the form: as it is, and what would be sooner or cheaper."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from flask import url_for

from gateway.core.ask import Ask, FieldProblem
from gateway.core.forecast import Forecast, NoForecast
from gateway.core.manifest import Manifest
from gateway.core.offer import Offer
from gateway.core.policy import Reading
from gateway.core.start_choices import GPUS_FIELD, Change
from gateway.services.forecast_form import Instead, starts
from gateway.services.forecast_record import Like
from gateway.web.access import viewer
from gateway.web.deps import deps
from gateway.web.money import money_text
from gateway.web.show import duration
from gateway.web.texts import gettext, ngettext
from gateway.web.views.recordview import percent


@dataclass(frozen=True, slots=True)
class InsteadView:
    """A button: `name` and `value` are what it sends. `costs` is the difference in price, with its
    sign; `is_less`: it is cheaper."""

    word: str
    name: str
    value: str
    start: str
    costs: str
    is_less: bool
    note: str


@dataclass(frozen=True, slots=True)
class StartView:
    """`told` is a sentence in the place of the times, where there are none. `rests` says what it
    rests on, and how good such forecasts have been."""

    told: str = ""
    p50: str = ""
    p50_at: datetime | None = None
    p90: str = ""
    p90_at: datetime | None = None
    rests: str = ""
    instead: tuple[InsteadView, ...] = ()
    record_url: str = ""


def build(
    ask: Ask,
    reading: Reading,
    problems: Sequence[FieldProblem],
    *,
    offer: Offer,
    manifest: Manifest,
) -> StartView:
    have = deps()
    now = have.clock()
    found = starts(
        ask,
        reading,
        problems,
        offer=offer,
        manifest=manifest,
        user=viewer().unix_user,
        forecaster=have.forecaster,
        read=have.read,
        now=now,
        k=have.settings.waits_k,
    )
    if found is None:
        words = gettext("Stands here as soon as cards and time limit can be read.")
        return StartView(told=words)
    if isinstance(found.own, NoForecast):
        return StartView(told=no_forecast(found.own, reading.partition or ""))
    return StartView(
        p50=duration(found.own.p50_s),
        p50_at=now + timedelta(seconds=found.own.p50_s),
        p90=duration(found.own.p90_s),
        p90_at=_at(found.own.p90_s, now),
        rests=f"{rests_on(found.own.jobs, reading.partition or '')} {how_good(found.like)}",
        instead=tuple(_instead(one, offer, reading) for one in found.instead),
        record_url=url_for("forecast_record.index", partition=reading.partition),
    )


def no_forecast(why: NoForecast, partition: str) -> str:
    """Why there is no number, and what it would take."""
    match why:
        case NoForecast.NO_HISTORY:
            return gettext(
                "No forecast yet: the portal has learned nothing of waits here so far. It begins"
                " by itself once some hundred jobs have started."
            )
        case NoForecast.TOO_THIN:
            return gettext(
                "No forecast: too few jobs have started in %(part)s, or too few of this QoS or"
                " type of card there, in the last 30 days to say.",
                part=partition,
            )
        case NoForecast.NEVER:
            return gettext(
                "As it is it cannot start: a field or a limit stands in its way, so there is no"
                " forecast."
            )


def rests_on(jobs: int, partition: str) -> str:
    return ngettext(
        "An estimate by %(num)s start in %(part)s in the last 30 days and by the queue of now.",
        "An estimate by %(num)s starts in %(part)s in the last 30 days and by the queue of now.",
        jobs,
        part=partition,
    )


def how_good(like: Like | None) -> str:
    if like is None:
        return gettext("How good such forecasts are is not known yet: too few are on record.")
    return gettext(
        "Of the last %(n)s forecasts like this %(share)s of the jobs started before their p90.",
        n=f"{like.counted:,}",
        share=percent(like.share),
    )


def _at(seconds: int | None, now: datetime) -> datetime | None:
    return None if seconds is None else now + timedelta(seconds=seconds)


def _instead(one: Instead, offer: Offer, reading: Reading) -> InsteadView:
    word, note = _words(one, offer, reading)
    own = one.sets.get(GPUS_FIELD)
    more = one.costs_more
    return InsteadView(
        word=word,
        name="set" if own is None else "try",
        value=urlencode(one.sets) if own is None else f"{GPUS_FIELD}={own}",
        start=_start(one.start),
        costs="" if more is None else _difference(more),
        is_less=more is not None and more < 0,
        note=note,
    )


def _start(start: Forecast) -> str:
    if start.p90_s is None:
        return duration(start.p50_s)
    return gettext("p50 %(p50)s, p90 %(p90)s", p50=duration(start.p50_s), p90=duration(start.p90_s))


def _difference(more: int) -> str:
    if not more:
        return gettext("same price")
    return f"{'−' if more < 0 else '+'}{money_text(abs(more))}"


def _words(one: Instead, offer: Offer, reading: Reading) -> tuple[str, str]:
    """What it changes, and what to bear in mind."""
    match one.change:
        case Change.GPUS:
            cards = ngettext("%(num)d card", "%(num)d cards", one.gpus)
            return cards, gettext("the same limit: it may not be enough")
        case Change.TIME_LIMIT:
            limit = gettext("at most %(time)s", time=one.sets["time_limit"])
            return limit, gettext("twice the longest of the earlier runs")
        case Change.GPU_TYPE:
            facts = {"type": one.sets["gpu_type"], "part": one.sets["partition"]}
            return gettext("%(type)s in %(part)s", **facts), gettext("other cards may be slower")
        case Change.PARTITION:
            return gettext("partition %(part)s", part=one.sets["partition"]), ""
        case Change.QOS:
            word = gettext("QoS %(qos)s", qos=one.sets["qos"])
            return word, _interrupted(one.sets["qos"], offer, reading)


def _interrupted(name: str, offer: Offer, reading: Reading) -> str:
    group = offer.find_group(reading.group or "")
    partition = group.find_partition(reading.partition or "") if group else None
    qos = partition.find_qos(name) if partition else None
    return gettext("may be interrupted") if qos and qos.preemptible else ""
