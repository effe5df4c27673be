"""What snapshots cost: 1 GB of added packages saved, changed by 1 %, restored; 200,000 small files.

The packages are NumPy's files, copied until they are 1 GB, a byte in each 4 kB changed in every
copy, so that no two blocks are alike. pip installs NumPy; it needs the package index.
"""

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.train.env_places import Place, make_base, run

WANTED = 1_000_000_000
CHANGED = 0.01
RESTORE_GOAL, SAVE_GOAL, MORE_GOAL = 10.0, 5.0, 0.05
FILES = 200_000
TICK = """
import sys, time
worst, ticks, end = 0.0, 0, time.monotonic() + float(sys.argv[1])
last = time.monotonic()
while (now := time.monotonic()) < end:
    worst, last, ticks = max(worst, now - last), now, ticks + 1
    sum(range(2000)); time.sleep(0.001)
print(ticks, worst)
"""


def snapshots(folder: Path, *, files: int = FILES) -> Iterator[dict[str, object]]:
    (folder / "local").mkdir()
    place = Place(folder, make_base(folder / "base"))
    env = place.enter()
    parts = _packages(env)
    size = sum(path.stat().st_size for path in env.rglob("*") if path.is_file())
    alone = _ticks(env, 5.0)
    program = _ticking(env, 12.0)
    first, wall = _timed(lambda: place.save(env))
    ticks, worst = map(float, program.communicate()[0].split())
    yield {
        "bench": "snapshots/save",
        "content_mb": round(size / 1e6),
        "layer_mb": round(first["bytes"] / 1e6),
        "seconds": round(wall, 2),
        "ticks_a_second_while_saving": round(ticks / 12.0),
        "ticks_a_second_alone": round(alone),
        "longest_pause_ms": round(worst * 1e3),
        "load": os.getloadavg()[0],
    }
    _change(parts[0], random.Random(1), int(size * CHANGED))
    used = _processor_seconds()
    second, wall = _timed(lambda: place.save(env))
    used = _processor_seconds() - used
    more = second["new_bytes"] / first["bytes"]
    yield {
        "bench": "snapshots/save_change",
        "changed": CHANGED,
        "seconds": round(wall, 2),
        "processor_seconds": round(used, 2),
        "seconds_goal": SAVE_GOAL,
        "more_space": round(more, 4),
        "more_space_goal": MORE_GOAL,
        "load": os.getloadavg()[0],
        "met": wall <= SAVE_GOAL and more <= MORE_GOAL,
    }
    yield _restored(place, second["id"], "unpack")
    if os.geteuid() == 0 and shutil.which("squashfuse"):
        yield _restored(place, first["id"], "squashfuse")
    yield _many(place, files)


def _packages(env: Path) -> list[Path]:
    run(env, "env", "-u", "PIP_NO_INDEX", "pip", "install", "-q", "numpy")
    (site,) = env.glob("lib/python*/site-packages")
    made, total, seed = [], 0, random.Random(0)
    while total < WANTED:
        copy = site / f"copy{len(made)}"
        shutil.copytree(site / "numpy", copy)
        for path in copy.rglob("*"):
            total += path.stat().st_size if path.is_file() else 0
            if path.is_file() and "__pycache__" not in path.parts:
                _change(path, seed, path.stat().st_size, binary=path.suffix == ".so")
        made.append(max(copy.rglob("*.so"), key=lambda path: path.stat().st_size))
    return made


def _change(path: Path, seed: random.Random, size: int, *, binary: bool = True) -> None:
    data = bytearray(path.read_bytes())
    for at in range(0, min(size, len(data)), 4096) if binary else ():
        data[at] = seed.randrange(256)
    path.write_bytes(data if binary else bytes(data) + b"\n# %d\n" % seed.randrange(1 << 60))


def _restored(place: Place, snapshot: str, way: str) -> dict[str, object]:
    subprocess.run(["sync"], check=True)
    used = _processor_seconds()
    env, wall = _timed(lambda: place.restored(snapshot, SLUICE_SNAPSHOT_RESTORE=way))
    used = _processor_seconds() - used
    begun = time.monotonic()
    told = run(env, "python", "-c", "import numpy; print(numpy.__version__)")
    loaded = time.monotonic() - begun
    _, again = _timed(lambda: place.restored(snapshot, job="3", SLUICE_SNAPSHOT_RESTORE=way))
    subprocess.run(["umount", "-l", env.parent / "tree"], check=False, capture_output=True)
    shutil.rmtree(place.root / "local" / f"sluice-{os.getuid()}")
    return {
        "bench": f"snapshots/restore_{way}",
        "seconds": round(wall, 2),
        "processor_seconds": round(used, 2),
        "seconds_goal": RESTORE_GOAL,
        "second_job_seconds": round(again, 2),
        "import_numpy_seconds": round(loaded, 2),
        "numpy": told.stdout.strip(),
        "load": os.getloadavg()[0],
        "met": wall <= RESTORE_GOAL,
    }


def _many(place: Place, files: int) -> dict[str, object]:
    env = place.enter("99")
    for number in range(files):
        if number % 1000 == 0:
            here = env / "many" / f"d{number // 1000:03}"
            here.mkdir(parents=True)
        (here / f"f{number}").write_bytes(b"%d\n" % number)
    first, wall = _timed(lambda: place.save(env))
    (env / "many" / "d000" / "f0").write_bytes(b"new\n")
    second, again = _timed(lambda: place.save(env))
    there, restored = _timed(lambda: place.restored(second["id"], job="98"))
    tree = there.parent / "tree" / "many"
    whole = sum(1 for _ in tree.rglob("f*")) == files
    whole = whole and (tree / "d000" / "f0").read_bytes() == b"new\n"
    return {
        "bench": "snapshots/many_files",
        "files": files,
        "save_seconds": round(wall, 1),
        "save_again_seconds": round(again, 1),
        "again_kb": round(second["new_bytes"] / 1e3),
        "restore_seconds": round(restored, 1),
        "layer_mb": round(first["bytes"] / 1e6, 1),
        "load": os.getloadavg()[0],
        "met": whole,
    }


def _ticking(env: Path, seconds: float) -> subprocess.Popen[str]:
    words = [str(env / "bin" / "python"), "-c", TICK, str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def _ticks(env: Path, seconds: float) -> float:
    return float(_ticking(env, seconds).communicate()[0].split()[0]) / seconds


def _timed(act: Any) -> tuple[Any, float]:
    begun = time.monotonic()
    return act(), time.monotonic() - begun


def _processor_seconds() -> float:
    """Of all that was started here and has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="sluice-") as where:
        for line in snapshots(Path(where)):
            print(json.dumps(line), flush=True)
