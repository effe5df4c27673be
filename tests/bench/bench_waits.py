"""How long the data of each page of waits take over ten million rows, pandas, and SQL in SQLite.

    python tests/bench/bench_waits.py [--rows 10000000] [--jitter 0]

The two traces beside the checkout, repeated with new ids and moved in time. `--jitter`: waits and
runs are longer by up to so many seconds, so that nearly all differ. The peers answer one of the
pages, waits and runs by class of cards, from columns that hold them ready; all must agree.
"""

import argparse
import json
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from gateway.core.past_runs import COLUMNS
from gateway.core.wait_figures import Dimension, Question, Wait
from gateway.core.wait_shapes import Step
from gateway.history import sets
from gateway.services.waits import PastWaits, past_waits, prepare

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
GRAHAM, PHILLIPS = "drac_graham_2021.csv.gz", "xdmod_phillips.sacct.psv.gz"
GOAL_MS, GOAL_MB, TIMES_PANDAS, TIMES_SQLITE = 300, 2048, 5, 20
REPEAT, FILE_ROWS, MOVED = 20, 1_000_000, 30 * 86_400
PERCENTS = (50, 90, 95, 99)
NOW = datetime(2027, 1, 1, tzinfo=UTC)

_GRAHAM = """
SELECT 'graham' AS cluster, NULL AS "user", 'a' || account_id AS "group",
    'p' || partition_id_x AS partition, NULL AS qos, state, submit_time AS s, eligible_time AS e,
    start_time AS b, end_time AS f, run_time_sec AS el, time_limit_sec // 60 AS lim,
    alloc_nodes AS nodes, req_cpus AS cpus,
    coalesce(try_cast(regexp_extract(req_tres, 'gres/gpu=([0-9]+)', 1) AS BIGINT), 0) AS gpus
FROM read_csv($file)
"""
_PHILLIPS = """
SELECT 'phillips' AS cluster, "User" AS "user", Account AS "group", Partition AS partition,
    QOS AS qos, split_part(State, ' ', 1) AS state,
    Submit::TIMESTAMP AS s, Eligible::TIMESTAMP AS e,
    if(NodeList = 'None assigned', NULL, "Start"::TIMESTAMP) AS b, "End"::TIMESTAMP AS f,
    if(b IS NULL, NULL, epoch(f - b)::BIGINT) AS el, 1440 AS lim, NNodes::BIGINT AS nodes,
    NCPUS::BIGINT AS cpus,
    coalesce(try_cast(regexp_extract(AllocTRES, 'gres/gpu=([0-9]+)', 1) AS BIGINT), 0) AS gpus
FROM read_csv($file, delim = '|', all_varchar = true)
"""
_GIVEN = {
    "cluster": "cluster",
    "user": """coalesce("user", "group" || '-' || (h % 5))""",
    "group": '"group"',
    "partition": "partition",
    "qos": "qos",
    "template": """['ddp', 'fsdp', NULL][1 + (hash("group") % 3)::INTEGER]""",
    "state": "state",
    "submit_time": "s + moved",
    "eligible_time": "e + moved",
    "start_time": "b + moved + to_seconds(late)",
    "end_time": "f + moved + to_seconds(late + longer)",
    "elapsed_seconds": "el + longer",
    "limit_minutes": "lim",
    "nodes": "nodes",
    "cpus": "cpus",
    "gpus": "gpus",
    "gpu_type": "['a100', 'v100', 'h100', NULL][1 + (hash(partition) % 4)::INTEGER]",
    "restarts": "0",
    "source": "'bench'",
    "cause_deferral": "greatest(least(epoch(e - s), epoch(coalesce(b, f) - s)), 0)::BIGINT",
    "cause_unknown": "epoch(coalesce(b, f) - s)::BIGINT + late - cause_deferral",
}


def waits(folder: Path, *, rows: int = 10_000_000, jitter: int = 0) -> Iterator[dict[str, object]]:
    if not (TRACES / GRAHAM).is_file():
        yield {"figure": "waits", "skipped": "the traces beside the checkout are not there"}
        return
    home = folder / "history"
    began = time.perf_counter()
    _make(folder, rows, jitter)
    made = time.perf_counter()
    prepare(home)
    yield {
        "figure": "waits/prepare",
        "rows": rows,
        "seconds": round(time.perf_counter() - made, 1),
        "made_seconds": round(made - began, 1),
        "mb": round(sum(f.stat().st_size for f in (home / "columns").glob("*")) / 2**20),
    }
    question = Question(now=NOW, zone="Europe/Berlin")
    with past_waits(home) as past:
        first, last = past.span(question).submitted or (NOW, NOW)
    middle = first + (last - first) / 2
    period = replace(question, since=middle, until=last + timedelta(seconds=1))
    for name, page in _pages(question, period).items():
        yield _measured(home, name, page, rows)
    yield from _peers(folder, replace(question, wait=Wait.SUBMIT))


