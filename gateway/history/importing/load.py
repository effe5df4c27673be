"""A file of jobs becomes a Parquet file of the history's columns, and a count of what it held.

DuckDB reads, converts and writes in columns: no row passes through Python but those that are held.
"""

# ruff: noqa: S608  # what a file or a person says is quoted by expressions.quoted and name

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from gateway.core.csv_mapping import CsvMapping
from gateway.core.past_runs import COLUMNS
from gateway.history import blocks
from gateway.history.importing import expressions as sql
from gateway.history.importing import tables
from gateway.history.importing.rows import STEP, Rows, Shape
from gateway.history.importing.spool import Spooled, spool
from gateway.history.reading import THREADS

if TYPE_CHECKING:
    import duckdb

KEPT_TEXTS = 1000  # held rows whose text is handed on; all are counted
LONGEST_TEXT = 10_000
MEMORY = "1200MB"
_CUT = "the file ends in the middle of a row"
_TWICE = "another row has this job id and this time of submission"
_KEY = "slurm_id, submit_time, cluster"
_SAME = " AND ".join(
    f'a."{column}" IS NOT DISTINCT FROM b."{column}"' for column in _KEY.split(", ")
)


@dataclass(frozen=True, slots=True)
class Given:
    """`kind`: csv or swf. `source`: the name of the set. `cluster` None: as the file says.
    `zone`: of times that name none."""

    path: str
    kind: str
    source: str
    zone: str
    now: datetime
    cluster: str | None = None
    mapping: CsvMapping | None = None
    delimiter: str | None = None


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


def load(given: Given, folder: Path, there: Sequence[Path]) -> Loaded:
    """Write the rows that no file of `there` has into `folder`, on disk and under a new name.

    Raises BadMapping or UnreadableFile before anything was read. Killed anywhere, it leaves files
    that nobody names.
    """
    spooled = spool(given.path, folder)
    with _connection(folder) as connection:
        table, rows = _prepared(connection, given, spooled.path)
        tables.make(connection, table, sample=False)
        staged = folder / f"rows-{secrets.token_hex(6)}.parquet"
        _copy(connection, rows.query(), staged)
        loaded = Loaded(table.mapping, cut=spooled.cut)
        loaded.records = _number(connection, f"SELECT count(*) FROM {_parquet([staged])}")
        _held(connection, staged, spooled, loaded)
        has_id = "id" in table.mapping.columns
        _store(connection, staged, there, loaded, has_id=has_id, now=given.now)
    return loaded


@dataclass(frozen=True, slots=True)
class Glance:
    """How a file is understood: `rows` are the first ones, by column, None what nobody told."""

    mapping: CsvMapping
    rows: list[dict[str, Any]]
    problems: list[tuple[str, str]]


def glance(given: Given, folder: Path, *, rows: int = 5) -> Glance:
    """The first rows as they would be stored; nothing is."""
    spooled = spool(given.path, folder)
    with _connection(folder) as connection:
        table, query = _prepared(connection, given, spooled.path)
        tables.make(connection, table, sample=True)
        connection.execute(f"CREATE TEMP TABLE seen AS {query.query()}")
        found = connection.execute(f"SELECT * FROM seen WHERE problem IS NULL LIMIT {int(rows)}")
        names = [column[0] for column in found.description or ()]
        read = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        wrong = "SELECT raw, problem FROM seen WHERE problem IS NOT NULL"
        problems = connection.execute(f"{wrong} AND problem <> '{STEP}' LIMIT {int(rows)}")
        return Glance(table.mapping, read, [(raw, why) for raw, why in problems.fetchall()])


@contextmanager
def _connection(folder: Path) -> "Iterator[duckdb.DuckDBPyConnection]":
    import duckdb  # noqa: PLC0415  # tens of megabytes, for who writes or reads history

    config = blocks.OWN | {
        "threads": THREADS,
        "memory_limit": MEMORY,
        "temp_directory": str(folder),
        "preserve_insertion_order": False,
    }
    with duckdb.connect(config=config) as connection:
        yield connection


