"""The picture of a group's credit: what it was day by day, and when it runs dry at this pace.

Numbers of an SVG of 100 by 100 that is stretched to its place: shapes only, no text in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from gateway.core.burndown import PACE_DAYS, Part, runs_dry
from gateway.store.queries.balances import Balance
from gateway.store.queries.group_credit import DayFlow

LOOK_BACK_DAYS = 30
_AHEAD_DAYS = 30
_FARTHEST_AHEAD = 60


@dataclass(frozen=True, slots=True)
class Day:
    day: date
    spent: int
    left: int


@dataclass(frozen=True, slots=True)
class Burndown:
    """`line` is what was, `ahead` the estimate; `zero` is where nothing is left."""

    days: list[Day]
    line: str
    area: str
    ahead: str
    today: float
    zero: float
    top: int
    per_day: int
    dry: datetime | None
    first: date
    last: date

    @property
    def is_flat(self) -> bool:
        return self.per_day <= 0


def burndown(have: Balance, flows: Sequence[DayFlow], *, now: datetime, zone: tzinfo) -> Burndown:
    """`flows` are the days until today."""
    whole = sum(pot.left + pot.held for pot in have.pots if _counts(pot.expires, now))
    days = _days(flows, whole)
    pace = sum(flow.spent for flow in flows[-PACE_DAYS:]) // PACE_DAYS
    parts = [
        Part(pot.left + pot.held, pot.expires) for pot in have.pots if _counts(pot.expires, now)
    ]
    dry = runs_dry(parts, per_day=pace, now=now)
    today = now.astimezone(zone).date()
    ahead = _ahead_days(dry, now) if pace > 0 else 0
    return _drawn(days, whole, pace, dry, ahead_days=ahead, today=today)


def _counts(expires: datetime | None, now: datetime) -> bool:
    return expires is None or expires > now


def _days(flows: Sequence[DayFlow], whole: int) -> list[Day]:
    """Backwards from what there is now, oldest first."""
    found: list[Day] = []
    for flow in reversed(flows):
        found.append(Day(flow.day, flow.spent, whole))
        whole -= flow.net
    return found[::-1]


def _ahead_days(dry: datetime | None, now: datetime) -> int:
    if dry is None:
        return _AHEAD_DAYS
    until = (dry - now).days + 1
    return until if until <= _FARTHEST_AHEAD else _AHEAD_DAYS


def _drawn(
    days: list[Day], whole: int, pace: int, dry: datetime | None, *, ahead_days: int, today: date
) -> Burndown:
    span = max(1, len(days) - 1 + ahead_days)
    end = max(min(whole, 0), whole - pace * ahead_days) if ahead_days else whole
    top = max(0, whole, *(day.left for day in days))
    low = min(0, whole, *(day.left for day in days))
    height = max(1, top - low)

    def x(place: float) -> float:
        return round(place / span * 100, 2)

    def y(amount: int) -> float:
        return round((top - amount) * 100 / height, 2)

    points = [f"{x(n)},{y(day.left)}" for n, day in enumerate(days)]
    now_x, zero = x(len(days) - 1), y(0)
    stop = x(len(days) - 1 + ahead_days)
    return Burndown(
        days=days,
        line=" ".join(points),
        area=" ".join([f"0,{zero}", *points, f"{now_x},{zero}"]),
        ahead=f"{now_x},{y(whole)} {stop},{y(end)}" if ahead_days else "",
        today=now_x,
        zero=zero,
        top=top,
        per_day=pace,
        dry=dry,
        first=days[0].day,
        last=today + timedelta(days=ahead_days),
    )
