"""Some rendered scripts, as files a person can read: a change of a template shows in the diff.

After a wanted change: SLUICE_UPDATE_GOLDEN=1 pytest tests/services/test_golden_scripts.py
"""

import os
from pathlib import Path

import pytest

from gateway.testing.script_cases import TEMPLATES, Case, cases, rendered

GOLDEN = Path(__file__).parents[1] / "golden"
# Each template, each environment, both sizes: together all that a template can render.
CASES = (
    Case("colossalai", 2, 4, "apptainer"),
    Case("command", 2, 1, "module"),
    Case("ddp", 1, 1, "none"),
    Case("ddp", 2, 4, "venv"),
    Case("deepspeed-zero3", 2, 8, "conda"),
    Case("fsdp", 2, 4, "apptainer"),
    Case("hf-fsdp", 1, 8, "venv"),
    Case("notebook", 1, 1, "venv"),
    Case("single-gpu", 1, 1, "conda"),
    Case("sweep", 1, 1, "venv"),
    Case("tensorboard", 1, 1, "none"),
    Case("vscode", 1, 4, "apptainer"),
)


def path_of(case: Case) -> Path:
    return GOLDEN / f"{case}.sbatch"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_script_is_as_it_was(case: Case) -> None:
    text = rendered(case)
    if os.environ.get("SLUICE_UPDATE_GOLDEN"):
        path_of(case).write_text(text, encoding="utf-8")
    assert text == path_of(case).read_text(encoding="utf-8")


def test_no_script_has_a_gap_of_several_lines() -> None:
    for case in cases():
        assert "\n\n\n" not in rendered(case), case


def test_each_template_has_a_file_and_there_is_no_stray_one() -> None:
    assert {case.template for case in CASES} == TEMPLATES.keys()
    assert {path.name for path in GOLDEN.glob("*.sbatch")} == {path_of(c).name for c in CASES}
