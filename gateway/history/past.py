"""The runs of a window in columns, and the questions that replaying limits and prices asks."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.core.caps import Way
from gateway.core.replay import Asked
from gateway.core.tres import GPU
from gateway.history.reading import runs

if TYPE_CHECKING:
    import duckdb
    import numpy as np

    Numbers = np.ndarray[Any, Any]

# Runs that started before the window hold their part of a limit in it: `counted` tells. A person is
# a number of 64 bits made of the name: two names of ten thousand have the same once in 10^11 sites.
_PAST = """
CREATE TEMP TABLE past AS
WITH chosen AS (
    SELECT *, coalesce(end_time, $until) AS ended FROM runs
    WHERE start_time < $until AND coalesce(end_time, $until) > $since
), groups AS (
    SELECT "group", row_number() OVER (ORDER BY "group") - 1 AS code
    FROM (SELECT DISTINCT "group" FROM chosen)
)
SELECT
    run_id, code AS group_code, hash("user") AS person, coalesce(qos, '') AS qos, gpu_type,
    nodes, cpus, gpus, limit_minutes, elapsed_seconds,
    state = 'PREEMPTED' AS preempted, start_time >= $since AS counted,
    epoch_us(start_time) // 1000000 AS start,
    epoch_us(least(coalesce(eligible_time, start_time), start_time)) // 1000000 AS eligible,
    greatest(epoch_us(ended) - epoch_us(start_time), 0) // 1000000 AS seconds
FROM chosen JOIN groups USING ("group")
"""
_GROUPS = """
SELECT DISTINCT "group" FROM runs
WHERE start_time < $until AND coalesce(end_time, $until) > $since ORDER BY 1
"""
_KEYS = {
    "all": "0",
    "group": "group_code",
    "user": "person",
    "person": "hash(person, group_code)",
}
_AMOUNTS = {None: "1", "cpu": "cpus", "node": "nodes", GPU: "gpus"}
_TYPED = f"{GPU}:"
_SIZES = {
    Way.AMOUNT: "{amount}",
    Way.SHARED: "{amount}",
    Way.RUNNING: "{amount}",
    Way.LEAST: "{amount}",
    Way.NODE: "ceil({amount} / greatest(nodes, 1))",
    Way.MINUTES: "{amount} * limit_minutes",
    Way.SHARED_MINUTES: "{amount} * limit_minutes",
    Way.WALL: "limit_minutes",
}


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose runs a limit speaks of: of `qos`, or of `groups` but for QoS that have a limit of their
    own. `key`: which of them count together: all, those of a group, of a user, of a person (a
    user in one group)."""

    qos: str | None = None
    groups: frozenset[str] = frozenset()
    without_qos: frozenset[str] = frozenset()
    key: str = "all"


@dataclass(frozen=True, slots=True)
class Rate:
    """Millionths an hour times a factor in millionths, of a resource in a QoS."""

    resource: str
    qos: str
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Cost:
    """Millionths; `unpriced` runs are in neither."""

    before: int
    after: int
    unpriced: int


