"""The git commit of a working folder, as it is noted before a job begins."""

import os
import subprocess
from pathlib import Path

import pytest

from sluice_train.node import code


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    return tmp_path


def test_a_folder_without_a_commit_has_none(folder: Path) -> None:
    assert code.noted() is None
    git(folder, "init", "-q")
    assert code.noted() is None


def test_the_commit_and_whether_files_differ_from_it(folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "train.py").write_text("1")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "x")
    git(folder, "remote", "add", "origin", "https://me:secret@git.example/a/b.git")
    commit = git(folder, "rev-parse", "HEAD")

    clean = {"commit": commit, "clean": True, "remote": "https://git.example/a/b.git"}
    assert code.noted() == clean
    (folder / "train.py").write_text("2")
    assert code.noted() == clean | {"clean": False}


def test_without_git_nothing_is_noted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    assert code.noted() is None
    assert folder.is_dir()
