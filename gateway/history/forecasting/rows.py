"""The waits that a forecast learns from and the queue that it looks at, as NumPy columns."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from gateway.core.forecast import Here
from gateway.core.wait_figures import Wait

if TYPE_CHECKING:
    import duckdb
    import numpy as np

    Numbers = np.ndarray[Any, Any]

NEVER = 2**32  # a moment that has not come; seconds since 1970 stay below it until 2106
MOST = 500_000  # rows that a model learns from: the newest
_DAYS = 120

# Our own rows, and what imported sets tell of this cluster before those begin: the jobs of a
# partition that it still has which were over before the first of ours was.
_OURS = """
ours AS (
    SELECT * FROM waits
    WHERE source IS NULL OR (
        lower(cluster) = lower($cluster) AND list_contains($partitions, "partition")
        AND end_time < (SELECT coalesce(min(end_time), $now) FROM waits WHERE source IS NULL)
    )
)
"""
# What a wait counts from is the eligible time or the submit time. Jobs without one (held, or
# waiting for another) are not in the queue. Tasks of arrays that hold themselves back, and waits
# after a requeue, are in the queue but teach nothing.
_ROWS = """
WITH {ours}, counted AS (
    SELECT *, {since} AS asked FROM ours
), kept AS (
    SELECT *, coalesce(start_time, end_time) AS left_at FROM counted
    WHERE asked < $now AND asked >= $oldest
      AND (end_time IS NULL OR end_time >= $open_since)
)
SELECT
    epoch_us(asked) // 1000000 AS asked,
    coalesce(epoch_us(left_at) // 1000000, {never}) AS "left",
    start_time IS NOT NULL AS started,
    coalesce(epoch_us(end_time) // 1000000, {never}) AS "end",
    coalesce(restarts, 0) = 0 AND coalesce(cause_array_throttle, 0) = 0 AS counts,
    coalesce("group", '') AS "group", coalesce("partition", '') AS "partition",
    coalesce(qos, '') AS qos, coalesce(req_gpu_type, '') AS gpu_type,
    coalesce(gpus, 0) AS gpus, coalesce(nodes, 1) AS nodes, coalesce(cpus, 1) AS cpus,
    coalesce(limit_minutes, -1) AS minutes
FROM kept
ORDER BY asked DESC, coalesce(slurm_id, 0) DESC, coalesce(job_id, 0) DESC, "left", "end"
LIMIT {most}
"""
_STARTED = "WITH {ours} SELECT count(*) FROM ours WHERE start_time >= $oldest"
_SINCE = {Wait.ELIGIBLE: "eligible_time", Wait.SUBMIT: "submit_time"}


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of equal length, by `asked`. Moments are whole seconds since 1970 (UTC), NEVER for
    what has not come: `asked` the wait's begin, `left` its end (the start where `started`, else
    cancelled), `end` of the job. Columns of NAMED are places in their sorted names; `qos` is
    -1 where there is none, `gpu_type` (asked for, never given) where any would do. `minutes` is
    the time limit, -1 where there is none. `counts`: teaches a wait."""

    asked: "Numbers"
    left: "Numbers"
    started: "Numbers"
    end: "Numbers"
    counts: "Numbers"
    group: "Numbers"
    partition: "Numbers"
    qos: "Numbers"
    gpu_type: "Numbers"
    gpus: "Numbers"
    nodes: "Numbers"
    cpus: "Numbers"
    minutes: "Numbers"
    groups: "Numbers"
    partitions: "Numbers"
    qoses: "Numbers"
    gpu_types: "Numbers"

    def __len__(self) -> int:
        return len(self.asked)

    def take(self, which: "Numbers") -> "Rows":
        """Those at the places, or under the mask, of `which`."""
        return replace(self, **{name: getattr(self, name)[which] for name in COLUMNS})

    def known(self, moment: int) -> "Rows":
        """What was known at a moment: jobs asked before it, without what came after it."""
        import numpy as np  # noqa: PLC0415

        past = self.take(self.asked < moment)
        return replace(
            past,
            left=np.where(past.left < moment, past.left, NEVER),
            started=past.started & (past.left < moment),
            end=np.where(past.end < moment, past.end, NEVER),
        )


# Columns of names, and where their names are.
NAMED: Mapping[str, str] = {
    "group": "groups",
    "partition": "partitions",
    "qos": "qoses",
    "gpu_type": "gpu_types",
}
MAY_LACK = ("qos", "gpu_type")  # of NAMED, those that a row may be without: -1
COLUMNS = tuple(f.name for f in fields(Rows) if f.name not in NAMED.values())


def seconds(moment: datetime) -> int:
    """Whole seconds since 1970."""
    return int(moment.timestamp())


def read(
    connection: "duckdb.DuckDBPyConnection",
    *,
    now: datetime,
    here: Here | None = None,
    wait: Wait = Wait.ELIGIBLE,
    days: int = _DAYS,
    open_days: int | None = None,
    most: int = MOST,
) -> Rows:
    """Our own rows of the view `waits`, and those of imported sets that are of `here`, as known at
    `now`: those that began at most `days` ago and, with `open_days`, were not over so long ago; of
    too many the newest."""
    query = _ROWS.format(ours=_OURS, since=_SINCE[wait], never=NEVER, most=most)
    open_since = _utc(now) - timedelta(days=days if open_days is None else open_days)
    values = _values(now, here, days) | {"open_since": open_since}
    return make(connection.execute(query, values).fetchnumpy()).known(seconds(now))


def started(
    connection: "duckdb.DuckDBPyConnection", *, now: datetime, here: Here | None = None
) -> int:
    """How many starts `read` has to learn from."""
    found = connection.execute(_STARTED.format(ours=_OURS), _values(now, here, _DAYS)).fetchone()
    return int(found[0]) if found else 0


def _values(now: datetime, here: Here | None, days: int) -> dict[str, Any]:
    return {
        "now": _utc(now),
        "oldest": _utc(now) - timedelta(days=days),
        "cluster": here.cluster if here else None,
        "partitions": list(here.partitions) if here else [],
    }


def _utc(moment: datetime) -> datetime:
    """As the history's times are."""
    return moment.astimezone(UTC).replace(tzinfo=None)


def make(columns: "Mapping[str, Numbers]") -> Rows:
    """Rows of such columns in any order, with names for groups and the like."""
    import numpy as np  # noqa: PLC0415

    order = np.argsort(columns["asked"], kind="stable")
    named: dict[str, Numbers] = {}
    for column, names in NAMED.items():
        found = np.asarray(columns[column][order], dtype=np.str_)
        named[names], named[column] = np.unique(found, return_inverse=True)
    for column in MAY_LACK:
        names = NAMED[column]
        if named[names][:1].tolist() == [""]:
            named[names], named[column] = named[names][1:], named[column] - 1
    numbers = {
        name: np.asarray(columns[name][order], dtype=np.int64)
        for name in ("asked", "left", "end", "gpus", "nodes", "cpus", "minutes")
    }
    flags = {name: np.asarray(columns[name][order], dtype=bool) for name in ("started", "counts")}
    # A clock that was set back makes no wait shorter than nothing.
    numbers["left"] = np.maximum(numbers["left"], numbers["asked"])
    return Rows(**numbers, **flags, **named)