def _pages(whole: Question, period: Question) -> dict[str, Callable[[PastWaits], Any]]:
    month = replace(period, since=(period.until or NOW) - timedelta(days=30))
    pages: dict[str, Callable[[PastWaits], Any]] = {
        "overview": lambda past: past.overview(period, Dimension.GPU_CLASS),
        "overview_30_days": lambda past: past.overview(month, Dimension.GPU_CLASS),
        "distribution": lambda past: past.distribution(whole),
        "over_time": lambda past: past.over_time(whole, Step.MONTH),
        "heat": lambda past: past.heat(whole),
        "survival": lambda past: past.survival(whole),
        "causes": lambda past: past.causes(whole, Dimension.GROUP),
    }
    for dimension in Dimension:
        pages[f"by_{dimension}"] = lambda past, one=dimension: past.by(whole, one, brief=True)
    return pages


def _measured(
    home: Path, name: str, page: Callable[[PastWaits], Any], rows: int
) -> dict[str, object]:
    took, processor = [], []
    for _ in range(REPEAT):
        began, used = time.perf_counter(), time.process_time()
        with past_waits(home) as past:
            page(past)
        took.append((time.perf_counter() - began) * 1000)
        processor.append((time.process_time() - used) * 1000)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    p95 = statistics.quantiles(took, n=20)[-1]
    return {
        "figure": f"waits/{name}",
        "rows": rows,
        "p50_ms": round(statistics.median(took)),
        "p95_ms": round(p95),
        "processor_ms": round(statistics.median(processor)),
        "goal_ms": GOAL_MS,
        "peak_mb": round(peak),
        "goal_mb": GOAL_MB,
        "met": p95 <= GOAL_MS and peak <= GOAL_MB,
    }


