"""Before the program starts: whose folder, which data, which checkpoint."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from node_runs import Run, content

from sluice_train.node.prepare import DONE_ALREADY, Refused, check_datasets


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def owner(run: Run) -> str:
    """The job that has the run folder."""
    return run.folder.owner.read_text().partition("\n")[0]


def test_a_first_start_begins_anew(run: Run) -> None:
    prepared = run.verb("prepare")
    assert (prepared.stdout, prepared.returncode) == ("\n", 0)
    [start] = run.events()
    assert (start["kind"], start["resume_step"], start["resume_path"]) == ("start", None, None)
    assert owner(run) == "7"


def test_the_newest_complete_checkpoint_is_chosen_and_a_torn_one_moved_aside(run: Run) -> None:
    run.saves(100)
    newest = run.saves(200)
    torn = run.saves(300)
    (torn / "model.bin").write_bytes(b"short")
    (run.checkpoints / "step-000000400.tmp").mkdir()
    prepared = run.verb("prepare")
    assert prepared.stdout == f"{newest}\n"
    assert {path.name for path in (run.checkpoints / "incomplete").iterdir()} == {
        "step-000000300",
        "step-000000400.tmp",
    }
    assert run.events("start")[0]["resume_step"] == 200


def test_what_an_earlier_start_left_does_not_decide_over_this_one(run: Run) -> None:
    run.saves(100)
    folder = run.folder
    stale = [folder.stop, folder.stopped, folder.stalled, folder.uploading]
    stale.append(folder.stacks / "wanted")
    folder.stacks.mkdir()
    for path in stale:
        path.write_text("old")
    assert run.verb("prepare").returncode == 0
    assert not any(path.exists() for path in stale)


def test_a_run_that_is_done_ends_with_10_after_it_uploaded_what_was_missing(run: Run) -> None:
    (run.home / "second").mkdir()
    run.given["SLUICE_UPLOAD"] = str(run.home / "second")
    saved = run.saves(100)
    run.folder.done.write_text("{}")
    prepared = run.verb("prepare")
    assert (prepared.stdout, prepared.returncode) == ("", 10)
    assert content(run.home / "second/night" / saved.name) == content(saved)


@pytest.mark.parametrize(
    ("done", "step"), [('{"step": 500}', 500), ("{}", None), ("[5", None), ("[5]", None)]
)
def test_a_run_that_is_done_tells_the_portal_so(run: Run, done: str, step: int | None) -> None:
    run.folder.path.mkdir(parents=True, exist_ok=True)
    run.folder.done.write_text(done)
    assert run.verb("prepare").returncode == 10
    (told,) = map(json.loads, run.folder.events.read_text().splitlines())
    assert (told["kind"], told["action"], told["code"]) == ("end", "exit", 0)
    assert (told["reason"], told["step"]) == (DONE_ALREADY, step)


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "SUSPENDED"])
def test_a_live_other_job_keeps_its_run_folder(run: Run, state: str) -> None:
    run.folder.path.mkdir()
    run.folder.owner.write_text("5_2")
    run.slurm_says("squeue", f"{state}\n")
    prepared = run.verb("prepare")
    assert prepared.returncode == 73
    assert f"job 5_2 has the run folder {run.folder.path} and is {state.lower()}" in prepared.stderr
    assert owner(run) == "5_2"


@pytest.mark.parametrize(
    ("said", "code"),
    [("", 0), ("COMPLETED\n", 0), ("slurm_load_jobs error: Invalid job id specified", 1)],
)
def test_the_folder_of_a_job_that_is_gone_is_taken(run: Run, said: str, code: int) -> None:
    run.folder.path.mkdir()
    run.folder.owner.write_text("5")
    run.slurm_says("squeue", said, code=code)
    assert run.verb("prepare").returncode == 0
    assert owner(run) == "7"


def test_a_silent_slurm_refuses_only_what_is_seen_to_be_alive(
    run: Run,
) -> None:
    run.folder.path.mkdir()
    run.folder.owner.write_text(f"5\n{run.folder.path}")
    run.slurm_says("squeue", "Unable to contact slurm controller", code=1)
    telemetry = run.folder.telemetry("node01")
    telemetry.parent.mkdir()
    telemetry.write_text("{}\n")
    refused = run.verb("prepare")
    assert refused.returncode == 73
    assert "still writes into it" in refused.stderr
    os.utime(telemetry, (1e9, 1e9))
    taken = run.verb("prepare")
    assert taken.returncode == 0
    assert "Slurm does not tell whether job 5 is gone" in taken.stderr


@pytest.mark.parametrize("left", ["5", ""])
def test_of_jobs_that_start_at_once_one_gets_the_folder(run: Run, left: str) -> None:
    """Real processes: it is a race. Slurm knows all of them, and not the one before."""
    run.folder.path.mkdir()
    if left:
        run.folder.owner.write_text(left)
    run.slurm_says("squeue", "")
    gone = 'echo "Invalid job id specified" >&2; exit 1'
    script = f'#!/bin/sh\n[ "$3" != 5 ] || {{ {gone}; }}\necho RUNNING\n'
    (run.home / "slurm/squeue").write_text(script)
    started = []
    for job in ("11", "12", "13", "14", "15"):
        run.given["SLUICE_JOB"] = job
        started.append(run.started("prepare"))
    codes = [process.wait(timeout=60) for process in started]
    assert sorted(codes) == [0, 73, 73, 73, 73]
    assert owner(run) == f"{11 + codes.index(0)}"
    assert [path.name for path in run.folder.path.glob("owner*")] == ["owner"]


def test_a_restart_of_the_same_job_keeps_its_folder(run: Run) -> None:
    assert run.verb("prepare").returncode == 0
    run.slurm_says("squeue", "RUNNING\n")
    assert run.verb("prepare").returncode == 0


def test_two_runs_do_not_share_a_checkpoint_folder_at_a_time(run: Run) -> None:
    """With different run names each has its own run folder; the checkpoints would be mixed."""
    run.given["SLUICE_CHECKPOINT_DIR"] = str(run.home / "kept")
    assert run.verb("prepare").returncode == 0
    run.slurm_says("squeue", "RUNNING\n")
    run.given |= {"SLUICE_JOB": "8", "SLUICE_RUN_DIR": str(run.home / "other")}
    refused = run.verb("prepare")
    assert refused.returncode == 73
    assert f"job 7 has the checkpoint folder {run.home / 'kept'} and is running" in refused.stderr
    run.slurm_says("squeue", "")
    assert run.verb("prepare").returncode == 0
    assert (run.home / "kept/owner").read_text().startswith("8\n")


def test_a_checkpoint_folder_that_cannot_be_written_is_told_at_the_start(run: Run) -> None:
    run.given["SLUICE_CHECKPOINT_DIR"] = "/proc/self"
    prepared = run.verb("prepare")
    assert (prepared.stdout, prepared.returncode) == ("", 73)
    assert "cannot be used" in prepared.stderr


@pytest.fixture
def as_a_person() -> Iterator[Path]:
    """A folder that a person may use who is not root, and the test as such a one."""
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        home.chmod(0o777)
        if os.geteuid() != 0:
            yield home
            return
        os.seteuid(65534)
        try:
            yield home
        finally:
            os.seteuid(0)


@pytest.mark.parametrize(
    ("mode", "said"),
    [(0o555, None), (0o777, "is writable"), (0o000, "cannot be read"), (None, "is not there")],
)
def test_data_must_be_there_readable_and_not_writable(
    as_a_person: Path, mode: int | None, said: str | None
) -> None:
    good, other = as_a_person / "good", as_a_person / "some data"
    good.mkdir(mode=0o555)
    if mode is not None:
        other.mkdir()
        other.chmod(mode)
    if said is None:
        check_datasets(f"{good}:{other}")
        return
    with pytest.raises(Refused, match=f"{other} {said}") as refused:
        check_datasets(f"{good}:{other}")
    assert refused.value.code == 65


def test_refused_data_end_the_job_before_it_takes_the_folder(run: Run) -> None:
    run.given["SLUICE_DATASETS"] = "/no/such/data"
    prepared = run.verb("prepare")
    assert (prepared.stdout, prepared.returncode) == ("", 65)
    assert "the dataset folder /no/such/data is not there" in prepared.stderr
    assert not run.folder.owner.exists()


def test_a_setting_that_is_nonsense_is_named(run: Run) -> None:
    run.given["SLUICE_UPLOAD"] = "ftp:somewhere"
    prepared = run.verb("prepare")
    assert prepared.returncode == 78
    assert "'ftp' is not known" in prepared.stderr


def test_a_checkpoint_larger_than_the_free_disk_is_warned_of(run: Run) -> None:
    saved = run.saves(100)
    free = shutil.disk_usage(run.home).free
    # Takes no room: a file of holes.
    os.truncate(saved / "model.bin", free + 10**9)
    manifest = saved / "manifest.json"
    manifest.write_text(manifest.read_text().replace(": 1000", f": {free + 10**9}", 2))
    os.truncate(saved / "a part" / "# rank 1.bin", free + 10**9)
    prepared = run.verb("prepare")
    assert prepared.stdout == f"{saved}\n"
    assert "GB free, and a checkpoint takes" in prepared.stderr


@pytest.fixture
def second(run: Run) -> Path:
    """The second place, with what an earlier start brought there."""
    place = run.home / "second"
    place.mkdir()
    run.given["SLUICE_UPLOAD"] = str(place)
    return place


def uploaded(run: Run, step: int) -> dict[str, bytes]:
    saved = run.saves(step)
    assert run.verb("finish", "--code", "1").returncode == 0
    return content(saved)


def test_what_is_gone_here_is_restored_from_the_second_place(run: Run, second: Path) -> None:
    uploaded(run, 100)
    before = uploaded(run, 200)
    shutil.rmtree(run.folder.path)
    prepared = run.verb("prepare")
    path = run.checkpoints / "step-000000200"
    assert prepared.stdout == f"{path}\n"
    assert content(path) == before
    [restored] = run.events("restored")
    assert (restored["step"], restored["place"]) == (200, str(second))
    assert run.events("start")[0]["resume_step"] == 200


def test_the_newer_of_the_two_places_is_taken(run: Run, second: Path) -> None:
    uploaded(run, 200)
    shutil.rmtree(run.checkpoints)
    here = run.saves(300)
    assert run.verb("prepare").stdout == f"{here}\n"
    shutil.rmtree(run.checkpoints)
    run.saves(100)
    assert run.verb("prepare").stdout.endswith("step-000000200\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="files of two people")
def test_a_run_of_this_name_of_another_person_is_left_alone(run: Run, second: Path) -> None:
    """In a folder that a group shares: it neither begins with that person's checkpoint, nor
    counts it as its own."""
    run.saves(100)
    run.verb("finish", "--code", "0")
    shutil.rmtree(run.folder.path)
    os.chown(second / "night", 12345, -1)
    prepared = run.verb("prepare")
    assert (prepared.stdout, prepared.returncode) == ("\n", 0)
    assert "is another person's: give this run another name" in prepared.stderr
    run.saves(100)
    run.verb("finish", "--code", "0")
    assert "another person's" in run.events("upload_failed")[0]["error"]


def test_what_has_no_manifest_there_or_another_size_is_not_restored(run: Run, second: Path) -> None:
    uploaded(run, 100)
    uploaded(run, 200)
    (second / "night/step-000000200/manifest.json").unlink()
    shutil.rmtree(run.folder.path)
    assert run.verb("prepare").stdout.endswith("step-000000100\n")
    (second / "night/step-000000100/model.bin").write_bytes(b"short")
    shutil.rmtree(run.folder.path)
    prepared = run.verb("prepare")
    assert prepared.stdout == "\n"
    assert "not as long as the manifest says" in prepared.stderr
    assert not list(run.checkpoints.glob("step*"))


def test_a_run_whose_checkpoints_are_out_of_reach_does_not_begin_again(
    run: Run, second: Path
) -> None:
    uploaded(run, 100)
    second.rename(second.with_name("unmounted"))
    kept = run.verb("prepare")
    assert kept.stdout.endswith("step-000000100\n")
    shutil.rmtree(run.checkpoints)
    refused = run.verb("prepare")
    assert refused.returncode == 69
    assert "which does not give them" in refused.stderr


def test_a_first_start_is_not_kept_by_a_second_place_that_fails(run: Run) -> None:
    run.given["SLUICE_UPLOAD"] = str(run.home / "nowhere")
    prepared = run.verb("prepare")
    assert (prepared.stdout, prepared.returncode) == ("\n", 0)
    assert "nothing could be fetched from the second place" in prepared.stderr


def test_deepspeeds_pointer_comes_back_with_its_folder(run: Run, second: Path) -> None:
    folder = run.checkpoints / "global_step40"
    folder.mkdir(parents=True)
    for rank in (0, 1):
        (folder / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt").write_bytes(b"optimizer")
    (folder / "mp_rank_00_model_states.pt").write_bytes(b"model")
    (run.checkpoints / "latest").write_text("global_step40")
    assert run.verb("finish", "--code", "1").returncode == 0
    shutil.rmtree(run.checkpoints)
    assert run.verb("prepare").stdout == f"{folder}\n"
    assert (run.checkpoints / "latest").read_text() == "global_step40"
