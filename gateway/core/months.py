"""Calendar months of the site's zone, as moments in UTC."""

from datetime import UTC, datetime, tzinfo


def month_of(moment: datetime, zone: tzinfo) -> str:
    """`2026-11`."""
    return moment.astimezone(zone).strftime("%Y-%m")


def month_start(moment: datetime, zone: tzinfo) -> datetime:
    """When the month began in which the moment lies."""
    local = moment.astimezone(zone)
    return datetime(local.year, local.month, 1, tzinfo=zone).astimezone(UTC)


def month_bounds(month: str, zone: tzinfo) -> tuple[datetime, datetime]:
    """From the first moment of `2026-11` to the first of the month after it. ValueError."""
    first = datetime.strptime(month, "%Y-%m").replace(tzinfo=zone)
    year, following = (first.year + 1, 1) if first.month == 12 else (first.year, first.month + 1)
    return first.astimezone(UTC), datetime(year, following, 1, tzinfo=zone).astimezone(UTC)
