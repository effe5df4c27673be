"""Time limits over the view `waits`: kept, used, waited for. Every figure is exact.

Definitions: docs/engineering/waits.md, core.usage_figures. Each function takes a connection of
history.reading.
"""

from datetime import UTC
from typing import TYPE_CHECKING, Any

from gateway.core.usage_figures import LimitBin, Limits, LimitWait
from gateway.core.wait_figures import UNKNOWN, Question
from gateway.history.usage_sql import OTHERS, Held, conditions, held, own_rows

if TYPE_CHECKING:
    import duckdb

    Connection = duckdb.DuckDBPyConnection

_LIMITS = """
WITH ended AS (SELECT *, limit_minutes * 60 AS limit_s, {key} AS key FROM ({ended})),
people AS (
    SELECT key, {others} AS others
    FROM (SELECT key, person, is_own, count(*) AS runs FROM ended GROUP BY key, person, is_own)
    GROUP BY key
), sums AS (
    SELECT key, count(*), count(*) FILTER (limit_s IS NULL),
        coalesce(sum(gpus * limit_s), 0),
        coalesce(sum(gpus * elapsed) FILTER (limit_s IS NOT NULL), 0),
        count(*) FILTER ({completed}),
        quantile_disc(limit_s, 0.5) FILTER ({completed}),
        quantile_disc(elapsed, 0.9) FILTER ({completed}),
        max(elapsed) FILTER (state = 'TIMEOUT')
    FROM ended GROUP BY key
)
SELECT sums.*, people.others FROM sums JOIN people ON people.key IS NOT DISTINCT FROM sums.key
"""
_COMPLETED = "state = 'COMPLETED' AND limit_s IS NOT NULL"
_BINS = """
SELECT bin, sum(runs), {others}, coalesce(sum(gpu_seconds), 0) FROM (
    SELECT least(elapsed * 10 // (limit_minutes * 60), 10) AS bin, person, is_own,
        count(*) AS runs, sum(gpus * elapsed) AS gpu_seconds
    FROM ({ended}) WHERE limit_minutes > 0 GROUP BY bin, person, is_own
) GROUP BY bin
"""
# What came after the row was written is its present cause's (docs/engineering/waits.md).
_LIMIT_WAITS = """
SELECT "group", sum(runs), sum(limited), {others},
    sum(by_user), sum(by_group), sum(by_qos), sum(wait)
FROM (
    SELECT "group", person, is_own, count(*) AS runs,
        count(*) FILTER (by_user + by_group + by_qos > 0) AS limited,
        sum(by_user) AS by_user, sum(by_group) AS by_group, sum(by_qos) AS by_qos, sum(wait) AS wait
    FROM (
        SELECT "group", CASE WHEN "user" IS NOT NULL THEN hash("user") END AS person,
            {own} AS is_own,
            coalesce(cause_user_limit, 0)
                + CASE WHEN cause_now = 'user_limit' THEN since_seen ELSE 0 END AS by_user,
            coalesce(cause_group_limit, 0)
                + CASE WHEN cause_now = 'group_limit' THEN since_seen ELSE 0 END AS by_group,
            coalesce(cause_qos_limit, 0)
                + CASE WHEN cause_now = 'qos_limit' THEN since_seen ELSE 0 END AS by_qos,
            greatest(date_diff('second', submit_time, coalesce(start_time, end_time,
                if(source IS NULL, $now, seen_at)))
                - coalesce(cause_deferral, 0)
                - CASE WHEN cause_now = 'deferral' THEN since_seen ELSE 0 END, 0) AS wait
        FROM (
            SELECT *, CASE WHEN start_time IS NULL AND end_time IS NULL
                THEN greatest(date_diff('second', seen_at, $now), 0) ELSE 0 END AS since_seen
            FROM waits WHERE {where}
        )
    ) GROUP BY "group", person, is_own
) GROUP BY "group" HAVING sum(limited) > 0
"""


def limits(connection: "Connection", question: Question, *, by_group: bool) -> list[Limits]:
    """Runs that ended in the period against their time limits, who kept most first; or all of them
    as one, with no key."""
    of = held(question)
    query = _LIMITS.format(
        key='"group"' if by_group else "0", ended=_ended(of), others=OTHERS, completed=_COMPLETED
    )
    rows = connection.execute(query, of.given).fetchall()
    found = [_limits(row, by_group=by_group) for row in rows]
    return sorted(found, key=lambda one: (-one.reserved_gpu_seconds, one.key or ""))


def limit_bins(connection: "Connection", question: Question) -> list[LimitBin]:
    """How much of their limits runs used that ended in the period and had one: all eleven bins."""
    of = held(question)
    rows = connection.execute(_BINS.format(ended=_ended(of), others=OTHERS), of.given).fetchall()
    known = {row[0]: row[1:] for row in rows}
    return [LimitBin(low * 10, *known.get(low, (0, 0, 0))) for low in range(11)]


def limit_waits(connection: "Connection", question: Question) -> list[LimitWait]:
    """What jobs that were submitted in the period waited for limits, by group, the longest first;
    groups without such a wait are left out."""
    where, given = conditions(question)
    for name, at, sign in (("since", question.since, ">="), ("until", question.until, "<")):
        if at is not None:
            where.append(f"submit_time {sign} ${name}")
            given[name] = at.astimezone(UTC).replace(tzinfo=None)
    query = _LIMIT_WAITS.format(
        where=" AND ".join(where) or "true", own=own_rows(question, given), others=OTHERS
    )
    given["now"] = question.now.astimezone(UTC).replace(tzinfo=None)
    rows = connection.execute(query, given).fetchall()
    found = [LimitWait(row[0] or UNKNOWN, *map(int, row[1:])) for row in rows]
    return sorted(found, key=lambda one: (-one.limit_s, one.group))


def _ended(of: Held) -> str:
    return f"SELECT * FROM ({of.sql}) WHERE last >= {of.lo} AND last < {of.hi}"  # noqa: S608


def _limits(row: tuple[Any, ...], *, by_group: bool) -> Limits:
    key, runs, unlimited, reserved, used, completed, median, p90, timeout, others = row
    return Limits(
        key=(key if key is not None else UNKNOWN) if by_group else None,
        runs=runs,
        others=int(others),
        unlimited=unlimited,
        reserved_gpu_seconds=int(reserved),
        used_gpu_seconds=int(used),
        completed=completed,
        median_limit_s=median,
        p90_s=p90,
        timeout_s=timeout,
    )
