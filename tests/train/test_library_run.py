"""A run as its script sees it: one process, real files, a clock that is moved."""

import json
import os
import signal
import time
from itertools import pairwise
from pathlib import Path

import pytest

import sluice_train
from sluice_train.checkpoint import begin, listed, newest, writing
from sluice_train.files import lines
from sluice_train.ranks import Ranks
from sluice_train.run import Run
from sluice_train.settings import Settings


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.seconds = time.time()

    def __call__(self) -> float:
        return self.seconds

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def launch(tmp_path, clock):
    """Starts the run anew, as a job does after a restart; gives the signals back at the end."""
    launched = []

    def anew(**environment: str) -> Run:
        given = {
            "SLUICE_RUN_DIR": str(tmp_path),
            "SLUICE_JOB": "7",
            "SLUICE_CHECKPOINT_SECONDS": "3600",
            "SLUICE_KIT": "/kit",
        } | environment
        if "SLUICE_RESUME" not in given and (found := newest(tmp_path / "checkpoints")):
            given["SLUICE_RESUME"] = str(found.path)
        run = Run(Settings.of_environment(environment=given), Ranks(), now=clock)
        launched.append(run)
        return run

    yield anew
    for run in reversed(launched):
        run._request.leave()


def kinds(tmp_path: Path) -> list[str]:
    return [line["kind"] for line in lines(tmp_path / "events.jsonl")]


def save(run: Run, step: int) -> None:
    with run.saving(step) as folder:
        (folder / "state").write_text(f"of step {step}")


def train(run: Run, total: int, *, clock: Clock | None = None, seconds: float = 1) -> int:
    """As a script of a person does; the last step."""
    step = run.resume_step
    for step in run.steps(total):
        if clock:
            clock.pass_by(seconds)
        if run.step(step, loss=1 / step, tokens=10):
            save(run, step)
    run.finish()
    return step


def test_a_run_from_beginning_to_end_leaves_its_marks_and_events(tmp_path, launch, clock):
    assert train(launch(), 5, clock=clock) == 5
    assert (tmp_path / "managed").exists()
    assert json.loads((tmp_path / "DONE").read_text())["step"] == 5
    assert not (tmp_path / "STOPPED").exists()
    assert kinds(tmp_path) == ["ready", "done"]
    ready = next(lines(tmp_path / "events.jsonl"))
    assert (ready["world"], ready["step"], ready["job"], ready["restart"]) == (1, 0, "7", 0)


def test_it_saves_when_the_clock_says_so_and_at_no_other_step(tmp_path, launch, clock):
    train(launch(SLUICE_CHECKPOINT_KEEP="9"), 100, clock=clock, seconds=100)
    assert [found.step for found in listed(tmp_path / "checkpoints")] == [36, 72]
    saved = [line for line in lines(tmp_path / "events.jsonl") if line["kind"] == "saved"]
    assert [line["step"] for line in saved] == [36, 72]
    assert saved[0]["path"] == str(tmp_path / "checkpoints" / "step-000000036")
    assert saved[0]["bytes"] > len("of step 36")
    assert saved[0]["seconds"] >= 0


def test_old_checkpoints_go_and_that_is_told(tmp_path, launch, clock):
    train(launch(SLUICE_CHECKPOINT_KEEP="2"), 150, clock=clock, seconds=100)
    assert [found.step for found in listed(tmp_path / "checkpoints")] == [108, 144]
    events = [(line["kind"], line["step"]) for line in lines(tmp_path / "events.jsonl")]
    assert events.index(("pruned", 36)) > events.index(("saved", 108))
    assert ("pruned", 72) in events


def test_with_no_time_between_saves_it_saves_only_on_a_stop(tmp_path, launch, clock):
    run = launch(SLUICE_CHECKPOINT_SECONDS="0")
    for step in run.steps(50):
        clock.pass_by(10**6)
        if step == 40:
            (tmp_path / "stop").write_text("USR1")
        if run.step(step):
            save(run, step)
    run.finish()
    assert [found.step for found in listed(tmp_path / "checkpoints")] == [40]


