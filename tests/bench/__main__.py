"""`make bench`: each figure of docs/benchmarks.md, a JSON line each. `--only` BEGINNING chooses."""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

import bench_apps  # noqa: E402
import bench_contribution  # noqa: E402
import bench_forecast  # noqa: E402
import bench_import  # noqa: E402
import bench_ingest  # noqa: E402
import bench_live  # noqa: E402
import bench_pages  # noqa: E402
import bench_plan  # noqa: E402
import bench_policy  # noqa: E402
import bench_recipes  # noqa: E402
import bench_settle  # noqa: E402
import bench_snapshots  # noqa: E402
import bench_start_form  # noqa: E402
import bench_training  # noqa: E402
import bench_usage  # noqa: E402
import bench_waits  # noqa: E402
import bench_watch  # noqa: E402
import bench_what_if  # noqa: E402

from contrib.demo.portal import Portal  # noqa: E402

LIVE = {
    "submit": bench_live.submit_latency,
    "sustained": bench_live.sustained,
    "first_line": bench_live.first_line,
    "open_pages": bench_live.open_pages,
    "memory": bench_live.memory,
}

# Each in a folder of its own.
MEASURES = (
    ("apps", bench_apps.apps),
    ("pages", bench_pages.pages),
    ("planner", bench_plan.plans),
    ("planner", bench_plan.scripts),
    ("policy", bench_policy.policy_pages),
    ("settle", bench_settle.settlement),
    ("ingest", bench_ingest.ingest),
    ("import", bench_import.imports),
    ("watch", bench_watch.telemetry),
    ("what_if", bench_what_if.what_if),
    ("usage", bench_usage.usage),
    ("forecast", bench_forecast.forecast),
    ("forecast", bench_start_form.start_form),
    ("waits", bench_waits.waits),
    ("snapshots", bench_snapshots.snapshots),
    ("recipes", bench_recipes.search),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    known = [*(f"live/{name}" for name in LIVE), "pages", "planner", "settle", "ingest"]
    known += ["watch", "training", "contribution", "what_if", "policy", "usage", "forecast"]
    known += ["import", "waits", "apps", "recipes"]
    if not any(name.startswith(only) for name in known):
        parser.error(f"no figure is named {only}; there are: {', '.join(known)}")
    on_cluster = ("live", "training", "contribution", "apps")
    rooted = [name for name in known if name.startswith(on_cluster)]
    if os.geteuid() != 0 and any(name.startswith(only) for name in rooted):
        parser.error(
            "live, training, contribution and apps start the development cluster:"
            " run as root, or --only pages"
        )
    for line in _lines(only):
        print(json.dumps(line), flush=True)
    return 0


def _lines(only: str) -> Iterator[dict[str, object]]:
    live = {name: measure for name, measure in LIVE.items() if f"live/{name}".startswith(only)}
    if live:
        yield from _on_a_portal(live)
    for name, measure in MEASURES:
        if name.startswith(only):
            with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
                yield from measure(Path(folder))
    if "training".startswith(only):
        yield from bench_training.training()
    if "contribution".startswith(only):
        yield from bench_contribution.contribution_run()


def _on_a_portal(live: dict) -> Iterator[dict[str, object]]:
    home = Path(tempfile.mkdtemp(prefix="sluice-"))
    portal = Portal(home, say=lambda text: print(text, file=sys.stderr))
    try:
        portal.start(with_torch=False, port=0)
        portal.give("nlp", 10**8)  # thousands of submissions are held at once
        for measure in live.values():
            yield measure(portal)
    finally:
        portal.stop()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
