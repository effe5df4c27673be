"""How long a change of limits takes over a million past runs, and a plain loop over the same rows.

    python tests/bench/bench_what_if.py [--runs 1000000]

500 groups and 5,000 people; a GrpTRES of a QoS that binds most of the time. The peer is what one
would write first: rows as objects, the running jobs in a list by their end, no store in columns.
Both must come to the same sums.
"""

import argparse
import bisect
import json
import resource
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np

from gateway.core.policy_change import Item
from gateway.core.qos import Qos, tres
from gateway.core.tres import GPU
from gateway.core.what_if import ProposedPrices
from gateway.history import blocks
from gateway.history.reading import runs as reading
from gateway.services.what_if import replay
from gateway.store.history import BLOCK
from gateway.store.schema import upgrade
from gateway.store.uow import make_begin, make_engine
from gateway.testing.builders import NOW
from gateway.testing.money import one_credit_an_hour

GOAL_SECONDS = 2.0
GROUPS, PEOPLE, DAYS, REPEAT = 500, 5000, 90, 5
NORMAL = Qos(name="normal")


def what_if(folder: Path, *, runs: int = 1_000_000) -> Iterator[dict[str, object]]:
    engine = make_engine(f"sqlite:///{folder / 'empty.db'}")
    upgrade(engine)
    begin = make_begin(engine)
    one_credit_an_hour(begin, "a100")
    mean_gpus = _fill(folder / "history", runs)
    limit = round(mean_gpus * 1.03)
    items = [Item(NORMAL, replace(NORMAL, grp_tres=tres({GPU: limit})))]
    prices = ProposedPrices({"a100": 1_200_000})
    took, processor, found = [], [], None
    for _ in range(REPEAT):
        started, used = time.perf_counter(), time.process_time()
        found = replay(
            items, days=DAYS, prices=prices, history=folder / "history", read=begin, now=NOW
        )
        took.append(time.perf_counter() - started)
        processor.append(time.process_time() - used)
    assert found is not None
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    started = time.perf_counter()
    peer = _plain(folder / "history", limit)
    peer_took = time.perf_counter() - started
    engine.dispose()
    effects = found.limits[0].effects
    assert peer == (effects.refused, effects.later, effects.later_seconds)
    yield {
        "bench": "what_if",
        "runs": found.runs,
        "would_wait": effects.later,
        "groups": len(found.groups),
        "median_s": round(statistics.median(took), 2),
        "worst_s": round(max(took), 2),
        "processor_s": round(statistics.median(processor), 2),
        "peak_mb": memory,
        "peer_s": round(peer_took, 2),
        "goal_s": GOAL_SECONDS,
        "met": statistics.median(took) <= GOAL_SECONDS,
    }


def _fill(folder: Path, runs: int) -> float:
    """A history of DAYS days; GPUs in use on average."""
    chance = np.random.default_rng(7)  # the same runs each time
    span = DAYS * 86_400
    start = np.sort(chance.integers(0, span, runs)) + int(NOW.timestamp()) - span
    seconds = np.minimum(chance.exponential(3 * 3600, runs).astype(int) + 30, 2 * 86_400)
    gpus = chance.choice([1, 1, 1, 2, 4, 8], runs)
    wait = chance.exponential(1800, runs).astype(int)
    people = np.minimum(chance.zipf(1.3, runs), PEOPLE) - 1
    folder.mkdir()
    files = {}
    for block in range(runs // BLOCK + 1):
        rows = [
            (
                n, n, "dev", n, f"user{people[n]:04}", f"g{people[n] % GROUPS:03}", "a100",
                "normal" if n % 20 else "spot", "ddp", "COMPLETED",
                int(start[n] - wait[n]), int(start[n] - wait[n]), int(start[n]),
                int(start[n] + seconds[n]), int(seconds[n]), 0, int(seconds[n] // 30 + 10),
                1, int(gpus[n]) * 8, int(gpus[n]), "a100", 0, None, "",
            )
            for n in range(block * BLOCK, min((block + 1) * BLOCK, runs))
        ]  # fmt: skip
        if rows:
            files[block] = blocks.write(folder, block, rows)
    blocks.save(folder, blocks.Manifest(files, runs, NOW))
    return float((seconds * gpus * (np.arange(runs) % 20 > 0)).sum() / span)


def _plain(folder: Path, limit: int) -> tuple[int, int, int]:
    """Refused, waited, seconds."""
    since = (NOW - timedelta(days=DAYS)).replace(tzinfo=None)
    until = NOW.replace(tzinfo=None)
    with reading(folder) as connection:
        found = connection.execute("SELECT * FROM runs")
        names = [column[0] for column in found.description]
        rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    mine = [
        row for row in rows
        if row["qos"] == "normal" and row["start_time"] < until
        and (row["end_time"] or until) > since
    ]  # fmt: skip
    mine.sort(key=lambda row: row["start_time"])
    refused = waited = seconds = held = 0
    running: list = []
    by_group: dict = defaultdict(int)
    earliest = mine[0]["start_time"]
    for row in mine:
        if row["gpus"] > limit:
            refused += 1
            continue
        at = max(row["start_time"], earliest)
        while held + row["gpus"] > limit:
            ended, gpus = running.pop(0)
            at, held = max(at, ended), held - gpus
        ends = at + ((row["end_time"] or until) - row["start_time"])
        bisect.insort(running, (ends, row["gpus"]))
        held += row["gpus"]
        earliest = at
        if at > row["start_time"] and row["start_time"] >= since:
            waited += 1
            seconds += int((min(at, until) - row["start_time"]).total_seconds())
            by_group[row["group"]] += 1
    return refused, waited, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000_000)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        for line in what_if(Path(folder), runs=runs):
            print(json.dumps(line))


if __name__ == "__main__":
    main()
