"""Spot as the submit form offers it: the same job for less, and how often it would be preempted."""

from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from gateway.core import quoting
from gateway.core.credits import Credits
from gateway.core.offer import Offer, PartitionChoice, QosChoice
from gateway.core.policy import Reading
from gateway.core.pricing import Bill, Preempted, PriceList
from gateway.core.quoting import Shape
from gateway.core.spot import best_interval
from gateway.core.spot_record import LEAST_PEOPLE, Rate, Record, hide
from gateway.services.quote import shape_of
from gateway.store import prices as price_rows
from gateway.store.queries import spot as reads
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

SAVE_SECONDS = 60.0  # assumed, until somebody says it


@dataclass(frozen=True, slots=True)
class SpotLine:
    """QoS `spot` against `steady`, for the whole limit by the price list; both None without prices.
    `often` is how often jobs on `gpu_type` are preempted, `at_hour`: at this hour of the day; None
    where too little is known, and then there is no best interval (seconds) either."""

    spot: str
    steady: str
    is_chosen: bool
    cost: Credits | None
    instead: Credits | None
    gives_back: bool
    gpu_type: str
    often: Rate | None
    at_hour: bool
    best: float | None


def spot_line(
    reading: Reading, offer: Offer, *, begin: Begin, now: datetime, zone: tzinfo
) -> SpotLine | None:
    """None where this person has no QoS that may be preempted, or none that may not."""
    group = offer.find_group(reading.group or "")
    partition = group.find_partition(reading.partition or "") if group else None
    shape = shape_of(reading, offer)
    if partition is None or shape is None:
        return None
    with begin() as session:
        listed = price_rows.load(session)
        pair = _pair(partition, reading.qos or "", listed, now)
        if pair is None:
            return None
        return _line(session, shape, pair, listed, chosen=reading.qos or "", now=now, zone=zone)


def _pair(
    partition: PartitionChoice, chosen: str, listed: PriceList, now: datetime
) -> tuple[QosChoice, QosChoice] | None:
    """What is chosen, with the other kind: the cheapest spot, or the usual QoS that is none."""
    spots = [one for one in partition.qos if one.preemptible]
    steady = [one for one in partition.qos if not one.preemptible]
    if not spots or not steady:
        return None
    own = partition.find_qos(chosen)
    cheapest = min(spots, key=lambda one: (listed.factor_millionths(one.name, now), one.name))
    usual = next((one for one in steady if one.is_default or one.name == "normal"), steady[-1])
    if own is None:
        return cheapest, usual
    return (own, usual) if own.preemptible else (cheapest, own)


def _line(
    session: "Session",
    shape: Shape,
    pair: tuple[QosChoice, QosChoice],
    listed: PriceList,
    *,
    chosen: str,
    now: datetime,
    zone: tzinfo,
) -> SpotLine:
    spot, steady = (one.name for one in pair)
    kind = shape.kinds[0] if len(shape.kinds) == 1 else ""
    known = _record(session, spot, kind)
    often, at_hour = _often(known, now.astimezone(zone).hour)
    any_hour = known.rate.between_hours if known and known.rate else None
    return SpotLine(
        spot=spot,
        steady=steady,
        is_chosen=chosen.casefold() == spot.casefold(),
        cost=_cost(replace(shape, qos=spot), listed, now),
        instead=_cost(replace(shape, qos=steady), listed, now),
        gives_back=listed.preempted(spot, now) is Preempted.FREE,
        gpu_type=kind,
        often=often,
        at_hour=at_hour,
        best=best_interval(SAVE_SECONDS, any_hour * 3600, shape.minutes * 60) if any_hour else None,
    )


def _record(session: "Session", qos: str, kind: str) -> Record | None:
    found = reads.kept_of(session, qos.casefold(), kind) if kind else None
    return hide(found, LEAST_PEOPLE) if found else None


def _often(found: Record | None, hour: int) -> tuple[Rate | None, bool]:
    if found is None:
        return None, False
    at_hour = found.at_hour(hour)
    if at_hour and at_hour.is_enough:
        return at_hour, True
    return (found.rate if found.rate and found.rate.is_enough else None), False


def _cost(shape: Shape, listed: PriceList, now: datetime) -> Credits | None:
    if not listed.is_on(now):
        return None
    found = quoting.price(shape, seconds=shape.minutes * 60, at=now, prices=listed)
    return quoting.times(found, shape.tasks).total if isinstance(found, Bill) else None
