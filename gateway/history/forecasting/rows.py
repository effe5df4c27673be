"""The waits that a forecast learns from and the queue that it looks at, as NumPy columns."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.core.wait_figures import Wait

if TYPE_CHECKING:
    import duckdb
    import numpy as np

    Numbers = np.ndarray[Any, Any]

NEVER = 2**32  # a moment that has not come; seconds since 1970 stay below it until 2106
MOST = 500_000  # rows that a model learns from: the newest
_DAYS = 120

# What a wait counts from is the eligible time or the submit time. Jobs without one (held, or
# waiting for another) are not in the queue. Tasks of arrays that hold themselves back, and waits
# after a requeue, are in the queue but teach nothing.
_ROWS = """
WITH counted AS (
    SELECT *, {since} AS asked FROM waits
), kept AS (
    SELECT *, coalesce(start_time, end_time) AS left_at FROM counted
    WHERE source IS NULL AND asked < $now AND asked >= $oldest
      AND (end_time IS NULL OR end_time >= $open_since)
)
SELECT
    epoch_us(asked) // 1000000 AS asked,
    coalesce(epoch_us(left_at) // 1000000, {never}) AS "left",
    start_time IS NOT NULL AS started,
    coalesce(epoch_us(end_time) // 1000000, {never}) AS "end",
    coalesce(restarts, 0) = 0 AND coalesce(cause_array_throttle, 0) = 0 AS counts,
    coalesce("group", '') AS "group", coalesce("partition", '') AS "partition",
    coalesce(qos, '') AS qos,
    coalesce(gpus, 0) AS gpus, coalesce(nodes, 1) AS nodes, coalesce(cpus, 1) AS cpus,
    coalesce(limit_minutes, -1) AS minutes
FROM kept
ORDER BY asked DESC, coalesce(slurm_id, 0) DESC, coalesce(job_id, 0) DESC, "left", "end"
LIMIT {most}
"""
_SINCE = {Wait.ELIGIBLE: "eligible_time", Wait.SUBMIT: "submit_time"}


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns of equal length, by `asked`. Moments are whole seconds since 1970 (UTC), NEVER for
    what has not come: `asked` the wait's begin, `left` its end (the start where `started`, else
    cancelled), `end` of the job. Columns of NAMED are places in their sorted names; `qos` is
    -1 where there is none. `minutes` is the time limit, -1 where there is none. `counts`: teaches
    a wait."""

    asked: "Numbers"
    left: "Numbers"
    started: "Numbers"
    end: "Numbers"
    counts: "Numbers"
    group: "Numbers"
    partition: "Numbers"
    qos: "Numbers"
    gpus: "Numbers"
    nodes: "Numbers"
    cpus: "Numbers"
    minutes: "Numbers"
    groups: "Numbers"
    partitions: "Numbers"
    qoses: "Numbers"

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

    def save(self, file: Path) -> None:
        """Whole or not at all."""
        import numpy as np  # noqa: PLC0415

        new = file.with_suffix(".new.npz")
        np.savez(new, **{field.name: getattr(self, field.name) for field in fields(self)})
        new.replace(file)

    @classmethod
    def load(cls, file: Path) -> "Rows":
        """OSError where there is none, ValueError or KeyError where it is something else."""
        import numpy as np  # noqa: PLC0415

        with np.load(file, allow_pickle=False) as found:
            return cls(**{field.name: found[field.name] for field in fields(cls)})


# Columns of names, and where their names are.
NAMED: Mapping[str, str] = {
    "group": "groups",
    "partition": "partitions",
    "qos": "qoses",
}
COLUMNS = tuple(f.name for f in fields(Rows) if f.name not in NAMED.values())


def seconds(moment: datetime) -> int:
    """Whole seconds since 1970."""
    return int(moment.timestamp())


def read(
    connection: "duckdb.DuckDBPyConnection",
    *,
    now: datetime,
    wait: Wait = Wait.ELIGIBLE,
    days: int = _DAYS,
    open_days: int | None = None,
    most: int = MOST,
) -> Rows:
    """Our own rows of the view `waits` as known at `now`: those that began at most `days` ago and,
    with `open_days`, were not over so long ago; of too many the newest."""
    utc = now.astimezone(UTC).replace(tzinfo=None)
    query = _ROWS.format(since=_SINCE[wait], never=NEVER, most=most)
    columns = connection.execute(
        query,
        {
            "now": utc,
            "oldest": utc - timedelta(days=days),
            "open_since": utc - timedelta(days=days if open_days is None else open_days),
        },
    ).fetchnumpy()
    return make(columns).known(seconds(now))


def make(columns: "Mapping[str, Numbers]") -> Rows:
    """Rows of such columns in any order, with names for groups and the like."""
    import numpy as np  # noqa: PLC0415

    order = np.argsort(columns["asked"], kind="stable")
    named: dict[str, Numbers] = {}
    for column, names in NAMED.items():
        found = np.asarray(columns[column][order], dtype=np.str_)
        named[names], named[column] = np.unique(found, return_inverse=True)
    if named["qoses"][:1].tolist() == [""]:
        named["qoses"], named["qos"] = named["qoses"][1:], named["qos"] - 1
    numbers = {
        name: np.asarray(columns[name][order], dtype=np.int64)
        for name in ("asked", "left", "end", "gpus", "nodes", "cpus", "minutes")
    }
    flags = {name: np.asarray(columns[name][order], dtype=bool) for name in ("started", "counts")}
    # A clock that was set back makes no wait shorter than nothing.
    numbers["left"] = np.maximum(numbers["left"], numbers["asked"])
    return Rows(**numbers, **flags, **named)
