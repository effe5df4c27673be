"""What is known of environments: CUDA's rules, versions, needs; nothing said of the unknown."""

import pytest

from gateway.core.env_facts import (
    Clash,
    Facts,
    Lack,
    card_clashes,
    dump_facts,
    fact_faults,
    lacking,
    read_facts,
    read_need,
    runs_on,
)
from gateway.core.environments import faults, of_table, to_table

TABLE = {
    "name": "torch-2.13",
    "kind": "venv",
    "path": "/opt/envs/torch-2.13",
    "title": {"en": "PyTorch", "zh_Hans": "PyTorch"},
    "facts": {
        "versions": {"torch": "2.13.0+cu126", "flash_attn": "2.8.1"},
        "archs": {"flash_attn": ["sm_80", "sm_90a"]},
        "min_driver": "550.54.14",
        "kit": ["jupyter-lab"],
    },
}


# NVIDIA, CUDA C++ Programming Guide: "Binary Compatibility", "PTX Compatibility".
@pytest.mark.parametrize(
    ("arch", "capability", "runs"),
    [
        ("sm_86", "8.9", True),  # the same major number, an equal or higher minor one
        ("sm_80", "8.9", True),
        ("sm_89", "8.9", True),
        ("sm_89", "8.6", False),  # a lower minor one
        ("sm_90", "8.9", False),  # another major one
        ("sm_80", "9.0", False),
        ("sm_75", "8.0", False),
        ("compute_80", "9.0", True),  # PTX for any later card
        ("compute_90", "8.9", False),
        ("sm_90a", "9.0", True),  # an architecture's own features: on no other
        ("sm_100a", "10.3", False),
        ("compute_90a", "10.0", False),
        ("sm_100f", "10.3", True),  # a family's
        ("sm_100f", "12.0", False),
        ("sm_120", "12.0", True),
        ("rubbish", "8.9", False),
    ],
)
def test_which_code_runs_on_which_card(arch: str, capability: str, runs: bool) -> None:
    assert runs_on(arch, capability) is runs


def test_a_build_without_code_for_the_card_is_told_by_package() -> None:
    facts = Facts(archs={"torch": ("sm_80",), "flash_attn": ("sm_90",)})
    assert card_clashes(facts, "8.9") == [Clash(Lack.ARCH, "flash_attn", "sm_90", "sm_89")]
    assert card_clashes(facts, "") == []
    assert card_clashes(Facts(), "8.9", "470") == []


def test_a_driver_is_compared_by_its_numbers() -> None:
    facts = Facts(min_driver="550.54")
    assert card_clashes(facts, "", "550.54.14") == []
    assert card_clashes(facts, "", "1000.1") == []
    assert card_clashes(facts, "", "470.223.02")[0].lack is Lack.DRIVER
    assert card_clashes(facts, "", "") == []


@pytest.mark.parametrize(
    ("need", "met"),
    [
        ("torch", True),
        ("torch>=2.2", True),
        ("torch>=2.13", True),
        ("torch>=2.2,<2.13", False),
        ("torch==2.13.0", True),
        ("torch!=2.13", False),
        ("torch>2.13", False),
        ("torch<=3", True),
        ("deepspeed", False),
        ("jupyter_lab", False),
        ("jupyterlab", True),
    ],
)
def test_needs_are_compared_with_what_is_known(need: str, met: bool) -> None:
    known = Facts({"torch": "2.13.0+cu126"}, kit=("jupyterlab",))
    found = read_need(need)
    assert found is not None
    assert (lacking(known, (found,)) == []) is met
    assert lacking(Facts(), (found,)) == []


@pytest.mark.parametrize("text", ["", "Torch", "torch>=", "torch~=2", "torch 2", "a;b", "x>=2,"])
def test_what_is_no_need(text: str) -> None:
    assert read_need(text) is None


def test_facts_and_tables_come_back_as_they_were() -> None:
    assert faults(TABLE) == []
    assert to_table(of_table(TABLE)) == TABLE
    assert dump_facts(read_facts({})) == {}


@pytest.mark.parametrize(
    "facts",
    [
        5,
        {"more": 1},
        {"versions": []},
        {"versions": {"torch": 2}},
        {"versions": {"Torch": "2"}},
        {"versions": {"torch": "$(id)"}},
        {"versions": {f"p{n}": "1" for n in range(41)}},
        {"archs": {"torch": "sm_80"}},
        {"archs": {"torch": ["sm_8"]}},
        {"archs": {"torch": [80]}},
        {"min_driver": 550},
        {"min_driver": "new"},
        {"kit": ["a b"]},
        {"kit": "jupyter"},
    ],
)
def test_facts_of_another_shape_are_refused(facts: object) -> None:
    assert fact_faults(facts)
    assert faults(TABLE | {"facts": facts})
