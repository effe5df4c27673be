"""How good forecasts of starts have been: forecast against actual.

A forecast counts for a percentile once the time that it named has passed, whatever became of the
job: counting the early starts of young forecasts would make every record look good. A job that
left the queue before that time says nothing of it, and is counted apart.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from gateway.core.forecast import ForecastSource
from gateway.core.wait_figures import GPU_CLASSES

LEAST = 30  # fewer than this are no percentage
MINUTE, HOUR, DAY = 60, 3600, 86400
# Lower edges of the classes of forecasts, in seconds.
EDGES = (0, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 4 * HOUR, 12 * HOUR, DAY, 3 * DAY, 7 * DAY)


@dataclass(frozen=True, slots=True)
class Told:
    """A forecast and what came of it. `left_at`: the job was gone without a start. `own`: of a
    job that the reader may see as it is."""

    made_at: datetime
    source: ForecastSource
    p50_at: datetime
    p90_at: datetime | None
    partition: str
    gpus: int
    user: str
    own: bool
    started_at: datetime | None
    left_at: datetime | None

    @property
    def expected_s(self) -> float:
        return (self.p50_at - self.made_at).total_seconds()

    @property
    def actual_s(self) -> float | None:
        """None: it has not started, or never did."""
        if self.started_at is None:
            return None
        return max(0.0, (self.started_at - self.made_at).total_seconds())


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of `counted` forecasts `covered` jobs started by the time that was named; `late` of the
    others still wait. `early` are not counted yet: their time has not come. `left` went before
    it without a start."""

    counted: int = 0
    covered: int = 0
    late: int = 0
    early: int = 0
    left: int = 0

    @property
    def share(self) -> float | None:
        """None: too few to say."""
        return self.covered / self.counted if self.counted >= LEAST else None


@dataclass(frozen=True, slots=True)
class Score:
    """Of one source. Errors are of the jobs that have started: |actual - p50| in seconds, and how
    many times larger the larger of the two is; None where fewer than LEAST have. `others`: people
    besides the reader's own jobs."""

    forecasts: int
    started: int
    waiting: int
    others: int
    p50: Coverage
    p90: Coverage
    error_s: float | None
    error_times: float | None

    @property
    def jobs(self) -> int:
        return self.forecasts


@dataclass(frozen=True, slots=True)
class Bin:
    """Forecasts whose p50 was in [low_s, high_s), and when those jobs did start: a tenth before
    `p10_s`, half before `median_s`, nine tenths before `p90_s`; `high_s` None: no end."""

    low_s: int
    high_s: int | None
    started: int
    others: int
    median_expected_s: float
    p10_s: float
    median_s: float
    p90_s: float

    @property
    def jobs(self) -> int:
        return self.started


def score(rows: Collection[Told], *, now: datetime) -> Score:
    started = [(one.expected_s, one.actual_s) for one in rows if one.actual_s is not None]
    enough = len(started) >= LEAST
    return Score(
        forecasts=len(rows),
        started=len(started),
        waiting=sum(one.started_at is None and one.left_at is None for one in rows),
        others=others(rows),
        p50=coverage(((one, one.p50_at) for one in rows), now=now),
        p90=coverage(((one, one.p90_at) for one in rows if one.p90_at), now=now),
        error_s=median(abs(was - said) for said, was in started) if enough else None,
        error_times=median(_times(said, was) for said, was in started) if enough else None,
    )


def coverage(rows: Iterable[tuple[Told, datetime]], *, now: datetime) -> Coverage:
    """Each with the time that it is judged by."""
    counted = covered = late = early = left = 0
    for one, by in rows:
        if one.left_at is not None and one.left_at <= by:
            left += 1
        elif by > now:
            early += 1
        else:
            counted += 1
            covered += one.started_at is not None and one.started_at <= by
            late += one.started_at is None and one.left_at is None
    return Coverage(counted, covered, late, early, left)


def bins(rows: Iterable[Told]) -> tuple[Bin, ...]:
    """Those that have started, by what was forecast for them."""
    found: dict[int, list[Told]] = defaultdict(list)
    for one in rows:
        if one.actual_s is not None:
            found[_place(one.expected_s)].append(one)
    return tuple(_bin(place, found[place]) for place in sorted(found))


def others(rows: Iterable[Told]) -> int:
    """Different people of the jobs that are not the reader's own."""
    return len({one.user for one in rows if not one.own})


def gpu_class(gpus: int) -> str:
    """The class of cards that a number is in."""
    return next(
        name for name, low, high in GPU_CLASSES if gpus >= low and (high is None or gpus <= high)
    )


def _bin(place: int, rows: Sequence[Told]) -> Bin:
    actual = sorted(one.actual_s or 0.0 for one in rows)
    return Bin(
        low_s=EDGES[place],
        high_s=EDGES[place + 1] if place + 1 < len(EDGES) else None,
        started=len(rows),
        others=others(rows),
        median_expected_s=median(one.expected_s for one in rows),
        p10_s=_quantile(actual, 0.1),
        median_s=median(actual),
        p90_s=_quantile(actual, 0.9),
    )


def _place(seconds: float) -> int:
    return max(0, sum(edge <= seconds for edge in EDGES) - 1)


def _quantile(ordered: Sequence[float], part: float) -> float:
    """Between neighbours, as SQL's percentile_cont."""
    at = part * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def _times(said: float, was: float) -> float:
    """Below a minute nobody minds by how many times."""
    one, other = max(said, MINUTE), max(was, MINUTE)
    return max(one, other) / min(one, other)