def test_asked_to_stop_it_saves_and_goes_on_from_there_the_next_time(tmp_path, launch, clock):
    run = launch()
    seen = []
    for step in run.steps(10):
        seen.append(step)
        if step == 4:
            (tmp_path / "stop").write_text("USR1")
        clock.pass_by(1)
        if run.step(step):
            save(run, step)
    assert run.stopping
    run.finish()
    assert seen == [1, 2, 3, 4]
    assert json.loads((tmp_path / "STOPPED").read_text())["step"] == 4
    assert not (tmp_path / "DONE").exists()
    assert kinds(tmp_path) == ["ready", "save_begin", "saved", "stopped"]

    (tmp_path / "stop").unlink()
    again = launch(SLUICE_RESTART="1")
    assert Path(again.resume_path, "state").read_text() == "of step 4"
    assert list(again.steps(6)) == [5, 6]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_is_a_wish_to_stop_and_no_end(tmp_path, launch, clock, number):
    run = launch()
    for step in run.steps(9):
        if step == 2:
            os.kill(os.getpid(), number)
        clock.pass_by(1)
        if run.step(step):
            save(run, step)
    run.finish()
    assert newest(tmp_path / "checkpoints").step == 2
    assert (tmp_path / "STOPPED").exists()


def test_the_signals_are_given_back_and_a_script_keeps_its_own(launch):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append("script"))
    try:
        mine = signal.getsignal(signal.SIGTERM)
        run = launch()
        os.kill(os.getpid(), signal.SIGTERM)
        assert heard == ["script"]
        assert run.step(1)
        run.finish()
        assert signal.getsignal(signal.SIGTERM) == mine
        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_child_of_a_pool_can_still_be_terminated(launch):
    """Forks: only a real child inherits the handler."""
    launch()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, b"x")
        signal.pause()
        os._exit(3)
    os.read(read, 1)
    os.kill(child, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM


def test_a_process_that_loads_for_a_training_outlives_term(launch):
    """Forks, as a loader of torch does: Slurm sends TERM to all processes of the job."""
    launch()
    ready, told = os.pipe()
    wait, go_on = os.pipe()
    child = os.fork()
    if child == 0:
        sluice_train.outlive_term(0)
        os.write(told, b"x")
        os.read(wait, 1)
        os._exit(5)
    os.read(ready, 1)
    os.kill(child, signal.SIGTERM)
    os.write(go_on, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5


def test_a_stop_at_the_last_step_is_an_end(tmp_path, launch, clock):
    run = launch()
    for step in run.steps(3):
        if step == 3:
            (tmp_path / "stop").write_text("TERM")
        clock.pass_by(1)
        if run.step(step):
            save(run, step)
    assert not run.stopping
    run.finish()
    assert (tmp_path / "DONE").exists()


def test_a_save_that_fails_is_told_and_the_training_goes_on(tmp_path, launch, clock):
    run, tried = launch(), []
    for step in run.steps(60):
        clock.pass_by(100)
        if run.step(step):
            tried.append(step)
            with run.saving(step) as folder:
                (folder / "state").write_text("half")
                if len(tried) == 1:
                    raise OSError(28, "No space left on device")
    run.finish()
    assert tried == [36, 40]
    assert [found.step for found in listed(tmp_path / "checkpoints")] == [40]
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000000040"]
    failed = next(f for f in lines(tmp_path / "events.jsonl") if f["kind"] == "save_failed")
    assert failed["step"] == 36
    assert "No space left on device" in failed["error"]
    assert (tmp_path / "DONE").exists()


def test_where_the_folder_cannot_be_made_the_reason_is_told(tmp_path, launch, capsys):
    run = launch()
    (tmp_path / "checkpoints").rmdir()
    (tmp_path / "checkpoints").write_text("a file in the way")
    save(run, 1)
    failed = list(lines(tmp_path / "events.jsonl"))[-1]
    assert failed["kind"] == "save_failed"
    assert "NotADirectoryError" in failed["error"] or "FileExistsError" in failed["error"]
    assert "step 1 was not saved" in capsys.readouterr().err


def test_a_mistake_of_the_script_is_not_taken_for_a_full_disk(launch):
    run = launch()
    with pytest.raises(NameError), run.saving(1):
        not_there  # noqa: B018, F821


def test_stopped_without_a_save_there_is_no_mark(tmp_path, launch, clock, capsys):
    run = launch()
    (tmp_path / "stop").write_text("USR1")
    for step in run.steps(9):
        clock.pass_by(1)
        if run.step(step):
            with run.saving(step):
                raise OSError("full")
    run.finish()
    assert not (tmp_path / "STOPPED").exists()
    assert not (tmp_path / "DONE").exists()
    assert "nothing was saved since" in capsys.readouterr().err


def test_restarts_do_not_put_a_save_off_for_ever(tmp_path, launch, clock):
    """Cut short every 20 minutes, with an hour between saves, a run must still get on."""
    reached = []
    for restart in range(12):
        run = launch(SLUICE_RESTART=str(restart))
        for step in run.steps(10**6):
            clock.pass_by(60)
            if run.step(step):
                save(run, step)
                _stamp(newest(tmp_path / "checkpoints").path, clock())
            if step >= run.resume_step + 20:
                break
        run._request.leave()
        reached.append(run.resume_step)
    assert reached == sorted(reached)
    assert len(set(reached)) == 5


def _stamp(path: Path, at: float) -> None:
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | {"at": at}))


