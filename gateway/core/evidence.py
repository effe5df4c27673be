"""What is known of a run that nobody could charge for certain: how long it can have run, by the
clock and by its limit, and on what."""

import re
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from gateway.core.tres import gpu_count, parse_tres

_HOURS = re.compile(r"\d{1,6}(\.\d{1,4})?")
_CLOCK = re.compile(r"(?:(\d{1,4})-)?(\d{1,6})(?::([0-5]?\d))?(?::([0-5]?\d))?")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Seconds. `by_clock` is from the start until it was last seen, `by_limit` the same and no
    longer than its time limit; `recorded` is accounting's own. `gpus` by type, as far as known."""

    recorded: int | None
    by_clock: int
    by_limit: int
    gpus: dict[str, int] = field(default_factory=dict)

    @property
    def suggested(self) -> int:
        return self.by_limit


def evidence(
    *,
    start: datetime,
    end: datetime | None,
    elapsed_seconds: int,
    last_seen: datetime | None,
    limit_minutes: int | None,
    alloc_tres: str,
    gpus_asked: int,
    gpu_type: str | None,
) -> Evidence:
    """Never more than the limit allows, whatever an open record says: without an end the elapsed
    time that accounting shows only grows."""
    recorded = elapsed_seconds if end is not None else None
    until = max(filter(None, (start, end, last_seen)))
    by_clock = int((until - start).total_seconds())
    if recorded is not None and recorded > by_clock:
        by_clock = recorded
    limit = by_clock if limit_minutes is None else limit_minutes * 60
    return Evidence(
        recorded, by_clock, min(by_clock, limit), _cards(alloc_tres, gpus_asked, gpu_type)
    )


def parse_span(text: str) -> int:
    """Seconds of `24` or `1.5` hours, `24:00:00`, or `1-3` (days-hours). ValueError."""
    typed = text.strip()
    if _HOURS.fullmatch(typed):
        return int(Decimal(typed) * 3600)
    found = _CLOCK.fullmatch(typed)
    if found is None:
        raise ValueError("no span of time")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _cards(alloc_tres: str, asked: int, gpu_type: str | None) -> dict[str, int]:
    try:
        total, by_type = gpu_count(parse_tres(alloc_tres))
    except ValueError:
        total, by_type = 0, {}
    named = {kind: count for kind, count in by_type.items() if count}
    if named:
        return named
    count = total or asked
    return {gpu_type: count} if gpu_type and count else {}
