"""Which tokens this broker has ever tried to submit, and one at a time for each.

A token without a file was never sent to Slurm from here, so that the common case needs no look
into a queue of a hundred thousand jobs. The lock makes two requests with one token wait.
"""

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable

TOKEN = re.compile(r"[A-Za-z0-9_-]{8,64}", re.ASCII)
_KEEP_SECONDS = 90 * 86400
_PATIENCE_SECONDS = 3.0  # a double click gets the first click's job
_PAUSE_SECONDS = 0.005
_MARK = b"submitting\n"


@dataclass(slots=True)
class Claim:
    """`seen_before` says that an earlier request came this far, perhaps to Slurm's yes."""

    seen_before: bool
    began: float  # epoch seconds of the first try


class Tokens:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder

    @contextlib.contextmanager
    def claimed(self, token: str) -> Iterator[Claim]:
        """Hold the token for a submit; BrokerSilent when another request is submitting it,
        BrokerUnreachable when it cannot be noted (the disk is full): nothing was sent."""
        handle = _open(self._path(token))
        try:
            _lock(handle)
            # Judged under the lock: who made the file need not be the first to get here.
            seen_before = os.fstat(handle).st_size > 0
            if not seen_before:
                _mark(handle)
            try:
                yield Claim(seen_before=seen_before, began=os.fstat(handle).st_mtime)
            except BrokerUnreachable:
                # Slurm never had it: the next try need not look through the whole queue.
                if not seen_before:
                    os.ftruncate(handle, 0)
                raise
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def at_rest(self, token: str) -> Iterator[None]:
        """BrokerSilent while a submit of this token is under way: it cannot be denied yet."""
        try:
            handle = os.open(self._path(token), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            yield
            return
        try:
            _lock(handle)
            yield
        finally:
            os.close(handle)

    def remember(self, tokens: Iterable[str]) -> None:
        """Mark tokens that were sent before a crash of the host."""
        for token in tokens:
            path = self._path(token)
            if not path.exists() or not path.stat().st_size:
                path.write_bytes(_MARK)

    def forget_old(self) -> None:
        """Drop files so old that Slurm's own memory of the token is gone as well."""
        limit = time.time() - _KEEP_SECONDS
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # another worker was first
                    if entry.stat().st_mtime < limit:
                        os.unlink(entry)  # noqa: PTH108  # a hundred thousand of them, perhaps

    def _path(self, token: str) -> Path:
        if not TOKEN.fullmatch(token):
            raise BrokerRefused("not a token", code="bad_token")
        return self._folder / token


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BrokerUnreachable(f"{path}: {error}") from error


def _mark(handle: int) -> None:
    """Not synced: after a crash of the host the acts log, which is, names the token."""
    try:
        os.write(handle, _MARK)
    except OSError as error:
        raise BrokerUnreachable(f"the token cannot be noted: {error}") from error


def _lock(handle: int) -> None:
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > end:
                raise BrokerSilent("a submit with this token is under way") from error
            time.sleep(_PAUSE_SECONDS)
        else:
            return
