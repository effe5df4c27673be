"""What the frameworks' templates write for the script to read, run by bash: each choice of a field.

Keys and values are those of the frameworks' own documentation: DeepSpeed 0.19, transformers 5.24
and 4.57, Colossal-AI 0.5.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from test_script_runs import Begin, begin, told  # noqa: F401 - a fixture

FSDP, ZERO, COLOSSAL = "hf-fsdp", "deepspeed-zero3", "colossalai"
HOST = {"device": "cpu", "pin_memory": True}


def settings(folder: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "sluice-runs/name-7" / name).read_text())
    return found


@pytest.mark.parametrize(
    ("stage", "offload", "parts"),
    [
        ("1", "none", {"stage": 1}),
        ("2", "optimizer", {"stage": 2, "offload_optimizer": HOST}),
        ("2", "both", {"stage": 2, "offload_optimizer": HOST}),
        ("3", "optimizer", {"stage": 3, "offload_optimizer": HOST}),
        ("3", "both", {"stage": 3, "offload_optimizer": HOST, "offload_param": HOST}),
    ],
)
def test_deepspeed_gets_its_stage_and_what_goes_to_the_host(
    begin: Begin,  # noqa: F811
    tmp_path: Path,
    stage: str,
    offload: str,
    parts: dict[str, Any],
) -> None:
    done = begin(ZERO, stage=stage, offload=offload, micro_batch="3", accumulation="4")
    assert done.returncode == 0, done.stderr
    config = settings(tmp_path, "ds_config.json")
    assert config["zero_optimization"] == parts
    assert config["train_micro_batch_size_per_gpu"] == 3
    assert config["gradient_accumulation_steps"] == 4
    assert config["checkpoint"] == {"load_universal": False}


@pytest.mark.parametrize("precision", ["bf16", "fp16", "fp32"])
def test_deepspeed_gets_its_precision(begin: Begin, tmp_path: Path, precision: str) -> None:  # noqa: F811
    begin(ZERO, precision=precision)
    config = settings(tmp_path, "ds_config.json")
    assert [kind for kind in ("bf16", "fp16") if config[kind]["enabled"]] == [
        kind for kind in ("bf16", "fp16") if kind == precision
    ]


def test_the_trainer_gets_deepspeeds_file_and_fills_in_its_own_numbers(
    begin: Begin,  # noqa: F811
    tmp_path: Path,
) -> None:
    words = told(begin(ZERO, auto="true", config_option="--deepspeed", arguments="--a 'b c'"))[
        "words"
    ]
    place = str(tmp_path / "sluice-runs/name-7/ds_config.json")
    assert words[-4:] == ["--a", "b c", "--deepspeed", place]
    config = settings(tmp_path, "ds_config.json")
    assert config["train_micro_batch_size_per_gpu"] == "auto"
    assert config["gradient_accumulation_steps"] == "auto"


def test_fsdp_of_transformers_5(begin: Begin, tmp_path: Path) -> None:  # noqa: F811
    words = told(begin(FSDP, offload="true", layers="ALayer,BLayer", as_options="true"))["words"]
    place = str(tmp_path / "sluice-runs/name-7/fsdp.json")
    assert words[-4:] == ["--fsdp", "true", "--fsdp_config", place]
    assert settings(tmp_path, "fsdp.json") == {
        "transformer_layer_cls_to_wrap": ["ALayer", "BLayer"],
        "version": 2,
        "reshard_after_forward": True,
        "state_dict_type": "SHARDED_STATE_DICT",
        "cpu_offload": True,
        "activation_checkpointing": False,
    }


def test_fsdp_of_transformers_4(begin: Begin, tmp_path: Path) -> None:  # noqa: F811
    asked = {"transformers": "4", "offload": "true", "activation_checkpointing": "true"}
    words = told(begin(FSDP, **asked, as_options="true"))["words"]
    assert words[-4:-2] == ["--fsdp", "full_shard auto_wrap offload"]
    assert settings(tmp_path, "fsdp.json") == {
        "backward_prefetch": "backward_pre",
        "use_orig_params": "true",
        "activation_checkpointing": True,
    }


def test_without_the_options_the_arguments_stay_as_they_are(begin: Begin) -> None:  # noqa: F811
    for template in (FSDP, ZERO, COLOSSAL, "fsdp"):
        assert told(begin(template, arguments="--steps 3"))["words"][-2:] == ["--steps", "3"]


@pytest.mark.parametrize(
    ("offload", "optimizer", "weights"), [("none", 0, 0), ("optimizer", 1, 0), ("both", 1, 1)]
)
def test_gemini(
    begin: Begin,  # noqa: F811
    tmp_path: Path,
    offload: str,
    optimizer: int,
    weights: int,
) -> None:
    begin(COLOSSAL, plugin="gemini", offload=offload, precision="fp16")
    assert settings(tmp_path, "colossalai.json") == {
        "plugin": "GeminiPlugin",
        "options": {
            "placement_policy": "static",
            "shard_param_frac": 1,
            "offload_optim_frac": optimizer,
            "offload_param_frac": weights,
            "precision": "fp16",
        },
    }


@pytest.mark.parametrize(("stage", "offload"), [(1, "none"), (2, "both"), (2, "optimizer")])
def test_zero_of_colossalai(begin: Begin, tmp_path: Path, stage: int, offload: str) -> None:  # noqa: F811
    begin(COLOSSAL, plugin=f"zero{stage}", offload=offload)
    assert settings(tmp_path, "colossalai.json") == {
        "plugin": "LowLevelZeroPlugin",
        "options": {"stage": stage, "cpu_offload": offload != "none", "precision": "bf16"},
    }
