"""The check on the node, with packages of our own in the place of the large ones."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.core.env_check import read_check
from tests.train.env_places import Place, make_base

KIT = Path(__file__).resolve().parents[2] / "contrib" / "sluice_train"
TORCH = """
__version__ = "2.13.0+cpu"
class version: cuda = {cuda!r}
class cuda:
    @staticmethod
    def is_available(): return False
    @staticmethod
    def get_arch_list(): return ["sm_80", "sm_90a", "rubbish; rm"]
"""


def check(tmp_path: Path, packages: dict[str, str], *names: str, **env: str) -> dict[str, Any]:
    """Run it with these packages; the result as the portal reads it."""
    site = tmp_path / "site"
    for name, text in packages.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    words = [sys.executable, "-m", "sluice_train.check", "--result", str(tmp_path / "r.json")]
    done = subprocess.run(
        [*words, "--", *names],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{site}:{KIT}", **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    result: dict[str, Any] = json.loads((tmp_path / "r.json").read_text())
    assert done.returncode == (0 if read_check(result).ok else 1), done.stderr
    return result


def steps(result: dict[str, Any]) -> dict[str, bool]:
    return {one["name"]: one["ok"] for one in result["steps"]}


def test_versions_are_found_and_a_broken_package_is_told(tmp_path: Path) -> None:
    found = check(
        tmp_path,
        {"deepspeed.py": "__version__ = '0.19.8'", "flash_attn.py": "raise OSError('no symbol')"},
        "absent",
    )
    assert steps(found) == {
        "import deepspeed": True,
        "import flash_attn": False,
        "import absent": False,
    }
    assert found["found"]["versions"]["deepspeed"] == "0.19.8"
    assert "no symbol" in found["steps"][1]["text"]


def test_one_that_kills_its_process_is_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    killer = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    found = check(tmp_path, {"colossalai.py": killer, "deepspeed.py": "__version__ = '1'"})
    assert steps(found) == {"import deepspeed": True, "import colossalai": False}
    assert "signal 11" in found["steps"][1]["text"]


def test_two_ranks_are_started_and_odd_archs_left_out(tmp_path: Path) -> None:
    run = (
        "import sys\nfrom sluice_train.check import tries\n"
        "assert '--nproc-per-node=2' in sys.argv, sys.argv\n"
        'print(tries.MARK + \'{"backend": "gloo", "ranks": 2}\')'
    )
    packages = {
        "torch/__init__.py": TORCH.format(cuda=None),
        "torch/distributed/__init__.py": "",
        "torch/distributed/run.py": run,
    }
    found = check(tmp_path, packages)
    assert steps(found)["collective of 2 ranks, gloo"]
    assert found["found"]["archs"] == {"torch": ["sm_80", "sm_90a"]}


def test_a_build_for_cards_that_sees_none_of_the_jobs_fails(tmp_path: Path) -> None:
    packages = {"torch/__init__.py": TORCH.format(cuda="12.6")}
    found = check(tmp_path, packages, SLURM_GPUS_ON_NODE="2")
    assert steps(found)["use of the cards"] is False
    assert steps(found)["collective"] is False
    assert found["found"]["versions"]["cuda"] == "12.6"


@pytest.mark.parametrize("name", ["../x", "os;id", "-m"])
def test_what_is_no_name_is_not_imported(tmp_path: Path, name: str) -> None:
    assert check(tmp_path, {"deepspeed.py": ""}, name)["steps"][0]["name"] == "import deepspeed"


def test_a_base_is_told_as_snapshots_above_it_hold_it(tmp_path: Path) -> None:
    assert check(tmp_path, {"deepspeed.py": ""})["base"] == ""
    place = Place(tmp_path, make_base(tmp_path / "base"))
    state = place.enter().parent / "state.json"
    held = json.loads(state.read_text())["base"]["fingerprint"]
    found = check(tmp_path, {"deepspeed.py": ""}, VIRTUAL_ENV=str(tmp_path / "base"))
    assert found["base"] == held
