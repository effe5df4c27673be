"""Use of cards over the view `waits`. Definitions: docs/engineering/waits.md, core.usage_figures.

Every figure is exact. Of a run over an edge the part inside is elapsed × overlap ÷ length, rounded
so that the parts of neighbouring periods add up to the run. Each function takes a connection of
history.reading.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from gateway.core.usage_figures import By, CreditSeen, DayUse, Use
from gateway.core.wait_figures import UNKNOWN, Question
from gateway.history.usage_sql import OTHERS, Held, days, held, local

if TYPE_CHECKING:
    import duckdb

    Connection = duckdb.DuckDBPyConnection

_PART = """CASE WHEN start >= lo AND ended <= hi THEN elapsed WHEN length <= 0 THEN 0
    ELSE elapsed * least(greatest(hi - start, 0), length) // length
       - elapsed * least(greatest(lo - start, 0), length) // length END"""
_IS_END = "coalesce(last >= lo AND last < hi, false)"
_USE = """
WITH by_person AS (
    SELECT {keys}, person, is_own, count(*) AS runs, count(*) FILTER (is_end) AS ends,
        sum(gpus * part) AS gpu_seconds, sum(cpus * part) AS cpu_seconds,
        sum(charge) FILTER (is_end AND is_seen) AS charge, count(*) FILTER (gpus IS NULL) AS untold
    FROM (
        SELECT *, {part} AS part, {is_end} AS is_end
        FROM ({parts})
    )
    GROUP BY {keys}, person, is_own
)
SELECT {keys}, sum(runs), sum(ends), count(DISTINCT person), {others},
    coalesce(sum(gpu_seconds), 0), coalesce(sum(cpu_seconds), 0), sum(charge), sum(untold),
    grouping({first}) AS is_total
FROM by_person GROUP BY {sets}
"""
# Of most runs both ends lie in one month; of the others each month has its part. Those are put
# aside first: DuckDB would join them with the months before it looks which they are.
_MONTHS = """
    WITH crossing AS MATERIALIZED (
        SELECT *, {first} AS first, {past} AS past FROM ({held}) WHERE {first} <> {past}
    )
    SELECT *, {first} AS month, {lo} AS lo, {hi} AS hi FROM ({held}) WHERE {first} = {past}
    UNION ALL
    SELECT crossing.* EXCLUDE (first, past), named.month, named.lo, named.hi
    FROM crossing JOIN (VALUES {months}) AS named(month, lo, hi)
        ON named.month BETWEEN crossing.first AND crossing.past
"""


def use(
    connection: "Connection", question: Question, by: Sequence[By], *, credit: CreditSeen
) -> list[Use]:
    """Runs that held something in the period, by none, one or two of `By`: months in their order,
    others by GPU-hours. `wait` of the question does not matter."""
    rows = _rows(connection, question, by, credit, total=False)
    return in_order((_use(row, by) for row in rows), by)


def use_and_total(
    connection: "Connection", question: Question, by: Sequence[By], *, credit: CreditSeen
) -> tuple[list[Use], Use]:
    """The same with all of them together, in one look where no month is asked for: a run may have
    parts in several."""
    if By.MONTH in by or not by:
        whole = use(connection, question, (), credit=credit)
        rows = use(connection, question, by, credit=credit) if by else whole
        return rows, next(iter(whole), Use())
    found = _rows(connection, question, by, credit, total=True)
    named = in_order((_use(row, by) for row in found if not row[-1]), by)
    total = next((_use(row[len(by) - 1 :], ()) for row in found if row[-1]), Use())
    return named, total


