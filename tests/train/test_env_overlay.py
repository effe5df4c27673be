"""An overlay above a base: its own packages go first, and the base is never written to."""

import os
from pathlib import Path

import pytest

from tests.train.env_places import Place, install, make_base, needs_squashfs, run, wheel

pytestmark = needs_squashfs


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("base")
    env = make_base(root / "env")
    install(env, wheel(root / "wheels", "inbase"))
    data = env / "share" / "jupyter" / "lab"
    data.mkdir(parents=True)
    (data / "index.html").write_text("lab")
    return env


@pytest.fixture
def place(tmp_path: Path, base: Path) -> Place:
    (tmp_path / "local").mkdir()
    return Place(tmp_path, base)


def tree_of(folder: Path) -> set[tuple[str, int]]:
    return {
        (str(path.relative_to(folder)), path.lstat().st_mtime_ns)
        for path in folder.rglob("*")
        if "__pycache__" not in path.parts and not path.is_dir()
    }


def test_programs_of_the_base_see_what_is_installed_above(place: Place) -> None:
    env = place.enter()
    newer = wheel(place.root / "wheels", "inbase", "2.0")
    before = tree_of(place.base)
    install(env, newer)
    assert run(env, "inbase-say").stdout.startswith("inbase 2.0")
    assert tree_of(place.base) == before
    run(env, "pip", "uninstall", "-q", "-y", "inbase")
    assert run(env, "python", "-c", "import inbase; print(inbase.VERSION)").stdout == "1.0\n"


def test_a_program_of_the_base_alone_runs_on_the_overlays_python(place: Place) -> None:
    env = place.enter()
    install(env, wheel(place.root / "wheels", "alpha"))
    code = "import inbase, alpha, sys; print(sys.prefix)"
    assert run(env, "python", "-c", code).stdout.strip() == str(env)
    assert run(env, "inbase-say").stdout.startswith("inbase 1.0")


def test_pip_says_why_it_does_not_uninstall_what_the_base_has(place: Place) -> None:
    env = place.enter()
    told = run(env, "pip", "uninstall", "-y", "inbase", check=False)
    assert "outside environment" in told.stdout + told.stderr
    assert run(env, "inbase-say").returncode == 0


def test_data_of_the_base_is_found_below_the_overlays_prefix(place: Place) -> None:
    env = place.enter()
    assert (env / "share/jupyter/lab/index.html").read_text() == "lab"
    assert "nothing is installed" in place.run("save", "--overlay", env.parent).stderr


def test_a_restarted_job_finds_its_overlay_again(place: Place) -> None:
    env = place.enter("8")
    install(env, wheel(place.root / "wheels", "alpha"))
    assert place.enter("8") == env
    assert run(env, "alpha-say").returncode == 0
    assert place.enter("9") != env


def test_an_overlay_above_a_snapshot_can_take_away_what_it_has(place: Place) -> None:
    env = place.enter("1")
    filler = {"alpha/data": os.urandom(300_000)}
    install(env, wheel(place.root / "wheels", "alpha", files=filler))
    install(env, wheel(place.root / "wheels", "beta"))
    first = place.save(env)
    path = str(place.document(str(first["id"])))
    again = place.enter("2", SLUICE_SNAPSHOT_DOCUMENT=path)
    assert run(again, "beta-say").stdout.startswith("beta 1.0")
    run(again, "pip", "uninstall", "-q", "-y", "beta")
    install(again, wheel(place.root / "wheels", "gamma"))
    second = place.save(again)
    assert second["layers"] == 2
    assert second["new_bytes"] < first["new_bytes"] / 10
    there = place.restored(str(second["id"]))
    assert run(there, "gamma-say").returncode == 0
    assert run(there, "python", "-c", "import beta", check=False).returncode == 1


def test_an_overlay_of_a_colleagues_snapshot_keeps_its_layers(place: Place) -> None:
    """They may delete theirs tomorrow."""
    env = place.enter("1")
    install(env, wheel(place.root / "wheels", "alpha"))
    first = place.save(env)
    path = str(place.document(str(first["id"])))
    mine = str(place.root / "mine")
    own = place.enter("2", SLUICE_SNAPSHOT_DOCUMENT=path, SLUICE_SNAPSHOT_AREA=mine)
    install(own, wheel(place.root / "wheels", "beta"))
    place.save(own, SLUICE_SNAPSHOT_AREA=mine)
    (user,) = Path(mine).iterdir()
    assert len(list((user / "layers").iterdir())) == 2


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"VIRTUAL_ENV": ""}, "choose one in the form"),
        ({"VIRTUAL_ENV": "/nowhere"}, "no Python that runs"),
        ({"SLUICE_JOB": "../x"}, "no job's key"),
        ({"SLUICE_SNAPSHOT_DOCUMENT": "/nowhere/documents/x.json"}, "cannot be read"),
        ({"SLUICE_SNAPSHOT_AREA": "/proc/x"}, "cannot be made"),
    ],
)
def test_what_cannot_be_entered_is_said(
    place: Place, variables: dict[str, str], words: str
) -> None:
    done = place.run("enter", **variables)
    assert done.returncode in (73, 78)
    assert words in done.stderr


def test_old_overlays_go_and_young_ones_stay(place: Place) -> None:
    old, young = place.enter("1").parent, place.enter("2").parent
    for path in (old, old / "state.json"):
        os.utime(path, (1, 1))
    place.enter("3")
    assert not old.exists()
    assert young.exists()
