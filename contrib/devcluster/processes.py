"""A process is named by its id and its start time: ids are used again."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    started: int  # clock ticks since the machine's start

    @classmethod
    def of(cls, pid: int) -> "Process":
        """Raises ProcessLookupError where there is none."""
        started = _started(pid)
        if started is None:
            raise ProcessLookupError(pid)
        return cls(pid, started)

    def alive(self) -> bool:
        return _started(self.pid) == self.started

    def kill(self, *, wait_seconds: float) -> bool:
        """SIGKILL, then wait; True when it is gone."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        return self.gone_within(wait_seconds)

    def gone_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self.alive():
            _reap(self.pid)
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        _reap(self.pid)
        return True


def only_child(pid: int) -> int | None:
    """The child of a process that has at most one."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


def _started(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else int(fields[19])


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):  # not ours: its own parent does it
        os.waitpid(pid, os.WNOHANG)
