"""Saving an overlay: what a layer holds, what is refused, and that nothing is ever torn."""

import json
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.train.env_places import Place, install, make_base, needs_squashfs, run, wheel

pytestmark = needs_squashfs


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("base") / "env")


@pytest.fixture
def place(tmp_path: Path, base: Path) -> Place:
    (tmp_path / "local").mkdir()
    return Place(tmp_path, base)


def document(place: Place, snapshot: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(place.document(snapshot).read_text())
    return found


def extract(place: Place, layer: Path) -> Path:
    target = place.root / f"look-{layer.stem[:8]}"
    subprocess.run(["unsquashfs", "-q", "-n", "-d", target, layer], check=True)
    return target


def test_what_is_installed_is_saved_with_its_lock_and_where_it_came_from(place: Place) -> None:
    env = place.enter("17")
    install(env, wheel(place.root / "wheels", "alpha"))
    saved = place.save(env, "first", "words", SLUICE_JOB="17")
    found = document(place, saved["id"])
    assert found["added"] == ["alpha==1.0"]
    assert found["note"] == "first words"
    assert found["job"] == "17"
    assert found["base"]["name"] == "torch"  # type: ignore[index]
    assert any(one.startswith("pip==") for one in found["lock"]["pip"])  # type: ignore[index]
    (layer,) = place.layers()
    tree = extract(place, layer)
    assert (tree / "bin" / "alpha-say").read_bytes().startswith(b"#!/usr/bin/env python3\n")
    assert not (tree / "pyvenv.cfg").exists(), "what the overlay is made of is no content"


def test_the_same_packages_make_the_same_layer_in_another_overlay(place: Place) -> None:
    files = {f"alpha/part{n}.py": b"x = %d\n" % n for n in range(30)}
    package = wheel(place.root / "wheels", "alpha", files=files)
    for job in ("3", "12345"):
        env = place.enter(job)
        install(env, package)
        place.save(env, SLUICE_JOB=job)
    assert len(place.layers()) == 1
    assert len(list((place.store / "documents").iterdir())) == 2


def test_saving_again_without_a_change_is_the_same_snapshot(place: Place) -> None:
    env = place.enter()
    package = wheel(place.root / "wheels", "alpha")
    install(env, package)
    first = place.save(env)
    assert place.save(env)["id"] == first["id"]
    run(env, "pip", "install", "-q", "--force-reinstall", "--no-deps", package)  # other times
    again = place.save(env)
    assert (again["id"], again["new_bytes"]) == (first["id"], 0)


def test_a_second_save_holds_only_what_is_new_and_what_is_gone(place: Place) -> None:
    env = place.enter()
    filler = {"alpha/data.bin": os.urandom(400_000)}
    install(env, wheel(place.root / "wheels", "alpha", files=filler))
    install(env, wheel(place.root / "wheels", "beta"))
    first = place.save(env)
    run(env, "pip", "uninstall", "-q", "-y", "beta")
    install(env, wheel(place.root / "wheels", "gamma"))
    second = place.save(env)
    assert second["layers"] == 2
    assert second["new_bytes"] < first["new_bytes"] / 10
    assert document(place, second["id"])["added"] == ["alpha==1.0", "gamma==1.0"]
    there = place.restored(second["id"])
    assert run(there, "gamma-say").stdout.startswith("gamma 1.0")
    assert run(there, "python", "-c", "import alpha, sys").returncode == 0
    assert run(there, "python", "-c", "import beta", check=False).returncode == 1
    assert not any(there.parent.rglob("beta*"))


def test_a_third_of_dead_content_makes_the_layers_one(place: Place) -> None:
    env = place.enter()
    install(env, wheel(place.root / "wheels", "alpha", files={"alpha/a": os.urandom(300_000)}))
    install(env, wheel(place.root / "wheels", "beta", files={"beta/b": os.urandom(300_000)}))
    first = place.save(env)
    run(env, "pip", "uninstall", "-q", "-y", "beta")
    second = place.save(env)
    assert second["layers"] == 1
    assert second["bytes"] < 0.7 * first["bytes"]
    assert run(place.restored(second["id"]), "alpha-say").returncode == 0


def test_modes_links_empty_folders_and_names_of_any_bytes_come_back(place: Place) -> None:
    env = place.enter()
    odd = env / "odd"
    (odd / "empty").mkdir(parents=True)
    (odd / "closed").mkdir()
    (odd / "closed" / "inside").write_text("in")
    (odd / "程序 文件.txt").write_text("中文")
    (odd / "two\nlines").write_text("n")
    raw = os.path.join(os.fsencode(odd), b"no-utf8-\xff\xfe")
    Path(os.fsdecode(raw)).write_bytes(b"raw")
    (odd / ("long-" * 40)).write_text("a name that the plain header has no room for")
    (odd / "run").write_text("#!/bin/sh\n")
    (odd / "run").chmod(0o751)
    os.link(odd / "run", odd / "same")
    (odd / "out").symlink_to("/etc/passwd")
    (odd / "dangling").symlink_to("nowhere")
    (odd / "closed").chmod(0o555)
    saved = place.save(env)
    tree = place.restored(saved["id"]).parent / "tree" / "odd"
    assert (tree / "程序 文件.txt").read_text() == "中文"
    assert (tree / "two\nlines").read_text() == "n"
    assert Path(os.fsdecode(os.path.join(os.fsencode(tree), b"no-utf8-\xff\xfe"))).read_bytes()
    assert (tree / ("long-" * 40)).exists()
    assert (tree / "run").stat().st_mode & 0o7777 == 0o751
    assert (tree / "run").stat().st_ino == (tree / "same").stat().st_ino
    assert (tree / "closed").stat().st_mode & 0o7777 == 0o555
    assert (tree / "closed" / "inside").read_text() == "in"
    assert list((tree / "empty").iterdir()) == []
    assert os.readlink(tree / "out") == "/etc/passwd"
    assert (tree / "dangling").is_symlink()


def test_a_link_that_leads_out_is_kept_and_not_followed(place: Place) -> None:
    outside = place.root / "outside"
    outside.mkdir()
    (outside / "secret").write_text("not yours")
    env = place.enter()
    (env / "way").symlink_to(outside)
    place.save(env)
    (layer,) = place.layers()
    tree = extract(place, layer)
    assert (tree / "way").is_symlink()
    assert b"not yours" not in layer.read_bytes()


def test_devices_sockets_and_fifos_are_refused_by_name(place: Place) -> None:
    env = place.enter()
    os.mkfifo(env / "a-pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(env)  # a socket's path is short
        listening.bind("a-socket")
    if os.geteuid() == 0:
        os.mknod(env / "a-device", 0o600 | 0o020000, os.makedev(1, 3))
    done = place.run("save", "--overlay", env.parent)
    assert done.returncode == 65
    assert "a-pipe" in done.stderr
    assert "a-socket" in done.stderr
    assert os.geteuid() != 0 or "a-device" in done.stderr
    assert not list((place.store / "documents").iterdir())


def test_what_cannot_be_read_or_is_not_there_yet_is_said(place: Place) -> None:
    env = place.enter()
    assert "nothing is installed" in place.run("save", "--overlay", env.parent).stderr
    done = place.run("save", "--overlay", place.root / "none")
    assert done.returncode == 78
    assert "is no overlay" in done.stderr
    done = place.run("save", SLUICE_OVERLAY="")
    assert "no overlay" in done.stderr


def test_two_saves_at_once_are_both_whole(place: Place) -> None:
    one, other = place.enter("1"), place.enter("2")
    for env, name in ((one, "alpha"), (other, "beta")):
        data = {f"{name}/{n}": os.urandom(20_000) for n in range(200)}
        install(env, wheel(place.root / "wheels", name, files=data))
    both = [place.start("save", "--json", "--overlay", env.parent) for env in (one, other, one)]
    told = [process.communicate(timeout=100) for process in both]
    assert [process.returncode for process in both] == [0, 0, 0], told
    assert len({json.loads(out)["id"] for out, _ in told}) == 2
    done = place.run("check")
    assert (done.returncode, done.stdout.count("whole")) == (0, 2), done.stdout


def test_who_does_not_wait_is_told_that_another_save_is_going_on(place: Place) -> None:
    import fcntl

    env = place.enter()
    install(env, wheel(place.root / "wheels", "alpha"))
    with (place.store / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = place.run("save", "--no-wait", "--overlay", env.parent)
    assert done.returncode == 75
    assert "another save" in done.stderr


def test_a_killed_save_leaves_nothing_that_counts(place: Place) -> None:
    """It is killed at five moments of its course; the next save clears up and is whole."""
    env = place.enter()
    data = {f"alpha/{n}": os.urandom(30_000) for n in range(400)}
    install(env, wheel(place.root / "wheels", "alpha", files=data))
    began = time.monotonic()
    place.save(env)
    lasted = time.monotonic() - began
    for moment in range(1, 6):
        install(env, wheel(place.root / "wheels", f"more{moment}", files={"m/x": os.urandom(9000)}))
        process = place.start("save", "--overlay", env.parent)
        time.sleep(lasted * moment / 5)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        names = [p.name for p in place.layers() if not p.name.startswith(".tmp-")]
        assert all(re.fullmatch(r"[0-9a-f]{64}\.sqfs", name) for name in names), names
        assert place.run("check").returncode == 0
    last = place.save(env)
    names = [
        path.name for folder in ("layers", "documents") for path in (place.store / folder).iterdir()
    ]
    assert not [name for name in names if name.startswith(".tmp-")]
    used = {
        layer["sha256"]
        for path in (place.store / "documents").iterdir()
        for layer in json.loads(path.read_text())["layers"]
    }
    assert {path.stem for path in place.layers()} == used, "a layer that no document has"
    assert run(place.restored(last["id"]), "python", "-c", "import alpha, more5").returncode == 0


def test_a_file_that_is_written_to_all_the_time_is_named(place: Place) -> None:
    env = place.enter()
    writer = subprocess.Popen(
        ["bash", "-c", 'while :; do echo x >>"$0"; done', str(env / "busy.log")]
    )
    try:
        while not (env / "busy.log").is_file():
            assert writer.poll() is None
        done = place.run("save", "--overlay", env.parent)
    finally:
        writer.kill()
        writer.wait()
    assert done.returncode == 75, done.stdout + done.stderr
    assert "busy.log" in done.stderr
    assert place.layers() == []


def test_a_program_that_loads_modules_does_not_disturb_a_save(place: Place) -> None:
    env = place.enter()
    files = {f"alpha/m{n}.py": b"y = %d\n" % n for n in range(300)}
    install(env, wheel(place.root / "wheels", "alpha", files=files))
    for cached in env.rglob("alpha/__pycache__/*"):
        cached.unlink()
    code = (
        "import importlib, time\n"
        "for n in range(300): importlib.import_module(f'alpha.m{n}'); time.sleep(0.003)\n"
        "print('went on')"
    )
    program = subprocess.Popen(
        [env / "bin" / "python", "-c", code], stdout=subprocess.PIPE, text=True
    )
    saved = place.save(env)
    out, _ = program.communicate(timeout=60)
    assert "went on" in out
    assert run(place.restored(saved["id"]), "python", "-c", "import alpha.m299").returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system is mounted: root")
def test_a_full_disk_leaves_nothing_and_is_said(place: Place) -> None:
    env = place.enter(SLUICE_OVERLAYS=str(place.root / "overlays"))
    install(env, wheel(place.root / "wheels", "alpha", files={"alpha/x": os.urandom(6_000_000)}))
    small = place.root / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", small], check=True)
    try:
        done = place.run("save", "--overlay", env.parent, SLUICE_SNAPSHOT_AREA=str(small))
        left = [path for path in small.rglob("*") if path.is_file() and path.name != "lock"]
    finally:
        subprocess.run(["umount", small], check=True)
    assert done.returncode == 73
    assert "no room" in done.stderr
    assert [path for path in left if path.stat().st_size] == []
