"""Ranks that really are processes, for the tests of the library. Only where there is torch.

PLANNER_TORCH_PYTHON names a Python that has it.
"""

import os
import socket
import subprocess
import time
from pathlib import Path

from gateway.testing.torch_python import PYTHON
from sluice_train.checkpoint import newest
from sluice_train.files import lines

LIBRARY = Path(__file__).resolve().parents[2] / "contrib" / "sluice_train"


class Launches:
    """Starts ranks as torchrun would on one node, with `folder` as the run folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[subprocess.Popen[str]] = []

    def __call__(
        self, *command: object, world: int = 2, **given: str
    ) -> list[subprocess.Popen[str]]:
        """The ranks of one launch, which begins with the newest checkpoint, as a job does."""
        found = newest(self._folder / "checkpoints")
        environment = {
            **os.environ,
            "PYTHONPATH": str(LIBRARY),
            "OMP_NUM_THREADS": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(_free_port()),
            "WORLD_SIZE": str(world),
            "EXPECT_WORLD": str(world),
            "SLUICE_RUN_DIR": str(self._folder),
            "SLUICE_CHECKPOINT_DIR": str(self._folder / "checkpoints"),
            "SLUICE_KIT": "/kit",
            "SLUICE_RESUME": str(found.path) if found else "",
            "SLUICE_CHECKPOINT_SECONDS": "0",
        } | given
        ranks = [
            subprocess.Popen(
                [PYTHON, "-W", "ignore", *map(str, command)],
                env=environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(world)
        ]
        self._running.extend(ranks)
        return ranks

    def end(self) -> None:
        """None outlives its test."""
        for process in self._running:
            process.kill()
            process.communicate()


def _free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def ended(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
    """Code, output and errors of each, all of which must end in time."""
    until = time.monotonic() + 200
    found = [each.communicate(timeout=until - time.monotonic()) for each in processes]
    return [(each.returncode, *texts) for each, texts in zip(processes, found, strict=True)]


def wait_for_step(folder: Path, step: int) -> None:
    """Until the training says that it has come that far."""
    until = time.monotonic() + 120
    while not any(line["step"] >= step for line in lines(folder / "metrics.jsonl")):
        assert time.monotonic() < until, "the training does not get on"
        time.sleep(0.02)