def test_after_a_long_wait_it_does_not_save_at_the_first_step(tmp_path, launch, clock):
    save(launch(), 5)
    clock.pass_by(10**6)
    run = launch()
    run.ready()
    clock.pass_by(1)
    assert not run.step(6)
    clock.pass_by(360)
    assert run.step(7)


# Saves beside the training


class Future:
    """Of a save that goes on beside the training; ended by hand."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.ended = False
        self.error = error

    def done(self) -> bool:
        return self.ended

    def result(self) -> None:
        self.ended = True
        if self.error:
            raise self.error


def test_a_save_beside_the_training_is_complete_only_when_it_has_ended(tmp_path, launch, clock):
    run, future = launch(), Future()
    with run.saving(1) as folder:
        (folder / "state").write_text("later")
        run.seal_after(future)
    for step in (2, 3):
        clock.pass_by(10**5)
        assert not run.step(step)
        assert newest(tmp_path / "checkpoints") is None
    future.ended = True
    clock.pass_by(1)
    run.step(4)
    assert newest(tmp_path / "checkpoints").step == 1


def test_the_end_waits_for_a_save_beside_the_training(tmp_path, launch, clock):
    run = launch()
    (tmp_path / "stop").write_text("USR1")
    for step in run.steps(5):
        clock.pass_by(1)
        if run.step(step):
            with run.saving(step) as folder:
                (folder / "state").write_text("later")
                run.seal_after(Future())
    assert newest(tmp_path / "checkpoints") is None
    run.finish()
    assert newest(tmp_path / "checkpoints").step == 1
    assert (tmp_path / "STOPPED").exists()


def test_a_save_beside_the_training_that_fails_is_told(tmp_path, launch, clock):
    run = launch()
    with run.saving(1) as folder:
        (folder / "state").write_text("later")
        run.seal_after(Future(RuntimeError("the writer died")))
    run.finish()
    assert kinds(tmp_path) == ["save_begin", "save_failed", "done"]
    assert list((tmp_path / "checkpoints").iterdir()) == []


# Progress


def test_progress_is_a_line_a_second_besides_the_last(tmp_path, launch, clock):
    train(launch(), 100, clock=clock, seconds=0.3)
    found = list(lines(tmp_path / "metrics.jsonl"))
    assert found[0]["step"] == 1
    assert found[-1]["step"] == 100
    assert 24 <= len(found) <= 28
    assert sum(line["tokens"] for line in found) == 1000
    assert found[-1]["loss"] == pytest.approx(1 / 100)
    assert all(line["seconds"] == pytest.approx(0.3) for line in found)
    assert all(line["peak_bytes"] > 10**6 for line in found)
    assert all(before["at"] <= after["at"] for before, after in pairwise(found))


def test_a_save_is_no_part_of_a_steps_time(tmp_path, launch, clock):
    run = launch()
    for step in run.steps(4):
        clock.pass_by(2)
        run.step(step)
        with run.saving(step) as folder:
            (folder / "state").write_text("x")
            clock.pass_by(500)
    found = [line["seconds"] for line in lines(tmp_path / "metrics.jsonl")]
    assert found == [pytest.approx(2)] * 4


def test_numbers_of_any_kind_are_taken(tmp_path, launch):
    class Tensor:
        def __float__(self) -> float:
            return 2.5

    class Tensors:
        def __float__(self) -> float:
            raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")

    run = launch()
    run.report(accuracy=0.5, loss=9)
    run.step(1, loss=Tensor(), odd=Tensors(), name="text", nan=float("nan"))
    line = next(lines(tmp_path / "metrics.jsonl"))
    assert (line["loss"], line["accuracy"]) == (2.5, 0.5)
    assert line["odd"] is line["name"] is line["nan"] is None


def test_a_report_that_cannot_be_written_is_told_once_and_the_training_goes_on(
    tmp_path, launch, clock, capsys
):
    (tmp_path / "metrics.jsonl").mkdir()
    train(launch(), 30, clock=clock)
    assert (tmp_path / "DONE").exists()
    assert capsys.readouterr().err.count("could not be written") == 1


# A smoke job


def test_a_smoke_job_saves_after_one_step_and_then_loads_it(tmp_path, launch, clock):
    assert train(launch(SLUICE_SMOKE="1"), 1000, clock=clock) == 1
    assert json.loads((tmp_path / "STOPPED").read_text())["step"] == 1
    second = launch(SLUICE_SMOKE="1")
    assert second.resume_step == 1
    assert train(second, 1000, clock=clock) == 2
    assert (tmp_path / "DONE").exists()
    assert kinds(tmp_path) == ["ready", "save_begin", "saved", "stopped", "ready", "done"]


# Who takes part


def test_fewer_ranks_than_asked_for_are_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("SLUICE_RUN_DIR", str(tmp_path))
    monkeypatch.setenv("EXPECT_WORLD", "4")
    with pytest.raises(sluice_train.WrongWorld, match="given 4 ranks, and 1 met"):
        sluice_train.start()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("variable", ["WORLD_SIZE", "SLURM_STEP_NUM_TASKS"])
def test_ranks_that_have_not_met_are_refused(monkeypatch, tmp_path, variable):
    monkeypatch.setenv("SLUICE_RUN_DIR", str(tmp_path))
    monkeypatch.setenv(variable, "2")
    with pytest.raises(sluice_train.WrongWorld, match="init_process_group before"):
        sluice_train.start()


def test_a_checkpoint_of_another_world_is_refused_where_it_matters(tmp_path, launch):
    with writing(tmp_path / "checkpoints", 3, 8):
        pass
    with pytest.raises(sluice_train.WrongWorld, match="written by 8 ranks, and these are 1"):
        launch().require_same_world()
    with writing(tmp_path / "checkpoints", 4, 1):
        pass
    launch().require_same_world()


def test_a_chosen_checkpoint_that_is_not_whole_is_refused(tmp_path, launch):
    with pytest.raises(sluice_train.NoCheckpoint, match="not a complete checkpoint"):
        launch(SLUICE_RESUME=str(begin(tmp_path / "checkpoints", 3)))


# Without Sluice


@pytest.fixture
def alone(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("SLUICE_", "SLURM_", "EXPECT_WORLD", "WORLD_SIZE")):
            monkeypatch.delenv(name)
    return tmp_path / "sluice-runs" / "local"


def test_it_works_without_sluice_and_finds_the_newest_by_itself(alone):
    first = sluice_train.start(save_seconds=0, model_params=10, flops_per_token=60.0)
    for step in first.steps(9):
        if step == 3:
            (alone / "stop").write_text("enough")
        if first.step(step):
            save(first, step)
        if step > 3 + 64:
            pytest.fail("it does not stop")
    first.finish()
    stopped_at = newest(alone / "checkpoints").step
    begin(alone / "checkpoints", 50)

    assert sluice_train.resume_path() == str(newest(alone / "checkpoints").path)
    second = sluice_train.start()
    assert second.resume_step == stopped_at
    assert not (alone / "stop").exists()
    assert not (alone / "STOPPED").exists()
    assert (alone / "checkpoints" / "incomplete" / "step-000000050.tmp").exists()
    second.finish()
    model = next(line for line in lines(alone / "events.jsonl") if line["kind"] == "model")
    assert (model["params"], model["flops_per_token"]) == (10, 60.0)


def test_a_job_that_was_prepared_begins_where_it_is_told(tmp_path, launch):
    save(launch(), 5)
    assert launch(SLUICE_RESUME="").resume_step == 0
