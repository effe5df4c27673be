"""A run folder, checkpoints in it, and the node tools as the batch script starts them."""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice_train import checkpoint
from sluice_train.files import RunFolder, lines

KIT = Path(__file__).parents[2] / "contrib" / "sluice_train"


@dataclass
class Run:
    """The job `7` in a folder of its own; `slurm` holds programs that answer as Slurm does."""

    home: Path
    given: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> RunFolder:
        return RunFolder.of_environment(self.environment())

    @property
    def checkpoints(self) -> Path:
        return self.folder.checkpoints

    def environment(self) -> dict[str, str]:
        return {
            "PATH": f"{self.home / 'slurm'}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "PYTHONPATH": str(KIT),
            "SLUICE_RUN_DIR": str(self.home / "run"),
            "SLUICE_RUN": "night",
            "SLUICE_JOB": "7",
            "SLUICE_RESTART": "0",
            "SLUICE_MAX_RESTARTS": "3",
            "SLUICE_CHECKPOINT_KEEP": "2",
            "SLUICE_RETRY_SECONDS": "0.1",
            **self.given,
        }

    def slurm_says(self, program: str, text: str, *, code: int = 0) -> None:
        """`squeue` or `scontrol` prints this and ends with `code`."""
        path = self.home / "slurm" / program
        path.parent.mkdir(exist_ok=True)
        (path.parent / f"{program}.txt").write_text(text)
        stream = "" if code == 0 else " >&2"
        path.write_text(f"#!/bin/sh\ncat {path}.txt{stream}\nexit {code}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def verb(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one to its end."""
        return subprocess.run(
            [sys.executable, "-m", "sluice_train.node", *words],
            env=self.environment(),
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def started(self, *words: str) -> subprocess.Popen[bytes]:
        """Start one beside the test."""
        return subprocess.Popen(
            [sys.executable, "-m", "sluice_train.node", *words],
            env=self.environment(),
            cwd=self.home,
        )

    def saves(self, step: int, size: int = 1000) -> Path:
        """A complete checkpoint of ours with two files of `size` bytes, one in a folder."""
        with checkpoint.writing(self.checkpoints, step, world=2) as folder:
            (folder / "model.bin").write_bytes(os.urandom(size))
            (folder / "a part").mkdir()
            (folder / "a part" / "# rank 1.bin").write_bytes(os.urandom(size))
        return self.checkpoints / f"step-{step:09d}"

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """What happened, of these kinds or of all."""
        found = lines(self.folder.events)
        return [line for line in found if not kinds or line["kind"] in kinds]


def until(true: Callable[[], object], seconds: float = 60) -> None:
    """Wait for it, and fail when it does not come."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come in time"
        time.sleep(0.02)


def content(folder: Path) -> dict[str, bytes]:
    """Each file under `folder` by its path in there."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
