"""Bytes both ways between two sockets, no faster than the slower side takes them."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BYTES = 131_072
SILENT_SECONDS = 30.0
LINGER_SECONDS = 2.0


async def both(client: socket.socket, program: socket.socket, moved: Callable[[int], None]) -> None:
    """Until both sides have ended, or one of them is gone. Closes neither.

    A client that will send no more may still read; one that is gone altogether looks the same
    until it is written to, so after its end the program may be silent for half a minute only.
    """
    counted = 0

    def count(size: int) -> None:
        nonlocal counted
        counted += size
        moved(size)

    up = asyncio.ensure_future(_pump(client, program, count))
    down = asyncio.ensure_future(_pump(program, client, count))
    try:
        await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        # What was not written to the program, it has not read: it may have answered all the same.
        while up.done() and not down.done():
            before = counted
            await asyncio.wait({down}, timeout=SILENT_SECONDS)
            if counted == before:
                break
    finally:
        for way in (up, down):
            way.cancel()
        await asyncio.gather(up, down, return_exceptions=True)


async def _pump(source: socket.socket, sink: socket.socket, moved: Callable[[int], None]) -> None:
    loop = asyncio.get_running_loop()
    buffer = memoryview(bytearray(BYTES))
    with suppress(OSError):
        while True:
            size = await loop.sock_recv_into(source, buffer)
            if not size:
                sink.shutdown(socket.SHUT_WR)
                return
            await loop.sock_sendall(sink, buffer[:size])
            moved(size)
            await asyncio.sleep(0)  # two sides that are always ready would keep out all others


async def linger(client: socket.socket) -> None:
    """Before a close: what is unread then would take our last bytes back from the client."""
    loop = asyncio.get_running_loop()
    with suppress(OSError):
        client.shutdown(socket.SHUT_WR)

    async def drain() -> None:
        with suppress(OSError):
            while await loop.sock_recv(client, BYTES):
                pass

    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(drain(), LINGER_SECONDS)
