"""What an import keeps of the rows that were read: the good ones that are new, each once."""

# ruff: noqa: S608  # what a file or a person says is quoted by expressions.quoted and name

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.core.csv_mapping import CsvMapping
from gateway.core.past_runs import COLUMNS
from gateway.history import blocks
from gateway.history.importing import expressions as sql

if TYPE_CHECKING:
    import duckdb

KEPT_TEXTS = 1000  # held rows whose text is handed on; all are counted
LONGEST_TEXT = 10_000
_TWICE = "another row has this job id and this time of submission"
_KEY = "slurm_id, submit_time, cluster"
_SAME = " AND ".join(
    f'a."{column}" IS NOT DISTINCT FROM b."{column}"' for column in _KEY.split(", ")
)


@dataclass(slots=True)
class Loaded:
    """`records` were in the file, counted as they were read, the others as they ended. `known`:
    rows of jobs that a set has already; `repeated`: that stand in this file more than once.
    `reasons` counts the held rows; `kept` are (text, reason) of the first ones. `cut`: why the end
    is missing. `file`: what was written, None where there is nothing to store."""

    mapping: CsvMapping
    records: int = 0
    stored: int = 0
    steps: int = 0
    held: int = 0
    known: int = 0
    repeated: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    kept: list[tuple[str, str]] = field(default_factory=list)
    cut: str | None = None
    file: str | None = None

    @property
    def ties(self) -> bool:
        return self.records == self.stored + self.steps + self.held + self.known + self.repeated

    def hold(self, raw: str, reason: str) -> None:
        self.held += 1
        self.reasons[reason.partition(":")[0]] += 1
        if len(self.kept) < KEPT_TEXTS:
            self.kept.append((raw[:LONGEST_TEXT], reason))


def store(
    connection: "duckdb.DuckDBPyConnection",
    staged: Path,
    there: Sequence[Path],
    loaded: Loaded,
    *,
    has_id: bool,
    now: datetime,
) -> None:
    """The good rows that are new, each once, in one file; none where there are none."""
    chosen = ", ".join(f'"{column}"' for column in COLUMNS)
    good = f"SELECT {chosen} FROM {parquet([staged])} WHERE problem IS NULL"
    waiting = _known_until(connection, good, now)
    if waiting:
        good = f"SELECT * REPLACE ({waiting}) FROM ({good})"
    several = _several(connection, good, loaded, has_id=has_id)
    once = f"SELECT * FROM ({good}) a WHERE NOT EXISTS (SELECT 1 FROM several b WHERE {_SAME})"
    once = f"{once} UNION ALL SELECT {chosen} FROM chosen" if several else good
    new = once
    if there:
        old = f"(SELECT {_KEY} FROM {parquet(there)})"
        new = f"SELECT * FROM ({once}) a WHERE NOT EXISTS (SELECT 1 FROM {old} b WHERE {_SAME})"
        found = (
            f"SELECT count(*) FROM ({once}) a WHERE EXISTS (SELECT 1 FROM {old} b WHERE {_SAME})"
        )
        loaded.known = number(connection, found)
    file = staged
    spread = _spread(connection, staged, new)
    if several or waiting or spread or loaded.known or loaded.held or loaded.steps:
        file = staged.with_name(f"rows-{secrets.token_hex(6)}.parquet")
        copy(connection, spread or new, file)
        # In a file that has more rows than were read, those are counted that were.
        counted = f"({new})" if spread else parquet([file])
        loaded.stored = number(connection, f"SELECT count(*) FROM {counted}")
        staged.unlink()
    else:
        loaded.stored = number(connection, f"SELECT count(*) FROM {parquet([file])}")
    if loaded.stored:
        blocks.to_disk(file)
        loaded.file = file.name
    else:
        file.unlink()


def _spread(connection: "duckdb.DuckDBPyConnection", staged: Path, new: str) -> str | None:
    """The rows with each task of an array in one of its own; None where all rows are such."""
    connection.execute(
        f"CREATE TEMP TABLE arrays AS SELECT {_KEY}, max(tasks) AS tasks FROM {parquet([staged])}"
        " WHERE problem IS NULL AND tasks > 1 GROUP BY ALL"
    )
    if not number(connection, "SELECT count(*) FROM arrays"):
        return None
    never = "a.start_time IS NULL"
    return (
        "SELECT * EXCLUDE nth FROM (SELECT a.*, unnest(range(coalesce(b.tasks, 1))) AS nth"
        f" FROM ({new}) a LEFT JOIN arrays b ON {_SAME} AND {never})"
    )


