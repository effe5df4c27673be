"""All tries, one after the other, and the result as one JSON object. Exit code 1: one failed."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice_train.check.tries import MARK
from sluice_train.env import base
from sluice_train.env.errors import Unusable

VERSION = 1
# Tried where they are there, whether or not anybody named them.
COMMON = ("torch", "transformers", "deepspeed", "flash_attn", "colossalai")
PROGRAMS = ("jupyter", "jupyter-lab", "tensorboard", "code-server", "mlflow")
RANKS = 2
SECONDS_OF_ONE = 180.0
SECONDS_OF_ALL = 720.0
LONGEST_TEXT = 1500
TORCHRUN = (
    "-m",
    "torch.distributed.run",
    "--standalone",
    "--local-addr=127.0.0.1",
    f"--nproc-per-node={RANKS}",
    "--max-restarts=0",
)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!_-]{0,39}")
_ARCH = re.compile(r"(?:sm|compute)_[1-9][0-9]{1,2}[af]?")
_CARD = re.compile(r"([0-9.]+), ([0-9]+\.[0-9])")


@dataclass
class Report:
    """What was tried and found so far."""

    ends: float
    steps: list[dict[str, Any]] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    archs: dict[str, list[str]] = field(default_factory=dict)

    def run(self, name: str, words: list[str]) -> dict[str, Any] | None:
        """A step in a process of its own: what it found, or None where it failed."""
        began = time.monotonic()
        text, found = _run(words, min(SECONDS_OF_ONE, max(1.0, self.ends - began)))
        self.add(name, text, time.monotonic() - began)
        return found

    def add(self, name: str, text: str, seconds: float = 0.0) -> None:
        """A step; it failed where there is a text."""
        step = {"name": name, "ok": not text, "seconds": round(seconds, 2), "text": text}
        self.steps.append(step)
        print(f"{'FAILED' if text else 'ok'} {name} ({seconds:.1f} s)", text, flush=True)

    def note(self, name: str, version: object) -> None:
        if isinstance(version, str) and _VERSION.fullmatch(version):
            self.versions[name] = version


def main(argv: list[str]) -> int:
    """Try the environment whose Python runs this."""
    parser = argparse.ArgumentParser(prog="python3 -m sluice_train.check")
    parser.add_argument("--result", type=Path, required=True)
    parser.add_argument("names", nargs="*", help="packages that must be there")
    asked = parser.parse_args(argv)
    began = time.monotonic()
    report = Report(ends=began + SECONDS_OF_ALL)
    driver, capability = _driver()
    report.note("python", platform.python_version())
    for name in _names(asked.names):
        found = report.run(f"import {name}", ["-m", "sluice_train.check.tries", "import", name])
        if found is not None:
            report.note(name, found.get("version"))
    if "torch" in report.versions:
        capability = _torch(report) or capability
    write(asked.result, _whole(report, driver, capability, time.monotonic() - began))
    return 0 if all(step["ok"] for step in report.steps) else 1


def _names(wanted: list[str]) -> list[str]:
    known = [name for name in wanted if _NAME.fullmatch(name)]
    there = [name for name in COMMON if importlib.util.find_spec(name) is not None]
    return [name for name in dict.fromkeys((*there, *known)) if name not in {"python", "cuda"}]


def _torch(report: Report) -> str:
    """The tries that need PyTorch; the card's compute capability, or nothing."""
    tries = ["-m", "sluice_train.check.tries"]
    found = report.run("cards", [*tries, "cuda"]) or {}
    report.note("cuda", found.get("cuda"))
    archs = [arch for arch in found.get("archs", ()) if _ARCH.fullmatch(str(arch))]
    if archs:
        report.archs["torch"] = archs
    if found.get("cuda") and not found.get("cards") and _allotted():
        report.add("use of the cards", "PyTorch sees none of the cards that the job has")
    told = report.run("collective", [*TORCHRUN, *tries, "collective"])
    if told is not None:
        report.steps[-1]["name"] = f"collective of {told.get('ranks')} ranks, {told.get('backend')}"
    if "flash_attn" in report.versions and found.get("cards"):
        report.run("attention kernel", [*tries, "attention"])
    return str(found.get("capability", ""))


def _allotted() -> bool:
    return os.environ.get("SLURM_GPUS_ON_NODE", "0") not in {"", "0"}


def _run(words: list[str], seconds: float) -> tuple[str, dict[str, Any] | None]:
    """Why it failed, or nothing; and what it found."""
    # A session of its own: the ranks that torchrun has started go with it.
    with subprocess.Popen(  # noqa: S603 - our own words
        [sys.executable, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as child:
        try:
            out, err = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            return f"no end after {seconds:.0f} s", None
    lines = [line[len(MARK) :] for line in out.splitlines() if line.startswith(MARK)]
    if child.returncode == 0 and lines:
        found = json.loads(lines[-1])
        return "", found if isinstance(found, dict) else {}
    return _why(child.returncode, err), None


def _why(code: int, err: str) -> str:
    end = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    text = "".join(letter if letter.isprintable() else " " for letter in err[-LONGEST_TEXT:])
    return f"{end}: {text.strip()}"


def _driver() -> tuple[str, str]:
    """The driver's version and the first card's compute capability, as nvidia-smi says."""
    words = ["nvidia-smi", "--query-gpu=driver_version,compute_cap", "--format=csv,noheader"]
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            words, capture_output=True, timeout=20, check=True, text=True, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return "", ""
    found = _CARD.match(done.stdout)
    return (found[1], found[2]) if found else ("", "")


def _base() -> str:
    """The fingerprint that a snapshot above this environment holds; empty where none can be."""
    try:
        return base.of_environment("", os.environ).fingerprint()
    except Unusable:
        return ""


def _whole(report: Report, driver: str, capability: str, seconds: float) -> dict[str, Any]:
    kit = [name for name in PROGRAMS if shutil.which(name) is not None]
    return {
        "version": VERSION,
        "found": {"versions": report.versions, "archs": report.archs, "kit": kit},
        "driver": driver,
        "capability": capability,
        "base": _base(),
        "steps": report.steps,
        "seconds": round(seconds, 2),
    }


def write(path: Path, result: dict[str, Any]) -> None:
    """Whole or not at all: the portal may look at any time."""
    partial = path.with_suffix(".tmp")
    with partial.open("w", encoding="utf-8") as file:
        json.dump(result, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
