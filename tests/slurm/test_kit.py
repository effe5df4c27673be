"""The kit on the cluster's nodes, as a job of a person finds it."""

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from contrib.devcluster.instance import Instance

pytestmark = pytest.mark.slurm

USER = "nlp-1"
HOME = f"/home/{USER}/kit"

# Two nodes with two ranks each, and beside them what every node runs in a training job.
JOB = f"""#!/bin/bash
#SBATCH --partition=a100 --nodes=2 --ntasks-per-node=1 --gpus-per-node=2 --time=5
#SBATCH --output={HOME}/%j.out
export PYTHONPATH=/opt/sluice/kit
export SLUICE_JOB=$SLURM_JOB_ID SLUICE_RUN_DIR={HOME}/run-$SLURM_JOB_ID
export NPROC_PER_NODE=2 SLUICE_WATCH_SECONDS=0.5
python3 -c 'import sluice_train, sys; print("kit", sluice_train.__file__)'
rsync --version | head -n 1
rclone --version | head -n 1
srun --overlap --ntasks-per-node=1 --cpus-per-task=1 python3 -m sluice_train.node watch &
srun bash -c '
  python3 -m sluice_train.node order
  for rank in 0 1; do LOCAL_RANK=$rank sleep 300 & done
  wait' &
wait
"""


def test_a_job_imports_the_kit_and_is_watched_on_each_of_its_nodes(cluster: "Instance") -> None:
    cluster.run(["mkdir", "-p", HOME], user=USER)
    asked = cluster.run(["sbatch", "--parsable", f"--chdir={HOME}"], user=USER, stdin=JOB)
    assert asked.returncode == 0, asked.stderr
    job = asked.stdout.strip()
    try:
        found = _telemetry(cluster, job)
    finally:
        cluster.run(["scancel", job])
    output = cluster.run(["cat", f"{HOME}/{job}.out"]).stdout
    assert "kit /opt/sluice/kit/sluice_train/__init__.py" in output
    assert "rsync " in output
    assert "rclone v" in output
    assert "GPU order: 0,1 kept" in output
    for lines in found.values():
        assert lines[-1]["job"] == job
        assert (lines[-1]["procs"], lines[-1]["expected"], lines[-1]["cards"]) == (2, 2, [])
    _ended(cluster, job)


def _telemetry(cluster: "Instance", job: str) -> dict[str, list[dict[str, Any]]]:
    """The lines of two nodes, once each has two of them with both ranks."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        folder = f"{HOME}/run-{job}/telemetry"
        listed = cluster.run(["sh", "-c", f"cd {folder} && grep . *"]).stdout.splitlines()
        found: dict[str, list[dict[str, Any]]] = {}
        for line in listed:
            name, _, text = line.partition(":")
            found.setdefault(name, []).append(json.loads(text))
        if len(found) == 2 and all(_twice_complete(lines) for lines in found.values()):
            return found
        time.sleep(0.3)
    pytest.fail(f"no telemetry of job {job}: {cluster.run(['cat', f'{HOME}/{job}.out']).stdout}")


def _twice_complete(lines: list[dict[str, Any]]) -> bool:
    return [line["procs"] for line in lines[-2:]] == [2, 2]


def _ended(cluster: "Instance", job: str) -> None:
    """No node is left with a process of the job."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if not cluster.run(["squeue", "-h", "-j", job]).stdout.strip():
            return
        time.sleep(0.3)
    pytest.fail(f"job {job} does not end")


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
