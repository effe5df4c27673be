"""What the telemetry of a node costs: processor share and memory over a minute, eight cards.

The real pynvml over the tests' double of NVIDIA's library: a real driver's own time is not in it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "train"))

from nvml_machine import NVSWITCH, Node

RANKS = 8
GOAL_SHARE, GOAL_BYTES = 0.01, 40_000_000


def telemetry(folder: Path, *, seconds: int = 60) -> Iterator[dict[str, object]]:
    (folder / "nvml").mkdir()
    node = Node(folder / "nvml", folder)
    node.has(NVSWITCH)
    environment = {"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": node.job}
    ranks = [
        subprocess.Popen(["sleep", "3600"], env={**environment, "LOCAL_RANK": str(rank)})
        for rank in range(RANKS)
    ]
    watch = node.start("watch", CUDA_VISIBLE_DEVICES="0,1,2,3,4,5,6,7", NPROC_PER_NODE=str(RANKS))
    try:
        time.sleep(seconds)
        used, peak = _cost(watch.pid)
    finally:
        for process in (*ranks, watch):
            process.kill()
            process.communicate()
    path = folder / "run" / "telemetry" / "a100-1.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    yield {
        "bench": "watch",
        "seconds": seconds,
        "lines": len(lines),
        "cards": len(lines[-1]["cards"]),
        "ranks": lines[-1]["procs"],
        "processes_on_the_machine": sum(name.isdigit() for name in os.listdir("/proc")),
        "cpu_share": round(used / seconds, 5),
        "cpu_share_goal": GOAL_SHARE,
        "rss_peak_mb": round(peak / 1e6, 1),
        "rss_goal_mb": GOAL_BYTES / 1e6,
        "met": used / seconds <= GOAL_SHARE and peak <= GOAL_BYTES,
    }


def _cost(pid: int) -> tuple[float, int]:
    """Processor seconds since its start, that included, and the peak of resident bytes."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    used = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    status = Path(f"/proc/{pid}/status").read_text()
    return used, int(status.partition("VmHWM:")[2].split()[0]) * 1024


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="sluice-") as place:
        for line in telemetry(Path(place)):
            print(json.dumps(line))
