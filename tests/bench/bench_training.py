"""What the templates add to plain torchrun, and how soon a preempted run makes steps again."""

import json
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "slurm"))

from person import ASKED, HOME, TORCH, Person

from contrib.devcluster import paths, rootfs, torchenv
from contrib.devcluster.instance import Instance
from gateway.core.answers import clean_all
from gateway.services.environments import own_venv
from gateway.services.templates import Catalogue, render
from gateway.testing.template_samples import FOLDER

PAIRS = 7
ROUNDS = 5
WAIT_SECONDS = 120.0

# The user's first line, and nothing else: how long ago the batch script began.
FIRST_LINE = "import os, time\nprint('began', time.time() - float(os.environ['T0']), flush=True)\n"
COUNTS = """\
import pathlib, time, sluice_train
run = sluice_train.start()
step = int(pathlib.Path(run.resume_path, "step").read_text()) if run.resume_path else 0
while True:
    step += 1
    time.sleep(0.02)
    if run.step(step):
        with run.saving(step) as folder:
            (folder / "step").write_text(str(step))
    if run.stopping:
        break
run.finish()
"""


def training() -> Iterator[dict[str, object]]:
    """`training/prologue` and `training/resume`, on a development cluster of their own."""
    home = Path(tempfile.mkdtemp(prefix="sluice-"))
    instance = Instance(home)
    try:
        cache = paths.cache_folder()
        torchenv.ensure(cache, rootfs.ensure(cache, _tell), _tell, allow_cuda=True)
        instance.up(say=_tell)
        person = Person(instance)
        yield _prologue(person)
        yield _resume(person)
    finally:
        instance.down()
        shutil.rmtree(home, ignore_errors=True)


def _tell(text: str) -> None:
    print(text, file=sys.stderr)


def _prologue(person: Person) -> dict[str, object]:
    """Seconds from the first line of the batch script to the first line of the person's."""
    person.write("first.py", FIRST_LINE)
    ours, plain = [], []
    for _ in range(PAIRS):
        plain.append(_began(person, _plain()))
        ours.append(_began(person, _rendered()))
    added = statistics.median(ours) - statistics.median(plain)
    return {
        "figure": "training/prologue",
        "ours_s": round(statistics.median(ours), 3),
        "peer_s": round(statistics.median(plain), 3),
        "added_s": round(added, 3),
        "goal_s": 1.0,
        "met": added <= 1.0,
    }


def _rendered() -> str:
    template = Catalogue.load((FOLDER,)).get("ddp")
    assert template is not None
    defaults = {field.name: field.default for field in template.manifest.fields}
    values, refused = clean_all(template.manifest, defaults | {"script": "first.py"})
    assert refused == ()
    spec = replace(ASKED, nodes=1, gpus_per_node=2)
    return render(template, spec=spec, values=values, environment=own_venv(TORCH), nproc_per_node=2)


def _plain() -> str:
    """The least that starts the same program with torchrun."""
    lines = _rendered().split("\n")
    head = [line for line in lines if line.startswith("#SBATCH")]
    body = [f". {TORCH}/bin/activate", "export OMP_NUM_THREADS=2"]
    body += ["srun --cpus-per-task=4 torchrun --standalone --nproc-per-node=2 first.py"]
    return "\n".join(["#!/bin/bash", *head, *body, ""])


def _began(person: Person, script: str) -> float:
    first, _, rest = script.partition("\n")
    directives = re.match(r"(?:#SBATCH.*\n)*", rest)
    assert directives is not None
    text = f"{first}\n{directives[0]}export T0=$(date +%s.%N)\n{rest[directives.end() :]}"
    person.write("bench.sbatch", text)
    job = int(person.run("sbatch", "--parsable", f"{HOME}/bench.sbatch"))
    person.ended(job, WAIT_SECONDS)
    return min(float(told) for told in re.findall(r"began ([0-9.]+)", person.output(job)))


def _resume(person: Person) -> dict[str, object]:
    """Seconds from the preemptor's submission to the first step after the restart."""
    person.write("counts.py", COUNTS)
    rounds = [_preempted(person) for _ in range(ROUNDS)]
    seconds = statistics.median(took for took, _ in rounds)
    return {
        "figure": "training/resume",
        "median_s": round(seconds, 2),
        "worst_s": round(max(took for took, _ in rounds), 2),
        "steps_lost": max(lost for _, lost in rounds),
        "goal_s": 20.0,
        "met": seconds <= 20.0 and all(lost == 0 for _, lost in rounds),
    }


def _preempted(person: Person) -> tuple[float, int]:
    """Seconds, and steps that were made and are made again."""
    whole = replace(
        ASKED, nodes=1, partition="debug", gpu_type="a100", gpus_per_node=2, cpus_per_task=1
    )
    name = f"resume-{time.time_ns()}"
    spot = person.submit(
        "single-gpu", replace(whole, qos="spot"), script="counts.py", run_name=name
    )
    _until(lambda: _steps(person, name, 0))
    asked = time.time()
    person.submit("command", replace(whole, qos="urgent"), command="true")
    _until(lambda: _steps(person, name, 1))
    before, after = _steps(person, name, 0), _steps(person, name, 1)
    person.run("scancel", str(spot))
    person.ended(spot, WAIT_SECONDS)
    return after[0]["at"] - asked, before[-1]["step"] - (after[0]["step"] - 1)


def _steps(person: Person, name: str, restart: int) -> list[dict]:
    told = person.cluster.run(["cat", f"{HOME}/sluice-runs/{name}/metrics.jsonl"]).stdout
    lines = [json.loads(line) for line in told.splitlines()]
    return [line for line in lines if line["restart"] == restart]


def _until(true) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not true():
        if time.monotonic() > end:
            raise AssertionError("the run did not come so far")
        time.sleep(0.1)
