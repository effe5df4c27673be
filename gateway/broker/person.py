"""Work done as a person, so that Slurm sees the person's own credentials and the kernel the
person's own rights to files: neither is imitated by a check of ours.

`as_person` for files: a short-lived child that has given up everything else for good.
`borrowed` for calls to Slurm: effective ids of this single-threaded process for a moment. The
fork of a process with libslurm in it costs 5 ms, several times the call itself.
"""

import ctypes
import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from gateway.broker.accounts import Account
from gateway.broker.failures import SlurmRefused
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable, GatewayError

_PR_SET_PDEATHSIG = 1
_LINUX_CAPABILITY_VERSION_3 = 0x20080522
_LIBC = ctypes.CDLL(None, use_errno=True)
_CHUNK = 1 << 16
_REAP_TRIES = 100
_REAP_PAUSE_SECONDS = 0.0003


def as_person(account: Account, work: Callable[[], Any], *, timeout_seconds: float) -> Any:
    """What `work` returns (JSON values), or the GatewayError it raised.

    BrokerSilent when the child was killed or took too long: what it did is not known.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(account, work, writer, timeout_seconds)
    os.close(writer)
    try:
        raw = _read_all(reader, deadline=time.monotonic() + timeout_seconds)
    finally:
        os.close(reader)
        _end(child)
    return _answer(raw)


@contextmanager
def borrowed(account: Account) -> Iterator[None]:
    """Be the person in effect. The real and saved ids stay, so the person cannot signal or
    trace this process meanwhile; not being able to go back ends it."""
    uid, gid, groups = os.geteuid(), os.getegid(), os.getgroups()
    if uid == account.uid:
        yield
        return
    try:
        os.setgroups(account.groups)
        os.setresgid(-1, account.gid, -1)
        os.setresuid(-1, account.uid, -1)
        yield
    finally:
        try:
            os.setresuid(-1, uid, -1)
            os.setresgid(-1, gid, -1)
            os.setgroups(groups)
        except OSError:
            os._exit(1)


def _child(
    account: Account, work: Callable[[], Any], writer: int, timeout_seconds: float
) -> NoReturn:
    try:
        _become(account, timeout_seconds)
        answer: dict[str, Any] = {"value": work()}
    except GatewayError as error:
        number = getattr(error, "slurm_errno", None)
        kind = next(kind.__name__ for kind in _KINDS if isinstance(error, kind))
        answer = {"kind": kind, "code": error.code, "text": str(error), "errno": number}
    except BaseException as error:  # a child must never run the parent's code
        answer = {"kind": "BrokerSilent", "code": "internal", "text": repr(error), "errno": None}
    try:
        _write_all(writer, json.dumps(answer).encode())
    finally:
        os._exit(0)


def _become(account: Account, timeout_seconds: float) -> None:
    """Give up groups, gid and uid in this order: after the uid nothing else may be changed."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGABRT, signal.SIGALRM, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.alarm(int(timeout_seconds) + 1)
    if os.geteuid() != account.uid:
        os.setgroups(account.groups)
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, account.uid)
        _drop_capabilities()
        _require_no_way_back()
    # A change of uid clears it, so it is asked for afterwards: the child must not outlive a
    # worker that was killed.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.umask(0o077)


def _drop_capabilities() -> None:
    """The kernel does this for root; a broker that runs as SlurmUser keeps them otherwise."""
    header = (ctypes.c_uint32 * 2)(_LINUX_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _LIBC.capset(header, nothing)


def _require_no_way_back() -> None:
    try:
        os.setresuid(0, 0, 0)
    except PermissionError:
        return
    os._exit(1)  # still able to become root: do nothing at all


def _read_all(reader: int, *, deadline: float) -> bytes:
    parts: list[bytes] = []
    while True:
        left = deadline - time.monotonic()
        ready, _, _ = select.select([reader], [], [], max(0.0, left))
        if not ready:
            return b""
        part = os.read(reader, _CHUNK)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _write_all(writer: int, raw: bytes) -> None:
    while raw:
        raw = raw[os.write(writer, raw) :]


def _end(child: int) -> None:
    """Reap, killing what does not end by itself. A child stuck in a dead file system cannot
    be killed: leave it behind."""
    for attempt in range(_REAP_TRIES):
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        if attempt == _REAP_TRIES // 2:
            os.kill(child, signal.SIGKILL)
        time.sleep(_REAP_PAUSE_SECONDS)


def _answer(raw: bytes) -> Any:
    try:
        answer = json.loads(raw)
    except ValueError as error:
        raise BrokerSilent("no answer from the child that acted as the person") from error
    if "value" in answer:
        return answer["value"]
    kind = next(kind for kind in _KINDS if kind.__name__ == answer["kind"])
    if answer["errno"] is not None:
        code, number = answer["code"], answer["errno"]
        raise SlurmRefused(answer["text"], code=code, slurm_errno=number)
    raise kind(answer["text"], code=answer["code"])


_KINDS: tuple[type[GatewayError], ...] = (
    BrokerRefused,
    BrokerUnreachable,
    BrokerSilent,
    GatewayError,
)
