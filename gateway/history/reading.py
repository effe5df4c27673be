"""Reading the job history: DuckDB in memory over the files that the lists name."""

from collections.abc import Iterator, Sequence
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

    own = blocks.files(folder)
    all_alike = all(one.shape == blocks.SHAPE for one in sets.listed(_imports(folder)))
    everything = [*own, *sets.files(_imports(folder))]
    with duckdb.connect(config=blocks.OWN | {"threads": THREADS}) as connection:
        connection.execute(f"CREATE VIEW waits AS {_source(everything, alike=all_alike)}")
        connection.execute(
            f"CREATE VIEW runs AS SELECT * FROM ({_source(own)}) WHERE run_id IS NOT NULL"  # noqa: S608  # our own files
        )
        yield connection


def files(folder: Path) -> list[Path]:
    """All that the view `waits` reads at this moment. None of them ever changes."""
    return [*blocks.files(folder), *sets.files(_imports(folder))]


def _imports(folder: Path) -> Path:
    return folder.parent / sets.FOLDER


def _source(found: Sequence[Path], *, alike: bool = True) -> str:
    """`alike` False: some files are older than some columns, which are null in their rows."""
    typed = ", ".join(f'CAST(NULL AS {kind.value}) AS "{name}"' for name, kind in COLUMNS.items())
    if not found:
        return f"SELECT {typed} LIMIT 0"
    if alike:
        return f"SELECT * FROM {blocks.parquet(found)}"  # noqa: S608  # our own files
    # What was imported is not made anew when a column comes to the history.
    given = f"SELECT * FROM {blocks.parquet(found, options=', union_by_name = true')}"  # noqa: S608
    return f"(SELECT {typed} LIMIT 0) UNION ALL BY NAME ({given})"
