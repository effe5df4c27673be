"""The development cluster: it comes up, allocates, preempts, and leaves nothing behind."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contrib.devcluster.errors import DevclusterError
from contrib.devcluster.instance import Instance
from contrib.devcluster.network import names
from contrib.devcluster.paths import SITE_FILE

pytestmark = pytest.mark.slurm
NODES = 7


@pytest.fixture
def home(able: None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sluice-"))
    yield folder
    Instance(folder).down()
    shutil.rmtree(folder, ignore_errors=True)


def test_all_nodes_are_idle_and_the_daemons_answer(cluster: Instance) -> None:
    found = cluster.status()
    assert found.up
    assert len(found.nodes) == NODES
    assert found.versions is not None
    assert found.versions["slurm"].startswith("26.05")
    assert cluster.run(["scontrol", "ping"]).stdout.count("UP") == 1


def test_a_job_gets_gpus_its_groups_gid_and_its_nodes_name(cluster: Instance) -> None:
    ask = ["srun", "--partition=rtx4090", "--gpus-per-node=2", "--nodes=1", "bash", "-c"]
    done = cluster.run([*ask, "echo $CUDA_VISIBLE_DEVICES $(id -gn) $(hostname)"], user="nlp-1")
    assert done.stdout.split() == ["0,1", "nlp", "rtx4090-1"], done.stderr
    job = submit(cluster, "vision-1", "--gpus=a100:4", "--nodes=1", "-o", "out", script="sleep 0.1")
    wait(lambda: fact(cluster, job, "state") == "COMPLETED")
    assert "gres/gpu:a100=4" in fact(cluster, job, "alloctres")


def test_an_idle_cluster_starts_a_job_at_once(cluster: Instance) -> None:
    begin = time.monotonic()
    cluster.run(["srun", "--gpus=1", "true"], user="nlp-1")
    assert time.monotonic() - begin < 2


def test_jobs_do_not_inherit_ignored_signals(cluster: Instance) -> None:
    done = cluster.run(["srun", "--gpus=1", "grep", "SigIgn", "/proc/self/status"], user="nlp-1")
    ignored = int(done.stdout.split()[1], 16)
    # 32 and 33 are the C library's own: no program may use them, nor set them back.
    assert [number for number in range(1, 32) if ignored >> (number - 1) & 1] == []


def test_pyslurm_unchanged_speaks_to_this_slurm(cluster: Instance) -> None:
    code = "import pyslurm, json; print(json.dumps(sorted(pyslurm.Nodes.load())))"
    done = cluster.run(["/opt/sluice-broker/bin/python", "-c", code])
    assert len(json.loads(done.stdout)) == NODES, done.stderr


def test_a_spot_job_makes_room_and_is_requeued(cluster: Instance) -> None:
    """Slow on purpose: the QoS grants ten seconds of grace."""
    shape = ("--partition=debug", "--gpus=2", "--time=5", "-o", "/dev/null")
    spot = submit(cluster, "nlp-1", "--qos=spot", *shape, script="exec sleep 300")
    wait(lambda: queued(cluster, spot, "%T") == "RUNNING")
    normal = submit(cluster, "vision-1", *shape, script="sleep 1")
    wait(lambda: fact(cluster, normal, "state") == "COMPLETED", seconds=60)
    ended = cluster.run(["sacct", "-nXP", "--duplicates", "-j", spot, "-o", "state"]).stdout
    cluster.run(["scancel", spot])
    assert "PREEMPTED" in ended.split()
    assert len(ended.split()) >= 2


def test_limits_of_groups_hold(cluster: Instance) -> None:
    refused = cluster.run(["sbatch", "--qos=urgent", "--wrap=true"], user="biolab-1")
    assert "Invalid qos" in refused.stderr
    shape = ("--nodes=3", "--gpus-per-node=8", "-o", "/dev/null")
    job = submit(cluster, "biolab-1", *shape, script="true")
    wait(lambda: queued(cluster, job, "%r") == "AssocGrpGRES")
    cluster.run(["scancel", job])


def test_two_groups_of_one_person(cluster: Instance) -> None:
    ask = ["srun", "--account=vision", "--gpus=1", "sh", "-c", "id -Gn; echo $SLURM_JOB_ACCOUNT"]
    done = cluster.run(ask, user="nlp-2")
    assert done.stdout.split() == ["nlp", "vision", "vision"], done.stderr


def test_slurmctld_can_be_stopped_killed_and_frozen(cluster: Instance) -> None:
    for action in ("stop", "kill"):
        cluster.daemon("slurmctld", action)
        assert "DOWN" in cluster.run(["scontrol", "ping"]).stdout
        cluster.daemon("slurmctld", "start")
        wait(lambda: "UP" in cluster.run(["scontrol", "ping"]).stdout)
    cluster.daemon("slurmctld", "freeze")
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(cluster.enter_argv(["squeue"]), timeout=1, capture_output=True, check=False)
    cluster.daemon("slurmctld", "thaw")
    wait(lambda: [state for *_, state in cluster.status().nodes] == ["idle"] * NODES, seconds=60)
    assert "Z" not in cluster.run(["ps", "-eo", "stat="]).stdout


def test_the_command_inside_ends_with_the_one_outside(cluster: Instance) -> None:
    outside = subprocess.Popen(cluster.enter_argv(["sleep", "4321"], user="nlp-1"))
    wait(lambda: "4321" in cluster.run(["ps", "-eo", "args"]).stdout)
    outside.kill()
    outside.wait()
    wait(lambda: "4321" not in cluster.run(["ps", "-eo", "args"]).stdout)


def test_the_command_inside_gets_no_variable_of_the_machine(cluster: Instance) -> None:
    done = subprocess.run(
        cluster.enter_argv(["env"], user="nlp-1", env={"SAID": "yes"}),
        env={**os.environ, "SECRET": "no"},
        capture_output=True,
        text=True,
        check=True,
    )
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert names == {"PATH", "HOME", "USER", "LOGNAME", "LC_ALL", "SAID"}


def test_two_side_by_side_and_nothing_left_after_down(cluster: Instance, home: Path) -> None:
    second = Instance(home)
    second.up()
    assert second.status().address != cluster.status().address
    assert submit(second, "nlp-1", "-o", "/dev/null", script="true") == "1"
    assert len(traces(home)) > NODES
    assert second.down()
    assert traces(home) == []
    assert not home.exists()
    assert cluster.status().up
    assert not second.down()


def test_a_killed_cluster_is_cleaned_up_by_the_next_up(home: Path, able: None) -> None:
    instance = Instance(home)
    instance.up()
    record = instance.running()
    assert record is not None
    record.init.kill(wait_seconds=10)
    assert not instance.status().up
    instance.up()
    assert instance.status().up


@pytest.mark.parametrize(
    ("line", "explained"),
    [("NoSuchKey=1", "NoSuchKey"), ("SelectType=select/none-such", "none-such")],
)
def test_a_broken_configuration_is_explained(home: Path, line: str, explained: str) -> None:
    site = home / "site.toml"
    site.write_text(SITE_FILE.read_text().replace('slurm_conf = ""', f'slurm_conf = "{line}"'))
    with pytest.raises(DevclusterError) as failed:
        Instance(home).up(site_file=site)
    assert explained in str(failed.value)
    site.unlink()
    assert [trace for trace in traces(home) if not trace.endswith("/run")] == []


def submit(cluster: Instance, user: str, *options: str, script: str) -> str:
    text = f"#!/bin/bash\n{script}\n"
    done = cluster.run(["sbatch", "--parsable", *options], user=user, stdin=text)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def queued(cluster: Instance, job: str, column: str) -> str:
    return cluster.run(["squeue", "-h", "-j", job, "-o", column]).stdout.strip()


def fact(cluster: Instance, job: str, column: str) -> str:
    return cluster.run(["sacct", "-nXP", "-j", job, "-o", column]).stdout.strip()


def wait(holds: Callable[[], bool], *, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.1)


def traces(home: Path) -> list[str]:
    """What an instance could leave: processes, mounts, an interface, files."""
    found = [f"interface {name}" for name in names(home) if Path("/sys/class/net", name).exists()]
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended while we looked
            told = (process / "mountinfo").read_text() + (process / "cmdline").read_text()
            if str(home) in told:
                found.append(f"process {process.name}")
    return found + [str(path) for path in home.rglob("*")]
