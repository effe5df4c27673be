"""Cards that were held day by day, over the view `waits`, to the second. Definitions:
docs/engineering/waits.md, core.usage_figures. Of everything else of use: history.stats.used.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from gateway.core.usage_figures import DayUse
from gateway.core.wait_figures import UNKNOWN, Question
from gateway.history.usage_sql import Held, days, held, local

if TYPE_CHECKING:
    import duckdb

    Connection = duckdb.DuckDBPyConnection


def by_day(connection: "Connection", question: Question) -> list[DayUse]:
    """Cards of each type that jobs held, by day of the question's zone, in the order of days."""
    of = held(question)
    of = _within(connection, of)
    zone = ZoneInfo(question.zone)
    begin, end = f"greatest(start, {of.lo})", f"least(greatest(ended, start), {of.hi})"
    rows = connection.execute(
        _STEPS.format(
            held=of.sql,
            begin=begin,
            end=end,
            first=local(begin, zone, of.lo, of.hi),
            last=local(end, zone, of.lo, of.hi),
        ),
        of.given,
    ).fetchall()
    steps: dict[str, dict[int, tuple[int, int]]] = {}
    for gpu_type, day, gpus, moments in rows:
        steps.setdefault(gpu_type or UNKNOWN, {})[day] = (int(gpus), int(moments))
    return [one for name in sorted(steps) for one in _summed(name, steps[name], zone, of.lo, of.hi)]


# Card-seconds until a moment b are the sum of cards × (b - start) of what began before it, less
# that of cards × (b - end) of what ended before it: a row a day on which something began or ended.
_STEPS = """
SELECT gpu_type, day, sum(cards), sum(cards * moment) FROM (
    SELECT gpu_type, {first} // 86400 AS day, gpus AS cards, {begin} AS moment
    FROM ({held}) WHERE gpus > 0
    UNION ALL
    SELECT gpu_type, {last} // 86400 AS day, -gpus AS cards, {end} AS moment
    FROM ({held}) WHERE gpus > 0
) GROUP BY gpu_type, day
"""


def _within(connection: "Connection", of: Held) -> Held:
    """A period without a beginning has one where the first run began."""
    query = f"SELECT min(start), max(ended) FROM ({of.sql})"  # noqa: S608  # ours
    (first, last) = connection.execute(query, of.given).fetchone() or (None, None)
    if first is None or last is None:
        return replace(of, lo=of.hi)
    return replace(of, lo=max(of.lo, first), hi=min(of.hi, last + 1))


def _summed(
    name: str, steps: dict[int, tuple[int, int]], zone: ZoneInfo, lo: int, hi: int
) -> Iterator[DayUse]:
    """Days on which no card was held are not there."""
    cards = moments = before = 0
    for day, _, ends in days(zone, lo, hi):
        gpus, at = steps.get((day - _FIRST_DAY).days, (0, 0))
        cards, moments = cards + gpus, moments + at
        until = cards * ends - moments
        if until > before:
            yield DayUse(day, name, until - before)
        before = until


_FIRST_DAY = date(1970, 1, 1)
