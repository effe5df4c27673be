"""A budget: a plan with an amount and dates, what was spent of it, and what happens when.

Shares are compared in whole numbers: 95 % is reached when 100 times what was spent is at least
95 times the amount, never by a rounded percentage.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum

from gateway.core.credits import Credits

PACE_DAYS = 14


class Category(StrEnum):
    """Card-hours come from the charges by themselves, and by hand where they were paid outside."""

    CARD_HOURS = "card_hours"
    STORAGE = "storage"
    DATA_WORK = "data_work"
    OTHER = "other"


class Action(StrEnum):
    """What happens at a threshold."""

    NOTIFY = "notify"
    STOP = "stop"  # the portal sends no new jobs
    APPROVE = "approve"  # new jobs need a leader who lets them go on


@dataclass(frozen=True, slots=True)
class Threshold:
    percent: int
    action: Action
    reached_at: datetime | None = None


DEFAULT_THRESHOLDS = (
    Threshold(50, Action.NOTIFY),
    Threshold(80, Action.NOTIFY),
    Threshold(95, Action.APPROVE),
    Threshold(100, Action.STOP),
)


@dataclass(frozen=True, slots=True)
class Standing:
    """`charged` is charges less refunds in the budget's dates, `lines` what was entered by hand,
    `held` what open holds keep back beside it."""

    amount: int
    charged: int
    lines: Mapping[str, int] = field(default_factory=dict)
    held: int = 0

    @property
    def by_category(self) -> dict[Category, Credits]:
        found = {category: self.lines.get(category.value, 0) for category in Category}
        found[Category.CARD_HOURS] += self.charged
        return {category: Credits(amount) for category, amount in found.items()}

    @property
    def spent(self) -> Credits:
        return Credits(self.charged + sum(self.lines.values()))

    @property
    def left(self) -> Credits:
        """Negative when more was spent than planned."""
        return Credits(self.amount - self.spent)

    @property
    def percent(self) -> int:
        """Whole percent that are reached, rounded down."""
        return self.spent * 100 // self.amount

    def has_reached(self, percent: int) -> bool:
        return self.spent * 100 >= percent * self.amount


@dataclass(frozen=True, slots=True)
class Barrier:
    """Why a new job may not start: the threshold that it would pass, or that is passed."""

    percent: int
    action: Action
    worst: Credits  # the job's worst case
    free: Credits  # what may still be spent or held before that threshold


@dataclass(frozen=True, slots=True)
class Outlook:
    """An estimate, and only as good as the pace lasts: that of the last `days` days."""

    days: int
    per_day: Credits
    dry_at: datetime | None  # None: nothing is spent, or not for a century


def reached(standing: Standing, thresholds: Iterable[Threshold]) -> list[Threshold]:
    """Those that are reached now and were not before, the lowest first."""
    fresh = [t for t in thresholds if t.reached_at is None and standing.has_reached(t.percent)]
    return sorted(fresh, key=lambda one: one.percent)


def barrier(
    standing: Standing, thresholds: Iterable[Threshold], *, worst: int, approved_until: int
) -> Barrier | None:
    """What stands against a job of this worst case; of several the strictest.

    What open holds keep back counts as spent: ten jobs sent at once must not each see the same
    rest. An approval moves the `approve` thresholds up to its percent and no `stop`.
    """
    used = standing.spent + standing.held
    found = []
    for threshold in thresholds:
        percent = threshold.percent
        if threshold.action is Action.APPROVE:
            percent = max(percent, approved_until)
        limit = percent * standing.amount // 100
        is_over = used + worst > limit or standing.has_reached(percent)
        if threshold.action is not Action.NOTIFY and is_over:
            free = Credits(max(0, limit - used))
            found.append(Barrier(percent, threshold.action, Credits(worst), free))
    return min(found, key=lambda one: (one.action is Action.APPROVE, one.percent), default=None)


def outlook(left: int, *, recent: int, days: int, now: datetime) -> Outlook:
    """When `left` is gone at the pace of `recent` in the last `days` days."""
    per_day = Credits(max(0, recent) // days)
    if recent <= 0:
        return Outlook(days, per_day, None)
    if left <= 0:
        return Outlook(days, per_day, now)
    lasts = left * days * 86_400 // recent
    return Outlook(days, per_day, now + timedelta(seconds=lasts) if lasts < _CENTURY else None)


_CENTURY = 100 * 365 * 86_400


def pace_days(starts: datetime, now: datetime) -> int:
    """Of how many days the pace is: fewer than 14 while the budget is young."""
    return max(1, min(PACE_DAYS, -(-(now - starts) // timedelta(days=1))))


def burn_down(
    amount: int, spent: Sequence[tuple[date, int]], *, until: date
) -> list[tuple[date, Credits]]:
    """What was left at the end of each day, up to `until`."""
    found, left = [], amount
    for day, used in spent:
        if day > until:
            break
        left -= used
        found.append((day, Credits(left)))
    return found