def _make(folder: Path, rows: int, jitter: int) -> None:
    """The set `bench`, in files of a million rows in the order of time."""
    imports = folder / sets.FOLDER
    place = sets.folder_of(imports, "bench")
    place.mkdir(parents=True)
    late, longer = (f"(h >> {n})::BIGINT % {jitter}" if jitter else "0" for n in (8, 28))
    with duckdb.connect(config={"threads": 2, "memory_limit": "4GB"}) as connection:
        for table, query, file in (("g", _GRAHAM, GRAHAM), ("p", _PHILLIPS, PHILLIPS)):
            path = str(TRACES / file)
            connection.execute(f"CREATE TABLE {table} AS {query}", {"file": path})
        connection.execute("CREATE TABLE traces AS FROM g UNION ALL BY NAME FROM p")
        (one,) = connection.execute("SELECT count(*) FROM traces").fetchone() or (1,)
        copies = range(-(-rows // one))
        step = max(FILE_ROWS // one, 1)
        files = []
        for first in copies[::step]:
            files.append(f"set-{first:04}.parquet")
            past = min(first + step, len(copies))
            connection.execute(
                f"""COPY (SELECT {_columns()} FROM (
                    SELECT *, to_seconds(copy * {MOVED}) AS moved, {late} AS late,
                        {longer} AS longer
                    FROM (SELECT *, hash(b, f, cpus, "group", copy) & 1099511627775 AS h
                        FROM traces, range({first}, {past}) AS c(copy)))
                    ORDER BY submit_time LIMIT {rows - first * one})
                TO '{place / files[-1]}' (FORMAT parquet)"""
            )
    given = sets.ImportedSet("bench", "csv", rows, 0, NOW, tuple(files))
    with sets.changing(imports):
        sets.publish(imports, given)


def _columns() -> str:
    return (
        ", ".join(
            f"CAST({_GIVEN.get(name, 'NULL' if not name.startswith('cause_') else '0')}"
            f' AS {kind.value}) AS "{name}"'
            for name, kind in COLUMNS.items()
            if name != "cause_now"
        )
        + ', NULL::VARCHAR AS "cause_now"'
    )


def _peers(folder: Path, question: Question) -> Iterator[dict[str, object]]:
    began = time.perf_counter()
    with past_waits(folder / "history") as past:
        found = past.by(question, Dimension.GPU_CLASS)
    ours = time.perf_counter() - began
    expected = {
        key: [(s.median_s, s.p90_s, s.p95_s, s.p99_s) for s in (one.wait, one.run)]
        for key, one in found
    }
    files = str(folder / sets.FOLDER / "bench" / "*.parquet")
    with duckdb.connect(config={"threads": 2}) as connection:
        columns = connection.execute(_READY, {"files": files}).fetchnumpy()
    for name, peer, goal in (
        ("pandas", _with_pandas, TIMES_PANDAS),
        ("sqlite", _with_sqlite, TIMES_SQLITE),
    ):
        took, theirs = peer(columns)
        assert theirs.keys() == expected.keys()
        for key, pairs in theirs.items():
            for told, right in zip(pairs, expected[key], strict=True):
                assert all(abs(a - b) < 1e-6 * max(b, 1) for a, b in zip(told, right, strict=True))
        yield {
            "figure": f"waits/{name}",
            "ours_ms": round(ours * 1000),
            "peer_ms": round(took * 1000),
            "times": round(took / ours, 1),
            "goal_times": goal,
            "met": took / ours >= goal,
        }


# The classes, waits and runs of the rows that started, as a peer would keep them.
_READY = """
SELECT CASE WHEN gpus = 0 THEN '0' WHEN gpus = 1 THEN '1' WHEN gpus < 5 THEN '2-4'
    WHEN gpus < 9 THEN '5-8' ELSE '>8' END AS class,
    epoch(start_time - submit_time)::INTEGER AS wait, elapsed_seconds::INTEGER AS run
FROM read_parquet($files) WHERE start_time IS NOT NULL
"""
Peer = dict[str, list[tuple[float, ...]]]


def _with_pandas(columns: dict[str, Any]) -> tuple[float, Peer]:
    import pandas as pd

    frame = pd.DataFrame(columns).astype({"class": "category"})
    began = time.perf_counter()
    grouped = frame.groupby("class", observed=True)[["wait", "run"]]
    found = grouped.quantile([percent / 100 for percent in PERCENTS])
    grouped.agg(["count", "sum", "mean", "max"])
    (frame["wait"] / frame["run"].where(frame["run"] > 0)).groupby(
        frame["class"], observed=True
    ).agg(["mean", "median"])
    took = time.perf_counter() - began
    keys = frame["class"].cat.categories
    return took, {k: [tuple(found.loc[k][name]) for name in ("wait", "run")] for k in keys}


def _with_sqlite(columns: dict[str, Any]) -> tuple[float, Peer]:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE job (class TEXT, wait INTEGER, run INTEGER)")
    given = zip(*(columns[name].tolist() for name in ("class", "wait", "run")), strict=True)
    connection.executemany("INSERT INTO job VALUES (?, ?, ?)", given)
    began, found = time.perf_counter(), {}
    for name in ("wait", "run"):
        rows = connection.execute(_RANKED.format(name=name))
        for key, place, n, value in rows:
            found.setdefault(key, {}).setdefault(name, (n, {}))[1][place] = value
    took = time.perf_counter() - began
    return took, {
        key: [_between(*by_name[name]) for name in ("wait", "run")]
        for key, by_name in found.items()
    }


_WANTED = " OR ".join(
    f"place IN ({percent} * (n - 1) / 100, {percent} * (n - 1) / 100 + 1)" for percent in PERCENTS
)
_RANKED = f"""
SELECT class, place, n, value FROM (
    SELECT class, {{name}} AS value, count(*) OVER (PARTITION BY class) AS n,
        row_number() OVER (PARTITION BY class ORDER BY {{name}}) - 1 AS place FROM job
) WHERE {_WANTED}
"""


def _between(n: int, values: dict[int, int]) -> tuple[float, ...]:
    found = []
    for percent in PERCENTS:
        low, part = divmod(percent * (n - 1), 100)
        high = values.get(low + 1, values[low])
        found.append(values[low] + (high - values[low]) * part / 100)
    return tuple(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--jitter", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluice-") as made:
        for line in waits(Path(made), rows=asked.rows, jitter=asked.jitter):
            print(json.dumps(line), flush=True)
