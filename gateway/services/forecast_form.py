"""When a request would start, before it is sent: as it is, and as it could be instead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core import quoting
from gateway.core.ask import Ask, FieldProblem
from gateway.core.forecast import Ask as Question
from gateway.core.forecast import Forecast, ForecastSource, NoForecast
from gateway.core.manifest import Manifest
from gateway.core.offer import Offer
from gateway.core.policy import Reading
from gateway.core.pricing import NoPrice, PriceList
from gateway.core.start_choices import Change, Other, Ranked, best, in_the_way, others
from gateway.services import forecast_record, quote
from gateway.services.forecast_keep import Forecaster
from gateway.services.forecast_record import Like
from gateway.store import prices
from gateway.store.queries import run_times
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Instead:
    """Another shape: what to set in the form, when it would start, what it costs more (less: below
    0), in millionths; None where nobody knows."""

    change: Change
    sets: Mapping[str, str]
    start: Forecast
    costs_more: int | None
    gpus: int


@dataclass(frozen=True, slots=True)
class Starts:
    """`like` tells how good such forecasts have been."""

    own: Forecast | NoForecast
    instead: tuple[Instead, ...] = ()
    like: Like | None = None


def question(reading: Reading, now: datetime) -> Question | None:
    """None until the form says how large the job is, and where it is to run."""
    if reading.group is None or reading.partition is None or reading.nodes is None:
        return None
    if reading.gpus is None or reading.time_limit_minutes is None:
        return None
    return Question(
        at=now,
        group=reading.group,
        partition=reading.partition,
        qos=reading.qos,
        gpus=reading.gpus,
        gpu_type=reading.gpu_type,
        nodes=reading.nodes,
        cpus=reading.nodes * (reading.cpus_per_task or 1),
        limit_minutes=reading.time_limit_minutes,
    )


def starts(
    ask: Ask,
    reading: Reading,
    problems: Sequence[FieldProblem],
    *,
    offer: Offer,
    manifest: Manifest,
    user: str,
    forecaster: Forecaster,
    read: Begin,
    now: datetime,
    k: int,
) -> Starts | None:
    """None while the form cannot be read so far. `k`: of so many people a record must be. Asks
    Slurm nothing, writes nothing."""
    own = question(reading, now)
    if in_the_way(problems):
        return Starts(NoForecast.NEVER)
    if own is None:
        return None
    with read() as session:
        price_list = prices.load(session)
        shorter = _shorter(session, reading, template=ask.template, user=user)
    found = others(ask, reading, offer, manifest, problems=problems, shorter_minutes=shorter)
    asked = [(one, question(one.reading, now)) for one in found]
    can = [(one, each) for one, each in asked if each is not None]
    answer, *answers = forecaster.forecast([own, *(each for _, each in can)])
    if isinstance(answer, NoForecast):
        return Starts(answer)
    costs = _cost(reading, offer, price_list, now)
    better = [
        (one, Ranked(other, _cost(one.reading, offer, price_list, now), one.change))
        for (one, _), other in zip(can, answers, strict=True)
        if isinstance(other, Forecast) and _is_told_apart(one.change, answer, other)
    ]
    places = best(Ranked(answer, costs, Change.GPUS), [ranked for _, ranked in better])
    record = forecast_record.like(
        ForecastSource.HISTORY,
        user=user,
        partition=own.partition,
        gpus=own.gpus,
        read=read,
        now=now,
        k=k,
    )
    return Starts(answer, tuple(_instead(*better[place], costs) for place in places), record)


def _instead(one: Other, ranked: Ranked, costs: int | None) -> Instead:
    more = _more(ranked.costs, costs)
    return Instead(one.change, one.sets, ranked.start, more, one.reading.gpus or 0)


def _is_told_apart(change: Change, own: Forecast, other: Forecast) -> bool:
    """A model that says the same of another QoS or type knows nothing of the difference: it is no
    reason to call that one as quick."""
    same = (own.p50_s, own.p90_s) == (other.p50_s, other.p90_s)
    return not same or change not in {Change.QOS, Change.GPU_TYPE}


def _shorter(session: "Session", reading: Reading, *, template: str, user: str) -> int | None:
    minutes = reading.time_limit_minutes
    if minutes is None or reading.group is None:
        return None
    found = run_times.of_template(session, template, group=reading.group)
    expected = quoting.expected(
        [seconds for who, seconds in found if who == user],
        [seconds for _, seconds in found],
        limit_seconds=minutes * 60,
    )
    return quoting.shorter(minutes, expected)


def _cost(reading: Reading, offer: Offer, price_list: PriceList, now: datetime) -> int | None:
    """The worst case, as the quote has it; None where nothing is charged or no price is set."""
    shape = quote.shape_of(reading, offer)
    if shape is None or not price_list.is_on(now):
        return None
    one = quoting.price(shape, seconds=shape.minutes * 60, at=now, prices=price_list)
    return None if isinstance(one, NoPrice) else quoting.times(one, shape.tasks).total


def _more(other: int | None, own: int | None) -> int | None:
    return None if other is None or own is None else other - own
