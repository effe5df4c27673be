"""The rows of the view `waits` that held cards in a period, as SQL for history.usage and
history.usage_limits."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from gateway.core import months
from gateway.core.wait_figures import GPU_CLASSES, LIMIT_CLASSES, UNKNOWN, Dimension, Question

# `last` is null while a run goes on: it is taken to go on until now, and no longer than its time
# limit, since nobody may have told the portal of its end. What was imported and has no end had one
# when it had run for as long as it says.
_HELD = """
SELECT "group", gpu_type, state, gpus, limit_minutes,
    CASE WHEN "user" IS NOT NULL THEN hash("user") END AS person,
    {own} AS is_own, start, last, ended, ended - start AS length,
    CASE WHEN last IS NULL AND source IS NULL THEN ended - start
         ELSE coalesce(elapsed_seconds, ended - start) END AS elapsed
FROM (
    SELECT *, coalesce(last, CASE
        WHEN source IS NOT NULL THEN start + coalesce(elapsed_seconds, 0)
        ELSE least({now}, start + coalesce(limit_minutes * 60, {now} - start)) END) AS ended
    FROM (
        SELECT *, epoch_us(start_time) // 1000000 AS start, epoch_us(end_time) // 1000000 AS last
        FROM waits WHERE {where}
    )
) WHERE ended >= {lo}
"""
_BEGINNING, _END = -(2**40), 2**40  # far from each job: of a question without a period
_COLUMNS = frozenset(
    {
        Dimension.CLUSTER,
        Dimension.PARTITION,
        Dimension.GPU_TYPE,
        Dimension.QOS,
        Dimension.GROUP,
        Dimension.USER,
        Dimension.TEMPLATE,
        Dimension.STATE,
        Dimension.SOURCE,
    }
)


@dataclass(frozen=True, slots=True)
class Held:
    """`sql` selects the rows, with `given`; `lo` and `hi` are the ends of the period."""

    sql: str
    given: dict[str, Any]
    lo: int
    hi: int


def held(question: Question) -> Held:
    """Runs that held something in the period."""
    now = epoch(question.now)
    lo = _BEGINNING if question.since is None else epoch(question.since)
    hi = min(_END if question.until is None else epoch(question.until), now + 1)
    where, given = conditions(question)
    where.append("start_time IS NOT NULL")
    if question.since is not None:
        where.append("(end_time IS NULL OR end_time >= $since)")
        given["since"] = question.since.astimezone(UTC).replace(tzinfo=None)
    where.append("start_time < $until")
    given["until"] = datetime.fromtimestamp(hi, UTC).replace(tzinfo=None)
    own = own_rows(question, given)
    sql = _HELD.format(own=own, now=now, lo=lo, where=" AND ".join(where))
    return Held(sql, given, lo, hi)


def conditions(question: Question) -> tuple[list[str], dict[str, Any]]:
    """What `only` asks for, and the values that it names."""
    found, given = [], dict[str, Any]()
    for dimension, values in question.only.items():
        if dimension in _COLUMNS:
            found.append(_is_one_of(dimension, values, given))
        elif dimension is Dimension.GPU_CLASS:
            found.append(_ranges("gpus", {name: (lo, hi) for name, lo, hi in GPU_CLASSES}, values))
        elif dimension is Dimension.LIMIT_CLASS:
            found.append(_ranges("limit_minutes", _limit_ranges(), values))
    if question.least_gpus:
        found.append("gpus >= $least_gpus")
        given["least_gpus"] = question.least_gpus
    return found, given


def own_rows(question: Question, given: dict[str, Any]) -> str:
    """Whether a row is the asker's own."""
    parts = []
    if question.own_user is not None:
        given["own_user"] = question.own_user
        parts.append('coalesce("user" = $own_user, false)')
    if question.own_groups:
        given["own_groups"] = list(question.own_groups)
        parts.append('coalesce(list_contains($own_groups, "group"), false)')
    return f"({' OR '.join(parts)})" if parts else "false"


def epoch(at: datetime) -> int:
    return int(at.timestamp())


def local(column: str, zone: ZoneInfo, lo: int, hi: int) -> str:
    """Seconds of wall-clock time, of a column of seconds since 1970 that lie in [lo, hi]. By
    arithmetic: DuckDB's own zones take twenty times as long."""
    shifts = list(_shifts(zone, lo, hi))
    cases = "".join(f" WHEN {column} < {until} THEN {offset}" for until, offset in shifts[:-1])
    last = shifts[-1][1]
    return f"({column} + CASE{cases} ELSE {last} END)" if cases else f"({column} + {last})"


def days(zone: ZoneInfo, lo: int, hi: int) -> Iterator[tuple[date, int, int]]:
    """Each day of [lo, hi): the day, and from when to when it is in it."""
    since, until = datetime.fromtimestamp(lo, UTC), datetime.fromtimestamp(hi, UTC)
    for day, begins, past in months.days(since, until, zone):
        yield day, epoch(begins), epoch(past)


def _shifts(zone: ZoneInfo, lo: int, hi: int) -> Iterator[tuple[int, int]]:
    """Until when the zone has which offset, in seconds; the last one has no end."""
    at, offset, step = lo, _offset(zone, lo), 86_400
    while at < hi:
        following = min(at + step, hi)
        if _offset(zone, following) != offset:
            left, right = at, following
            while right - left > 1:
                middle = (left + right) // 2
                left, right = (middle, right) if _offset(zone, middle) == offset else (left, middle)
            yield right, offset
            offset = _offset(zone, following)
        at = following
    yield hi, offset


def _offset(zone: ZoneInfo, at: int) -> int:
    shift = datetime.fromtimestamp(at, zone).utcoffset()
    assert shift is not None
    return int(shift.total_seconds())


def _is_one_of(dimension: Dimension, values: tuple[str, ...], given: dict[str, Any]) -> str:
    column, name = f'"{dimension.value}"', f"only_{dimension.value}"
    given[name] = [value for value in values if value]
    unknown = f" OR {column} IS NULL" if "" in values else ""
    return f"(coalesce(list_contains(${name}, {column}), false){unknown})"


def _ranges(
    column: str, classes: dict[str, tuple[int, int | None]], values: tuple[str, ...]
) -> str:
    parts = [f"{column} IS NULL"] if "" in values or UNKNOWN in values else []
    for low, high in (classes[value] for value in values if value in classes):
        most = "" if high is None else f" AND {column} <= {high}"
        parts.append(f"({column} >= {low}{most})")
    return f"({' OR '.join(parts) or 'false'})"


def _limit_ranges() -> dict[str, tuple[int, int | None]]:
    low, found = 0, dict[str, tuple[int, int | None]]()
    for name, high in LIMIT_CLASSES:
        found[name] = (low, high)
        low = (high or 0) + 1
    return found
