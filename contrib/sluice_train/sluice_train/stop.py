"""Whether this process was asked to save and end: by the run folder's file, or by a signal."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class StopRequest:
    """Remembers TERM and USR1 instead of dying of them, and looks for the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._signalled = False
        self._process = os.getpid()
        self._before: dict[int, Any] = {}

    def listen(self) -> None:
        """Take over TERM, and USR1 where nobody has; what had TERM before is still called."""
        # ValueError: not the main thread. There a script has the file alone.
        with suppress(ValueError):
            self._before[signal.SIGTERM] = signal.signal(signal.SIGTERM, self._note)
            if signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL:
                self._before[signal.SIGUSR1] = signal.signal(signal.SIGUSR1, self._note)

    def leave(self) -> None:
        """Give the signals back to what had them before."""
        with suppress(ValueError):
            for number, handler in self._before.items():
                # None: it was not Python that had set it, and Python cannot set it again.
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before.clear()

    def asked(self, *, look: bool) -> bool:
        """Whether a stop was asked for; `look` for the file too."""
        return self._signalled or (look and self._path.exists())

    def _note(self, number: int, frame: Any) -> None:
        if os.getpid() != self._process:
            # A child forked from this process, say of a pool: `terminate` must still end it.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self._signalled = True
        before = self._before.get(number)
        if callable(before):
            before(number, frame)


def outlive_term(worker: int = 0) -> None:
    """For `DataLoader(worker_init_fn=...)`: the loader's processes do not die of TERM.

    Slurm sends it to every process of a preempted job at once, and a training that lost its
    loaders fails before it can save. They end with the process that they load for.
    """
    del worker
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
