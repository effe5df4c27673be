"""Restoring on a node: verified, shared by a person's jobs, and a sentence where it cannot be."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.train.env_places import Place, install, make_base, needs_squashfs, run, wheel

pytestmark = needs_squashfs

SQUEUE = """#!/bin/sh
case "$*" in *7*) echo RUNNING && exit ;; esac
echo 'slurm_load_jobs error: Invalid job id specified' >&2
exit 1
"""


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("base") / "env")


@pytest.fixture
def place(tmp_path: Path, base: Path) -> Place:
    (tmp_path / "local").mkdir()
    return Place(tmp_path, base)


@pytest.fixture
def saved(place: Place) -> str:
    env = place.enter()
    install(env, wheel(place.root / "wheels", "alpha"))
    return str(place.save(env)["id"])


def test_what_was_restored_is_an_environment_as_any(place: Place, saved: str) -> None:
    env = place.restored(saved)
    assert run(env, "alpha-say").stdout.startswith("alpha 1.0")
    assert run(env, "python", "-c", "import sys; print(sys.prefix)").stdout.strip() == str(env)
    listed = run(env, "pip", "list", "--format=freeze").stdout
    assert "alpha==1.0" in listed
    assert "pip==" in listed, "the base's packages are seen, too"


def test_compiled_files_are_valid_where_they_are_restored(place: Place, saved: str) -> None:
    env = place.restored(saved)
    told = run(env, "python", "-v", "-c", "import alpha").stderr
    assert "matches" in told or "code object from" in told
    assert f"wrote '{env.parent}/tree/lib" not in told


def test_jobs_of_one_node_share_what_is_restored(place: Place, saved: str) -> None:
    at_once = [
        place.start("restore", "--document", place.document(saved), job=str(job))
        for job in (71, 72, 73)
    ]
    told = [process.communicate(timeout=100) for process in at_once]
    assert [process.returncode for process in at_once] == [0, 0, 0], told
    assert len({out for out, _ in told}) == 1
    (there,) = [path for path in (place.root / "local").rglob("snapshots/*") if path.is_dir()]
    assert {path.name for path in there.glob("used-*")} == {"used-71", "used-72", "used-73"}


def test_what_no_live_job_uses_is_swept_and_what_one_uses_stays(place: Place, saved: str) -> None:
    tools = place.root / "tools"
    tools.mkdir()
    (tools / "squeue").write_text(SQUEUE)
    (tools / "squeue").chmod(0o755)
    place.more["PATH"] = f"{tools}:{os.environ['PATH']}"
    env = place.enter("90")
    others = []
    for name in ("beta", "gamma"):
        install(env, wheel(place.root / "wheels", name))
        others.append(str(place.save(env)["id"]))
    first = place.restored(saved, job="700")  # runs, as squeue tells
    second = place.restored(others[0], job="800")  # is gone
    for use in (first.parent / "used-700", second.parent / "used-800"):
        os.utime(use, (1, 1))
    place.restored(others[1], job="900")
    assert first.exists()
    assert not second.parent.exists()


def test_a_layer_with_another_hash_ends_the_job(place: Place, saved: str) -> None:
    (layer,) = place.layers()
    layer.write_bytes(layer.read_bytes()[:-1] + b"x")
    done = place.restore(saved)
    assert done.returncode == 78
    assert "another hash" in done.stderr
    assert place.run("check").returncode == 65
    assert not any((place.root / "local").rglob("tree"))


def test_a_layer_or_a_document_that_is_missing_ends_the_job(place: Place, saved: str) -> None:
    (layer,) = place.layers()
    layer.rename(layer.with_suffix(".away"))
    done = place.restore(saved)
    assert (done.returncode, "cannot be read" in done.stderr) == (78, True)
    done = place.run("restore", "--document", place.store / "documents" / f"{'0' * 64}.json")
    assert (done.returncode, "cannot be read" in done.stderr) == (78, True)


def test_a_changed_document_is_none(place: Place, saved: str) -> None:
    path = place.document(saved)
    path.write_text(path.read_text().replace('"note":""', '"note":"mine"'))
    done = place.restore(saved)
    assert done.returncode == 65
    assert "another hash" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system is mounted: root")
@pytest.mark.parametrize("free", ["600k", "40m"])
def test_a_full_node_is_said_and_left_clean(place: Place, free: str) -> None:
    """Too little is seen before; what runs out on the way is cleared away."""
    env = place.enter()
    many = {f"alpha/{n}.txt": b"" for n in range(3000)}
    install(env, wheel(place.root / "wheels", "alpha", files=many))
    saved = str(place.save(env)["id"])
    small = place.root / "small"
    small.mkdir()
    options = f"size={free},nr_inodes=1000"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", small], check=True)
    try:
        done = place.restore(saved, SLUICE_LOCAL=str(small))
        left = [path for path in small.rglob("*") if path.name in ("tree", "env")]
    finally:
        subprocess.run(["umount", small], check=True)
    assert done.returncode == 78
    assert "room" in done.stderr
    assert left == []


def test_a_folder_that_somebody_else_made_is_not_used(place: Place, saved: str) -> None:
    folder = place.root / "local" / f"sluice-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    done = place.restore(saved)
    assert done.returncode == 65
    assert "own folder" in done.stderr


def test_a_link_of_a_lower_layer_leads_no_higher_one_elsewhere(place: Place) -> None:
    """As a hostile sharer would: a link in one layer, a file behind it in the next."""
    outside = place.root / "outside"
    outside.mkdir()
    (outside / "kept").write_text("before")
    env = place.enter()
    (env / "way").symlink_to(outside)
    (env / "filler").write_bytes(os.urandom(50_000))
    place.save(env)
    (env / "way").unlink()
    (env / "way").mkdir()
    (env / "way" / "kept").write_text("after")
    second = place.save(env)
    assert second["layers"] == 2
    tree = place.restored(str(second["id"])).parent / "tree"
    assert (outside / "kept").read_text() == "before"
    assert not (tree / "way").is_symlink()
    assert (tree / "way" / "kept").read_text() == "after"


def test_a_hostile_list_of_what_is_gone_reaches_nothing_outside(place: Place) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "contrib" / "sluice_train"))
    from sluice_train.env.layer import _take_away

    outside, tree = place.root / "outside", place.root / "tree"
    outside.mkdir()
    tree.mkdir()
    (outside / "file").write_text("x")
    (tree / "link").symlink_to(outside)
    (tree / "gone").write_text("x")
    names = [b"../outside/file", b"/" + os.fsencode(outside / "file"), b"link/file", b"", b"gone"]
    _take_away(os.fsencode(tree), names)
    assert (outside / "file").exists()
    assert not (tree / "gone").exists()


def test_a_changed_base_is_said_and_another_python_refused(place: Place, tmp_path: Path) -> None:
    own = make_base(tmp_path / "own-base")
    place = Place(tmp_path, own)
    env = place.enter()
    install(env, wheel(place.root / "wheels", "alpha"))
    saved = str(place.save(env)["id"])
    assert "has changed" not in place.restore(saved).stderr
    install(own, wheel(place.root / "wheels", "inbase"))
    done = place.restore(saved, job="3")
    assert done.returncode == 0
    assert "torch has changed" in done.stderr
    path = place.document(saved)
    raw = json.loads(path.read_text())
    raw["base"]["python"] = "3.5"
    from sluice_train.env import document

    data = document.dump(raw)
    other = path.with_name(f"{document.digest(data)}.json")
    other.write_bytes(data)
    done = place.run("restore", "--document", other)
    assert (done.returncode, "Python 3.5" in done.stderr) == (78, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting takes root here")
@pytest.mark.parametrize("way", ["kernel", "squashfuse"])
def test_a_site_may_have_it_mounted(place: Place, saved: str, way: str) -> None:
    env = place.restored(saved, SLUICE_SNAPSHOT_RESTORE=way)
    tree = env.parent / "tree"
    try:
        assert os.path.ismount(tree)
        assert run(env, "alpha-say").stdout.startswith("alpha 1.0")
        again = place.restored(saved, job="3", SLUICE_SNAPSHOT_RESTORE=way)
        assert again == env
        subprocess.run(["umount", tree], check=True)  # as when the job that made it ends
        place.restored(saved, job="4", SLUICE_SNAPSHOT_RESTORE=way)
        assert run(env, "alpha-say").returncode == 0
    finally:
        subprocess.run(["umount", "-l", tree], check=False)


def test_a_mount_that_fails_is_said(place: Place, saved: str) -> None:
    done = place.restore(
        saved, SLUICE_SNAPSHOT_RESTORE="kernel", SLUICE_SNAPSHOT_MOUNT="/bin/false"
    )
    assert done.returncode == 78
    assert "cannot be mounted" in done.stderr


def test_what_the_portal_was_told_to_delete_goes_with_the_next_restore(
    place: Place, saved: str
) -> None:
    env = place.enter("5")
    install(env, wheel(place.root / "wheels", "beta"))
    other = str(place.save(env)["id"])
    place.restored(other, SLUICE_SNAPSHOT_DROP=f"{saved} {'f' * 64} ../../x")
    assert not place.document(saved).exists()
    assert [line["id"] for line in json.loads(place.run("list", "--json").stdout)] == [other]
    assert place.run("drop", other[:12]).returncode == 0
    assert place.layers() == []
    assert place.run("drop", "../etc").returncode == 65
