"""The Trainer of transformers under the callback: real ranks, real checkpoints.

Starts processes: the Trainer sets up more than a test could undo.
"""

import json
from pathlib import Path

import pytest
from ranks_launched import Launches, ended, wait_for_step

from gateway.testing.torch_python import needs
from sluice_train.checkpoint import newest
from sluice_train.files import lines

SCRIPT = Path(__file__).with_name("trainer_training.py")
GIVEN = {"HF_HUB_OFFLINE": "1", "ACCELERATE_USE_CPU": "true"}


@pytest.fixture
def launch(tmp_path):
    needs("accelerate")
    needs("transformers")
    launches = Launches(tmp_path)
    yield launches
    launches.end()


@pytest.mark.parametrize("world", [1, 2])
def test_a_stop_saves_and_the_next_launch_goes_on_to_the_end(launch, tmp_path, world):
    first = launch(SCRIPT, 1500, world=world, **GIVEN)
    wait_for_step(tmp_path, 2)
    (tmp_path / "stop").write_text("USR1")
    outcomes = ended(first)
    assert [code for code, _, _ in outcomes] == [0] * world, outcomes
    found = newest(tmp_path / "checkpoints")
    assert (found.path.name, found.format) == (f"checkpoint-{found.step}", "hf")
    assert found.world == world
    assert (found.path / "manifest.json").exists()
    assert json.loads((tmp_path / "STOPPED").read_text())["step"] == found.step

    (tmp_path / "stop").unlink()
    outcomes = ended(launch(SCRIPT, found.step + 5, world=world, **GIVEN))
    assert [code for code, _, _ in outcomes] == [0] * world, outcomes
    assert json.loads((tmp_path / "DONE").read_text())["step"] == found.step + 5
    told = [(line["kind"], line["step"]) for line in lines(tmp_path / "events.jsonl")]
    assert told == [
        ("ready", 0),
        ("save_begin", found.step),
        ("saved", found.step),
        ("stopped", found.step),
        ("ready", found.step),
        ("done", found.step + 5),
    ]
    last = list(lines(tmp_path / "metrics.jsonl"))[-1]
    assert last["loss"] > 0
    assert last["samples"] % (2 * world) == 0


def test_it_saves_by_the_clock(launch, tmp_path):
    given = GIVEN | {"SLUICE_CHECKPOINT_SECONDS": "2"}
    ended(launch(SCRIPT, 300, world=1, **given))
    saved = [line["step"] for line in lines(tmp_path / "events.jsonl") if line["kind"] == "saved"]
    assert len(saved) >= 2
    assert (tmp_path / "DONE").exists()


def test_a_trainer_that_does_not_begin_where_it_should_is_refused(launch, tmp_path):
    first = launch(SCRIPT, 1500, world=1, **GIVEN)
    wait_for_step(tmp_path, 1)
    (tmp_path / "stop").write_text("USR1")
    ended(first)
    ((code, _, errors),) = ended(launch(SCRIPT, 1500, "ignore-resume", world=1, **GIVEN))
    assert code != 0
    assert "resume_from_checkpoint=sluice_train.resume_path()" in errors
