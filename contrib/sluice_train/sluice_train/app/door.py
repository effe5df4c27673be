"""The door: a TCP listener that lets nobody through to the program who does not bring the key."""

from __future__ import annotations

import asyncio
import hmac
import json
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from sluice_train.app import head, pump
from sluice_train.app.head import BadHead, Head

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

HEAD_SECONDS = 10.0
MOST_WAITING = 256  # connections that have not shown a key yet; the oldest makes room
BACKLOG = 1024
BREATH_SECONDS = 0.1
OWN, CUT = ".sluice/", ".sluice/cut"
# The portal's nginx lets somebody in for 2 s more without another look.
SHUT_SECONDS = 5.0


@dataclass(frozen=True)
class Answer:
    """What the door says by itself."""

    status: int
    facts: dict[str, Any]

    def encoded(self) -> bytes:
        """The whole response, after which the connection is closed."""
        body = json.dumps(self.facts).encode() + b"\n"
        lines = [
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Cache-Control: no-store",
            "Connection: close",
        ]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Door:
    """`serve` lets in. `moved_at`: when the last byte went through, in seconds since 1970.

    `reach` connects to the program (OSError: it is not there). `own(method, name)` answers what is
    asked for below `<base>.sluice/`. `strips`: the program does not know its base.
    """

    def __init__(
        self,
        listener: socket.socket,
        *,
        key: str,
        base: str,
        strips: bool,
        reach: Callable[[], Awaitable[socket.socket]],
        own: Callable[[str, str], Answer],
    ) -> None:
        self.connections = 0
        self.moved_at = time.time()
        self._listener = listener
        self._key = key.encode()
        self._base = base.encode()
        self._strips = strips
        self._reach = reach
        self._own = own
        self._waiting: dict[asyncio.Task[None], None] = {}  # by age
        self._tasks: set[asyncio.Task[None]] = set()
        self._inside: dict[asyncio.Task[None], bytes] = {}  # and for whom
        self._shut: dict[bytes, float] = {}  # who was sent away, until when

    async def serve(self) -> None:
        """Accept for ever; ends its connections when cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    client, _ = await loop.sock_accept(self._listener)
                except OSError:  # no descriptor left: some will be given back
                    await asyncio.sleep(BREATH_SECONDS)
                    continue
                self._take(client)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _take(self, client: socket.socket) -> None:
        if len(self._waiting) >= MOST_WAITING:
            next(iter(self._waiting)).cancel()
        task = asyncio.ensure_future(self._connection(client))
        self._tasks.add(task)
        self._waiting[task] = None
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._waiting.pop(task, None)
        self._inside.pop(task, None)

    async def _connection(self, client: socket.socket) -> None:
        with client:
            client.setblocking(False)
            _keep_alive(client)
            try:
                asked, rest = await asyncio.wait_for(_read_head(client), HEAD_SECONDS)
                answer = self._refusal(asked)
            except BadHead as bad:
                answer = Answer(bad.status, {"error": "bad_request"})
            except asyncio.TimeoutError:
                answer = Answer(408, {"error": "too_slow"})
            except OSError:
                return
            if answer is None:
                current = asyncio.current_task()
                if current:
                    self._waiting.pop(current, None)
                    self._inside[current] = asked.who
                answer = await self._pass(client, asked, rest)
                if current:
                    self._inside.pop(current, None)
            if answer is not None:
                with suppress(OSError):
                    await asyncio.get_running_loop().sock_sendall(client, answer.encoded())
            await pump.linger(client)

    def _refusal(self, asked: Head) -> Answer | None:
        """The key, its own pages, and None for what is for the program."""
        keys = asked.keys
        if len(keys) != 1 or not hmac.compare_digest(keys[0], self._key):
            return Answer(403, {"error": "forbidden"})
        if self._is_shut(asked.who):
            return Answer(403, {"error": "sent_away"})
        path = asked.target.partition(b"?")[0]
        if not path.startswith(self._base):
            return Answer(404, {"error": "not_found"})
        below = path[len(self._base) :].decode("ascii")
        if below == CUT and asked.method == b"POST":
            return self._cut(asked.target.partition(b"?who=")[2])
        return self._own(asked.method.decode(), below) if below.startswith(OWN) else None

    def _cut(self, who: bytes) -> Answer:
        """Close what a person, or one session of theirs, has open, and let it not come again at
        once."""
        if not who:
            return Answer(400, {"error": "nobody"})
        now = time.monotonic()
        self._shut = {one: until for one, until in self._shut.items() if until > now}
        self._shut[who] = now + SHUT_SECONDS
        found = [task for task, held in self._inside.items() if _is_of(held, who)]
        for task in found:
            task.cancel()
        return Answer(200, {"closed": len(found)})

    def _is_shut(self, who: bytes) -> bool:
        now = time.monotonic()
        return any(until > now and _is_of(who, one) for one, until in self._shut.items())

    async def _pass(self, client: socket.socket, asked: Head, rest: bytes) -> Answer | None:
        try:
            program = await self._reach()
        except OSError:
            return Answer(503, {"error": "not_there"})
        target = asked.target[len(self._base) - 1 :] if self._strips else asked.target
        self.connections += 1
        try:
            with program, suppress(OSError):
                begin = asked.passed_on(target) + rest
                await asyncio.get_running_loop().sock_sendall(program, begin)
                self._moved(len(begin))
                await pump.both(client, program, self._moved)
        finally:
            self.connections -= 1
        return None

    def _moved(self, size: int) -> None:  # noqa: ARG002 - as the pump calls it
        self.moved_at = time.time()


def _is_of(who: bytes, cut: bytes) -> bool:
    """`<person>` is every session of theirs, `<person>.<session>` that one."""
    return who == cut or who.startswith(cut + b".")


async def _read_head(client: socket.socket) -> tuple[Head, bytes]:
    """The head, and what came behind it. BadHead, OSError: the client is gone."""
    loop = asyncio.get_running_loop()
    raw = bytearray()
    end = -1
    while end < 0:
        if len(raw) > head.MOST_BYTES:
            raise BadHead(431)
        chunk = await loop.sock_recv(client, head.MOST_BYTES)
        if not chunk:
            raise ConnectionResetError
        seen = max(0, len(raw) - 3)
        raw += chunk
        end = raw.find(b"\r\n\r\n", seen)
    if end > head.MOST_BYTES:
        raise BadHead(431)
    return head.parse(bytes(raw[:end])), bytes(raw[end + 4 :])


def _keep_alive(client: socket.socket) -> None:
    """So that a portal that has lost its power does not hold a connection for ever."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 20)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
