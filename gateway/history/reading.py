"""Reading the job history: DuckDB in memory over the files that the list names."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.core.past_runs import COLUMNS
from gateway.history import blocks

if TYPE_CHECKING:
    import duckdb

THREADS = 2


@contextmanager
def runs(folder: Path) -> "Iterator[duckdb.DuckDBPyConnection]":
    """A connection with the view `runs` (columns: core.past_runs.COLUMNS), of one moment of the
    history; no rows where there is none. Nothing is written, no lock is taken."""
    import duckdb  # noqa: PLC0415  # tens of megabytes, for who writes or reads history

    manifest = blocks.load(folder)
    with duckdb.connect(config=blocks.OWN | {"threads": THREADS}) as connection:
        connection.execute(f"CREATE VIEW runs AS {_source(folder, manifest)}")
        yield connection


def _source(folder: Path, manifest: "blocks.Manifest | None") -> str:
    if manifest is None or not manifest.files:
        columns = (f'CAST(NULL AS {kind.value}) AS "{name}"' for name, kind in COLUMNS.items())
        return f"SELECT {', '.join(columns)} LIMIT 0"
    files = [str(folder / name) for _, name in sorted(manifest.files.items())]
    listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
    return f"SELECT * FROM read_parquet([{listed}])"  # noqa: S608  # our own files
