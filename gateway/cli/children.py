"""Child processes that are kept alive: one that dies is started again, with growing pauses."""

import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from gateway.cli.account import Account

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
STEADY_SECONDS = 30.0  # who ran so long has not failed at its start
LOOK_SECONDS = 0.2
_PR_SET_PDEATHSIG = 1  # prctl(2)
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to start a process. `argv` is asked anew each time; it may raise `unready`."""

    name: str
    argv: Callable[[], Sequence[str]]
    env: Mapping[str, str]
    account: Account | None = None  # None: stay who we are
    unready: tuple[type[Exception], ...] = (OSError,)
    umask: int = 0o077


@dataclass(slots=True)
class _Child:
    recipe: Recipe
    say: Say
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    again_at: float = 0.0
    failures: int = field(default=0)

    def look(self) -> None:
        """Start it when it is time, note it when it has died."""
        now = time.monotonic()
        if self.process is None:
            if now >= self.again_at:
                self._start(now)
            return
        code = self.process.poll()
        if code is not None:
            # Its own children would hold the port or the socket against the next one.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process = None
            if now - self.started_at > STEADY_SECONDS:
                self.failures = 0
            self._later(now, f"ended ({_ending(code)})")

    def _start(self, now: float) -> None:
        recipe = self.recipe
        who = recipe.account
        try:
            self.process = subprocess.Popen(  # noqa: S603  # a list of our own
                list(recipe.argv()),
                env=dict(recipe.env),
                stdin=subprocess.DEVNULL,
                cwd="/",
                # A group of its own: Ctrl-C reaches us alone, and we end them in order.
                process_group=0,
                user=None if who is None else who.uid,
                group=None if who is None else who.gid,
                extra_groups=None if who is None else [],
                umask=recipe.umask,
                preexec_fn=_end_with_parent,  # noqa: PLW1509  # we have no threads
            )
        except recipe.unready as error:
            self._later(now, f"cannot start: {error}")
            return
        self.started_at = now

    def _later(self, now: float, what: str) -> None:
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self.failures)
        self.failures += 1
        self.again_at = now + pause
        self.say(f"{self.recipe.name} {what}; starting it again in {pause:g} s")


def supervise(
    recipes: Sequence[Recipe], *, stop: threading.Event, say: Say, stop_seconds: float = 12.0
) -> None:
    """Keep all of them running until `stop` is set, then end them, the first one last."""
    children = [_Child(recipe, say) for recipe in recipes]
    try:
        while not stop.is_set():
            for child in children:
                child.look()
            stop.wait(LOOK_SECONDS)
    finally:
        _end(
            [child.process for child in reversed(children) if child.process is not None],
            stop_seconds,
        )


def _end(processes: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    for process in processes:
        process.terminate()
    until = time.monotonic() + seconds
    for process in processes:
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            # Its group, because its own children would be left over.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _end_with_parent() -> None:
    """Were we killed outright, what we started would keep the port and the lease."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
