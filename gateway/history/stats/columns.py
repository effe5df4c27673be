"""The history's files as narrow arrays, which statistics read many times faster than Parquet.

A part holds up to `PART` rows of one file. Rows that are alike in all that filters and dimensions
ask (person, partition, cards, state …) are a cell and stand together, so that one looks at cells
and not at rows. `part_files` keeps them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gateway.core.past_runs import COLUMNS
from gateway.core.wait_causes import Cause
from gateway.history import blocks
from gateway.history.stats.pieces import Order

if TYPE_CHECKING:
    import duckdb

    Numbers = np.ndarray[Any, Any]

T = TypeVar("T")

PART = 1 << 19
WAITING, LEFT, RUNNING, ENDED = range(4)  # kinds of rows
TEXTS = (
    "cluster",
    "partition",
    "gpu_type",
    "qos",
    "group",
    "user",
    "template",
    "state",
    "source",
    "cause_now",
)
_COUNTS = ("kind", "again", "throttled", "gpus", "cpus", "limit_minutes")
ROWS = {"submit": "<u4", "eligible": "<u4", "start": "<u4", "end": "<u4", "run": "<i4"}
# Kept where some row of the part has them: seconds of causes; until when those are counted; until
# when at most a run goes on that has no end; what was posted for a run and one more (0: nothing).
MORE = {
    **{f"cause_{cause}": "<i4" for cause in Cause},
    "seen": "<u4",
    "latest": "<u4",
    "charge": "<i8",
}
CELLS = ("rows", *_COUNTS, *TEXTS)
# Numbers that are kept in order, too: of rows that started seconds between two times (of others 0).
_BETWEEN = {"wait since eligible": ("eligible", "start"), "deferral": ("submit", "eligible")}
_ORDERS = (*_BETWEEN, "run")
_NEVER = 2**32 - 1
_SECOND = "greatest(coalesce(epoch_us({}) // 1000000, 0), 0)::UINTEGER"
# An imported file may be older than a column.
_NULLS = ", ".join(f'NULL::{kind.value} AS "{name}"' for name, kind in COLUMNS.items())
# `eligible`: of a row that started never unknown, and not after its start. Unknown numbers are -1,
# unknown texts empty.
_BECAME = "least(coalesce(eligible_time, submit_time), start_time)"
_PART = f"""
CREATE OR REPLACE TEMP TABLE part AS SELECT
    CASE WHEN start_time IS NOT NULL THEN if(end_time IS NULL, {RUNNING}, {ENDED})
        ELSE if(end_time IS NULL, {WAITING}, {LEFT}) END::TINYINT AS kind,
    (coalesce(restarts, 0) > 0)::TINYINT AS again,
    (coalesce(cause_array_throttle, 0) > 0)::TINYINT AS throttled,
    coalesce(gpus, -1)::INTEGER AS gpus, coalesce(cpus, -1)::INTEGER AS cpus,
    coalesce(limit_minutes, -1)::INTEGER AS limit_minutes,
    {", ".join(f'''coalesce("{name}", '') AS "{name}"''' for name in TEXTS)},
    {_SECOND.format("coalesce(submit_time, eligible_time, start_time, end_time)")} AS submit,
    {_SECOND.format(f"if(start_time IS NULL, eligible_time, {_BECAME})")}
        AS eligible,
    {_SECOND.format("start_time")} AS start, {_SECOND.format("end_time")} AS "end",
    if(start_time IS NULL OR end_time IS NULL, 0, greatest(0, coalesce(elapsed_seconds,
        (epoch_us(end_time) - epoch_us(start_time)) // 1000000)))::INTEGER AS run,
    {", ".join(f"coalesce(cause_{cause}, 0)::INTEGER AS cause_{cause}" for cause in Cause)},
    {_SECOND.format("seen_at")} AS seen,
    (CASE WHEN start_time IS NULL OR end_time IS NOT NULL THEN 0 WHEN source IS NULL
        THEN least({_SECOND.format("start_time")} + coalesce(60::BIGINT * limit_minutes, {_NEVER}),
        {_NEVER}) ELSE {_SECOND.format("start_time")} + greatest(coalesce(elapsed_seconds, 0), 0)
        END)::UINTEGER AS latest,
    coalesce(charge + 1, 0)::BIGINT AS charge
FROM ((SELECT {_NULLS} LIMIT 0) UNION ALL BY NAME
    SELECT * FROM read_parquet($file, file_row_number = true))
WHERE file_row_number >= $first AND file_row_number < $past
"""  # noqa: S608  # our own names
_SAME = ", ".join(f'"{name}"' for name in (*_COUNTS, *TEXTS))
_CELL = f"""
CREATE OR REPLACE TEMP TABLE cell AS
SELECT row_number() OVER (ORDER BY {_SAME}) AS cell, count(*) AS "rows", {_SAME}
FROM part GROUP BY {_SAME}
"""  # noqa: S608
_SORTED = f"""
SELECT {", ".join(f'"{name}"' for name in (*ROWS, *MORE))}
FROM part JOIN cell USING ({_SAME}) ORDER BY cell, submit
"""  # noqa: S608
_CELL_COLUMNS = f'SELECT "rows", {_SAME} FROM cell ORDER BY cell'  # noqa: S608


@dataclass(frozen=True)
class Part:
    """`rows`: by name an array of a number a row, in the order of cells and of submit. Seconds
    since 1970, 0 where unknown; `run` is the run time; columns of MORE may not be there: all 0.
    `cells`: by name an array of a number a cell, of texts the place in `texts`.
    `orders`: of some numbers how they are spread in each cell."""

    rows: Mapping[str, "Numbers"]
    cells: Mapping[str, "Numbers"]
    texts: Mapping[str, Sequence[str]]
    orders: Mapping[str, Order] = field(default_factory=dict)

    @cached_property
    def firsts(self) -> "Numbers":
        """Where the rows of each cell begin; one more, where the last ones end."""
        return np.concatenate(([0], np.cumsum(self.cells["rows"], dtype=np.int64)))

    @cached_property
    def imported(self) -> "Numbers":
        """By cell, whether it is of an imported set: what its rows tell ends with their file."""
        known = np.array([bool(text) for text in self.texts["source"]])
        found: Numbers = known[self.cells["source"]]
        return found

    @cached_property
    def submitted(self) -> tuple[int, int]:
        """The first and the last submit."""
        return int(self.rows["submit"].min()), int(self.rows["submit"].max())

    def bounds(self, column: str) -> tuple[int, int]:
        """The first and the last of a time where it is known; of the submit where it never is."""

        def found() -> tuple[int, int]:
            seconds = self.rows[column]
            known = seconds[seconds > 0]
            return (int(known.min()), int(known.max())) if known.size else self.submitted

        return self.once(f"bounds of {column}", found)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What `make` says of this part, for good."""
        if name not in self._known:
            self._known[name] = make()
        found: T = self._known[name]
        return found

    @cached_property
    def _known(self) -> dict[str, Any]:
        return {}

    @cached_property
    def started_to_ended(self) -> tuple[int, int]:
        """The first start and the last end; the end of time where one still runs."""
        start, end = self.rows["start"], self.rows["end"]
        started = start[start > 0]
        if not started.size:
            return 2**32, 0
        runs = bool((self.cells["kind"] == RUNNING).any())
        return int(started.min()), 2**32 if runs else int(end.max())


def made(file: Path) -> list[Part]:
    """The parts of a file of the history."""
    import duckdb  # noqa: PLC0415  # tens of megabytes, for who makes a part

    with duckdb.connect(config=blocks.OWN | {"threads": 2}) as connection:
        row = connection.execute("SELECT count(*) FROM read_parquet($1)", [str(file)]).fetchone()
        total = int(row[0]) if row else 0
        return [_part(connection, file, first) for first in range(0, total, PART)]


def _part(connection: "duckdb.DuckDBPyConnection", file: Path, first: int) -> Part:
    bounds = {"file": str(file), "first": first, "past": first + PART}
    connection.execute(_PART, bounds)
    connection.execute(_CELL)
    sorted_rows = connection.execute(_SORTED).fetchnumpy()
    rows = {name: np.asarray(sorted_rows[name]).astype(kind) for name, kind in ROWS.items()}
    for name, kind in MORE.items():
        if sorted_rows[name].any():
            rows[name] = np.asarray(sorted_rows[name]).astype(kind)
    found = connection.execute(_CELL_COLUMNS).fetchnumpy()
    cells: dict[str, Numbers] = {
        name: np.asarray(found[name]).astype("<i4") for name in ("rows", *_COUNTS)
    }
    texts: dict[str, Sequence[str]] = {}
    for name in TEXTS:
        known, codes = np.unique(np.asarray(found[name], dtype=object), return_inverse=True)
        texts[name], cells[name] = known.tolist(), codes.astype("<i4")
    return Part(rows, cells, texts, _orders(rows, cells))


def _orders(rows: Mapping[str, "Numbers"], cells: Mapping[str, "Numbers"]) -> dict[str, Order]:
    started = rows["start"] > 0
    values = {"run": rows["run"]}
    for name, (since, until) in _BETWEEN.items():
        values[name] = np.where(started, between(rows[since], rows[until]), 0)
    return {name: Order.of(values[name], cells["rows"]) for name in _ORDERS}


def between(since: "Numbers", until: "Numbers") -> "Numbers":
    """Seconds; 0 where a trace has the later one before the other."""
    found: Numbers = np.subtract(until, since).view(np.int32)
    return np.maximum(found, 0, out=found)
