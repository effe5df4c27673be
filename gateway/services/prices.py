"""Setting prices: a new row with a start, never a change of an old one."""

import re
from datetime import datetime, timedelta

from gateway.core.credits import MILLION, parse_credits
from gateway.core.pricing import Preempted
from gateway.errors import Refused
from gateway.store import charges, prices
from gateway.store.prices import SITE
from gateway.store.uow import Begin

# What Slurm takes as a GRES type, a QoS or a list's name: never free text.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")
_CLOCKS = timedelta(minutes=5)
_FARTHEST_BACK = timedelta(days=20 * 366)
_MOST_FACTOR = 100 * MILLION
_MOST_AN_HOUR = 1_000_000 * MILLION
# Reviews that a new price may end.
_PRICED_AGAIN = ("no_price",)


def set_price(
    resource: str,
    per_hour: str,
    *,
    starts: datetime | None = None,
    list_name: str = SITE,
    begin: Begin,
    now: datetime,
    person_id: int | None = None,
    backdated: bool = False,
) -> None:
    """Per card-hour of a GPU type, or per CPU-hour of `cpu`, from `starts` (default now) on.

    Refused: bad_name, credits_…, price_negative, price_exists, and price_in_the_past unless
    `backdated`: what was charged by then stays as it is.
    """
    _named(resource, "resource")
    _named(list_name, "list")
    amount = parse_credits(per_hour)
    if amount < 0:
        raise Refused("price_negative", field="per_hour")
    if amount > _MOST_AN_HOUR:
        raise Refused("credits_too_large", field="per_hour", most=_MOST_AN_HOUR // MILLION)
    at = _from(starts, now, backdated=backdated or list_name != SITE)
    with begin() as session:
        added = prices.add_price(
            session,
            list_name=list_name,
            resource=resource,
            per_hour=amount,
            starts=at,
            now=now,
            person_id=person_id,
        )
        if not added:
            raise Refused("price_exists", field="starts", resource=resource)
        if list_name == SITE:
            charges.look_again(session, _PRICED_AGAIN)
            # Charging may begin earlier now: those runs were passed over.
            charges.look_at_passed_over(session, since=at)


def set_terms(
    qos: str,
    factor: str,
    *,
    preempted: str = Preempted.PAY,
    starts: datetime | None = None,
    begin: Begin,
    now: datetime,
    person_id: int | None = None,
    backdated: bool = False,
) -> None:
    """A QoS's factor ("0.82"), and whether its preempted runs are paid or free."""
    _named(qos, "qos")
    millionths = parse_credits(factor)
    if not 0 <= millionths <= _MOST_FACTOR:
        raise Refused("factor_out_of_range", field="factor")
    if preempted not in {one.value for one in Preempted}:
        raise Refused("bad_request", field="preempted")
    at = _from(starts, now, backdated=backdated)
    with begin() as session:
        added = prices.add_terms(
            session,
            qos=qos.casefold(),
            factor_millionths=millionths,
            preempted=preempted,
            starts=at,
            now=now,
            person_id=person_id,
        )
        if not added:
            raise Refused("price_exists", field="starts", resource=qos)


def add_offer(
    name: str,
    resource: str,
    per_hour: str,
    *,
    days: int = 7,
    begin: Begin,
    now: datetime,
    person_id: int | None = None,
) -> int:
    """A package that groups may buy from now on."""
    _named(name, "name")
    _named(resource, "resource")
    amount = parse_credits(per_hour)
    if amount <= 0:
        raise Refused("price_negative", field="per_hour")
    if not 0 < days <= 3660:  # ten years
        raise Refused("days_out_of_range", field="days")
    with begin() as session:
        offer_id = prices.add_offer(
            session,
            name=name,
            resource=resource,
            per_hour=amount,
            days=days,
            starts=now,
            person_id=person_id,
        )
    if offer_id is None:
        raise Refused("name_taken", field="name")
    return offer_id


def _named(name: str, field: str) -> None:
    if not _NAME.fullmatch(name):
        raise Refused("bad_name", field=field)


def _from(starts: datetime | None, now: datetime, *, backdated: bool) -> datetime:
    if starts is None:
        return now
    if starts < now - (_FARTHEST_BACK if backdated else _CLOCKS):
        raise Refused("price_in_the_past", field="starts")
    return starts
