"""When a job will probably start: the question, and the answer with what it rests on."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class ForecastSource(StrEnum):
    SLURM = "slurm"  # its scheduler's own plan
    HISTORY = "history"  # this site's waits and its present queue


class NoForecast(StrEnum):
    """Why no number is given."""

    NO_HISTORY = "no_history"
    TOO_THIN = "too_thin"  # too few jobs of this kind have started lately
    NEVER = "never"  # it can never start as asked for


@dataclass(frozen=True, slots=True)
class Here:
    """This cluster as Slurm calls it, and the partitions that it has: which rows of imported sets
    are of its own past."""

    cluster: str
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """A request before Submit, or a job that waits since `submitted` (eligible since then).
    `gpus` of the whole job, `gpu_type` None: any would do, `limit_minutes` None: no limit."""

    at: datetime
    group: str
    partition: str
    qos: str | None
    gpus: int
    gpu_type: str | None
    nodes: int
    cpus: int
    limit_minutes: int | None
    priority: int | None = None
    submitted: datetime | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds from the question to the start. As many jobs start before p50 as after it, nine of
    ten before p90. `jobs`: so many waits it rests on; 0 for Slurm's own."""

    p50_s: int
    p90_s: int | None
    source: ForecastSource
    jobs: int = 0
