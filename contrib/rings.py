"""Run the tests in rings, print what each took, and fail past a ring's budget.

The rings go from fast to slow, so that a mistake is told early:
static (format, lint, types, import contracts), fast (fakes only), store (real databases),
slurm (a real cluster), torch (what the planner says against PyTorch and DeepSpeed), browser (a
real cluster, three processes and Chromium).
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Ring:
    """`budget_seconds` is for two cores; past it the ring fails although its tests passed."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    budget_seconds: int
    needs_root: bool = False


def _pytest(*arguments: str) -> tuple[str, ...]:
    return (str(BIN / "python"), "-m", "pytest", *arguments)


# Where a real cluster or a measurement is at work, once (docs/adr/0017); -rR names what needed it.
AGAIN = ("--reruns=1", "-rR")
# Two processes, whole files each: each has its fixtures, in `slurm` a cluster, of its own.
SIDE_BY_SIDE = ("--numprocesses=2", "--dist=loadfile")

FAST = ("core", "wire", "services", "web", "contract", "broker", "worker", "cli", "train", "guards")

# What must hold on PostgreSQL too: two writers see each other by locks of rows there.
MONEY = tuple(
    f"tests/services/test_{name}.py"
    for name in (
        "array_jobs",
        "dataset_money",
        "holds",
        "ledger_properties",
        "money_faults",
        "settle",
        "smoke_jobs",
        "volumes",
    )
)

# What the planner says, against training and against DeepSpeed's own estimates.
MEASURED = tuple(f"tests/core/test_planner_{name}.py" for name in ("measured", "memory"))
TORCH_PYTHON = ROOT / "contrib" / "devcluster" / "torch-python"

RINGS = (
    Ring(
        "static",
        (
            (str(BIN / "ruff"), "format", "--check", "-q", "."),
            (str(BIN / "ruff"), "check", "-q", "."),
            (str(BIN / "mypy"),),
            (str(BIN / "lint-imports"), "--verbose"),
        ),
        budget_seconds=180,
    ),
    Ring(
        "fast",
        (
            _pytest(
                *(f"tests/{part}" for part in FAST if (ROOT / "tests" / part).is_dir()),
                *SIDE_BY_SIDE,
            ),
        ),
        budget_seconds=2400,
    ),
    Ring(
        "store",
        (
            _pytest("tests/store", "tests/packaging"),
            (str(BIN / "python"), "tests/store/on_postgresql.py", "tests/store", *MONEY),
        ),
        budget_seconds=600,
    ),
    Ring(
        "slurm",
        (_pytest("tests/slurm", *SIDE_BY_SIDE, *AGAIN),),
        budget_seconds=2400,
        needs_root=True,
    ),
    Ring(
        "torch",
        (
            (str(BIN / "sluice"), "cluster", "torch", "--frameworks"),
            ("env", f"PLANNER_TORCH_PYTHON={TORCH_PYTHON}", *_pytest(*MEASURED, *AGAIN)),
        ),
        budget_seconds=600,
        needs_root=True,
    ),
    Ring("browser", (_pytest("tests/browser", *AGAIN),), budget_seconds=900, needs_root=True),
)


def main(names: list[str]) -> int:
    """Run the named rings, or all; 0 when each passed within its budget."""
    known = [ring.name for ring in RINGS]
    if unknown := sorted(set(names) - set(known)):
        print(f"There is no ring {unknown[0]}. The rings are: {', '.join(known)}")
        return 2
    chosen = [ring for ring in RINGS if not names or ring.name in names]
    if any(ring.needs_root for ring in chosen) and os.geteuid() != 0:
        print("The rings 'slurm', 'torch' and 'browser' use namespaces: run as root,")
        print("or choose rings: .venv/bin/python contrib/rings.py static fast store")
        return 2
    outcomes: list[tuple[Ring, float, str]] = []
    for ring in chosen:
        outcomes.append(_run(ring))
        if outcomes[-1][2] != "passed":
            break
    print("\nring        seconds  budget  outcome")
    for ring, seconds, outcome in outcomes:
        print(f"{ring.name:10}  {seconds:7.1f}  {ring.budget_seconds:6}  {outcome}")
    return 0 if all(outcome == "passed" for _, _, outcome in outcomes) else 1


def _run(ring: Ring) -> tuple[Ring, float, str]:
    print(f"\n── {ring.name} ──", flush=True)
    started = time.monotonic()
    for command in ring.commands:
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:  # noqa: S603
            return ring, time.monotonic() - started, "FAILED"
    seconds = time.monotonic() - started
    return ring, seconds, "passed" if seconds <= ring.budget_seconds else "TOO SLOW"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
