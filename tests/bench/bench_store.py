"""How long the pages' reads take in a store of a large site: one JSON line a read.

    python tests/bench/bench_store.py [--file FILE] [--repeat 30]

Without a file one is made (1,000,000 ended and 100,000 active jobs) and thrown away.
"""

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from make_store import GROUPS, NOW, make_store
from sqlalchemy.orm import Session

from gateway.store.queries.cluster import cluster
from gateway.store.queries.filters import JobFilters, Scope, Sort
from gateway.store.queries.health import health
from gateway.store.queries.job import events, job, job_by_slurm_id, open_submissions, runs
from gateway.store.queries.jobs import class_counts, job_page
from gateway.store.queries.people import choices, people
from gateway.store.uow import make_begin, make_engine

Read = Callable[[Session], object]

SCOPES = {
    "researcher": Scope.mine("user000"),
    "small_researcher": Scope.mine("user250"),
    "member": Scope.of_groups(("g00", "g01"), "user000"),
    "leader": Scope.of_groups(tuple(GROUPS[:6]), "user003"),
    "operator": Scope.all(),
}
FILTERS = {
    "none": JobFilters(),
    "active": JobFilters(states=("active",)),
    "pending": JobFilters(states=("pending",)),
    "running": JobFilters(states=("running",)),
    "ended": JobFilters(states=("ended",)),
    "failed": JobFilters(states=("failed",)),
    "rare_state": JobFilters(states=("NODE_FAIL",)),
    "absent_state": JobFilters(states=("DEADLINE",)),
    "common_group": JobFilters(group="g00"),
    "rare_group": JobFilters(group="g24"),
    "common_partition": JobFilters(partition="a100"),
    "rare_partition": JobFilters(partition="old"),
    "common_user": JobFilters(user="user000"),
    "rare_user": JobFilters(user="user290"),
    "common_qos": JobFilters(qos="normal"),
    "medium_qos": JobFilters(qos="urgent"),
    "rare_qos": JobFilters(qos="reservation"),
    "common_template": JobFilters(template="ddp"),
    "rare_template": JobFilters(template="rare"),
    "common_name": JobFilters(name="train"),
    "medium_name": JobFilters(name="train-17"),
    "rare_name": JobFilters(name="absent"),
    "contained_name": JobFilters(name="*in-17"),
    "absent_contained_name": JobFilters(name="*absent"),
    "slurm_id": JobFilters(slurm_id=500_000),
    "week": JobFilters(since=NOW - timedelta(days=407), until=NOW - timedelta(days=400)),
    "empty_time": JobFilters(since=NOW + timedelta(days=1)),
    "never_meet": JobFilters(group="g01", partition="rtx4090"),
    "failed_in_partition": JobFilters(states=("failed",), partition="rtx4090"),
    "oom_urgent": JobFilters(states=("OUT_OF_MEMORY",), qos="urgent"),
    "running_template_qos": JobFilters(states=("running",), template="ddp", qos="spot"),
    "user_partition_ended": JobFilters(user="user000", partition="debug", states=("ended",)),
    "all_at_once": JobFilters(
        states=("failed",), group="g00", partition="a100", qos="spot", template="command",
        name="sweep", since=NOW - timedelta(days=300),
    ),
}  # fmt: skip


def reads() -> dict[str, Read]:
    found: dict[str, Read] = {}
    for who, scope in SCOPES.items():
        for what, filters in FILTERS.items():
            found[f"jobs/{who}/{what}"] = _list(scope, filters)
        for sort in Sort:
            found[f"jobs/{who}/sort_{sort}"] = _list(scope, JobFilters(), sort=sort)
        found[f"jobs/{who}/deep"] = _list(scope, JobFilters(), cursor="a1735689600000000.1")
        found[f"jobs/{who}/deep_filtered"] = _list(
            scope, JobFilters(partition="debug", qos="urgent"), cursor="a1735689600000000.1"
        )
        found[f"counts/{who}"] = lambda s, scope=scope: class_counts(s, scope, now=NOW)
    found["job/page"] = lambda s: (job(s, 777_777), runs(s, 777_777), events(s, job_id=777_777))
    found["job/by_slurm_id"] = lambda s: job_by_slurm_id(s, 500_000)
    found["submissions"] = lambda s: open_submissions(s, 1, now=NOW)
    found["cluster"] = cluster
    found["choices"] = choices
    found["people"] = people
    found["health"] = health
    return found


def _list(
    scope: Scope, filters: JobFilters, *, sort: Sort = Sort.SUBMIT, cursor: str | None = None
) -> Read:
    return lambda session: job_page(session, scope, filters, now=NOW, sort=sort, cursor=cursor)


def measure(file: Path, *, repeat: int, only: str = "") -> list[dict[str, object]]:
    begin = make_begin(make_engine(f"sqlite:///{file}"), read_only=True)
    lines = []
    found = reads()
    for read in found.values():
        with begin() as session:
            read(session)
    # As the web process does before it serves (gateway/cli/serving.py).
    gc.collect()
    gc.freeze()
    for name, read in found.items():
        if only not in name:
            continue
        times, processor = [], []
        for _ in range(repeat):
            start, used = time.perf_counter(), time.process_time()
            with begin() as session:
                read(session)
            times.append((time.perf_counter() - start) * 1000)
            processor.append((time.process_time() - used) * 1000)
        lines.append(
            {
                "bench": f"store/{name}",
                "median_ms": round(statistics.median(times), 2),
                "p95_ms": round(statistics.quantiles(times, n=20)[-1], 2),
                # On a machine that does other things too, this is the fairer one.
                "cpu_p95_ms": round(statistics.quantiles(processor, n=20)[-1], 2),
            }
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = given.file or Path(folder) / "store.db"
        if not file.exists():
            make_store(file, active=100_000, ended=1_000_000)
        lines = measure(file, repeat=given.repeat, only=given.only)
    for line in lines:
        sys.stdout.write(json.dumps(line) + "\n")
    for key in ("p95_ms", "cpu_p95_ms"):
        worst = max(lines, key=lambda line: float(str(line[key])))
        found = {"bench": "store/worst", "of": worst["bench"], key: worst[key]}
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
