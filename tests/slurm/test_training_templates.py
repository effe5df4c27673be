"""Each framework's template runs its own demo on the cluster: stopped, resumed, done.

What a CPU cannot run (FSDP of the Trainer) is started as far as the libraries allow.
"""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from person import ASKED, HOME, TORCH, Person

from gateway.services.environments import own_venv
from gateway.testing.template_samples import FOLDER

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]

TAKE = """
import json, sys, transformers
taken = transformers.TrainingArguments("x", fsdp=True, fsdp_config=sys.argv[1], use_cpu=True)
print(json.dumps(taken.fsdp_plugin_args))
"""
START_SECONDS, END_SECONDS = 120, 180  # of a launch on a machine that does other things too


@pytest.fixture
def trainer(frameworks: None, person: Person) -> "Trainer":
    person.run("rm", "-rf", f"{HOME}/sluice-runs")
    return Trainer(person)


class Trainer:
    """A person who trains: submits demos, stops them, reads what they tell."""

    def __init__(self, person: Person) -> None:
        self.person = person

    def submit(self, template: str, *, nodes: int, processes: int, steps: int, **typed: str) -> int:
        """The template's demo with the environment; `typed` may name another's, or fields."""
        demo = typed.pop("demo", template)
        options = typed.pop("options", "")
        self.person.write("train.py", (FOLDER / demo / "demo/train.py").read_text())
        spec = replace(
            ASKED,
            name=template,
            nodes=nodes,
            gpus_per_node=processes,
            cpus_per_task=processes,
        )
        fields = {"arguments": f"--steps {steps} {options}"} if template != "command" else {}
        return self.person.submit(
            template,
            spec,
            environment=own_venv(TORCH),
            **({"script": "train.py"} if template != "command" else {}),
            **fields,
            **typed,
        )

    def stop(self, job: int, after: str) -> None:
        """Ask the batch script to stop, as Slurm does before the time limit, once `after` came."""
        self.until(job, lambda: after in self.written(job), START_SECONDS)
        self.person.run("scancel", "--batch", "--signal=USR1", str(job))

    def written(self, job: int) -> str:
        """Its output so far; Slurm makes the file a moment after the job's state says RUNNING."""
        return self.person.run("sh", "-c", f"cat {HOME}/*-{job}.out 2>/dev/null || true")

    def released(self, job: int) -> None:
        """Wait until it is back in the queue, and take off the pause before its next start."""
        self.person.until(job, lambda shown: shown["JobState"] == "PENDING", END_SECONDS)
        self.person.run("scontrol", "update", f"jobid={job}", "StartTime=now")

    def until(self, job: int, true: Callable[[], bool], seconds: float) -> None:
        def ready(shown: dict[str, str]) -> bool:
            assert shown["JobState"] in {"PENDING", "RUNNING", "CONFIGURING"}, self.told(job)
            return true()

        self.person.until(job, lambda shown: shown["JobState"] == "RUNNING", START_SECONDS)
        self.person.until(job, ready, seconds)

    def ended(self, job: int, state: str = "COMPLETED", code: int = 0) -> str:
        """Its output; it ended like this."""
        shown = self.person.ended(job, END_SECONDS)
        assert (shown["JobState"], shown["ExitCode"]) == (state, f"{code}:0"), self.told(job)
        return self.person.output(job)

    def told(self, job: int) -> str:
        return f"{self.person.show(job)['JobState']}\n{self.person.output(job)}"

    def read(self, run: str, name: str) -> str:
        return self.person.run("cat", f"{HOME}/sluice-runs/{run}/{name}")

    def events(self, run: str, kind: str) -> list[dict[str, Any]]:
        lines = map(json.loads, self.read(run, "events.jsonl").splitlines())
        return [line for line in lines if line["kind"] == kind]

    def is_done(self, run: str, *, step: int) -> None:
        """The mark is there; each start went on from where the one before it had stopped."""
        assert json.loads(self.read(run, "DONE"))["step"] == step
        begun = [event["step"] for event in self.events(run, "ready")]
        stopped = [event["step"] for event in self.events(run, "stopped")]
        assert begun == [0, *stopped]


def loss(output: str) -> float:
    found = re.findall(r"DONE \d+ steps,.* loss (\d+\.\d+)", output)
    return float(found[-1])


def test_one_card_goes_on_after_a_stop(trainer: Trainer) -> None:
    job = trainer.submit("single-gpu", nodes=1, processes=1, steps=60, options="--pause 0.2")
    trainer.stop(job, "step 5 of")
    trainer.released(job)
    resumed = trainer.ended(job)
    trainer.is_done(f"single-gpu-{job}", step=60)
    whole = trainer.submit(
        "command",
        nodes=1,
        processes=1,
        steps=60,
        command="python3 train.py --steps 60",
        demo="single-gpu",
    )
    assert loss(trainer.ended(whole)) == loss(resumed)
    trainer.is_done(f"command-{whole}", step=60)


