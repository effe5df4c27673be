"""A copy of the job history as one Parquet file, for whoever reads Parquet."""

import secrets
from datetime import datetime
from pathlib import Path

from gateway.core.past_runs import COLUMNS
from gateway.history import blocks, reading


def export(
    folder: Path, file: Path, *, since: datetime | None = None, until: datetime | None = None
) -> int:
    """Write the rows of the view `waits` that were submitted in [since, until) to `file`, in place
    of what is there, whole or not at all; answers how many. Times in it are UTC. Raises OSError."""
    import duckdb  # noqa: PLC0415  # tens of megabytes, for who writes or reads history

    part = file.with_name(f"{file.name}.{secrets.token_hex(6)}.part")
    chosen = ", ".join(f'"{name}"' for name in COLUMNS)
    where = " AND ".join(
        f"submit_time {sign} make_timestamp({int(moment.timestamp() * 1_000_000)})"
        for sign, moment in ((">=", since), ("<", until))
        if moment is not None
    )
    query = f"SELECT {chosen} FROM waits WHERE {where or 'true'}"  # noqa: S608  # our own names
    try:
        with reading.runs(folder) as connection:
            # What every reader of Parquet knows, also old ones.
            blocks.copy(connection, query, part, options="PARQUET_VERSION v1")
            count = f"SELECT count(*) FROM {blocks.parquet([part])}"  # noqa: S608
            (rows,) = connection.execute(count).fetchone() or (0,)
        part.replace(file)
    except duckdb.IOException as error:
        raise OSError(str(error)) from error
    finally:
        part.unlink(missing_ok=True)
    return int(rows)
