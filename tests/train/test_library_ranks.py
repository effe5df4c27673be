"""Ranks that really are processes, with real collectives of torch over gloo.

Starts processes: only they can disagree.
"""

import json
import signal
from pathlib import Path

import pytest
from ranks_launched import Launches, ended, wait_for_step

from gateway.testing.torch_python import needs
from sluice_train.checkpoint import listed, move_incomplete, newest
from sluice_train.files import lines

SCRIPT = Path(__file__).with_name("ranks_training.py")


@pytest.fixture
def launch(tmp_path):
    needs("torch")
    launches = Launches(tmp_path)
    yield launches
    launches.end()


def events(folder: Path) -> list[tuple[str, int]]:
    found = lines(folder / "events.jsonl")
    return [(line["kind"], line["step"]) for line in found if "step" in line]


def test_a_stop_saves_the_same_step_on_all_ranks_and_all_load_it_again(launch, tmp_path):
    first = launch(SCRIPT, "plain", 10**6)
    wait_for_step(tmp_path, 1)
    (tmp_path / "stop").write_text("USR1")
    assert [code for code, _, _ in ended(first)] == [0, 0]
    found = newest(tmp_path / "checkpoints")
    assert found.world == 2
    assert {(found.path / f"step-{rank}").read_text() for rank in (0, 1)} == {str(found.step)}
    assert json.loads((tmp_path / "STOPPED").read_text())["step"] == found.step

    (tmp_path / "stop").unlink()
    outcomes = ended(launch(SCRIPT, "plain", found.step + 3))
    assert [json.loads(output) for _, output, _ in outcomes] == [
        {"rank": rank, "loaded": found.step} for rank in (0, 1)
    ]
    assert json.loads((tmp_path / "DONE").read_text())["step"] == found.step + 3
    assert events(tmp_path) == [
        ("ready", 0),
        ("save_begin", found.step),
        ("saved", found.step),
        ("stopped", found.step),
        ("ready", found.step),
        ("done", found.step + 3),
    ]


def test_a_signal_to_one_rank_alone_stops_all_at_the_same_step(launch, tmp_path):
    outcomes = ended(launch(SCRIPT, "term-one", 10**6, world=3))
    assert [code for code, _, _ in outcomes] == [0, 0, 0]
    found = newest(tmp_path / "checkpoints")
    assert found.step >= 7
    assert {(found.path / f"step-{rank}").read_text() for rank in (0, 1, 2)} == {str(found.step)}
    assert (tmp_path / "STOPPED").exists()


def test_a_disk_that_is_full_for_one_rank_fails_the_save_for_all_and_the_training_goes_on(
    launch, tmp_path
):
    processes = launch(SCRIPT, "full-on-one", 60, SLUICE_CHECKPOINT_SECONDS="2")
    outcomes = ended(processes)
    assert [code for code, _, _ in outcomes] == [0, 0]
    (failed,) = (line for line in lines(tmp_path / "events.jsonl") if line["kind"] == "save_failed")
    assert failed["error"].startswith("rank 1: OSError: [Errno 28] No space left on device (")
    saved = [step for kind, step in events(tmp_path) if kind == "saved"]
    assert saved
    assert all(step > failed["step"] for step in saved)
    assert [found.step for found in listed(tmp_path / "checkpoints")] == saved[-2:]
    assert not list((tmp_path / "checkpoints").glob("*.tmp"))
    assert (tmp_path / "DONE").exists()


def test_a_rank_that_is_killed_in_a_save_leaves_the_earlier_checkpoint(launch, tmp_path):
    first = launch(SCRIPT, "plain", 10**6)
    wait_for_step(tmp_path, 1)
    (tmp_path / "stop").write_text("USR1")
    ended(first)
    (tmp_path / "stop").unlink()
    before = newest(tmp_path / "checkpoints")

    processes = launch(SCRIPT, "die-in-save", 10**6)
    assert processes[1].wait(120) == -signal.SIGKILL
    ended(processes)
    assert newest(tmp_path / "checkpoints") == before
    assert len(move_incomplete(tmp_path / "checkpoints")) <= 1


def test_an_asynchronous_save_is_one_checkpoint_of_all_ranks(launch, tmp_path):
    processes = launch(SCRIPT, "async", 50, SLUICE_CHECKPOINT_SECONDS="2")
    outcomes = ended(processes)
    assert [code for code, _, _ in outcomes] == [0, 0], outcomes
    found = newest(tmp_path / "checkpoints")
    assert (found.format, found.world) == ("dcp", 2)
    assert ("saved", found.step) in events(tmp_path)
    again = ended(launch(SCRIPT, "async", found.step + 2, world=3))
    assert [code for code, _, _ in again] == [0, 0, 0], again
    assert ("ready", found.step) in events(tmp_path)


def test_another_number_of_ranks_than_was_asked_for_is_refused(launch, tmp_path):
    outcomes = ended(launch(SCRIPT, "plain", 3, EXPECT_WORLD="4"))
    assert all(code != 0 for code, _, _ in outcomes)
    assert "given 4 ranks, and 2 met" in outcomes[0][2]
    assert not (tmp_path / "managed").exists()


def test_the_questions_cost_nothing_that_is_felt(launch, tmp_path):
    """Steps of a millisecond: the worst case, with two cores for two ranks."""
    (tmp_path / "cost.py").write_text(COST)
    running = launch(tmp_path / "cost.py")
    shares = [float(output) for _, output, _ in ended(running)]
    assert max(shares) < 0.05


COST = """
import time
import torch.distributed as dist
import sluice_train

dist.init_process_group("gloo")
run = sluice_train.start(save_seconds=0)
inside, begun = 0.0, time.perf_counter()
for step in run.steps(1500):
    time.sleep(0.001)
    before = time.thread_time()
    run.step(step, loss=0.5, tokens=4)
    inside += time.thread_time() - before
print(inside / (time.perf_counter() - begun))
run.finish()
dist.barrier()
dist.destroy_process_group()
"""
