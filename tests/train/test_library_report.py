"""The helper of any script: a line in the run's folder, or a printed one; never an error."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from sluice_train import report


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLUICE_RUN_DIR", "SLUICE_METRICS", "RANK", "SLURM_PROCID", "SLUICE_RESTART"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLUICE_JOB", "12")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_run_of_the_portal_gets_a_line_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLUICE_RUN_DIR", str(tmp_path))
    report({"val/loss": 0.25}, step=3, accuracy=0.5)
    report(loss=math.nan)
    first, second = lines(tmp_path / "metrics.jsonl")
    assert (first["val/loss"], first["accuracy"], first["step"], first["job"]) == (
        0.25,
        0.5,
        3,
        "12",
    )
    assert second["loss"] is None
    assert capsys.readouterr().out == ""


def test_elsewhere_the_line_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    report(accuracy=0.5, step=3)
    assert capsys.readouterr().out == "::metric accuracy=0.5 step=3\n"


def test_a_place_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_METRICS", str(tmp_path / "own" / "m.jsonl"))
    report(a=1)
    assert lines(tmp_path / "own" / "m.jsonl")[0]["a"] == 1


def test_only_the_first_rank_reports(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANK", "1")
    report(a=1)
    monkeypatch.setenv("RANK", "0")
    report(a=2)
    assert capsys.readouterr().out == "::metric a=2\n"


def test_what_cannot_be_written_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLUICE_RUN_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(sys.modules["sluice_train.report"], "_COMPLAINED", [])
    for _ in range(3):
        report(a=1)
    assert capsys.readouterr().err.count("could not be written") == 1
