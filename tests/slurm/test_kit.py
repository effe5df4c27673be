"""The kit on the cluster's nodes, as a job of a person finds it."""

import base64
import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from contrib.devcluster.instance import Instance

pytestmark = pytest.mark.slurm

USER = "nlp-1"
HOME = f"/home/{USER}/kit"
DOUBLE = Path(__file__).resolve().parents[1] / "train" / "nvml_double" / "nvml.c"
LIBRARY = "libnvidia-ml.so.1"

# Eight cards a node; NVLink joins each with the next but one.
CARDS = "".join(f"card uuid=GPU-{at} bus=0:{at + 1:02x}:0 numa=0 util={at}\n" for at in range(8))
MACHINE = CARDS + "".join(f"nvlink {a} {a + 2} 4\n" for a in (0, 1, 4, 5))

# It lets whoever is the same person look, which some machines forbid otherwise.
RANK = """
import ctypes, time
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)
def waits_for_the_others(): time.sleep(300)
waits_for_the_others()
"""

# Beside the step what the prologue of a training job starts on every node.
JOB = f"""#!/bin/bash
#SBATCH --partition=a100 --nodelist=a100-1,a100-2 --nodes=2 --ntasks-per-node=1
#SBATCH --gpus-per-node=4 --time=5 --output={HOME}/%j.out
export PYTHONPATH=/opt/sluice/kit CUDA_DEVICE_ORDER=PCI_BUS_ID
export LD_LIBRARY_PATH={HOME} NVML_DOUBLE={HOME}/machine.txt
export SLUICE_JOB=$SLURM_JOB_ID SLUICE_RUN_DIR={HOME}/run-$SLURM_JOB_ID
export NPROC_PER_NODE=2 SLUICE_WATCH_SECONDS=0.5
python3 -c 'import sluice_train, sys; print("kit", sluice_train.__file__)'
rsync --version | head -n 1
rclone --version | head -n 1
srun --overlap --ntasks-per-node=1 --cpus-per-task=1 python3 -m sluice_train.node watch &
srun bash -c '
  python3 -m sluice_train.node order
  for rank in 0 1; do LOCAL_RANK=$rank python3 {HOME}/rank.py & done
  wait' &
wait
"""


def test_each_node_of_a_job_orders_and_watches_its_own_cards(
    cluster: "Instance", tmp_path: Path
) -> None:
    """NVIDIA's library is the tests' double; pynvml, py-spy, Slurm and the person are real."""
    words = ["gcc", "-shared", "-fPIC", "-o", str(tmp_path / LIBRARY), str(DOUBLE)]
    subprocess.run(words, check=True)
    _put(cluster, LIBRARY, (tmp_path / LIBRARY).read_bytes())
    _put(cluster, "machine.txt", MACHINE.encode())
    _put(cluster, "rank.py", RANK.encode())
    taken = _submit(cluster, TAKES_TWO)
    _until(lambda: _state(cluster, taken) == "RUNNING", "the first job does not start")
    job = _submit(cluster, JOB)
    try:
        found = _telemetry(cluster, job)
        stacks = _stacks(cluster, job)
    finally:
        cluster.run(["scancel", job, taken])
    output = cluster.run(["cat", f"{HOME}/{job}.out"]).stdout
    assert "kit /opt/sluice/kit/sluice_train/__init__.py" in output
    assert "rsync " in output
    assert "rclone v" in output
    assert "GPU order: 2,3,4,5 kept (node a100-1:" in output
    assert "GPU order: 0,1,2,3 -> 0,2,1,3 (node a100-2: neighbours NV4 SYS NV4" in output
    assert {name: [card["i"] for card in line["cards"]] for name, line in found.items()} == {
        "a100-1.jsonl": [2, 3, 4, 5],
        "a100-2.jsonl": [0, 1, 2, 3],
    }
    assert [card["util"] for card in found["a100-1.jsonl"]["cards"]] == [2, 3, 4, 5]
    for text in stacks:
        assert text.count("== rank") == 2, text
        assert text.count("waits_for_the_others") >= 2, text
    _until(lambda: _state(cluster, job) == "", f"job {job} does not end")


TAKES_TWO = """#!/bin/bash
#SBATCH --partition=a100 --nodelist=a100-1 --gpus-per-node=2 --time=5 --output=/dev/null
sleep 300
"""


def _put(cluster: "Instance", name: str, content: bytes) -> None:
    write = f"mkdir -p {HOME} && base64 -d > {HOME}/{name}"
    text = base64.b64encode(content).decode()
    done = cluster.run(["sh", "-c", write], user=USER, stdin=text)
    assert done.returncode == 0, done.stderr


def _submit(cluster: "Instance", script: str) -> str:
    asked = cluster.run(["sbatch", "--parsable", f"--chdir={HOME}"], user=USER, stdin=script)
    assert asked.returncode == 0, asked.stderr
    return asked.stdout.strip()


def _state(cluster: "Instance", job: str) -> str:
    return cluster.run(["squeue", "-h", "-o", "%T", "-j", job]).stdout.strip()


def _telemetry(cluster: "Instance", job: str) -> dict[str, dict[str, Any]]:
    """The second complete line of each of two nodes."""
    found: dict[str, dict[str, Any]] = {}

    def both() -> bool:
        folder = f"{HOME}/run-{job}/telemetry"
        listed = cluster.run(["sh", "-c", f"cd {folder} && grep . *"]).stdout.splitlines()
        complete: dict[str, list[dict[str, Any]]] = {}
        for line in listed:
            name, _, text = line.partition(":")
            if not text.endswith("}"):
                continue  # seen while it is written
            told = json.loads(text)
            if (told["job"], told["procs"], told["expected"]) == (job, 2, 2):
                complete.setdefault(name, []).append(told)
        found.update({name: lines[1] for name, lines in complete.items() if len(lines) > 1})
        return len(found) == 2

    _until(both, "no telemetry")
    return found


def _stacks(cluster: "Instance", job: str) -> list[str]:
    """What each of the two nodes answers to a wish."""
    folder = f"{HOME}/run-{job}/stacks"
    wish = cluster.run(["sh", "-c", f"mkdir -p {folder} && touch {folder}/wanted"], user=USER)
    assert wish.returncode == 0, wish.stderr
    answers = [f"{folder}/a100-1-1.txt", f"{folder}/a100-2-1.txt"]
    _until(lambda: cluster.run(["ls", *answers]).returncode == 0, "no stacks")
    return [cluster.run(["cat", answer]).stdout for answer in answers]


def _until(happens: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < end, otherwise
        time.sleep(0.3)


def test_people_cannot_change_the_kit(cluster: "Instance") -> None:
    for place in ("/opt/sluice/kit", "/opt/sluice/kit/sluice_train", "/opt/sluice/kit/lib"):
        done = cluster.run(["touch", f"{place}/planted"], user=USER)
        assert done.returncode != 0


def test_pynvml_and_py_spy_are_in_the_kit(cluster: "Instance") -> None:
    code = "import sys; sys.path.insert(0, '/opt/sluice/kit/lib'); import pynvml"
    done = cluster.run(["python3", "-c", code], user=USER)
    assert done.returncode == 0, done.stderr
    spy = cluster.run(["/opt/sluice/kit/lib/bin/py-spy", "--version"], user=USER)
    assert spy.stdout.startswith("py-spy"), spy.stderr