class Past:
    """The runs of [since, until), and those before that still ran; see `past`."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection", groups: Sequence[str]) -> None:
        self._connection = connection
        self.groups = groups  # by their code
        self.size = int(self._rows("SELECT count(*) FROM past")[0][0])

    @property
    def group_codes(self) -> "Numbers":
        return self._columns("SELECT group_code FROM past ORDER BY rowid")[0]

    @property
    def counted(self) -> "Numbers":
        """Which started in the window."""
        return self._columns("SELECT counted FROM past ORDER BY rowid")[0]

    def pairs(self) -> set[tuple[str, str]]:
        """Each resource that was used (a GPU type, cpu) with each QoS that it was used in."""
        rows = self._rows("SELECT DISTINCT gpu_type, qos FROM past")
        return {(kind, qos) for kind, qos in rows if kind} | {("cpu", qos) for _, qos in rows}

    def is_known(self, scope: Scope, tres: str | None) -> bool:
        """Whether history holds how much of the resource each of these runs had."""
        if not is_counted(tres):
            return False
        if tres in _AMOUNTS:
            return not self._matching(scope, "gpus IS NULL" if tres == GPU else "false")
        return not self._matching(scope, "gpus IS NULL OR (gpus > 0 AND gpu_type IS NULL)")

    def of(self, scope: Scope, *, qos: frozenset[str]) -> "Numbers":
        """Rows of runs in one of these QoS."""
        where, given = self._where(scope)
        listed = given | {"lost": sorted(qos)}
        return self._columns(
            f"SELECT rowid FROM past WHERE {where} AND list_contains($lost, qos)",  # noqa: S608
            listed,
        )[0]

    def breaking(
        self, scope: Scope, way: Way, tres: str | None, before: int | None, after: int | None
    ) -> "Numbers":
        """Rows of runs that alone break the limit as it would be, and not as it was."""
        if after is None:
            after = -1 if way is Way.LEAST else _NO_LIMIT
        where, given = self._where(scope)
        size = _SIZES[way].format(amount=_amount(tres))
        was = before if before is not None else (-1 if way is Way.LEAST else _NO_LIMIT)
        breaks, keeps = ("<", ">=") if way is Way.LEAST else (">", "<=")
        return self._columns(
            f"SELECT rowid FROM past WHERE {where}"  # noqa: S608
            f" AND {size} {breaks} $after AND {size} {keeps} $before",
            given | _typed(tres) | {"after": after, "before": was},
        )[0]

    def asked(
        self, scope: Scope, way: Way, tres: str | None, *, below: int, eligible: bool
    ) -> tuple["Numbers", Asked, "Numbers"]:
        """Rows, what they ask of the limit in the order of their key, and how long each waited.
        `eligible`: they want to start when they became eligible, else when they did start. Runs
        that alone are above `below` are left out."""
        where, given = self._where(scope)
        amount = _amount(tres)
        wanted = "eligible" if eligible else "start"
        columns = self._columns(
            f"SELECT rowid, {_KEYS[scope.key]} AS key, {wanted} AS wanted, seconds,"  # noqa: S608
            f" {amount} AS amount,"
            " greatest(coalesce(limit_minutes * 60, seconds), seconds) AS allowed,"
            f" start - eligible AS waited FROM past WHERE {where} AND {amount} > 0"
            f" AND {_SIZES[way].format(amount=amount)} <= $below ORDER BY key, wanted, run_id",
            given | _typed(tres) | {"below": below},
        )
        rows, *asked, waited = columns
        return rows, Asked(*(column.tolist() for column in asked)), waited

    def costs(self, rates: Sequence[Rate], free: Collection[str]) -> dict[str, Cost]:
        """By group, of the runs that started in the window; in the QoS of `free` a run that was
        preempted costs nothing. Rounded up item by item, as a charge is."""
        self._connection.execute(
            "CREATE OR REPLACE TEMP TABLE rate"
            " (resource VARCHAR, qos VARCHAR, before HUGEINT, after HUGEINT)"
        )
        parts = gcd(_PARTS, *(n for rate in rates for n in (rate.before, rate.after) if n))
        for rate in rates:
            before, after = (None if n is None else n // parts for n in (rate.before, rate.after))
            row = [rate.resource, rate.qos, before, after]
            self._connection.execute("INSERT INTO rate VALUES (?, ?, ?, ?)", row)
        rows = self._rows(
            _COSTS.format(kind=self._wide_enough(), parts=_PARTS // parts), {"free": sorted(free)}
        )
        return {self.groups[row[0]]: Cost(*(int(part) for part in row[1:])) for row in rows}

    def _wide_enough(self) -> str:
        """Whole numbers of 64 bits where no product is larger: those of 128 take ten times as
        long."""
        most = self._rows(
            "SELECT max(greatest(gpus, cpus)::HUGEINT * elapsed_seconds) * (SELECT"
            " max(greatest(coalesce(before, 0), coalesce(after, 0))) FROM rate) FROM past"
        )[0][0]
        return "BIGINT" if most is None or most < _NO_LIMIT else "HUGEINT"

    def _where(self, scope: Scope) -> tuple[str, dict[str, Any]]:
        if scope.qos is not None:
            return "qos = $qos", {"qos": scope.qos}
        codes = [code for code, name in enumerate(self.groups) if name in scope.groups]
        return (
            "list_contains($codes, group_code) AND NOT list_contains($others, qos)",
            {"codes": codes, "others": sorted(scope.without_qos)},
        )

    def _matching(self, scope: Scope, condition: str) -> int:
        where, given = self._where(scope)
        query = f"SELECT count(*) FROM past WHERE {where} AND ({condition})"  # noqa: S608
        return int(self._rows(query, given)[0][0])

    def _rows(self, query: str, given: Mapping[str, Any] | None = None) -> list[Any]:
        return self._connection.execute(query, given or {}).fetchall()

    def _columns(self, query: str, given: Mapping[str, Any] | None = None) -> list["Numbers"]:
        found = self._connection.execute(query, given or {}).fetchnumpy()
        return list(found.values())


@contextmanager
def past(folder: Path, *, since: datetime, until: datetime) -> Iterator[Past]:
    """The window's runs from the history in `folder`, held in memory."""
    with runs(folder) as connection:
        naive = {"since": since.replace(tzinfo=None), "until": until.replace(tzinfo=None)}
        groups = [row[0] for row in connection.execute(_GROUPS, naive).fetchall()]
        connection.execute(_PAST, naive)
        yield Past(connection, groups)


