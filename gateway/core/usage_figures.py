"""What one asks of the past use of cards, and what is answered. Definitions:
docs/engineering/waits.md.

Seconds are whole, money is millionths of the currency, percent are whole. Of a run over the edge of
a period the part inside counts, so that the parts of neighbouring periods add up to the run.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any

from gateway.core.wait_figures import Dimension

HOUR = 3600
_MOST_WAYS = 2
LEAST_RUNS = 20  # completed, for advice on a time limit
_STEPS = (1, 2, 3, 4, 6, 8, 12, 18, 24, 36, 48, 72, 96, 120, 168)  # hours that people ask for


class By(StrEnum):
    """What use can be told apart by. A month is one of use, not of submit."""

    GROUP = "group"
    USER = "user"
    GPU_TYPE = "gpu_type"
    PARTITION = "partition"
    QOS = "qos"
    TEMPLATE = "template"
    STATE = "state"
    MONTH = "month"


# What a row of use is filtered by when one looks closer at it.
DIMENSIONS: dict[By, Dimension] = {one: Dimension(one.value) for one in By if one is not By.MONTH}


@dataclass(frozen=True, slots=True)
class CreditSeen:
    """The credit of whose runs the asker may see: of all groups, or of these."""

    all_groups: bool = False
    groups: tuple[str, ...] = ()


def ways(given: Sequence[str]) -> list[By]:
    """What use is to be told apart by: one or two different things, else ValueError; none named:
    groups."""
    found = [By(one) for one in given] or [By.GROUP]
    if len(found) > _MOST_WAYS or len(set(found)) < len(found):
        raise ValueError("one or two different ones")
    return found


def facts(use: "Use") -> dict[str, float]:
    """The figures for programs, under the same names everywhere; the charge is told by who knows
    how amounts are written there."""
    return {
        "gpu_hours": use.gpu_seconds / HOUR,
        "gpu_seconds": use.gpu_seconds,
        "cpu_hours": use.cpu_seconds / HOUR,
        "runs": use.runs,
        "runs_ended": use.ended,
        "runs_without_cards_told": use.untold,
        "people": use.people,
    }


@dataclass(frozen=True, slots=True)
class Use:
    """Runs that held cards in the period, by `keys` (as many as were asked by; UNKNOWN where
    nobody told). `gpu_seconds` is the part inside. `charge`: of the `ended` runs, which ended in
    the period, as posted, refunds not taken off; None where the asker may see no credit of it.
    `others`: different people beside the asker and the asker's groups (Figures.others). `untold`:
    runs of which nobody told how many cards they had; they are in no hours."""

    keys: tuple[str, ...] = ()
    runs: int = 0
    ended: int = 0
    people: int = 0
    others: int = 0
    gpu_seconds: int = 0
    cpu_seconds: int = 0
    charge: int | None = None
    untold: int = 0

    @property
    def jobs(self) -> int:
        """What core.wait_sight counts by."""
        return self.runs


@dataclass(frozen=True, slots=True)
class Limits:
    """Runs that ended in the period, of a group or, where `key` is None, of all that was asked:
    card-seconds kept by their time limits and used. `unlimited` runs have no limit and are in
    neither. Of the completed ones: the limit that half of them asked for or more, and the run time
    within which 90 % ended (nearest rank). `timeout_s`: the longest run that its limit ended."""

    key: str | None
    runs: int = 0
    others: int = 0
    unlimited: int = 0
    reserved_gpu_seconds: int = 0
    used_gpu_seconds: int = 0
    completed: int = 0
    median_limit_s: int | None = None
    p90_s: int | None = None
    timeout_s: int | None = None

    @property
    def jobs(self) -> int:
        """What core.wait_sight counts by."""
        return self.runs


@dataclass(frozen=True, slots=True)
class LimitBin:
    """Runs that used from `low` to below `low` + 10 percent of their limit; 100: all of it."""

    low: int
    runs: int
    others: int
    gpu_seconds: int

    @property
    def jobs(self) -> int:
        """What core.wait_sight counts by."""
        return self.runs


@dataclass(frozen=True, slots=True)
class DayUse:
    """Cards of a type that jobs held on a day of the question's zone, suspended ones too."""

    day: date
    gpu_type: str
    gpu_seconds: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """Cards of a type that the cluster had on a day: the most that a poll saw."""

    day: date
    gpu_type: str
    gpus: int


