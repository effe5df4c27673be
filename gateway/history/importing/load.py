"""A file of jobs becomes a Parquet file of the history's columns, and a count of what it held.

DuckDB reads, converts and writes in columns: no row passes through Python but those that are held.
"""

# ruff: noqa: S608  # what a file or a person says is quoted by expressions.quoted and name

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from gateway.core.csv_mapping import CsvMapping
from gateway.history import blocks
from gateway.history.importing import expressions as sql
from gateway.history.importing import tables
from gateway.history.importing.keep import (
    KEPT_TEXTS,
    LONGEST_TEXT,
    Loaded,
    copy,
    number,
    parquet,
    store,
)
from gateway.history.importing.rows import STEP, Rows, Shape
from gateway.history.importing.spool import Spooled, spool
from gateway.history.reading import THREADS

if TYPE_CHECKING:
    import duckdb

MEMORY = "1200MB"
_CUT = "the file ends in the middle of a row"


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
        copy(connection, rows.query(), staged)
        loaded = Loaded(table.mapping, cut=spooled.cut)
        loaded.records = number(connection, f"SELECT count(*) FROM {parquet([staged])}")
        _held(connection, staged, spooled, loaded)
        has_id = "id" in table.mapping.columns
        store(connection, staged, there, loaded, has_id=has_id, now=given.now)
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
        sql.with_tasks(connection)
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


def _held(
    connection: "duckdb.DuckDBPyConnection", staged: Path, spooled: Spooled, loaded: Loaded
) -> None:
    """What is wrong with rows, and what the reader could not take apart at all."""
    bad = f"FROM {parquet([staged])} WHERE problem IS NOT NULL"
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
