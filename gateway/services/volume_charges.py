"""What volumes cost: each month that is over is charged once, whatever is killed or repeated.

A day is charged by its limit, or by what was used where there is none, at the price of that day.
"""

from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from gateway.core import pots as laying
from gateway.core.ledger import EntryKind, NewEntry
from gateway.core.months import days as days_between
from gateway.core.months import month_bounds, month_of, month_start
from gateway.core.pots import Pot, PotKind
from gateway.core.volumes import (
    GB,
    Day,
    StoragePrice,
    billed_bytes,
    month_cost,
    month_price,
    price_at,
)
from gateway.store import ledger
from gateway.store import volume_work as work
from gateway.store import volumes as store
from gateway.store.uow import Begin
from gateway.store.volumes import VolumeRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_LOOK_BACK = timedelta(days=3 * 366)


def charge_due(*, begin: Begin, now: datetime, zone: tzinfo) -> int:
    """Charge the months that are over; how many lines of the ledger came of it."""
    with begin() as session:
        prices = work.prices(session)
        if not prices:
            return 0
        done = work.charged_months(session)
        rows = store.every(session)
        todo = [
            (row, month)
            for row in rows
            for month in _months(row, prices, now=now, zone=zone)
            if (row.id, month) not in done
        ]
    posted = 0
    for row, month in todo:
        with begin() as session:
            posted += _charge(session, row, month, now=now, zone=zone)
    return posted


def more_a_month(
    session: "Session", area: str, before: int | None, after: int | None, *, now: datetime
) -> int | None:
    """What another limit costs more (or less) in a whole month; None: nothing is charged there, or
    it depends on what is used."""
    price = price_at(work.prices(session), area, now)
    if price is None or before is None or after is None:
        return None
    return month_price(after, price) - month_price(before, price)


def a_month(prices: list[StoragePrice], row: VolumeRow, *, now: datetime) -> int | None:
    """What a month costs as it is now; None: nothing is charged, or it is not known."""
    price = price_at(prices, row.area, now)
    size = row.used_bytes if row.limit_bytes is None else row.limit_bytes
    return None if price is None or size is None else month_price(size, price)


def _months(
    row: VolumeRow, prices: list[StoragePrice], *, now: datetime, zone: tzinfo
) -> list[str]:
    """Those that are over, from when the volume and the first price were there."""
    begins = max(row.created_at, prices[0].starts, now - _LOOK_BACK)
    until = month_start(now, zone)
    found: list[str] = []
    at = month_start(begins, zone)
    while at < until and (row.retired_at is None or at < row.retired_at):
        month = month_of(at, zone)
        found.append(month)
        _, at = month_bounds(month, zone)
    return found


def _charge(session: "Session", row: VolumeRow, month: str, *, now: datetime, zone: tzinfo) -> int:
    since, until = month_bounds(month, zone)
    pots = ledger.lock(session, [row.group], now=now)[row.group]
    prices = work.prices(session)
    month_days = [day for day, _, _ in days_between(since, until, zone)]
    starts = {day: at for day, at, _ in days_between(since, until, zone)}
    first = month_days[0] - timedelta(days=366)
    billed = billed_bytes(_alive(store.days(session, row.id, since=first), row, zone), month_days)
    last = None if row.retired_at is None else row.retired_at.astimezone(zone).date()
    counted = {day: size for day, size in billed.items() if last is None or day <= last}
    priced = [(size, price_at(prices, row.area, starts[day]) or 0) for day, size in counted.items()]
    amount = month_cost(priced, days_of_month=len(month_days))
    gb_days = sum(counted.values()) * 1000 // GB
    values: dict[str, Any] = {
        "volume_id": row.id,
        "month": month,
        "gb_days": gb_days,
        "amount": amount,
        "at": now,
    }
    if not work.add_charge(session, values) or not amount:
        return 0
    key = f"volume:{row.id}:{month}"
    note = f"{row.area}/{row.name} {month}"
    entries = [
        NewEntry(now, pot, row.group, EntryKind.STORAGE, -part, key, note=note)
        for pot, part in _drawn(amount, pots, now=now).items()
    ]
    ledger.post(session, entries)
    return len(entries)


def _alive(days: list[Day], row: VolumeRow, zone: tzinfo) -> list[Day]:
    began = row.created_at.astimezone(zone).date()
    return [one for one in days if one.day >= began]


def _drawn(amount: int, pots: list[Pot], *, now: datetime) -> dict[int, int]:
    """Grants first, then the balance, which may be overdrawn: the data lie there already. Packages
    are card-hours."""
    money = [
        pot for pot in laying.usable(pots, now=now, started=now) if pot.kind is not PotKind.PACKAGE
    ]
    drawn = laying.take(amount, money)
    rest = amount - sum(drawn.values())
    if rest:
        balance = laying.the_balance(money).id
        drawn[balance] = drawn.get(balance, 0) + rest
    return drawn
