"""The append-only log of acts: one JSON line before each act, one with its outcome after.

No script and no secret goes in. The file is opened anew for each line, so that it can be rotated.
"""

import errno
import json
import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path

from gateway.broker.tokens import TOKEN
from gateway.errors import BrokerUnreachable

_START = b'{"time": '
_RECENT_BYTES = 4 * 2**20
_log = logging.getLogger("gateway.broker")


@dataclass(frozen=True, slots=True)
class Act:
    """What is about to be done, for whom, and who asked."""

    verb: str
    caller_uid: int
    caller_pid: int
    user: str
    token: str | None = None
    name: str | None = None
    job_id: int | None = None
    account: str | None = None
    limits: str | None = None


class ActsLog:
    """A line is on the disk before `begin` returns; a disk that is full stops the act."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    def begin(self, act: Act) -> None:
        """BrokerUnreachable when it cannot be written: then nothing may happen."""
        try:
            self._write({"event": "begin", **_fields(act)}, sync=True)
        except OSError as error:
            raise BrokerUnreachable(f"{self._path}: {error}") from error

    def end(self, act: Act, *, outcome: str, job_id: int | None = None) -> None:
        """`outcome` is "ok" or the failure's code. Not synced: the act itself is past undoing,
        and a disk that fills up between the two lines must not turn a yes or a no into silence."""
        fields = _fields(act)
        if job_id is not None:
            fields["job_id"] = job_id
        try:
            self._write({"event": "end", **fields, "outcome": outcome}, sync=False)
        except OSError:
            _log.exception("the outcome %s of %s cannot be written down", outcome, fields)

    def recent_tokens(self) -> frozenset[str]:
        """Tokens of the submits in the log's last megabytes."""
        try:
            with self._path.open("rb") as log:
                log.seek(max(0, self._path.stat().st_size - _RECENT_BYTES))
                lines = log.read().splitlines()
        except FileNotFoundError:
            return frozenset()
        return frozenset(token for line in lines if (token := _submitted_token(line)))

    def _write(self, fields: dict[str, object], *, sync: bool) -> None:
        line = json.dumps({"time": round(time.time(), 3), **fields}, ensure_ascii=True) + "\n"
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # One write of an append-only file is whole, whatever other workers write meanwhile.
            # On a disk that is just full it is cut, without an error.
            if os.write(handle, line.encode()) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if sync:
                os.fsync(handle)
        finally:
            os.close(handle)


def _submitted_token(line: bytes) -> str | None:
    try:
        # What follows a line that a full disk cut stands in the same one.
        fields = json.loads(line[max(0, line.rfind(_START)) :])
    except ValueError:
        return None  # cut by a crash, or where reading began
    if not isinstance(fields, dict) or fields.get("verb") != "submit":
        return None
    token = fields.get("token")
    return token if isinstance(token, str) and TOKEN.fullmatch(token) else None


def _fields(act: Act) -> dict[str, object]:
    values = {name: getattr(act, name) for name in Act.__slots__}
    return {name: value for name, value in values.items() if value is not None}
