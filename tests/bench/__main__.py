"""`make bench`: every figure of docs/benchmarks.md, one JSON line each. `--only WORD` chooses."""

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

import bench_live  # noqa: E402
import bench_pages  # noqa: E402

from contrib.demo.portal import Portal  # noqa: E402

LIVE = {
    "submit": bench_live.submit_latency,
    "sustained": bench_live.sustained,
    "first_line": bench_live.first_line,
    "open_pages": bench_live.open_pages,
    "memory": bench_live.memory,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    for line in _lines(only):
        print(json.dumps(line), flush=True)
    return 0


def _lines(only: str) -> Iterator[dict[str, object]]:
    live = {name: measure for name, measure in LIVE.items() if only in f"live/{name}"}
    if live and os.geteuid() == 0:
        yield from _on_a_portal(live)
    elif live:
        print("The live figures need root: they start the development cluster.", file=sys.stderr)
    if not only or only in "pages":
        with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
            yield from bench_pages.pages(Path(folder))


def _on_a_portal(live: dict) -> Iterator[dict[str, object]]:
    home = Path(tempfile.mkdtemp(prefix="sluice-"))
    portal = Portal(home, say=lambda text: print(text, file=sys.stderr))
    try:
        portal.start(with_torch=False, port=0)
        for measure in live.values():
            yield measure(portal)
    finally:
        portal.stop()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
