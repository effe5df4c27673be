"""The rendered file, run as a person with plain sbatch, is the job that was asked for."""

import re
from dataclasses import replace

import pytest
from person import ASKED, TORCH, Person

from gateway.core.durations import parse_slurm_limit
from gateway.services.environments import own_venv
from gateway.testing.template_samples import FOLDER
from gateway.wire.messages import SubmitRequest

pytestmark = pytest.mark.slurm


def check_equal(shown: dict[str, str], spec: SubmitRequest) -> None:
    """The job that Slurm accepted is the one that the request names."""
    assert shown["JobName"] == spec.name
    assert shown["UserId"].split("(")[0] == spec.user
    assert shown["Account"] == spec.account
    assert shown["Partition"] == spec.partition
    assert shown["QOS"] == spec.qos
    assert shown["NumNodes"].split("-")[0] == str(spec.nodes)
    assert shown["NumTasks"] == str(spec.nodes)
    assert shown["CPUs/Task"] == str(spec.cpus_per_task)
    assert parse_slurm_limit(shown["TimeLimit"]) == spec.time_limit_minutes
    assert shown["WorkDir"] == spec.working_directory
    assert shown["StdOut"] == spec.output.replace("%x", spec.name).replace("%j", shown["JobId"])
    assert shown["Requeue"] == str(int(spec.requeue))
    gpus = spec.nodes * spec.gpus_per_node
    wanted = f"gres/gpu:{spec.gpu_type}={gpus}" if gpus else ""
    assert wanted in shown["ReqTRES"]
    assert bool(gpus) == ("gpu" in shown["ReqTRES"])


@pytest.mark.parametrize(
    "spec",
    [
        ASKED,
        replace(ASKED, nodes=1, gpus_per_node=1, gpu_type=None, partition="debug", name="d.1"),
        replace(ASKED, gpus_per_node=0, gpu_type=None, requeue=False, memory_mb_per_node=500),
        replace(ASKED, partition="rtx4090", gpu_type="rtx4090", gpus_per_node=8, qos="spot"),
    ],
    ids=["2x2", "debug", "no-gpu", "spot"],
)
def test_the_job_equals_the_request(person: Person, spec: SubmitRequest) -> None:
    job = person.submit("command", spec, command="hostname")
    shown = person.ended(job, 60)
    if spec.gpu_type is None and spec.gpus_per_node:
        shown["ReqTRES"] += f",gres/gpu:None={spec.gpus_per_node}"
    check_equal(shown, spec)
    assert shown["JobState"] == "COMPLETED"
    assert person.output(job).startswith(f"job {job} on ")


def test_a_failing_program_gives_its_code_to_the_job(person: Person) -> None:
    alone = replace(ASKED, nodes=1)  # of several codes srun gives the highest: that of a kill
    job = person.submit("command", alone, command="bash -c 'exit 7'")
    shown = person.ended(job, 60)
    assert (shown["JobState"], shown["ExitCode"]) == ("FAILED", "7:0")


def test_hostile_words_reach_the_program_as_they_are(person: Person) -> None:
    job = person.submit("command", ASKED, command="echo '$(id)' '`id`' 'a;b' \"it's\" '*'")
    person.ended(job, 60)
    assert person.output(job).count("$(id) `id` a;b it's *\n") == ASKED.nodes


def test_a_preempted_job_goes_back_into_the_queue(person: Person) -> None:
    """Its step ends at once on TERM, long before the grace time does; a script that ended then
    would be FAILED. Takes half a minute: the scheduler looks for room to preempt that seldom."""
    whole = replace(ASKED, partition="rtx4090", gpu_type="rtx4090", gpus_per_node=8)
    spot = person.submit("command", replace(whole, qos="spot", signal=None), command="sleep 300")
    person.until(spot, lambda shown: shown["JobState"] == "RUNNING", 60)
    person.until(spot, lambda shown: "start 1" in person.output(spot), 20)
    normal = person.submit("command", whole, command="sleep 1")
    assert person.ended(normal, 120)["JobState"] == "COMPLETED"
    shown = person.show(spot)
    assert (shown["JobState"], shown["Restarts"]) == ("PENDING", "1")


def test_ddp_trains_on_two_nodes_with_two_processes_each(person: Person) -> None:
    found = person.cluster.run(["test", "-x", f"{TORCH}/bin/torchrun"])
    if found.returncode != 0:
        pytest.skip("no PyTorch in the cluster: sluice cluster torch")
    demo = FOLDER / "ddp/demo/train.py"
    person.write("train.py", demo.read_text())
    job = person.submit(
        "ddp",
        ASKED,
        environment=own_venv(TORCH),
        script="train.py",
        arguments="--steps 10",
    )
    shown = person.ended(job, 180)
    output = person.output(job)
    check_equal(shown, ASKED)
    assert shown["JobState"] == "COMPLETED", output
    ranks = re.findall(r"rank (\d) of 4 on (\S+)$", output, re.MULTILINE)
    assert sorted(rank for rank, _ in ranks) == ["0", "1", "2", "3"]
    assert len({node for _, node in ranks}) == 2
    assert "DONE 10 steps, 4 ranks" in output
