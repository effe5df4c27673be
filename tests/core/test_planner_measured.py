"""Estimates of memory against what training really takes, on the processor.

Starts processes that train, as nothing else tells: only where there is torch, some 20 seconds a
strategy. PLANNER_TORCH_PYTHON names a Python that has torch, and deepspeed for ZeRO-2 and 3.
"""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.core.planner.model import Dimensions, of_dimensions
from gateway.core.planner.setup import Recompute, Setup
from gateway.core.planner.strategies import Precision
from gateway.testing.planner_samples import bare, on
from gateway.testing.torch_python import PYTHON, needs

SCRIPT = Path(__file__).with_name("measured_training.py")
# Mostly state; half and half; mostly activations.
MODELS = (
    {"layers": 4, "hidden": 640, "heads": 10, "vocab": 8000, "sequence": 128, "batch": 1},
    {"layers": 4, "hidden": 384, "heads": 6, "vocab": 8000, "sequence": 256, "batch": 4},
    {"layers": 3, "hidden": 256, "heads": 8, "vocab": 4000, "sequence": 512, "batch": 3},
)


def _used(strategy: str, ranks: int, batch: int) -> Setup:
    """As the script trains: with PyTorch's ZeRO-1 over DDP, and DeepSpeed's buckets made small."""
    precision = Precision.BF16 if strategy in {"zero2", "zero3"} else Precision.FP32
    given = {"precision": precision, "recompute": Recompute.NONE, "micro_batch": batch}
    used = on(strategy, ranks, **given)
    kind = replace(used.strategy, bucket_elements=1e6 if precision is Precision.BF16 else 0)
    return replace(used, strategy=replace(kind, bucket=4) if strategy == "zero1" else kind)


@pytest.mark.parametrize(
    ("strategy", "ranks", "module"),
    [
        ("single", 1, "torch"),
        ("ddp", 1, "torch"),
        ("zero1", 2, "torch"),
        ("fsdp", 2, "torch"),
        ("zero2", 2, "deepspeed"),
        ("zero3", 2, "deepspeed"),
    ],
)
def test_memory_is_within_a_fifth_of_what_was_measured(strategy, ranks, module, tmp_path):
    needs(module)
    environment = os.environ | {
        "MALLOC_MMAP_THRESHOLD_": "65536",  # freed memory goes back at once
        "OMP_NUM_THREADS": "1",
        "DS_ACCELERATOR": "cpu",
        "PATH": f"{Path(PYTHON).parent}:{os.environ['PATH']}",
    }
    command = [PYTHON, "-W", "ignore", str(SCRIPT), strategy]
    given = [str(ranks), str(tmp_path), json.dumps(MODELS)]
    started = [
        subprocess.Popen(
            [*command, str(rank), *given],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    said = [process.communicate(timeout=240) for process in started]
    assert all(process.returncode == 0 for process in started), said[0][1]
    peaks = json.loads(said[0][0].splitlines()[-1])
    for shape, peak in zip(MODELS, peaks, strict=True):
        size = Dimensions(*(shape[name] for name in ("layers", "hidden", "heads", "vocab")))
        found = of_dimensions(size, sequence=shape["sequence"])
        expected = bare(found, _used(strategy, ranks, shape["batch"])).total.value
        print(f"{strategy}: estimated {expected / 1e6:.0f} MB, measured {peak / 1e6:.0f} MB")
        assert expected == pytest.approx(peak, rel=0.2)
