"""The installed wheel works without the checkout: it holds its pages, templates, migrations."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DATA_FOLDERS = ("templates", "sbatch_templates", "migrations")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once: pip makes it in a copy of the tracked files, so nothing local slips in."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), "."]
    subprocess.run(command, cwd=source, check=True)
    return next(folder.glob("*.whl"))


def test_every_page_template_and_migration_is_in_the_wheel(wheel: Path) -> None:
    names = "\n".join(zipfile.ZipFile(wheel).namelist())
    missing = [
        str(path.relative_to(ROOT))
        for folder in DATA_FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and f"/share/sluice/{path.relative_to(ROOT)}" not in names
    ]
    assert missing == []


def test_the_planners_cards_are_in_the_wheel(wheel: Path) -> None:
    assert "gateway/core/planner/cards.toml" in zipfile.ZipFile(wheel).namelist()


def test_the_installed_command_lists_the_templates(wheel: Path, tmp_path: Path) -> None:
    """Starts a process: only an installation of its own shows where the data files land."""
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps"]
    subprocess.run([*install, str(wheel)], check=True)
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": sysconfig.get_path("purelib"),  # the dependencies, not this checkout
        "SLUICE_HOME": str(tmp_path / "home"),
    }
    listed = subprocess.run(
        [tmp_path / "venv" / "bin" / "sluice", "template", "list"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.returncode == 0, listed.stderr
    assert "ddp" in listed.stdout


def test_pyslurm_is_asked_for_by_the_brokers_extra_alone(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    name = next(entry for entry in archive.namelist() if entry.endswith("METADATA"))
    lines = archive.read(name).decode().splitlines()
    asked = [line for line in lines if line.startswith("Requires-Dist: pyslurm")]
    assert len(asked) == 1
    assert 'extra == "broker"' in asked[0]
