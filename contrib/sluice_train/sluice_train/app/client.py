"""A few requests of our own: whether the program is ready, and what Jupyter's kernels do."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

MOST_BYTES = 1 << 20


class NoAnswer(Exception):
    """Nobody answered in time, or not in HTTP."""


async def connect(address: str | tuple[str, int]) -> socket.socket:
    """A Unix socket for a path, TCP for a host and a port. OSError: nobody listens."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    if not isinstance(address, str) and ":" in address[0]:
        family = socket.AF_INET6
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(found, address)
    except BaseException:
        found.close()
        raise
    return found


async def get(
    reach: Callable[[], Awaitable[socket.socket]],
    target: str,
    *,
    seconds: float,
    key: str = "",
) -> tuple[int, bytes]:
    """Status and body. HTTP/1.0, so that the body comes in one piece and ends with the connection.

    NoAnswer: nobody is there, too slow, or too long.
    """
    try:
        return await asyncio.wait_for(_get(reach, target, key), seconds)
    except (OSError, asyncio.TimeoutError, ValueError) as error:
        raise NoAnswer(str(error)) from error


async def _get(
    reach: Callable[[], Awaitable[socket.socket]], target: str, key: str
) -> tuple[int, bytes]:
    loop = asyncio.get_running_loop()
    lines = [f"GET {target} HTTP/1.0", "Host: localhost", "Accept: */*"]
    if key:
        lines.append(f"X-Sluice-Key: {key}")
    with await reach() as found:
        await loop.sock_sendall(found, "\r\n".join([*lines, "", ""]).encode())
        answer = bytearray()
        while chunk := await loop.sock_recv(found, 65_536):
            answer += chunk
            if len(answer) > MOST_BYTES:
                raise ValueError("the answer is too long")
    line, _, body = bytes(answer).partition(b"\r\n")
    return int(line.split(b" ")[1:2][0] if b" " in line else b"none"), body.partition(b"\r\n\r\n")[
        2
    ]