@dataclass(frozen=True, slots=True)
class LimitWait:
    """What jobs of a group, submitted in the period, waited for limits: seconds of all its jobs by
    cause, and `wait_s` altogether (deferral left out). `limited`: jobs that waited for a limit."""

    group: str
    jobs: int
    limited: int
    others: int
    user_limit_s: int
    group_limit_s: int
    qos_limit_s: int
    wait_s: int

    @property
    def limit_s(self) -> int:
        return self.user_limit_s + self.group_limit_s + self.qos_limit_s


@dataclass(frozen=True, slots=True)
class CardDay:
    """What a type's cards did on a day. `capacity_s`: cards times seconds of the day, so far;
    `assumed`: nobody counted the cards on that day."""

    day: date
    gpu_seconds: int
    capacity_s: int | None
    assumed: bool


@dataclass(frozen=True, slots=True)
class Cards:
    """A type's days in a period, gaps filled."""

    gpu_type: str
    days: tuple[CardDay, ...] = field(default=())

    @property
    def gpu_seconds(self) -> int:
        return sum(one.gpu_seconds for one in self.days)

    @property
    def whole(self) -> CardDay:
        """All days as one, the last."""
        assumed = any(day.assumed for day in self.days)
        return CardDay(self.days[-1].day, self.gpu_seconds, self.capacity_s, assumed)

    @property
    def capacity_s(self) -> int | None:
        known = [one.capacity_s for one in self.days if one.capacity_s is not None]
        return sum(known) if known else None


def in_order(rows: Iterable[Use], by: Sequence[By]) -> list[Use]:
    """Months in their order, others by GPU-hours."""
    return sorted(rows, key=lambda one: _order(one, by))


def _order(one: Use, by: Sequence[By]) -> tuple[Any, ...]:
    months = tuple(key for key, part in zip(one.keys, by, strict=True) if part is By.MONTH)
    return (*months, -one.gpu_seconds, -one.runs, one.keys)


def advised_limit(of: Limits) -> int | None:
    """A shorter limit, in seconds, within which 90 % of completed runs ended and which no run that
    hit its limit would have needed more than; None where there are too few runs, or where it would
    not be at most half of what is asked now."""
    if of.completed < LEAST_RUNS or of.p90_s is None or of.median_limit_s is None:
        return None
    needed = max(of.p90_s, of.timeout_s or 0)
    step = bisect_left(_STEPS, (needed + 1) / HOUR)
    if step == len(_STEPS):
        return None
    found = _STEPS[step] * HOUR
    return found if found * 2 <= of.median_limit_s else None


def cards_by_day(
    used: Sequence[DayUse],
    counted: Sequence[Capacity],
    now: dict[str, int],
    days: Sequence[tuple[date, datetime, datetime]],
) -> list[Cards]:
    """Each type's use against its cards. `days`: day, and from when to when it counts. A day on
    which nobody counted has the cards of the next one that was counted, else those of `now`."""
    by_day = {(one.gpu_type, one.day): one.gpu_seconds for one in used}
    types = sorted({*now, *(one.gpu_type for one in used), *(one.gpu_type for one in counted)})
    return [Cards(name, tuple(_days(name, by_day, counted, now.get(name), days))) for name in types]


def _days(
    name: str,
    used: dict[tuple[str, date], int],
    counted: Sequence[Capacity],
    now: int | None,
    days: Sequence[tuple[date, datetime, datetime]],
) -> list[CardDay]:
    known = {one.day: one.gpus for one in counted if one.gpu_type == name}
    order = sorted(known)
    found = []
    for day, since, until in days:
        place = bisect_left(order, day)
        gpus = known[order[place]] if place < len(order) else now
        seconds = int((until - since).total_seconds())
        capacity = None if gpus is None else gpus * seconds
        found.append(CardDay(day, used.get((name, day), 0), capacity, day not in known))
    return found
