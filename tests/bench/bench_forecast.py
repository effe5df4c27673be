"""How good forecasts would have been on a real trace, and what the model costs.

    python tests/bench/bench_forecast.py

The trace is read beside the checkout; where it is not, one line says so. For the cost its jobs
are repeated, one copy after the other, to half a million.
"""

import json
import multiprocessing
import resource
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from gateway.core.forecast import Ask, Forecast
from gateway.core.wait_figures import Wait
from gateway.history.forecasting.backtest import backtest
from gateway.history.forecasting.features import Queue
from gateway.history.forecasting.model import Model, train
from gateway.history.forecasting.moment import Moment
from gateway.history.forecasting.rows import Rows, seconds
from gateway.history.forecasting.trace import read_trace
from gateway.history.importing.load import Given

GRAHAM = Path(__file__).resolve().parents[3] / "shared" / "traces" / "drac_graham_2021.csv.gz"
ROWS, DAY, ASKED = 500_000, 86_400, 500
GOAL_FIT_SECONDS, GOAL_MB, GOAL_ASK_MS = 60.0, 1024, 20.0
GOAL_BACKTEST_SECONDS = 600.0


def forecast(folder: Path) -> Iterator[dict[str, object]]:
    if not GRAHAM.is_file():
        yield {"bench": "forecast", "skipped": "the traces beside the checkout are not here"}
        return
    yield _record()
    with multiprocessing.get_context("spawn").Pool(1) as apart:  # a peak of memory of its own
        yield apart.apply(_cost, (folder,))


def _record() -> dict[str, object]:
    """The whole trace: learned from the first 70 %, asked about the rest."""
    report = backtest(_trace())
    (half, most), (less, least) = report.total.coverage, report.total.improvement
    return {
        "bench": "forecast/backtest",
        "jobs": report.total.jobs,
        "p50_coverage": round(half, 4),
        "p90_coverage": round(most, 4),
        "p50_better_percent": round(less, 1),
        "p90_better_percent": round(least, 1),
        "trained": report.trained,
        "seconds": round(report.seconds, 1),
        "goal": "0.45-0.55, 0.85-0.95, 25 %, 10 %",
        "met": 0.45 <= half <= 0.55
        and 0.85 <= most <= 0.95
        and less >= 25
        and least >= 10
        and report.seconds <= GOAL_BACKTEST_SECONDS,
    }


def _cost(folder: Path) -> dict[str, object]:
    rows = _repeated(_trace(), ROWS)
    now = datetime.fromtimestamp(int(rows.asked[-1]), UTC)
    first = _trained(rows, now)
    started, used = time.perf_counter(), time.process_time()
    model = train(rows, now=now, before=first)
    took_s, nightly = time.perf_counter() - started, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    model.save(folder)
    Moment.at(Queue.of(rows), seconds(now)).save(folder / "queue.npz")
    took = _asked(folder, rows, now)
    return {
        "bench": "forecast/cost",
        "rows": len(rows),
        "nightly_fit_s": round(took_s, 1),
        "nightly_fit_processor_s": round(nightly, 1),
        "peak_mb": peak,
        "model_kb": (folder / "model.npz").stat().st_size // 1024,
        "four_shapes_median_ms": round(1000 * statistics.median(took), 2),
        "four_shapes_p95_ms": round(1000 * statistics.quantiles(took, n=20)[-1], 2),
        "goal": f"{GOAL_FIT_SECONDS:.0f} s of one core, {GOAL_MB} MB, {GOAL_ASK_MS:.0f} ms",
        "met": nightly <= GOAL_FIT_SECONDS
        and peak <= GOAL_MB
        and statistics.quantiles(took, n=20)[-1] <= GOAL_ASK_MS / 1000,
    }


def _trained(rows: Rows, now: datetime) -> Model:
    """Last night's model, with the fits of the days before."""
    return train(rows, now=datetime.fromtimestamp(now.timestamp() - DAY, UTC))


def _asked(folder: Path, rows: Rows, now: datetime) -> list[float]:
    """Seconds of questions about four shapes, by what a web process holds."""
    model, queue = Model.load(folder), Moment.load(folder / "queue.npz")
    chance = np.random.default_rng(4)
    took = []
    for place in chance.integers(0, len(rows), ASKED):
        partition = str(rows.partitions[rows.partition[place]])
        group = str(rows.groups[rows.group[place]])
        asks = [
            Ask(now, group, partition, None, gpus, None, 1, 8, minutes)
            for gpus, minutes in ((4, 1440), (2, 1440), (4, 360), (1, 60))
        ]
        started = time.perf_counter()
        answers = model.forecast(asks, queue)
        took.append(time.perf_counter() - started)
        assert len(answers) == len(asks)
    assert isinstance(
        model.forecast([replace(asks[0], partition=_busiest(rows))], queue)[0], Forecast
    )
    return took


def _busiest(rows: Rows) -> str:
    return str(rows.partitions[np.bincount(rows.partition).argmax()])


def _trace() -> Rows:
    given = Given(str(GRAHAM), "csv", "graham", "UTC", datetime.now(UTC))
    return read_trace(given, wait=Wait.SUBMIT).rows


def _repeated(rows: Rows, number: int) -> Rows:
    span = int(rows.asked[-1] - rows.asked[0]) + DAY
    copies = -(-number // len(rows))
    places = np.tile(np.arange(len(rows)), copies)[:number]
    shift = (np.repeat(np.arange(copies), len(rows)) * span)[:number]
    taken = rows.take(places)
    moved = {name: getattr(taken, name) + shift for name in ("asked", "left", "end")}
    return replace(taken, **moved)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory(prefix="sluice-") as here:
        for line in forecast(Path(here)):
            print(json.dumps(line), flush=True)
