"""When datasets are copied to the nodes on which Slurm plans to start a job."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

SLOW_MBPS = 50.0  # MB (10^6 bytes) a second, where nobody has measured
_MARGIN = timedelta(minutes=10)  # the copying job waits its turn, and plans move
_SLOWER = 1.5  # what else reads from the shared folder then
_STARTS = 2  # minutes for a job to begin and to end
_ROUNDED = 2  # minutes that backfill, which plans in whole ones, may lose at either end


@dataclass(frozen=True, slots=True)
class Planned:
    """A waiting job, and where and when Slurm plans to start it. Anyone may copy a token: its
    job is told by Slurm's id, too."""

    token: str
    slurm_id: int
    nodes: tuple[str, ...]
    start: datetime


def copy_time(parts: Iterable[tuple[int, float | None]]) -> timedelta:
    """For bytes and measured MB (10^6 bytes) a second of each dataset."""
    seconds = sum(size / (max(mbps or SLOW_MBPS, 1.0) * 1e6) for size, mbps in parts)
    return timedelta(seconds=seconds)


def minutes_now(copy: timedelta, left: timedelta) -> int | None:
    """The time limit of a copying job that is sent now, in minutes: what the copy takes, and over
    before the other job is expected to start. None: that is too far away for such a copy, or too
    near. A copy that is cut short goes on where it was, when the job itself starts."""
    if left > copy * _SLOWER + _MARGIN:
        return None
    need = math.ceil(copy * _SLOWER / timedelta(minutes=1)) + _STARTS
    limit = min(need, math.floor(left / timedelta(minutes=1)) - _ROUNDED)
    return limit if limit > 0 else None
