"""Calendar months of the site's zone, as moments in UTC."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo

# Written one way only; a zone's shift must not lead out of what a date can be.
_MONTH = re.compile(r"(?:19|2\d)\d\d-(?:0[1-9]|1[0-2])", re.ASCII)


def month_of(moment: datetime, zone: tzinfo) -> str:
    """`2026-11`."""
    return moment.astimezone(zone).strftime("%Y-%m")


def month_start(moment: datetime, zone: tzinfo) -> datetime:
    """When the month began in which the moment lies."""
    local = moment.astimezone(zone)
    return datetime(local.year, local.month, 1, tzinfo=zone).astimezone(UTC)


def month_bounds(month: str, zone: tzinfo) -> tuple[datetime, datetime]:
    """From the first moment of `2026-11` to the first of the month after it. ValueError."""
    if not _MONTH.fullmatch(month):
        raise ValueError(f"no month: {month!r}")
    first = datetime.strptime(month, "%Y-%m").replace(tzinfo=zone)
    year, following = (first.year + 1, 1) if first.month == 12 else (first.year, first.month + 1)
    return first.astimezone(UTC), datetime(year, following, 1, tzinfo=zone).astimezone(UTC)


def midnight(day: date, zone: tzinfo) -> datetime:
    """When the day begins in the zone."""
    return datetime.combine(day, time(), zone).astimezone(UTC)


def days(
    since: datetime, until: datetime, zone: tzinfo
) -> Iterator[tuple[date, datetime, datetime]]:
    """Each day of the zone in [since, until), and from when to when it is in it."""
    day = since.astimezone(zone).date()
    while (begins := midnight(day, zone)) < until:
        following = day + timedelta(days=1)
        yield day, max(begins, since), min(midnight(following, zone), until)
        day = following
