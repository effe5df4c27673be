"""The stacks of a stalled run's ranks, by py-spy, when `stacks/wanted` asks for them."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_train.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice_train.files import RunFolder

KIT = Path(__file__).resolve().parents[2]
KIT_PROGRAMS = f"{KIT / 'bin'}:{KIT / 'lib' / 'bin'}"  # the second is where `pip --target` puts it
SECONDS_EACH = 20
CHARACTERS_EACH = 100_000
ABSENT = "py-spy is neither on the path of this node nor in the kit: no stacks."
REFUSED = (
    "py-spy could not read it. Where it says that permission was denied, the node does not allow"
    " one process to trace another of the same user (kernel.yama.ptrace_scope)."
)


class Stacks:
    """Answers each wish once: a new or newer `stacks/wanted` gets `stacks/<node>-<n>.txt`."""

    def __init__(self, run: RunFolder, node: str) -> None:
        self._run = run
        self._node = node
        answers = [_modified(path) for path in self._answers()]
        self._answered = max(answers, default=-1)

    def wanted(self) -> bool:
        """Whether a wish has come since the last answer."""
        return _modified(self._run.stacks / "wanted") > self._answered

    def write(self, ranks: Sequence[tuple[int, int]]) -> Path:
        """Write the stacks of `ranks` (LOCAL_RANK, pid) and tell it as an event.

        Takes up to 20 s a rank. OSError: not written.
        """
        self._answered = _modified(self._run.stacks / "wanted")
        path = self._run.stacks / f"{self._node}-{len(self._answers()) + 1}.txt"
        told = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        parts = [f"Node {self._node}, {told}\n", *_stacks(ranks)]
        write_whole(path, "\n".join(parts))
        self._run.event("stacks", path=str(path))
        return path

    def _answers(self) -> list[Path]:
        return [
            path
            for path in self._run.stacks.glob(f"{self._node}-*.txt")
            if path.stem[len(self._node) + 1 :].isdigit()
        ]


def _stacks(ranks: Sequence[tuple[int, int]]) -> list[str]:
    spy = shutil.which("py-spy") or shutil.which("py-spy", path=KIT_PROGRAMS)
    if spy is None:
        return [ABSENT]
    if not ranks:
        return ["No rank of this job is alive on this node."]
    return [f"== rank {rank} of this node, pid {pid}\n{_dump(spy, pid)}" for rank, pid in ranks]


def _dump(spy: str, pid: int) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - py-spy and a number
            [spy, "dump", "--pid", str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS_EACH,
            check=False,
            text=True,
            errors="replace",
            env={**os.environ, "NO_COLOR": "1"},
        )
    except (OSError, subprocess.TimeoutExpired) as failed:
        return f"py-spy gave no answer: {failed}\n"
    said = done.stdout[:CHARACTERS_EACH]
    return said if done.returncode == 0 else f"{REFUSED} It said:\n{said}"


def _modified(path: Path) -> int:
    """Nanoseconds since 1970, by the file system's own clock; -1 where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return -1
