"""The Python that has PyTorch, where there is one: PLANNER_TORCH_PYTHON, else this one."""

import os
import subprocess
import sys
from functools import cache

import pytest

PYTHON = os.environ.get("PLANNER_TORCH_PYTHON", sys.executable)


@cache
def _has(module: str) -> bool:
    ask = [PYTHON, "-c", f"import {module}"]
    found = subprocess.run(ask, capture_output=True, check=False)  # noqa: S603
    return found.returncode == 0


def needs(module: str) -> None:
    """Skip, with the reason, where that Python lacks it."""
    if not _has(module):
        pytest.skip(f"{module} is not installed")
