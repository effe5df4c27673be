"""What pages draw of past waits besides `Figures`. Definitions: docs/engineering/waits.md."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.core.wait_causes import Cause
from gateway.core.wait_figures import Figures


class Step(StrEnum):
    """How wide the parts of a time series are, in the question's zone. Weeks begin on Monday."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


# Lowest seconds of each bar: 0, then doubling, so that bars are equally wide on a log axis.
LOG_BOUNDS = (0, *(2**power for power in range(27)))
# Open XDMoD's, for comparing with sites that use it.
XDMOD_BOUNDS = (0, 1, 30, 1800, 3600, 18000, 36000, 64800)


@dataclass(frozen=True, slots=True)
class Overview:
    """The period, the one of the same length before it (None where the question has no beginning
    or no end), and the rows of the period by one dimension."""

    now: Figures
    before: Figures | None
    rows: tuple[tuple[str, Figures], ...]


@dataclass(frozen=True, slots=True)
class Span:
    """First and last submit, and first and last end, of the rows of a question; UTC, None where
    there is none."""

    submitted: tuple[datetime, datetime] | None
    ended: tuple[datetime, datetime] | None


@dataclass(frozen=True, slots=True)
class Bar:
    """How many waits and runs took low_s <= seconds < high_s (None: no upper bound)."""

    low_s: int
    high_s: int | None
    waits: int
    runs: int


@dataclass(frozen=True, slots=True)
class Distribution:
    """`*_ecdf`: (seconds, share of the durations that are not longer), at steps of at most 3 %
    of the seconds; each share is exact. `others` as in Figures, of the rows of both."""

    bars: tuple[Bar, ...]
    waits: int
    runs: int
    wait_ecdf: tuple[tuple[int, float], ...]
    run_ecdf: tuple[tuple[int, float], ...]
    people: int
    others: int


@dataclass(frozen=True, slots=True)
class TimePoint:
    """Jobs submitted in the step that begins at `since` (UTC). Seconds; None without a job.
    People and others as in Figures."""

    since: datetime
    jobs: int
    started: int
    never_started: int
    waiting: int
    people: int
    others: int
    wait_median_s: float | None
    wait_p90_s: float | None
    wait_p99_s: float | None
    run_median_s: float | None


@dataclass(frozen=True, slots=True)
class HeatCell:
    """Started jobs by hour of the week of their submit (0: Monday 00:00-01:00, in the zone).
    `jobs` are those of which the wait counts. People and others as in Figures."""

    hour: int
    jobs: int
    people: int
    others: int
    median_s: float | None
    p90_s: float | None


@dataclass(frozen=True, slots=True)
class Survival:
    """Share that still waits after so many seconds: `all` is Kaplan–Meier's curve, in which those
    that have not started count as longer; `started` is of the started alone. At steps of at
    most 3 % of the seconds, each share exact."""

    all: tuple[tuple[int, float], ...]
    started: tuple[tuple[int, float], ...]
    events: int  # that started
    censored: int  # that did not
    people: int
    others: int


@dataclass(frozen=True, slots=True)
class CausesRow:
    """Seconds of `jobs` by cause, waiting ones until the question's now. Every cause has an entry.
    People and others as in Figures."""

    key: str
    jobs: int
    seconds: Mapping[Cause, int]
    people: int
    others: int
