"""Checkpoints brought to a second place, by the real rclone, the real rsync and by ourselves."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from node_runs import KIT, Run, content, until

from sluice_train.node.halting import Failed, Halt
from sluice_train.node.places import Place, place_of
from sluice_train.node.upload import newest_there, restore, step_of

KINDS = ("folder", "rclone", "rsync", "daemon")


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """What the second place is in truth; its name has a space."""
    place = tmp_path / "second place"
    place.mkdir()
    return place


@pytest.fixture
def daemon(tmp_path: Path, second: Path) -> Iterator[str]:
    """An rsync daemon on a port of its own: what a host would be, without ssh."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    configuration = tmp_path / "rsyncd.conf"
    user = "uid = root\ngid = root\n" if os.geteuid() == 0 else ""
    configuration.write_text(
        f"use chroot = no\n{user}[safe]\npath = {second}\nread only = no\nmunge symlinks = no\n"
    )
    words = ["rsync", "--daemon", "--no-detach", "--address=127.0.0.1", f"--port={port}"]
    process = subprocess.Popen([*words, f"--config={configuration}"], stdin=subprocess.DEVNULL)
    until(lambda: answers(port))
    yield f"rsync:rsync://127.0.0.1:{port}/safe"
    process.terminate()
    process.wait(timeout=10)


