"""A file with the jobs of some cluster, as the rows that a back-test asks about."""

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.core.past_runs import COLUMNS
from gateway.core.wait_figures import Wait
from gateway.history import blocks
from gateway.history.forecasting.rows import Rows, read
from gateway.history.importing.load import Given, load
from gateway.history.reading import THREADS

if TYPE_CHECKING:
    import duckdb

_ALL_DAYS = 36_500
_MOST = 5_000_000


@dataclass(frozen=True, slots=True)
class Trace:
    """`held`: rows that could not be read."""

    rows: Rows
    held: int
    cut: str | None


def read_trace(given: Given, *, wait: Wait) -> Trace:
    """Nothing is stored. Raises BadMapping or UnreadableFile."""
    import duckdb  # noqa: PLC0415  # tens of megabytes, for who reads history

    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        loaded = load(given, Path(folder), [])
        with duckdb.connect(config=blocks.OWN | {"threads": THREADS}) as connection:
            _view(connection, Path(folder), loaded.file)
            now = _end(connection)
            rows = read(connection, now=now, wait=wait, days=_ALL_DAYS, most=_MOST)
    return Trace(rows, loaded.held, loaded.cut)


def _view(connection: "duckdb.DuckDBPyConnection", folder: Path, file: str | None) -> None:
    """All rows of the file as if they were a site's own."""
    if file is None:
        nothing = ", ".join(f'CAST(NULL AS {kind}) AS "{name}"' for name, kind in COLUMNS.items())
        connection.execute(f"CREATE VIEW waits AS SELECT {nothing} LIMIT 0")
        return
    path = str(folder / file).replace("'", "''")
    own = "* REPLACE (CAST(NULL AS VARCHAR) AS source)"
    connection.execute(f"CREATE VIEW waits AS SELECT {own} FROM read_parquet('{path}')")  # noqa: S608  # our own file


def _end(connection: "duckdb.DuckDBPyConnection") -> datetime:
    """After all that the file tells."""
    row = connection.execute(
        "SELECT max(greatest(submit_time, eligible_time, start_time, end_time)) FROM waits"
    ).fetchone()
    last: datetime | None = row[0] if row else None
    moment = last if last is not None else datetime(1970, 1, 1)  # noqa: DTZ001  # as DuckDB's
    return moment.replace(tzinfo=UTC) + timedelta(seconds=1)
