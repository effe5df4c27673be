"""Prices and credit of the demo: what a commercial GPU cloud published, in CNY a card-hour.

rtx4090 1.2, a100 (of 40 GB) 3.5; a week's package of rtx4090 at 0.9; spot at 0.82; 10 on trial.
"""

from datetime import UTC, datetime, timedelta

from gateway.config import load_settings
from gateway.core.credits import MILLION
from gateway.services import credit, prices
from gateway.store import prices as rows
from gateway.store.uow import Begin, make_begin, make_engine

TRIAL = 10 * MILLION
TOP_UPS = {"nlp": 2000 * MILLION, "vision": 500 * MILLION}
GROUPS = ("nlp", "vision", "biolab")


def set_up(environment: dict[str, str]) -> None:
    """Once; a later start leaves what has been changed since."""
    engine = make_engine(load_settings(environment).database_url)
    try:
        _set_up(make_begin(engine), datetime.now(UTC))
    finally:
        engine.dispose()


def _set_up(begin: Begin, now: datetime) -> None:
    with begin() as session:
        if rows.load(session).begins is not None:
            return
    for group in GROUPS:
        credit.grant(
            group,
            TRIAL,
            reason="trial",
            key=f"demo:{group}",
            expires=now + timedelta(days=30),
            begin=begin,
            now=now,
        )
        if group in TOP_UPS:
            key = f"demo:{group}"
            credit.top_up(group, TOP_UPS[group], key=key, begin=begin, now=now)
    prices.add_offer("weekly", "rtx4090", "0.9", days=7, begin=begin, now=now)
    prices.set_terms("spot", "0.82", preempted="free", begin=begin, now=now)
    # The prices last: with them charging begins.
    for resource, per_hour in (("rtx4090", "1.2"), ("a100", "3.5")):
        prices.set_price(resource, per_hour, begin=begin, now=now)