def answers(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(params=KINDS)
def run(request: pytest.FixtureRequest, tmp_path: Path, second: Path) -> Run:
    """A run whose second place is of this kind."""
    made = Run(tmp_path)
    kind = request.param
    configuration = tmp_path / "rclone.conf"
    configuration.write_text(f"[safe]\ntype = alias\nremote = {second}\n")
    made.given["RCLONE_CONFIG"] = str(configuration)
    made.given["SLUICE_UPLOAD"] = {
        "folder": lambda: str(second),
        "rclone": lambda: "rclone:safe:",
        "rsync": lambda: f"rsync:{second}",
        "daemon": lambda: request.getfixturevalue("daemon"),
    }[kind]()
    made.given |= {
        "SLUICE_UPLOAD_SECONDS": "0.1",
        "SLUICE_UPLOAD_PAUSE_SECONDS": "0.2",
        "SLUICE_FLUSH_SECONDS": "30",
    }
    return made


@pytest.fixture
def place(run: Run, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The same place, asked directly."""
    monkeypatch.setenv("RCLONE_CONFIG", run.given["RCLONE_CONFIG"])
    return place_of(run.given["SLUICE_UPLOAD"], "night", mbps=0, halt=Halt())


def test_a_checkpoint_arrives_whole_with_its_manifest_and_is_told(run: Run, second: Path) -> None:
    saved = run.saves(100)
    assert run.verb("finish", "--code", "0").returncode == 0
    assert content(second / "night" / saved.name) == content(saved)
    [told] = run.events("uploaded", "upload_failed")
    assert (told["kind"], told["step"]) == ("uploaded", 100)
    assert told["place"] == run.given["SLUICE_UPLOAD"]
    assert told["bytes"] == sum(len(part) for part in content(saved).values())
    assert told["seconds"] > 0
    assert not run.folder.uploading.exists()


def test_a_second_upload_of_the_same_does_nothing(run: Run, second: Path) -> None:
    run.saves(100)
    run.verb("finish", "--code", "0")
    manifest = second / "night/step-000000100/manifest.json"
    before = manifest.stat().st_mtime_ns
    run.verb("finish", "--code", "0")
    assert manifest.stat().st_mtime_ns == before
    assert len(run.events("uploaded")) == 1


def test_only_the_newest_pending_goes_and_the_newest_few_stay(run: Run, second: Path) -> None:
    run.given["SLUICE_CHECKPOINT_KEEP"] = "2"
    (second / "night/of my own-1").mkdir(parents=True)
    for steps in ((10, 20), (30,), (40,)):
        for step in steps:
            run.saves(step)
        assert run.verb("finish", "--code", "0").returncode == 0
    names = {path.name for path in (second / "night").iterdir()}
    assert names == {"step-000000030", "step-000000040", "of my own-1"}
    assert [event["step"] for event in run.events("uploaded")] == [20, 30, 40]
    shutil.rmtree(run.checkpoints)
    run.verb("finish", "--code", "0")
    assert {path.name for path in (second / "night").iterdir()} == names


def test_what_is_fetched_is_what_was_brought(run: Run, place: Place) -> None:
    saved = run.saves(100)
    before = content(saved)
    run.verb("finish", "--code", "0")
    shutil.rmtree(run.folder.path)
    assert newest_there(place) == saved.name
    restored = restore(place, saved.name, run.checkpoints)
    assert (restored.step, restored.world, restored.path) == (100, 2, saved)
    assert content(saved) == before


def test_what_arrived_changed_is_found_before_the_manifest_is_written(
    run: Run, place: Place, second: Path
) -> None:
    saved = run.saves(100)
    files = ["model.bin", "a part/# rank 1.bin"]
    place.copy(saved, saved.name, files)
    place.verify(saved, saved.name, files)
    there = second / "night" / saved.name / "a part/# rank 1.bin"
    there.write_bytes(os.urandom(1000))
    with pytest.raises(Failed):
        place.verify(saved, saved.name, files)
    assert place.holdings() == {saved.name: False}
    assert newest_there(place) is None


def test_another_of_the_same_name_and_size_takes_two_tries(
    run: Run, place: Place, second: Path
) -> None:
    """Cut off before its manifest, and the step was made again: every file may differ."""
    saved = run.saves(100)
    files = ["model.bin", "a part/# rank 1.bin"]
    place.copy(saved, saved.name, files)
    for file in files:
        (saved / file).write_bytes(os.urandom(1000))
    for _ in range(2):
        run.verb("finish", "--code", "0")
    assert content(second / "night" / saved.name) == content(saved)


def test_a_removed_one_is_gone_and_its_neighbour_is_not(run: Run, place: Place) -> None:
    run.given["SLUICE_CHECKPOINT_KEEP"] = "9"
    for step in (100, 200):
        run.saves(step)
        run.verb("finish", "--code", "0")
    place.remove("step-000000100")
    assert place.holdings() == {"step-000000200": True}


def test_killed_in_the_middle_it_left_no_manifest_and_the_next_upload_mends_it(
    run: Run, second: Path
) -> None:
    """Real processes: what KILL leaves behind is what is tested. The limit makes it last."""
    saved = run.saves(100, size=3_000_000)
    run.given["SLUICE_UPLOAD_MBPS"] = "1"
    tending = run.started("tend")
    until(lambda: any(path.is_file() for path in second.rglob("*")))
    time.sleep(0.3)
    programs = children(tending.pid)
    tending.kill()
    tending.wait()
    for program in programs:
        with suppress(ProcessLookupError):
            os.kill(program, signal.SIGKILL)
    assert not list(second.rglob("manifest.json"))
    assert not run.events("uploaded")
    assert run.folder.uploading.read_text() == saved.name
    run.given["SLUICE_UPLOAD_MBPS"] = "0"
    assert run.verb("prepare").returncode == 0
    assert not run.folder.uploading.exists()
    run.verb("finish", "--code", "0")
    assert content(second / "night" / saved.name) == content(saved)


def children(pid: int) -> list[int]:
    """Those of each thread: the uploads run in one of their own."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in threads for child in path.read_text().split()]


def test_an_upload_in_the_middle_ends_with_the_job_by_term(run: Run, second: Path) -> None:
    run.saves(100, size=20_000_000)
    run.given["SLUICE_UPLOAD_MBPS"] = "1"
    tending = run.started("tend")
    until(lambda: any(path.is_file() for path in second.rglob("*")))
    tending.terminate()
    assert tending.wait(timeout=20) == 0  # the whole of it takes 40 s
    assert not list(second.rglob("manifest.json"))
    assert run.events("upload_failed")[0]["error"] == "cut off"
    assert not run.folder.uploading.exists()


def test_tend_brings_each_new_one_while_the_run_goes_on(run: Run, second: Path) -> None:
    tending = run.started("tend")
    try:
        for step in (100, 200):
            run.saves(step)
            manifest = second / f"night/step-{step:09d}/manifest.json"
            until(manifest.is_file)
    finally:
        tending.terminate()
        assert tending.wait(timeout=10) == 0


def test_a_place_that_refuses_is_told_and_tried_again_until_it_takes_it(
    run: Run, second: Path
) -> None:
    away = second.with_name("unmounted")
    second.rename(away)
    second.write_text("a file where a folder should be")
    saved = run.saves(100)
    tending = run.started("tend")
    try:
        until(lambda: len(run.events("upload_failed")) > 1)
        assert tending.poll() is None
        second.unlink()
        away.rename(second)
        until((second / "night" / saved.name / "manifest.json").is_file)
    finally:
        tending.terminate()
        assert tending.wait(timeout=10) == 0
    failed = run.events("upload_failed")[0]
    assert failed["step"] == 100
    assert failed["error"]


def test_frameworks_own_folders_get_a_manifest_there_and_are_left_alone_here(
    run: Run, second: Path
) -> None:
    folder = run.checkpoints / "checkpoint-50"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "rng_state.pth").write_bytes(b"chance")
    (folder / "trainer_state.json").write_text('{"global_step": 50}')
    before = content(folder)
    run.verb("finish", "--code", "0")
    assert content(folder) == before
    there = content(second / "night/checkpoint-50")
    assert set(there) == {*before, "manifest.json"}
    shutil.rmtree(run.checkpoints)
    assert run.verb("prepare").stdout == f"{folder}\n"


def test_rclone_is_found_in_the_kit_where_the_path_has_none(tmp_path: Path) -> None:
    rclone = shutil.which("rclone")
    assert rclone is not None
    kit, made = tmp_path / "kit", Run(tmp_path)
    shutil.copytree(KIT / "sluice_train", kit / "sluice_train")
    (kit / "lib/bin").mkdir(parents=True)
    (kit / "lib/bin/rclone").symlink_to(rclone)
    (tmp_path / "slurm").mkdir()
    made.given |= {
        "PATH": str(tmp_path / "slurm"),
        "PYTHONPATH": str(kit),
        "SLUICE_UPLOAD": f"rclone::local:{tmp_path}/second",
    }
    saved = made.saves(100)
    assert made.verb("finish", "--code", "0").stdout == "exit 0\n"
    assert content(tmp_path / "second/night" / saved.name) == content(saved)


def test_the_limit_of_the_rate_is_kept(run: Run) -> None:
    """A second and more of a real clock: 2.4 MB at 1 MB a second."""
    run.saves(100, size=1_200_000)
    run.given["SLUICE_UPLOAD_MBPS"] = "1"
    run.verb("finish", "--code", "0")
    assert run.events("uploaded")[0]["seconds"] > 1.2


@pytest.mark.parametrize(
    "text",
    [
        "relative/folder",
        "ftp:host:/x",
        "rclone:",
        "rsync:",
        "rclone:-P",
        "rsync:-e:x",
        "rclone:a\nb",
    ],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no place|is not known"):
        place_of(text, "night", mbps=0, halt=Halt())


@pytest.mark.parametrize("run_name", ["", "../x", "a/b", "a*", "-n"])
def test_a_run_whose_name_is_a_path_or_a_pattern_has_no_second_place(run_name: str) -> None:
    with pytest.raises(ValueError, match="cannot be kept"):
        place_of("/second", run_name, mbps=0, halt=Halt())


def test_the_step_is_told_by_the_last_number_of_a_name() -> None:
    names = ("step-000000120", "checkpoint-7", "global_step40", "run2-epoch9", "none")
    assert [step_of(name) for name in names] == [120, 7, 40, 9, -1]