def _prepared(
    connection: "duckdb.DuckDBPyConnection", given: Given, path: Path
) -> tuple[tables.Table, Rows]:
    if given.kind == "swf":
        table = tables.swf_table(path, given.mapping)
    else:
        table = tables.csv_table(path, given.mapping, given.delimiter)
    connection.execute(f"CREATE TEMP TABLE words AS {sql.states_table(table.mapping)}")
    shape = Shape(
        columns=table.columns,
        raw_text=table.raw_text,
        source=given.source,
        cluster=given.cluster,
        zone=ZoneInfo(table.mapping.timezone or given.zone),
        relative=tables.counts_from_its_begin(connection, table),
        now=int(given.now.timestamp()),
    )
    return table, Rows(table.mapping, shape)


def _copy(connection: "duckdb.DuckDBPyConnection", query: str, file: Path) -> None:
    connection.execute(f"COPY ({query}) TO {sql.quoted(str(file))} (FORMAT parquet)")


def _parquet(files: Sequence[Path]) -> str:
    listed = sql.listed([str(file) for file in files])
    return f"read_parquet([{listed}], union_by_name = true)"


def _held(
    connection: "duckdb.DuckDBPyConnection", staged: Path, spooled: Spooled, loaded: Loaded
) -> None:
    """What is wrong with rows, and what the reader could not take apart at all."""
    bad = f"FROM {_parquet([staged])} WHERE problem IS NOT NULL"
    counted = connection.execute(
        f"SELECT split_part(problem, ':', 1), count(*) {bad} GROUP BY 1"
    ).fetchall()
    texts = connection.execute(
        f"SELECT left(raw, {LONGEST_TEXT}), problem {bad} AND problem <> '{STEP}'"
        f" ORDER BY 1 LIMIT {KEPT_TEXTS}"
    ).fetchall()
    for reason, count in counted:
        if reason == STEP:
            loaded.steps = count
        else:
            loaded.held += count
            loaded.reasons[reason] += count
    loaded.kept += [(str(raw), str(reason)) for raw, reason in texts]
    for row in tables.torn(connection, spooled.path):
        if row.last and loaded.cut is None:
            loaded.cut = f"{_CUT} (line {row.line:,})"
        loaded.records += 1
        loaded.hold(row.raw, row.reason)
    if spooled.rest:
        loaded.records += 1
        loaded.hold(spooled.rest, _CUT)


def _store(
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
    good = f"SELECT {chosen} FROM {_parquet([staged])} WHERE problem IS NULL"
    waiting = _known_until(connection, good, now)
    if waiting:
        good = f"SELECT * REPLACE ({waiting}) FROM ({good})"
    several = _several(connection, good, loaded, has_id=has_id)
    once = f"SELECT * FROM ({good}) a WHERE NOT EXISTS (SELECT 1 FROM several b WHERE {_SAME})"
    once = f"{once} UNION ALL SELECT {chosen} FROM chosen" if several else good
    new = once
    if there:
        old = f"(SELECT {_KEY} FROM {_parquet(there)})"
        new = f"SELECT * FROM ({once}) a WHERE NOT EXISTS (SELECT 1 FROM {old} b WHERE {_SAME})"
        found = (
            f"SELECT count(*) FROM ({once}) a WHERE EXISTS (SELECT 1 FROM {old} b WHERE {_SAME})"
        )
        loaded.known = _number(connection, found)
    file = staged
    if several or waiting or loaded.known or loaded.held or loaded.steps:
        file = staged.with_name(f"rows-{secrets.token_hex(6)}.parquet")
        _copy(connection, new, file)
        staged.unlink()
    loaded.stored = _number(connection, f"SELECT count(*) FROM {_parquet([file])}")
    if loaded.stored:
        blocks.to_disk(file)
        loaded.file = file.name
    else:
        file.unlink()


def _known_until(connection: "duckdb.DuckDBPyConnection", good: str, now: datetime) -> str | None:
    """What to say of jobs that wait: until when is known, which is the last moment that the file
    tells of, and not now. None where nothing waits."""
    waits = "start_time IS NULL AND end_time IS NULL"
    if not _number(connection, f"SELECT count(*) FROM ({good}) WHERE {waits}"):
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
    if not _number(connection, "SELECT count(*) FROM several"):
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
    loaded.repeated = _number(connection, "SELECT count(*) FROM rows_of WHERE copy > 1")
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


def _number(connection: "duckdb.DuckDBPyConnection", query: str) -> int:
    row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0
