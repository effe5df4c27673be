"""How many workers may wait for one thing at once: one fewer than there are.

A frozen slurmctld would otherwise take every worker, and files could not be read either; a dead
file system would, and nobody could submit.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.errors import BrokerUnreachable

_PAUSE_SECONDS = 0.003
# Calls take milliseconds: when every slot is held this long, what they wait for hangs, and one
# more worker that waits would be the last one for everything else.
_STUCK_SECONDS = 1.0


class Slots:
    """Locked files: the kernel frees a slot when its worker is killed."""

    def __init__(
        self,
        folder: Path,
        *,
        count: int,
        patience_seconds: float,
        stuck_seconds: float = _STUCK_SECONDS,
    ) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._files = [folder / f"slot-{n}" for n in range(max(1, count))]
        self._patience_seconds = patience_seconds
        self._stuck_seconds = stuck_seconds

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold a slot; BrokerUnreachable when all stay busy: nothing was begun."""
        handle = self._take()
        try:
            yield
        finally:
            os.close(handle)

    def _take(self) -> int:
        end = time.monotonic() + self._patience_seconds
        while True:
            taken_at = []
            for path in self._files:
                handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                if _lock(handle):
                    os.utime(handle)
                    return handle
                taken_at.append(os.fstat(handle).st_mtime)
                os.close(handle)
            if time.monotonic() > end or time.time() - max(taken_at) > self._stuck_seconds:
                raise BrokerUnreachable(
                    f"every worker that may wait here is busy: {self._files[0].parent.name}"
                )
            time.sleep(_PAUSE_SECONDS)


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
