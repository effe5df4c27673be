"""How often to read from Slurm: slower when it is slow or says no, sooner when somebody waits."""

from dataclasses import dataclass
from datetime import datetime, timedelta

LONGEST_SECONDS = 120.0
# A read that takes more than this share of its interval is a burden on slurmctld.
_SHARE = 0.2
_SHORTEST_GAP_SECONDS = 2.0
_GAP_TIMES = 5


@dataclass(frozen=True, slots=True)
class Last:
    """How the last read went: when it began, how long it took, whether it failed."""

    began: datetime | None
    interval_seconds: float
    wanted_at: datetime | None
    took_seconds: float = 0.0
    failed: bool = False


def next_interval(base: float, current: float, *, took: float, failed: bool) -> float:
    """Doubled up to two minutes after a failure or a slow read, halved back after a quick one."""
    if failed or took > _SHARE * current:
        return min(max(current, base) * 2, max(LONGEST_SECONDS, base))
    if took <= _SHARE * current / 2:
        return max(base, current / 2)
    return current


def is_due(last: Last, now: datetime) -> bool:
    """A wish is met after a short gap, so a hundred wishes are one read; never while Slurm
    refuses."""
    if last.began is None:
        return True
    since = (now - last.began).total_seconds()
    if since < 0 or since >= last.interval_seconds:
        return True  # a clock set back must not stop the poll
    if last.wanted_at is None or last.failed or last.wanted_at > now + timedelta(seconds=1):
        return False
    return since >= max(_SHORTEST_GAP_SECONDS, _GAP_TIMES * last.took_seconds)
