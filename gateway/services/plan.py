"""A training run planned with this site's cards and prices. Reads, writes nothing."""

import math
import tomllib
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.core.credits import MILLION, Credits
from gateway.core.mfu import card_of, mfu, model_of
from gateway.core.planner.cards import Card, Cards, find, read_cards
from gateway.core.planner.filling import is_called
from gateway.core.planner.money import Rate
from gateway.core.planner.plan import Ask, Plan, plan
from gateway.core.planner.site import NOTHING_KNOWN, MeasuredMfu, Site, sizes_like
from gateway.core.planner.site import measured as site_mfu
from gateway.core.pricing import Preempted, PriceList
from gateway.errors import BadConfiguration, Refused
from gateway.store import prices
from gateway.store.prices import OfferRow
from gateway.store.queries import measured, preemptions
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_PERCENT = 100 * MILLION
_LEAST_SECONDS = 60.0  # of steps that a job has told: fewer say nothing of its speed


def load_cards(home: Path | None = None) -> Cards:
    """The cards that are known, with those of the site's own cards.toml over them.

    BadConfiguration names the file and every problem in it.
    """
    shipped = files("gateway.core.planner").joinpath("cards.toml").read_text()
    found = read_cards(tomllib.loads(shipped))
    own = home / "cards.toml" if home else None
    if own is None or not own.exists():
        return found
    try:
        return read_cards(tomllib.loads(own.read_text()), base=found)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, BadConfiguration) as error:
        raise BadConfiguration(f"{own}: {error}") from error


def plan_training(
    ask: Ask,
    *,
    cards: Cards,
    begin: Begin | None = None,
    now: datetime,
    resource: str | None = None,
    typed: Sequence[Rate] = (),
) -> Plan:
    """With `typed` rates where there are some, else by the price list: `resource` in it, or what
    the card is called there. Without either the cost is None. What the site has measured of
    itself counts where the ask leaves it open. Refused, with the field."""
    rates, site = tuple(typed), NOTHING_KNOWN
    if begin is not None:
        card = find(ask.gpu, cards)
        with begin() as session:
            rates = rates or site_rates(session, card, resource=resource, now=now)
            site = _record(session, ask, cards, rates)
    return plan(ask, cards=cards, rates=rates, site=site)


def _record(session: "Session", ask: Ask, cards: Cards, rates: Sequence[Rate]) -> Site:
    """What jobs like this one have shown here; nothing of cards where the ask says the MFU."""
    spots = [rate.name for rate in rates if rate.kind == "spot"]
    share = None if ask.mfu is not None else _measured_mfu(session, ask, cards)
    return Site(mfu=share, preemptions=preemptions.of_qos(session, spots))


def _measured_mfu(session: "Session", ask: Ask, cards: Cards) -> MeasuredMfu | None:
    """The median of ended jobs on such cards and of such a size, where there are enough."""
    card = find(ask.gpu, cards)
    least, most = sizes_like(int(ask.gpus)) if math.isfinite(ask.gpus) else (0, 0)
    ended = measured.ended(session)
    kinds = {kind for kind in {one.gpu_type for one in ended} if _is_like(card, kind, cards)}
    alike = {
        one.id: one.gpus
        for one in ended
        if least <= one.gpus <= (most or one.gpus) and one.gpu_type in kinds
    }
    shares = []
    for one in measured.trained(session, list(alike), seconds=_LEAST_SECONDS):
        model, peak = model_of(one.facts), card.tflops_16bit * 1e12
        share = mfu(one.rate, model, cards=alike[one.job_id], peak_flops=peak) if model else None
        shares += [share] if share is not None else []
    return site_mfu(shares)


def _is_like(card: Card, gpu_type: str, cards: Cards) -> bool:
    """Of the same peak, too: a site's name may be that of several cards."""
    found = card_of(gpu_type, cards)
    same = found is not None and found.tflops_16bit == card.tflops_16bit
    return same and is_called(card, gpu_type)


def site_rates(
    session: "Session", card: Card, *, resource: str | None, now: datetime
) -> tuple[Rate, ...]:
    """The list, each QoS with another factor, and the packages on offer; none without a price.
    Refused: no_price, for a resource that somebody named."""
    listed = prices.load(session)
    names = (resource,) if resource else (card.name, *card.resources)
    for name in names:
        per_hour = listed.price(name, now)
        if per_hour is not None:
            sold = [row for row in prices.offers(session, now=now) if row.resource == name]
            return _rates(per_hour, listed, sold, now)
    if resource:
        raise Refused("no_price", field="resource", resource=resource)
    return ()


def typed_rates(
    per_hour: Credits, *, package_off: int | None = None, spot_off: int | None = None
) -> tuple[Rate, ...]:
    """From a price and discounts in millionths of a percent."""
    if per_hour <= 0:
        raise Refused("amount_not_positive", field="price")
    found = [Rate("normal", "list", per_hour)]
    for kind, off in (("package", package_off), ("spot", spot_off)):
        if off is not None:
            found.append(Rate(kind, kind, per_hour, _factor(f"{kind}_off", off)))
    return tuple(found)


def _rates(
    per_hour: Credits, listed: PriceList, sold: Sequence[OfferRow], now: datetime
) -> tuple[Rate, ...]:
    found = [Rate("normal", "list", per_hour)]
    for qos in sorted({row.qos for row in listed.terms if row.starts <= now}):
        factor = listed.factor_millionths(qos, now)
        # A QoS that costs less is taken to be one whose jobs are preempted.
        kind = "spot" if factor < MILLION else "normal"
        free = listed.preempted(qos, now) is Preempted.FREE
        if factor != MILLION:
            found.append(Rate(kind, qos, per_hour, factor, free))
    found += [Rate("package", row.name, Credits(row.per_hour)) for row in sold]
    return tuple(found)


def _factor(field: str, off: int) -> int:
    """A discount of hundred percent is no price."""
    if not 0 <= off < _PERCENT:
        raise Refused("plan_discount", field=field)
    return MILLION - off // 100
