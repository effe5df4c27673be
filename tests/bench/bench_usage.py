"""How long the data of each page of use take over ten million past runs, of a month and of all.

    python tests/bench/bench_usage.py [--runs 10000000]

200 groups, 3,000 people, four types, two years. What all of it sums up to is compared with the sum
of the numbers that the history was made of.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import duckdb

from gateway.core.past_runs import COLUMNS
from gateway.core.usage_figures import By
from gateway.core.wait_figures import Question
from gateway.history import blocks
from gateway.services.usage_history import PastUse, past_use
from gateway.services.waits import prepare
from gateway.testing.builders import NOW

GOAL_SECONDS = 0.3
REPEAT = 10
_DAYS = 730
_MADE = {
    "run_id": "n", "job_id": "n", "cluster": "'dev'", "slurm_id": "n",
    "user": "'user' || (n * 7 % 3000)", "group": "'g' || (n * 7 % 200)",
    "partition": "'p' || (n % 6)", "qos": "'q' || (n % 4)",
    "state": "['COMPLETED', 'COMPLETED', 'COMPLETED', 'FAILED', 'TIMEOUT'][n % 5 + 1]",
    "gpu_type": "['a100', 'h100', 'v100', NULL][n % 4 + 1]",
    "submit_time": "make_timestamp(moment * 1000000)",
    "eligible_time": "make_timestamp(moment * 1000000)",
    "start_time": "make_timestamp((moment + n % 7000) * 1000000)",
    "end_time": "make_timestamp((moment + n % 7000 + took) * 1000000)", "elapsed_seconds": "took",
    "limit_minutes": "60 * (1 + n % 72)", "nodes": "1", "cpus": "n % 64", "gpus": "n % 9",
    "restarts": "0", "charge": "n % 1000000", "cause_group_limit": "n % 3 * 600",
}  # fmt: skip


def usage(folder: Path, *, runs: int = 10_000_000) -> Iterator[dict[str, object]]:
    home = folder / "history"
    expected = _fill(home, runs)
    prepare(home)
    month = Question(NOW, NOW - timedelta(days=60), NOW - timedelta(days=30), zone="Europe/Berlin")
    for period, question in (("month", month), ("all", Question(NOW, zone="Europe/Berlin"))):
        for name, ask in _pages(question).items():
            took = sorted(_times(home, ask))
            p95 = took[int(len(took) * 0.95)]
            yield {
                "bench": "usage",
                "page": name,
                "period": period,
                "runs": runs,
                "median_s": round(statistics.median(took), 3),
                "p95_s": round(p95, 3),
                "goal_s": GOAL_SECONDS,
                "met": p95 <= GOAL_SECONDS,
            }
    with past_use(home) as past:
        total = past.total(Question(NOW))
    assert total is not None
    assert total.gpu_seconds == expected


def _pages(question: Question) -> dict[str, Callable[[PastUse], object]]:
    return {
        "by group": lambda past: past.use_and_total(question, (By.GROUP,)),
        "by person": lambda past: past.use_and_total(question, (By.USER,)),
        "by group and month": lambda past: past.use(question, (By.GROUP, By.MONTH)),
        "failures": lambda past: past.use(question, (By.GROUP, By.STATE)),
        "limits": lambda past: (past.limits(question), past.limit_bins(question)),
        "larger": lambda past: past.limit_waits(question),
    }


def _times(home: Path, ask: Callable[[PastUse], object]) -> Iterator[float]:
    """Opened anew for each question, as a page does it; the first one is not counted."""
    for turn in range(REPEAT + 1):
        started = time.perf_counter()
        with past_use(home) as past:
            ask(past)
        if turn:
            yield time.perf_counter() - started


def _fill(folder: Path, runs: int) -> int:
    """Card-seconds of all runs."""
    folder.mkdir()
    begin = int(NOW.timestamp()) - _DAYS * 86_400
    step = max((_DAYS - 3) * 86_400 / runs, 0)
    chosen = ", ".join(
        f'CAST({_MADE.get(name, "NULL")} AS {kind.value}) AS "{name}"'
        for name, kind in COLUMNS.items()
    )
    rows = (
        f"SELECT {chosen} FROM (SELECT n, {begin} + (n * {step})::BIGINT AS moment,"
        f" n * 31 % 100000 AS took FROM range({runs}) AS made(n))"
    )
    with duckdb.connect(config=blocks.OWN | {"threads": 2}) as connection:
        connection.execute(f"COPY ({rows}) TO '{folder}/runs-all.parquet' (FORMAT parquet)")
        found = connection.execute(
            f"SELECT sum((n % 9) * (n * 31 % 100000)) FROM range({runs}) AS made(n)"
        ).fetchone()
    blocks.save(folder, blocks.Manifest({0: "runs-all.parquet"}, runs, NOW))
    return int(found[0]) if found else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10_000_000)
    with tempfile.TemporaryDirectory(prefix="sluice-") as place:
        for line in usage(Path(place), runs=parser.parse_args().runs):
            print(json.dumps(line), flush=True)
