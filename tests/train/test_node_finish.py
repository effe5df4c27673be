"""What becomes of a job when its program has ended."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from node_runs import Run

from sluice_train.node.decision import Found, decide
from sluice_train.node.slurm import reading

GOING_ON = Found(code=1, newest=20, started_with=10, max_restarts=3)

PREEMPTED = Found(code=143, preempted=True, waits_for_slurm=True, max_restarts=3)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        # The rows of the table, from the top.
        (Found(code=1, done=True), "exit 0"),
        (Found(code=143, cancelled=True, stopped=True, max_restarts=3), "exit 143"),
        (replace(GOING_ON, rule="hold"), "requeuehold"),
        (replace(GOING_ON, rule="requeue"), "requeue"),
        (replace(GOING_ON, rule="hold", restart=3), "exit 75"),
        (replace(GOING_ON, rule="requeue", restart=3), "exit 75"),
        (replace(PREEMPTED, stopped=True), "wait"),
        (PREEMPTED, "wait"),
        (replace(PREEMPTED, code=0, stopped=True, managed=True), "wait"),
        (replace(PREEMPTED, code=0, stop_asked=True), "wait"),
        (replace(PREEMPTED, restart=3), "wait"),
        (replace(PREEMPTED, waits_for_slurm=False), "requeue"),
        (replace(PREEMPTED, waits_for_slurm=False, restart=3), "exit 75"),
        (replace(GOING_ON, stopped=True), "requeue"),
        (replace(GOING_ON, stop_asked=True), "requeue"),
        (replace(GOING_ON, stop_asked=True, started_with=None), "requeue"),
        (replace(GOING_ON, stopped=True, restart=2), "requeue"),
        (replace(GOING_ON, stopped=True, restart=3), "exit 75"),
        (replace(GOING_ON, stop_asked=True, restart=4), "exit 75"),
        (replace(GOING_ON, stopped=True, max_restarts=0), "exit 75"),
        (replace(GOING_ON, stop_asked=True, newest=10), "exit 76"),
        (replace(GOING_ON, stop_asked=True, newest=None), "exit 76"),
        (Found(code=0, managed=True), "exit 77"),
        (Found(code=0), "exit 0"),
        (Found(code=0, stop_asked=True, max_restarts=3), "exit 0"),
        (Found(code=0, preempted=True), "exit 0"),
        (replace(GOING_ON), "exit 1"),
        (replace(GOING_ON, managed=True), "exit 1"),
        (Found(code=137), "exit 137"),
        # What stands higher goes before what stands lower.
        (replace(GOING_ON, done=True, rule="requeue", stopped=True, preempted=True), "exit 0"),
        (replace(GOING_ON, cancelled=True, rule="requeue", stop_asked=True), "exit 1"),
        (replace(PREEMPTED, rule="hold", stopped=True), "requeuehold"),
        (replace(GOING_ON, stopped=True, stop_asked=True, newest=10), "requeue"),
        (replace(GOING_ON, code=0, managed=True, stop_asked=True, newest=10), "exit 76"),
    ],
)
def test_the_first_row_that_fits_decides(found: Found, words: str) -> None:
    decision = decide(found)
    assert decision.words == words
    assert decision.reason


def test_slurms_line_tells_preemption_cancelling_and_the_end() -> None:
    line = "JobId=7 JobName=a b JobState={} Reason={} EndTime=1790000000 PreemptTime={} Restarts=0"
    running = reading(line.format("RUNNING", "None", "None"))
    assert (running.preempted, running.cancelled, running.ends_at) == (False, False, 1790000000)
    assert reading(line.format("RUNNING", "None", "1789999990")).preempted
    assert reading(line.format("COMPLETING", "None", "None")).cancelled
    assert not reading(line.format("COMPLETING", "None", "1789999990")).cancelled
    assert not reading(line.format("COMPLETING", "TimeLimit", "None")).cancelled
    assert reading("") == reading("slurm_load_jobs error: Invalid job id specified")
    assert not reading("").cancelled


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = Run(tmp_path)
    made.slurm_says("scontrol", "JobId=7 JobState=RUNNING Reason=None EndTime=Unknown")
    made.folder.path.mkdir()
    return made


def test_a_run_that_saved_and_stopped_goes_back_into_the_queue(run: Run) -> None:
    run.saves(20)
    run.folder.stopped.write_text('{"step": 20}')
    first = str(run.checkpoints / "step-000000010")
    ended = run.verb("finish", "--code", "0", "--signal", "USR1", "--started-with", first)
    assert (ended.stdout, ended.returncode) == ("requeue\n", 0)
    assert "saved and stopped" in ended.stderr
    [end] = run.events("end")
    assert (end["action"], end["code"], end["step"], end["job"]) == ("requeue", 0, 20, "7")


def test_a_stop_without_a_newer_checkpoint_is_no_reason_to_start_again(run: Run) -> None:
    run.saves(20)
    for first in ("20", str(run.checkpoints / "step-000000020")):
        ended = run.verb("finish", "--code", "143", "--signal", "TERM", "--started-with", first)
        assert ended.stdout == "exit 76\n"


def test_a_stall_of_the_rule_hold_waits_held(run: Run) -> None:
    run.folder.stalled.write_text('{"signs": ["steps"], "rule": "hold"}')
    run.folder.stop.write_text("stall\n")
    assert run.verb("finish", "--code", "137", "--signal", "stall").stdout == "requeuehold\n"


def test_a_preempted_job_waits_and_a_cancelled_one_does_not_come_back(run: Run) -> None:
    run.given["SLUICE_ON_PREEMPT"] = "wait"
    run.saves(20)
    run.folder.stopped.write_text("{}")
    line = "JobId=7 JobState={} Reason=None EndTime=1 PreemptTime={}"
    run.slurm_says("scontrol", line.format("RUNNING", "1790000000"))
    assert run.verb("finish", "--code", "1").stdout == "wait\n"
    run.slurm_says("scontrol", line.format("COMPLETING", "None"))
    assert run.verb("finish", "--code", "1").stdout == "exit 1\n"


def test_slurms_silence_decides_nothing(run: Run) -> None:
    run.saves(20)
    run.folder.stopped.write_text("{}")
    run.slurm_says("scontrol", "Unable to contact slurm controller", code=1)
    assert run.verb("finish", "--code", "1").stdout == "requeue\n"


def test_the_last_checkpoint_is_uploaded_before_the_end(run: Run, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    run.given["SLUICE_UPLOAD"] = str(tmp_path / "second")
    run.saves(20)
    run.folder.done.write_text("{}")
    assert run.verb("finish", "--code", "0").stdout == "exit 0\n"
    assert (tmp_path / "second/night/step-000000020/manifest.json").is_file()
    assert [event["kind"] for event in run.events()] == ["uploaded", "end"]


def test_the_last_upload_is_cut_off_in_time_and_leaves_no_manifest(
    run: Run, tmp_path: Path
) -> None:
    """A real second of a real clock: the bound is what is tested."""
    (tmp_path / "second").mkdir()
    run.given |= {
        "SLUICE_UPLOAD": str(tmp_path / "second"),
        "SLUICE_UPLOAD_MBPS": "1",
        "SLUICE_FLUSH_SECONDS": "1",
    }
    run.saves(20, size=20_000_000)
    run.folder.stopped.write_text("{}")
    started = time.monotonic()
    ended = run.verb("finish", "--code", "0", "--signal", "USR1")
    assert time.monotonic() - started < 20  # the whole of it takes 40 s
    assert ended.stdout == "requeue\n"
    assert not list((tmp_path / "second").rglob("manifest.json"))
    assert run.events("upload_failed")[0]["step"] == 20
    assert not run.folder.uploading.exists()


def test_no_upload_begins_when_the_job_is_about_to_end(run: Run, tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    run.given["SLUICE_UPLOAD"] = str(tmp_path / "second")
    run.slurm_says("scontrol", f"JobId=7 JobState=RUNNING EndTime={time.time() + 15:.0f}")
    run.saves(20)
    run.folder.stopped.write_text("{}")
    assert run.verb("finish", "--code", "0", "--signal", "USR1").stdout == "requeue\n"
    assert not list((tmp_path / "second").iterdir())


def pass_of_a_smoke_job(run: Run, step: int, *, world: int = 2) -> None:
    run.folder.managed.touch()
    run.folder.event("ready", world=world, step=step)
    run.folder.line(run.folder.metrics, {"step": step + 1, "seconds": 0.5, "peak_bytes": 10**9})
    run.folder.event("saved", step=step + 1, seconds=0.1, bytes=2000, path="x")
    run.saves(step + 1)
    run.folder.stopped.write_text("{}")


@pytest.fixture
def smoke(run: Run) -> Run:
    run.given |= {"SLUICE_SMOKE": "1", "EXPECT_WORLD": "2"}
    return run


def test_a_smoke_job_of_two_good_passes_says_what_it_measured(smoke: Run) -> None:
    pass_of_a_smoke_job(smoke, 0)
    assert smoke.verb("finish", "--smoke-pass", "1", "--code", "0").returncode == 0
    assert not smoke.folder.stopped.exists()
    pass_of_a_smoke_job(smoke, 1)
    assert smoke.verb("finish", "--code", "0").stdout == "exit 0\n"
    [told] = smoke.events("smoke")
    assert told["ok"] is True
    assert (told["world"], told["loaded"], told["step_seconds"]) == (2, True, 0.5)
    assert (told["peak_bytes"], told["save_seconds"], told["save_bytes"]) == (10**9, 0.1, 2000)


@pytest.mark.parametrize(
    ("world", "second", "code", "said"),
    [
        (1, 1, 0, "1 ranks met instead of 2"),
        (2, 0, 0, "not loaded again"),
        (2, None, 1, "not loaded again"),
        (2, 1, 3, "the second pass ended with code 3"),
    ],
)
def test_a_smoke_job_names_what_failed(
    smoke: Run, world: int, second: int | None, code: int, said: str
) -> None:
    pass_of_a_smoke_job(smoke, 0, world=world)
    if second is not None:
        pass_of_a_smoke_job(smoke, second, world=world)
    ended = smoke.verb("finish", "--code", str(code))
    assert ended.stdout == "exit 70\n"
    assert said in ended.stderr
    [told] = smoke.events("smoke")
    assert told["ok"] is False
    assert said in told["text"]


def test_a_smoke_job_that_saves_nothing_has_no_second_pass(smoke: Run) -> None:
    smoke.folder.managed.touch()
    smoke.folder.event("ready", world=2, step=0)
    smoke.folder.event("save_failed", step=1, error="No space left on device")
    assert smoke.verb("finish", "--smoke-pass", "1", "--code", "0").returncode == 1
    ended = smoke.verb("finish", "--code", "0")
    assert ended.stdout == "exit 70\n"
    assert "No space left on device" in ended.stderr


def test_a_smoke_job_whose_ranks_never_met_has_failed_even_when_it_was_stopped(smoke: Run) -> None:
    smoke.folder.managed.touch()
    assert smoke.verb("finish", "--smoke-pass", "1", "--code", "143").returncode == 1
    assert smoke.verb("finish", "--code", "143", "--signal", "USR1").stdout == "exit 70\n"


def test_of_a_program_without_the_library_a_smoke_job_knows_only_the_exit(smoke: Run) -> None:
    assert smoke.verb("finish", "--code", "1").stdout == "exit 70\n"
    assert smoke.verb("finish", "--code", "143", "--signal", "USR1").stdout == "exit 0\n"
    assert smoke.events("smoke")[1]["world"] is None