def _known_until(connection: "duckdb.DuckDBPyConnection", good: str, now: datetime) -> str | None:
    """What to say of jobs that wait: until when is known, which is the last moment that the file
    tells of, and not now. None where nothing waits."""
    waits = "start_time IS NULL AND end_time IS NULL"
    if not number(connection, f"SELECT count(*) FROM ({good}) WHERE {waits}"):
        return None
    until = int(now.timestamp())
    lasts = ", ".join(
        f"max({what}_time) FILTER ({what}_time <= make_timestamp({until}000000))"
        for what in ("submit", "start", "end")
    )
    row = connection.execute(f"SELECT epoch(greatest({lasts}))::BIGINT FROM ({good})").fetchone()
    last = until if row is None or row[0] is None else int(row[0])
    waited = f"greatest({last} - epoch(submit_time)::BIGINT, 0)"
    seen = f"make_timestamp({last}000000)"
    return (
        f"CASE WHEN {waits} THEN {seen} END AS seen_at,"
        f" if({waits}, least(cause_deferral, {waited}), cause_deferral) AS cause_deferral,"
        f" if({waits}, {waited} - least(cause_deferral, {waited}), cause_unknown) AS cause_unknown"
    )


def _several(
    connection: "duckdb.DuckDBPyConnection", good: str, loaded: Loaded, *, has_id: bool
) -> bool:
    """Look for jobs with more than one row: the keys in the table `several`, the rows that stay in
    `chosen`. Rows with other starts are runs after a requeue; the same row again is a repetition,
    and where no column has an id, a job that is just like another."""
    connection.execute(
        f"CREATE TEMP TABLE several AS SELECT {_KEY} FROM ({good}) GROUP BY ALL HAVING count(*) > 1"
    )
    if not number(connection, "SELECT count(*) FROM several"):
        return False
    columns = [f'a."{column}"' for column in COLUMNS]
    connection.execute(
        f"CREATE TEMP TABLE rows_of AS SELECT {', '.join(columns)},"
        f" row_number() OVER (PARTITION BY {', '.join(columns)}) AS copy"
        f" FROM ({good}) a JOIN several b ON {_SAME}"
    )
    if not has_id:
        connection.execute(
            "CREATE TEMP TABLE chosen AS"
            " SELECT * REPLACE (slurm_id + copy - 1 AS slurm_id), 1 AS nth FROM rows_of"
        )
        return True
    loaded.repeated = number(connection, "SELECT count(*) FROM rows_of WHERE copy > 1")
    connection.execute(
        "CREATE TEMP TABLE ranked AS SELECT *,"
        f" row_number() OVER (PARTITION BY {_KEY}, start_time ORDER BY end_time, hash(rows_of))"
        " AS nth FROM rows_of WHERE copy = 1"
    )
    for row in connection.execute(
        "SELECT concat_ws('|', slurm_id, submit_time, start_time, end_time, state, \"group\","
        " partition) FROM ranked WHERE nth > 1"
    ).fetchall():
        loaded.hold(str(row[0]), _TWICE)
    connection.execute(
        "CREATE TEMP TABLE chosen AS SELECT * REPLACE (greatest(restarts,"
        f" row_number() OVER (PARTITION BY {_KEY} ORDER BY start_time NULLS LAST) - 1) AS restarts)"
        " FROM ranked WHERE nth = 1"
    )
    return True


def copy(connection: "duckdb.DuckDBPyConnection", query: str, file: Path) -> None:
    connection.execute(f"COPY ({query}) TO {sql.quoted(str(file))} (FORMAT parquet)")


def parquet(files: Sequence[Path]) -> str:
    listed = sql.listed([str(file) for file in files])
    return f"read_parquet([{listed}], union_by_name = true)"


def number(connection: "duckdb.DuckDBPyConnection", query: str) -> int:
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0
