"""Files copied into a mounted folder: at a limited rate, synced, compared, and cut off at will."""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING

from sluice_train.node.halting import Failed, Halt

if TYPE_CHECKING:
    from pathlib import Path

CHUNK = 1 << 20
PART = ".part"


def is_part(path: Path) -> bool:
    """Whether `path` is what a copy that was cut off left behind."""
    return path.name.startswith(".") and path.name.endswith(PART)


class Copier:
    """Copies at most `limit` bytes a second, 0 being without a limit."""

    def __init__(self, limit: int, halt: Halt) -> None:
        self._limit, self._halt = limit, halt

    def copy(self, source: Path, target: Path) -> None:
        """Write `source` aside, sync it, rename it to `target`. Failed, Halted.

        What is there already with the same size is left: `compare` tells whether it is right.
        """
        try:
            size = source.stat().st_size
            if target.is_file() and target.stat().st_size == size:
                return
            target.parent.mkdir(parents=True, exist_ok=True)
            aside = target.with_name(f".{target.name}{PART}")
            with source.open("rb") as reading, aside.open("wb") as writing:
                started, copied = time.monotonic(), 0
                while chunk := reading.read(CHUNK):
                    self._halt.check()
                    writing.write(chunk)
                    copied += len(chunk)
                    if self._limit:
                        self._halt.pause(copied / self._limit - (time.monotonic() - started))
                writing.flush()
                os.fsync(writing.fileno())
            aside.replace(target)
        except OSError as error:
            raise Failed(str(error)) from error

    def compare(self, source: Path, target: Path) -> None:
        """Failed where the two differ, and what differs is deleted, to be copied anew. Halted."""
        try:
            if self._digest(source) != self._digest(target):
                target.unlink()
                raise Failed(f"{target} differs from {source}")
        except OSError as error:
            raise Failed(str(error)) from error

    def _digest(self, path: Path) -> bytes:
        digest = hashlib.sha256()
        with path.open("rb") as stream:
            # Of the disk, not of what memory still holds of the writing.
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while chunk := stream.read(CHUNK):
                self._halt.check()
                digest.update(chunk)
        return digest.digest()