def test_ddp_ends_where_an_unstopped_run_of_one_rank_ends(trainer: Trainer) -> None:
    job = trainer.submit("ddp", nodes=2, processes=2, steps=60, options="--pause 0.2")
    trainer.stop(job, "step 5 of")
    trainer.released(job)
    resumed = trainer.ended(job)
    trainer.is_done(f"ddp-{job}", step=60)
    assert len(set(re.findall(r"rank (\d) of 4 on \S+", resumed))) == 4
    assert "UserWarning" not in resumed
    whole = trainer.submit("ddp", nodes=1, processes=1, steps=60)
    assert loss(resumed) == pytest.approx(loss(trainer.ended(whole)), rel=1e-3)


def test_fsdp_goes_on_with_another_number_of_ranks(trainer: Trainer) -> None:
    same = {"run_name": "sharded", "max_restarts": "0"}
    first = trainer.submit(
        "fsdp", nodes=2, processes=2, steps=60, options="--pause 0.2 --async-save", **same
    )
    trainer.stop(first, "step 5 of")
    trainer.ended(first, "FAILED", 75)
    second = trainer.submit("fsdp", nodes=2, processes=1, steps=60, **same)
    resumed = trainer.ended(second)
    trainer.is_done("sharded", step=60)
    assert [event["world"] for event in trainer.events("sharded", "ready")] == [4, 2]
    whole = trainer.submit("fsdp", nodes=1, processes=1, steps=60)
    assert loss(resumed) == pytest.approx(loss(trainer.ended(whole)), rel=1e-3)


def test_zero3_resumes_and_another_number_of_ranks_is_refused_or_converted(
    trainer: Trainer,
) -> None:
    asked = {"run_name": "zero", "max_restarts": "1", "stage": "3", "offload": "both"}
    first = trainer.submit(
        "deepspeed-zero3", nodes=2, processes=2, steps=60, options="--pause 0.2", **asked
    )
    trainer.stop(first, "step 5 of")
    trainer.released(first)
    stopped = trainer.events("zero", "stopped")[0]["step"]
    trainer.stop(first, f"step {stopped // 5 * 5 + 5} of")
    output = trainer.ended(first, "FAILED", 75)
    assert "rank 3 of 4, ZeRO-3, in host memory: optimizer and weights" in output

    refused = trainer.submit("deepspeed-zero3", nodes=2, processes=1, steps=60, **asked)
    output = trainer.ended(refused, "FAILED", 79)
    assert "is of 4 processes and this job has 2: ask for 4, or have it converted" in output

    asked["other_world"] = "convert"
    converted = trainer.submit("deepspeed-zero3", nodes=2, processes=1, steps=60, **asked)
    output = trainer.ended(converted)
    trainer.is_done("zero", step=60)
    assert [event["world"] for event in trainer.events("zero", "ready")] == [4, 4, 2]


def test_the_trainer_of_transformers_goes_on_after_a_stop(trainer: Trainer) -> None:
    job = trainer.submit("hf-fsdp", nodes=2, processes=1, steps=40, options="--cpu --pause 0.3")
    trainer.stop(job, "'loss'")
    trainer.released(job)
    output = trainer.ended(job)
    trainer.is_done(f"hf-fsdp-{job}", step=40)
    assert "2 ranks, MULTI_CPU" in output


def test_the_trainer_of_transformers_takes_zero3(trainer: Trainer) -> None:
    job = trainer.submit(
        "deepspeed-zero3",
        nodes=2,
        processes=1,
        steps=5,
        demo="hf-fsdp",
        options="--cpu",
        config_option="--deepspeed",
        auto="true",
    )
    output = trainer.ended(job)
    assert "2 ranks, DEEPSPEED" in output
    trainer.is_done(f"deepspeed-zero3-{job}", step=5)


def test_the_trainer_takes_the_settings_of_fsdp_and_refuses_a_machine_without_cards(
    trainer: Trainer,
) -> None:
    """Only cards run it: here the settings are read, and nothing else is trained in its place."""
    job = trainer.submit("hf-fsdp", nodes=1, processes=1, steps=5, layers="LlamaDecoderLayer")
    assert "Using fsdp only works in distributed training" in trainer.ended(job, "FAILED", 1)
    config = f"{HOME}/sluice-runs/hf-fsdp-{job}/fsdp.json"
    taken = json.loads(trainer.person.run(f"{TORCH}/bin/python", "-c", TAKE, config))
    assert taken["fsdp_version"] == 2
    assert taken["state_dict_type"] == "SHARDED_STATE_DICT"
    assert taken["reshard_after_forward"] is True
    assert taken["activation_checkpointing"] is False
    assert taken["transformer_cls_names_to_wrap"] == "LlamaDecoderLayer"
