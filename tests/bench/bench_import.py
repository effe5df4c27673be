"""How fast a history in CSV comes in: `sluice history import` of ten million rows.

    python tests/bench/bench_import.py [--rows 10000000]

The rows are two real traces, repeated with new ids and shifted times. The traces are read beside
the checkout; where they are not, one line says so. What was stored is counted by its sums.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb

from gateway.history.reading import runs

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
GRAHAM, PHILLIPS = (
    TRACES / "drac_graham_2021.csv.gz",
    TRACES / "xdmod_phillips.sacct.psv.gz",
)
ROWS = 10_000_000
GOAL_ROWS_A_SECOND = 250_000
GOAL_MB = 2048
# All of Graham's columns; of Phillips', those that say the same. Shifted by a week each time.
_MADE = """
COPY (
    WITH traces AS (
        SELECT * FROM read_csv($graham, all_varchar = true)
        UNION ALL BY NAME
        SELECT JobIDRaw AS job_unique_id, '9' AS cluster_id, Submit AS submit_time,
            Partition AS partition_id_x, Account AS account_id, ReqCPUS AS req_cpus,
            AllocTRES AS req_tres, NNodes AS alloc_nodes, split_part(State, ' ', 1) AS state,
            Eligible AS eligible_time, Start AS start_time, Elapsed AS elapsed_time,
            "End" AS end_time
        FROM read_csv($phillips, all_varchar = true, delim = '|') WHERE NodeList <> 'None assigned'
    )
    SELECT * REPLACE (
        CAST(job_unique_id AS BIGINT) + turn * 100000000 AS job_unique_id,
        CAST(submit_time AS TIMESTAMP) + to_days(7 * turn::INTEGER) AS submit_time,
        CAST(eligible_time AS TIMESTAMP) + to_days(7 * turn::INTEGER) AS eligible_time,
        CAST(start_time AS TIMESTAMP) + to_days(7 * turn::INTEGER) AS start_time,
        CAST(end_time AS TIMESTAMP) + to_days(7 * turn::INTEGER) AS end_time
    ) FROM traces, range($turns) AS turns(turn) LIMIT $rows
) TO '{file}' (FORMAT csv, HEADER)
"""
_SUMS = "sum(epoch(CAST(start_time AS TIMESTAMP)) - epoch(CAST(submit_time AS TIMESTAMP)))::BIGINT"


def imports(folder: Path, *, rows: int = ROWS) -> Iterator[dict[str, object]]:
    if not GRAHAM.exists() or not PHILLIPS.exists():
        yield {"bench": "import", "skipped": "the traces beside the checkout are not here"}
        return
    file = folder / "jobs.csv"
    expected = _make(file, rows)
    home = folder / "home"
    home.mkdir()
    began = time.perf_counter()
    told = json.loads(
        _sluice(home, "import", str(file), "--format", "csv", "--timezone", "UTC", "--json")
    )
    seconds = time.perf_counter() - began
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = used.ru_maxrss // 1024
    assert (told["stored"], told["held"], told["ties"]) == (rows, 0, True), told
    with runs(home / "history") as connection:
        assert connection.execute(f"SELECT count(*), {_SUMS} FROM waits").fetchone() == expected
    yield {
        "bench": "import",
        "rows": rows,
        "megabytes": file.stat().st_size // 2**20,
        "seconds": round(seconds, 1),
        "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
        "rows_a_second": round(rows / seconds),
        "peak_mb": peak,
        "load": round(os.getloadavg()[0], 1),
        "met": rows / seconds >= GOAL_ROWS_A_SECOND and peak <= GOAL_MB,
    }


def _make(file: Path, rows: int) -> tuple[int, int]:
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": 2,
        "memory_limit": "1GB",
        "preserve_insertion_order": False,
    }
    with duckdb.connect(config=config) as connection:
        made = _MADE.format(file=str(file).replace("'", "''"))
        given = {"graham": str(GRAHAM), "phillips": str(PHILLIPS), "rows": rows}
        connection.execute(made, given | {"turns": rows // 171_584 + 1})
        table = f"read_csv('{file}', all_varchar = true)"
        row = connection.execute(f"SELECT count(*), {_SUMS} FROM {table}").fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def _sluice(home: Path, *words: str) -> str:
    argv = [str(Path(sys.executable).parent / "sluice"), "history", *words]
    environment = os.environ | {"SLUICE_HOME": str(home)}
    done = subprocess.run(argv, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return done.stdout


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    chosen = parser.parse_args().rows
    with tempfile.TemporaryDirectory(prefix="sluice-") as place:
        for line in imports(Path(place), rows=chosen):
            print(json.dumps(line))
