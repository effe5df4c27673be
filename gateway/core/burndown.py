"""When credit runs dry at the pace of late: an estimate, and only as good as the pace lasts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

PACE_DAYS = 14
_FARTHEST = timedelta(days=3 * 365)
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Part:
    """Some credit, and until when it may be drawn. None: for ever."""

    amount: int
    expires: datetime | None = None


def runs_dry(parts: Sequence[Part], *, per_day: int, now: datetime) -> datetime | None:
    """The moment when nothing is left, what lapses before it is used counted as lost.

    None: at this pace not within three years. What expires first is drawn first, as in the
    order of use; that a package pays for one GPU type alone is left out.
    """
    if sum(part.amount for part in parts) <= 0:
        return now
    at = now
    for part in sorted(parts, key=lambda one: one.expires or _NEVER):
        at = max(at, min(_used_up(at, part.amount, per_day), part.expires or _NEVER))
        if at - now > _FARTHEST:
            return None
    return at


def _used_up(since: datetime, amount: int, per_day: int) -> datetime:
    if per_day <= 0 or amount > per_day * _FARTHEST.days:
        return _NEVER
    return since + timedelta(days=max(0, amount) / per_day)
