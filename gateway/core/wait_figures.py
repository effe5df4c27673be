"""What one asks of past waits, and what is answered. Definitions: docs/engineering/waits.md."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum


class Wait(StrEnum):
    """What counts as the wait."""

    ELIGIBLE = "eligible"  # start - eligible: queue wait
    SUBMIT = "submit"  # start - submit: with the deferral


class Dimension(StrEnum):
    """What figures can be told apart by."""

    CLUSTER = "cluster"
    PARTITION = "partition"
    GPU_TYPE = "gpu_type"
    GPU_CLASS = "gpu_class"  # GPU_CLASSES
    GPUS = "gpus"
    QOS = "qos"
    GROUP = "group"
    USER = "user"
    TEMPLATE = "template"
    STATE = "state"
    LIMIT_CLASS = "limit_class"  # LIMIT_CLASSES
    HOUR_OF_WEEK = "hour_of_week"  # 0: Monday 00:00-01:00, of the submit time
    SUBMIT_DAY = "submit_day"
    START_DAY = "start_day"
    END_DAY = "end_day"
    SUBMIT_MONTH = "submit_month"
    SOURCE = "source"


# Class and its lowest and highest number of cards.
GPU_CLASSES = (("0", 0, 0), ("1", 1, 1), ("2-4", 2, 4), ("5-8", 5, 8), (">8", 9, None))
# Class and its highest number of minutes, that one included; the last has none.
LIMIT_CLASSES = (
    ("≤1h", 60),
    ("≤4h", 240),
    ("≤12h", 720),
    ("≤24h", 1440),
    ("≤3d", 4320),
    (">3d", None),
)
UNKNOWN = "unknown"  # the key of rows of which nobody told


@dataclass(frozen=True, slots=True)
class Question:
    """Rows that were submitted in [since, until) and that have one of the values given for each
    dimension of `only` (an empty text: unknown). Times are UTC; `zone` is what days and hours are
    of. `now`: until when the waiting have waited. `own_user` and `own_groups`: whose rows the asker
    may see whatever their number; they change no figure but `Figures.others`."""

    now: datetime
    since: datetime | None = None
    until: datetime | None = None
    only: Mapping[Dimension, tuple[str, ...]] = field(default_factory=dict)
    least_gpus: int = 0
    wait: Wait = Wait.ELIGIBLE
    zone: str = "UTC"
    own_user: str | None = None
    own_groups: tuple[str, ...] = ()

    @property
    def before(self) -> "Question | None":
        """The same of as long a period, up to this one; None where this one has an open end."""
        if self.since is None or self.until is None:
            return None
        return replace(self, since=self.since - (self.until - self.since), until=self.since)


@dataclass(frozen=True, slots=True)
class Spread:
    """Statistics of durations in seconds; None where there is none (n = 0)."""

    n: int = 0
    sum_s: int = 0
    mean_s: float | None = None
    median_s: float | None = None
    p90_s: float | None = None
    p95_s: float | None = None
    p99_s: float | None = None
    p90_disc_s: int | None = None
    p95_disc_s: int | None = None
    p99_disc_s: int | None = None
    max_s: int | None = None
    share_zero: float | None = None


@dataclass(frozen=True, slots=True)
class Censored:
    """Kaplan–Meier percentiles of the wait, in seconds: those that did not start count as longer
    than what they waited. None: the curve does not fall so far."""

    median_s: int | None = None
    p90_s: int | None = None
    p99_s: int | None = None


@dataclass(frozen=True, slots=True)
class Figures:
    """`jobs` = started + never_started + waiting. `ratio_of_sums`: wait over run, of those that
    have both. `people`: different users, 0 where nobody told. `others`: different users of the rows
    that are not the asker's own (Question), a row without a user counting as one."""

    jobs: int = 0
    started: int = 0
    never_started: int = 0
    waiting: int = 0
    throttled: int = 0  # left out of the wait: arrays that held themselves back
    gpu_jobs: int = 0
    people: int = 0
    others: int = 0
    wait: Spread = Spread()
    run: Spread = Spread()
    deferral: Spread = Spread()
    requeue_wait: Spread = Spread()
    gave_up: Spread = Spread()  # how long those waited that never started
    censored: Censored = Censored()
    gpu_hours: float = 0.0
    cpu_hours: float = 0.0
    ratio_of_sums: float | None = None
    ratio_mean: float | None = None  # of wait / run, where run > 0
    ratio_median: float | None = None
