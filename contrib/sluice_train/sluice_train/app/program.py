"""The program: started, listened to, and ended with everything that it started itself."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PATIENCE_SECONDS = 20.0  # between TERM and KILL; Slurm leaves 30 s
LAST_WORDS_SECONDS = 0.5
TAIL_BYTES = 3_000
LINES_SHOWN = 20
_PR_SET_CHILD_SUBREAPER = 36
_CHUNK = 65_536


class Program:
    """One start of the program. Its output goes to ours, and its end is kept."""

    def __init__(self, process: asyncio.subprocess.Process, output: int) -> None:
        self._process = process
        self._output = output
        self._tail: deque[bytes] = deque(maxlen=16)
        self._is_silent = asyncio.Event()
        os.set_blocking(output, False)
        asyncio.get_running_loop().add_reader(output, self._listen)

    @classmethod
    async def start(
        cls, words: Sequence[str], *, folder: Path, environment: Mapping[str, str]
    ) -> Program:
        """In a session of its own. OSError: it cannot be started."""
        # A pipe of our own: asyncio would take the program for alive as long as any child of it
        # holds the pipe open.
        output, end = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=end,
                stderr=asyncio.subprocess.STDOUT,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )
        except BaseException:
            os.close(output)
            raise
        finally:
            os.close(end)
        return cls(process, output)

    @property
    def code(self) -> int | None:
        """As a shell would say it; None while it runs."""
        code = self._process.returncode
        return code if code is None or code >= 0 else 128 - code

    @property
    def tail(self) -> str:
        """The last lines of its output."""
        text = b"".join(self._tail)[-TAIL_BYTES:].decode(errors="replace")
        return "\n".join(text.splitlines()[-LINES_SHOWN:])

    async def wait(self) -> int:
        """Its exit code, once it has ended and its last words are read."""
        await self._process.wait()
        with suppress(asyncio.TimeoutError):  # what it left behind may still speak
            await asyncio.wait_for(self._is_silent.wait(), LAST_WORDS_SECONDS)
        return self.code or 0

    async def end(self, patience: float = PATIENCE_SECONDS) -> None:
        """TERM, time to save, then KILL for it and for all that it started."""
        if self.code is None:
            _signal_group(self._process.pid, signal.SIGTERM)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._process.wait(), patience)
        _signal_group(self._process.pid, signal.SIGKILL)
        kill_descendants()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._process.wait(), 2)
        self._hang_up()

    def _listen(self) -> None:
        try:
            chunk = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self._hang_up()
            return
        self._tail.append(chunk[-TAIL_BYTES:])
        with suppress(OSError):  # a full disk must not stop the program
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()

    def _hang_up(self) -> None:
        if not self._is_silent.is_set():
            self._is_silent.set()
            asyncio.get_running_loop().remove_reader(self._output)
            os.close(self._output)


def adopt_orphans() -> None:
    """What the program leaves behind becomes ours, so that it can be found and ended."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_descendants() -> None:
    """KILL for all that we or our children started; it may start more while we look."""
    for _ in range(5):
        found = descendants(os.getpid())
        if not found:
            return
        for pid in found:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def descendants(pid: int) -> set[int]:
    """The processes below `pid` that still run."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                # the name before it may hold blanks and brackets
                words = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                if words[0] not in "ZX":
                    children.setdefault(int(words[1]), []).append(int(entry.name))
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            found.add(child)
            waiting.append(child)
    return found


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(OSError):
        os.killpg(pid, number)
