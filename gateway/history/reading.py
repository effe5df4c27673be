"""Reading the job history: DuckDB in memory over the files that the lists name."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.core.past_runs import COLUMNS
from gateway.history import blocks, sets

if TYPE_CHECKING:
    import duckdb

THREADS = 2


@contextmanager
def runs(folder: Path) -> "Iterator[duckdb.DuckDBPyConnection]":
    """A connection with the views `waits` (a row a run, and a row a job that never started or
    waits, imported sets too) and `runs` (our own runs), of one moment of the history; no rows where
    there is none. Columns: core.past_runs.COLUMNS. Nothing is written, no lock is taken."""
    import duckdb  # noqa: PLC0415  # tens of megabytes, for who writes or reads history

    own = _own(folder)
    imported = sets.files(folder.parent / sets.FOLDER)
    with duckdb.connect(config=blocks.OWN | {"threads": THREADS}) as connection:
        connection.execute(f"CREATE VIEW waits AS {_source([*own, *imported])}")
        connection.execute(
            f"CREATE VIEW runs AS SELECT * FROM ({_source(own)}) WHERE run_id IS NOT NULL"  # noqa: S608  # our own files
        )
        yield connection


def _own(folder: Path) -> list[Path]:
    manifest = blocks.load(folder)
    return [folder / name for name in sorted(set(manifest.files.values()))] if manifest else []


def _source(files: list[Path]) -> str:
    if not files:
        columns = (f'CAST(NULL AS {kind.value}) AS "{name}"' for name, kind in COLUMNS.items())
        return f"SELECT {', '.join(columns)} LIMIT 0"
    listed = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
    chosen = ", ".join(f'"{name}"' for name in COLUMNS)
    return f"SELECT {chosen} FROM read_parquet([{listed}], union_by_name = true)"  # noqa: S608
