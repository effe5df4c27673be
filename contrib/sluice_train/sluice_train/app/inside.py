"""`inside SOCKET PORT -- WORDS…`: the program in a network of its own, and a way in.

For a program without a password: nobody else on the node reaches what it listens on. A Unix
socket in the job's own folder leads to it. It reaches no network itself.
"""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_train.app import client, pump
from sluice_train.app.errors import UNUSABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

PORT = 8000  # all are free in there
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1


def main(argv: Sequence[str]) -> int:
    """The program's exit code; 78 where this node allows no networks of one's own."""
    place, port, _, *words = argv
    try:
        _leave_network()
    except OSError as error:
        print(
            "this program has no password, and this node allows no network of its own "
            f"(user namespaces: {error.strerror}): it is not started",
            file=sys.stderr,
        )
        return UNUSABLE
    return asyncio.run(_serve(place, int(port), words))


def _leave_network() -> None:
    """Into a new one, with its loopback up. OSError: refused. One thread only may call it."""
    uid, gid = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    proc = Path("/proc/self")
    (proc / "setgroups").write_text("deny")
    (proc / "uid_map").write_text(f"{uid} {uid} 1")
    (proc / "gid_map").write_text(f"{gid} {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        asked = fcntl.ioctl(probe, _SIOCGIFFLAGS, struct.pack("16sH14x", b"lo", 0))
        flags = struct.unpack("16sH14x", asked)[1] | _IFF_UP
        fcntl.ioctl(probe, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags))


async def _serve(place: str, port: int, words: list[str]) -> int:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(place)
    listener.listen(128)
    listener.setblocking(False)
    process = await asyncio.create_subprocess_exec(*words)

    def end() -> None:
        with suppress(ProcessLookupError):
            process.terminate()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    door = asyncio.ensure_future(_accept(listener, port))
    code = await process.wait()
    door.cancel()
    return code if code >= 0 else 128 - code


async def _accept(listener: socket.socket, port: int) -> None:
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()
    while True:
        outer, _ = await loop.sock_accept(listener)
        task = asyncio.ensure_future(_join(outer, port))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def _join(outer: socket.socket, port: int) -> None:
    with outer, suppress(OSError):
        outer.setblocking(False)
        with await client.connect(("127.0.0.1", port)) as inner:
            await pump.both(outer, inner, lambda size: None)  # noqa: ARG005
