"""Work that can be cut off at any time: by a signal, by a deadline, by the end of the job."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from sluice_train.node.stacks import KIT_PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TOLD_BYTES = 2000  # of a program's complaint: its end says what was wrong


class Halted(Exception):
    """The work was cut off. What it was doing is not finished."""


class Failed(Exception):
    """A program or a copy failed; the text says why. It may be tried again."""

    def __init__(self, text: str, code: int = -1) -> None:
        super().__init__(text)
        self.code = code


class Halt:
    """Ends what is under way in another thread, and all that would come after."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def now(self) -> None:
        """Cut off, for good."""
        self._event.set()
        with self._lock:
            if self._child is not None:
                _end(self._child)

    @property
    def asked(self) -> bool:
        """Whether it was cut off."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise Halted when it was cut off."""
        if self.asked:
            raise Halted

    def pause(self, seconds: float) -> None:
        """Wait; Halted at once when it is cut off meanwhile."""
        if self._event.wait(max(0.0, seconds)):
            raise Halted

    def run(self, argv: Sequence[str], *, cwd: Path | None = None, given: bytes = b"") -> str:
        """What the program printed, `given` being its input. Failed with its last words; Halted."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            with tempfile.TemporaryFile() as words:
                words.write(given)
                words.seek(0)
                child = self._started(argv, cwd, words.fileno(), out.fileno(), errors.fileno())
            try:
                code = child.wait()
            finally:
                with self._lock:
                    self._child = None
            self.check()
            if code != 0:
                errors.seek(max(0, errors.seek(0, os.SEEK_END) - TOLD_BYTES))
                told = errors.read().decode(errors="replace").strip()
                raise Failed(f"{argv[0]} ended with {code}: {told}", code)
            out.seek(0)
            return out.read().decode(errors="surrogateescape")

    def _started(
        self, argv: Sequence[str], cwd: Path | None, words: int, out: int, errors: int
    ) -> subprocess.Popen[bytes]:
        # Asks for no password: nobody is there to type one.
        environment = {"RSYNC_RSH": "ssh -oBatchMode=yes -oConnectTimeout=20", **os.environ}
        environment["PATH"] = f"{os.environ.get('PATH', os.defpath)}:{KIT_PROGRAMS}"
        with self._lock:
            self.check()
            try:
                # A group of its own: rsync is several processes, and all of them must end.
                self._child = subprocess.Popen(  # noqa: S603
                    argv,
                    stdin=words,
                    stdout=out,
                    stderr=errors,
                    cwd=cwd,
                    env=environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise Failed(f"{argv[0]} could not be started: {error.strerror}") from error
            return self._child


def _end(child: subprocess.Popen[bytes]) -> None:
    # KILL: without its marker nothing of an upload counts, so there is nothing to tidy up.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, 9)
