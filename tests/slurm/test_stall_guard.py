"""Programs that hang in a real job, and what the group's rule makes of it."""

import json
import re
from collections.abc import Iterator

import pytest
from person import Person
from test_runs_survive import TRAIN, Run, froms

from gateway.core.manifest import Text
from gateway.services.environments import Environment, EnvironmentKind

pytestmark = pytest.mark.slurm

# Counts and saves; its first start hangs for ever after 200 steps.
HANGS = TRAIN.replace(
    "run.finish()",
    """\
    while step == 200 and not pathlib.Path("mended").exists():
        time.sleep(1)
run.finish()""",
)
# A job takes no variables of the submitting shell, but those of its environment.
QUICK = "export SLUICE_GUARD_SECONDS=1 SLUICE_STALL_STEPS_SECONDS=4\n"


@pytest.fixture
def run(person: Person, request: pytest.FixtureRequest) -> Iterator[Run]:
    made = Run(person, re.sub(r"\W+", "-", request.node.name)).script(HANGS)
    yield made
    if not made.job:
        return
    person.cluster.run(["scancel", str(made.job)])
    person.until(made.job, lambda shown: shown["JobState"] not in {"RUNNING", "COMPLETING"}, 60)


def submit(run: Run, rule: str) -> None:
    run.person.run("mkdir", "-p", f"{run.place}/quick/bin")
    run.person.run("sh", "-c", 'cat > "$1"', "sh", f"{run.place}/quick/bin/activate", stdin=QUICK)
    quick = Environment(
        "quick", Text("Quick", "快"), EnvironmentKind.VENV, path=f"{run.place}/quick"
    )
    run.submit(environment=quick, on_stall=rule, checkpoint_hours="0.0003")


def ends_well(run: Run) -> None:
    run.until(lambda: len(run.events("ready")) == 2)
    run.touch("enough")
    assert run.ended() == ("COMPLETED", "0")
    assert froms(run) == [0, run.events("start")[1]["resume_step"]]
    assert froms(run)[1] > 0


def test_by_requeue_it_starts_again_from_its_checkpoint(run: Run) -> None:
    submit(run, "requeue")
    run.until(lambda: run.events("end"), 100)
    run.until(lambda: run.person.show(run.job)["JobState"] == "PENDING")
    [stall] = run.events("stall")
    assert (stall["signs"], stall["rule"]) == (["steps"], "requeue")
    assert "the run has stalled: no step after" in run.output()
    assert json.loads(run.cat("sluice-runs/run/stalled"))["rule"] == "requeue"
    assert run.events("end")[0]["action"] == "requeue"
    assert run.events("stacks")
    run.touch("mended")
    run.start_now()
    ends_well(run)


def test_by_hold_it_waits_until_the_person_releases_it(run: Run) -> None:
    submit(run, "hold")
    run.until(lambda: run.events("end"), 100)
    run.until(lambda: run.person.show(run.job)["JobState"] == "PENDING")
    assert "held" in run.person.show(run.job)["Reason"]
    assert run.events("end")[0]["action"] == "requeuehold"
    run.touch("mended")
    run.person.run("scontrol", "release", str(run.job))
    run.start_now()
    ends_well(run)


def test_by_nothing_it_goes_on_by_itself_when_it_can(run: Run) -> None:
    submit(run, "nothing")
    run.until(lambda: run.events("stall"), 60)
    assert run.person.show(run.job)["JobState"] == "RUNNING"
    run.touch("mended")
    run.until(lambda: run.steps() > 210)
    run.touch("enough")
    assert run.ended() == ("COMPLETED", "0")
    assert len(run.events("stall")) == 1
    assert froms(run) == [0]
