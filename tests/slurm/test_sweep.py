"""A sweep on the real cluster: each task of the array gets its row, whole and alone."""

import json
from dataclasses import replace

import pytest
from person import ASKED, HOME, TORCH, Person

from gateway.core.arrays import array_text
from gateway.core.manifest import Text
from gateway.services.environments import Environment, EnvironmentKind
from gateway.testing.template_samples import FOLDER

pytestmark = pytest.mark.slurm

TELL = """import json, os, sys
with open(f"told-{os.environ['SLURM_ARRAY_TASK_ID']}", "w") as told:
    json.dump({"words": sys.argv[1:], "run": os.environ["SLUICE_RUN"]}, told)
"""
TABLE = 'lr,note\n0.1,"two words, $(id) $HOME"\n-1,it\'s\n0.001,\n'
DEMO = FOLDER / "sweep" / "demo"


def spec_of(tasks: int, at_once: int | None = None):
    return replace(
        ASKED,
        name="sweep",
        nodes=1,
        gpus_per_node=1,
        cpus_per_task=1,
        array=array_text(tasks, at_once),
        output=f"{HOME}/%x-%A_%a.out",
    )


def test_each_task_gets_exactly_its_row(person: Person) -> None:
    person.write("tell.py", TELL)
    array = person.submit(
        "sweep", spec_of(3), script="tell.py", arguments="--all 'a b'", table=TABLE
    )
    person.until(array, lambda _: len(told(person)) == 3, 60)
    notes = ["two words, $(id) $HOME", "it's", ""]
    for task, (rate, note) in enumerate(zip(["0.1", "-1", "0.001"], notes, strict=True)):
        found = told(person)[f"told-{task}"]
        assert found["words"] == ["--all", "a b", f"--lr={rate}", f"--note={note}"]
        assert found["run"] == f"sweep-{array}_{task}"


@pytest.mark.usefixtures("frameworks")
@pytest.mark.timeout(400)
def test_the_demo_trains_a_row_a_task(person: Person) -> None:
    person.write("train.py", (DEMO / "train.py").read_text())
    table = (DEMO / "table.csv").read_text()
    torch = Environment("torch", Text("", ""), EnvironmentKind.PREFIX, path=TORCH)
    array = person.submit("sweep", spec_of(3, 2), environment=torch, script="train.py", table=table)
    person.until(array, lambda _: len(results(person, array)) == 3, 120)
    rows = [line.split(",") for line in table.splitlines()[1:]]
    found = {(one["lr"], one["width"]) for one in results(person, array)}
    assert found == {(float(rate), int(width)) for rate, width in rows}


def told(person: Person) -> dict[str, dict[str, object]]:
    names = person.run("sh", "-c", f"cd {HOME} && ls told-* 2>/dev/null || true").split()
    texts = {name: person.run("cat", f"{HOME}/{name}") for name in names}
    return {name: json.loads(text) for name, text in texts.items() if text.endswith("}")}


def results(person: Person, array: int) -> list[dict[str, float]]:
    text = person.run("sh", "-c", f"cat {HOME}/sweep-{array}_*.out 2>/dev/null || true")
    lines = [line for line in text.splitlines() if line.startswith("RESULT ")]
    return [json.loads(line.removeprefix("RESULT ")) for line in lines]