def is_counted(tres: str | None) -> bool:
    """Whether history has a number of this resource at all."""
    return tres in _AMOUNTS or str(tres).startswith(_TYPED)


_NO_LIMIT = 2**62
_PARTS = 3600 * 1_000_000  # a rate is per hour, and holds a factor in millionths
_COSTS = """
WITH priced AS (
    SELECT group_code,
        gpus IS NULL OR (gpus > 0 AND (card.before IS NULL OR card.after IS NULL)) AS unpriced,
        preempted AND list_contains($free, past.qos) AS is_free,
        gpus::{kind} * elapsed_seconds AS card_seconds, cpus::{kind} * elapsed_seconds AS seconds,
        coalesce(card.before, 0)::{kind} AS card_before,
        coalesce(card.after, 0)::{kind} AS card_after,
        coalesce(cpu.before, 0)::{kind} AS cpu_before, coalesce(cpu.after, 0)::{kind} AS cpu_after
    FROM past
    LEFT JOIN rate AS card ON card.resource = past.gpu_type AND card.qos = past.qos
    LEFT JOIN rate AS cpu ON cpu.resource = 'cpu' AND cpu.qos = past.qos
    WHERE counted
), charged AS (
    SELECT group_code, unpriced, unpriced OR is_free AS is_nothing,
        (card_seconds * card_before + {parts} - 1) // {parts}
            + (seconds * cpu_before + {parts} - 1) // {parts} AS before,
        (card_seconds * card_after + {parts} - 1) // {parts}
            + (seconds * cpu_after + {parts} - 1) // {parts} AS after
    FROM priced
)
SELECT group_code, coalesce(sum(before) FILTER (NOT is_nothing), 0),
    coalesce(sum(after) FILTER (NOT is_nothing), 0), count(*) FILTER (unpriced)
FROM charged GROUP BY group_code
"""


def _amount(tres: str | None) -> str:
    if tres in _AMOUNTS:
        return _AMOUNTS[tres]
    return "CASE WHEN gpu_type = $kind THEN gpus ELSE 0 END"


def _typed(tres: str | None) -> dict[str, str]:
    return {} if tres in _AMOUNTS else {"kind": str(tres).removeprefix(_TYPED)}