def _rows(
    connection: "Connection",
    question: Question,
    by: Sequence[By],
    credit: CreditSeen,
    *,
    total: bool,
) -> list[tuple[Any, ...]]:
    of = held(question, credit)
    part, is_end = (_PART, _IS_END) if of.is_bounded else ("elapsed", "last IS NOT NULL")
    parts = f"SELECT *, 0 AS one, {of.lo} AS lo, {of.hi} AS hi FROM ({of.sql})"  # noqa: S608
    if By.MONTH in by:
        part, is_end = _PART, _IS_END
        parts = _by_month(connection, of, ZoneInfo(question.zone))
    keys = ", ".join(f'"{one.value}"' for one in by) or "one"
    query = _USE.format(
        keys=keys,
        part=part,
        is_end=is_end,
        parts=parts,
        others=OTHERS,
        first=keys.split(", ")[0],
        sets=f"GROUPING SETS (({keys}), ())" if total else keys,
    )
    return connection.execute(query, of.given).fetchall()


def in_order(rows: Iterable[Use], by: Sequence[By]) -> list[Use]:
    """Months in their order, others by GPU-hours."""
    return sorted(rows, key=lambda one: _order(one, by))


def first(connection: "Connection", question: Question) -> datetime | None:
    """When the first run began that held something in the period; None: there is none."""
    of = held(question)
    query = f"SELECT min(start) FROM ({of.sql})"  # noqa: S608  # ours
    (found,) = connection.execute(query, of.given).fetchone() or (None,)
    return None if found is None else datetime.fromtimestamp(max(found, of.lo), UTC)


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


def _by_month(connection: "Connection", of: Held, zone: ZoneInfo) -> str:
    """The rows with the ends of each month that they reach into, inside the period."""
    of = _within(connection, of)
    months: dict[int, tuple[int, int]] = {}
    for day, begins, ends in days(zone, of.lo, of.hi):
        number = day.year * 12 + day.month - 1
        months[number] = (months.get(number, (begins, 0))[0], ends)
    named = [(number, *ends) for number, ends in months.items()] or [(0, of.lo, of.hi)]
    return _MONTHS.format(
        held=of.sql,
        lo=of.lo,
        hi=of.hi,
        first=_month("start", named),
        past=_month("greatest(ended, start)", named),
        months=", ".join(map(str, named)),
    )


def _month(moment: str, named: Sequence[tuple[int, int, int]]) -> str:
    """The number of the month, by halves. What lies outside is in the first or the last. By
    comparing: calendars cost DuckDB ten times as much."""
    if len(named) == 1:
        return str(named[0][0])
    half = len(named) // 2
    before, after = _month(moment, named[:half]), _month(moment, named[half:])
    return f"CASE WHEN {moment} < {named[half][1]} THEN {before} ELSE {after} END"


def _within(connection: "Connection", of: Held) -> Held:
    """A period without a beginning has one where the first run began."""
    query = f"SELECT min(start), max(ended) FROM ({of.sql})"  # noqa: S608  # ours
    (first, last) = connection.execute(query, of.given).fetchone() or (None, None)
    if first is None or last is None:
        return replace(of, lo=of.hi)
    return replace(of, lo=max(of.lo, first), hi=min(of.hi, last + 1))


def _use(row: tuple[Any, ...], by: Sequence[By]) -> Use:
    """A query without a key has a 0 in its place."""
    many = max(len(by), 1)
    keys = tuple(_key(value, one) for value, one in zip(row, by, strict=False))
    runs, ended, people, others, gpus, cpus, charge, untold, _ = row[many:]
    return Use(
        keys=keys,
        runs=int(runs or 0),  # nothing: of no rows together
        ended=int(ended or 0),
        people=int(people),
        others=int(others),
        gpu_seconds=int(gpus),
        cpu_seconds=int(cpus),
        charge=None if charge is None else int(charge),
        untold=int(untold or 0),
    )


def _key(value: Any, by: By) -> str:
    if by is By.MONTH:
        return f"{value // 12}-{value % 12 + 1:02}"
    return str(value) if value is not None else UNKNOWN


def _order(one: Use, by: Sequence[By]) -> tuple[Any, ...]:
    months = tuple(key for key, part in zip(one.keys, by, strict=True) if part is By.MONTH)
    return (*months, -one.gpu_seconds, -one.runs, one.keys)


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
