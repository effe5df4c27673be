"""One application: comes up, is watched, and ends for a reason that is told."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sluice_train.app import client
from sluice_train.app.address import free_port
from sluice_train.app.client import NoAnswer
from sluice_train.app.door import Answer, Door
from sluice_train.app.errors import UNAVAILABLE, Unusable
from sluice_train.app.inside import PORT as PORT_INSIDE
from sluice_train.app.ports import is_free, is_ours
from sluice_train.app.program import Program
from sluice_train.app.saving import Saving
from sluice_train.app.state import CANCELLED, FAILED, QUIT, READY, STOPPING, write_private
from sluice_train.app.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Callable

    from sluice_train.app.asked import Asked
    from sluice_train.app.state import State

KIT = Path(__file__).resolve().parents[2]
START_SECONDS = 300.0
PROBE_SECONDS, ANSWER_SECONDS = 0.03, 5.0
PORT_TRIES = 5
FIRST_ERROR = 500


class Session:
    """`place` is a short folder on this node, for nobody else."""

    def __init__(
        self, asked: Asked, state: State, *, listener: socket.socket, address: str, place: Path
    ) -> None:
        self._asked = asked
        self._state = state
        self._listener = listener
        self._address = address
        self._place = place
        self._key = secrets.token_urlsafe(32)
        self._port = PORT_INSIDE
        self._stop = asyncio.Event()
        self._saving = Saving(state)
        self._door = Door(
            listener,
            key=self._key,
            base=asked.base,
            strips=asked.strips,
            reach=self._reach,
            own=self._own,
        )
        self._watching = Watching(asked, state, self._door, self._reach, self._ask_to_stop)

    async def run(self) -> int:
        """The job's exit code. Unusable: the program did not come up."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._ask_to_stop, CANCELLED)
        loop.add_signal_handler(signal.SIGINT, self._ask_to_stop, CANCELLED)
        loop.add_signal_handler(signal.SIGUSR1, self._watching.limit_is_near)
        door = asyncio.ensure_future(self._door.serve())
        program = None
        try:
            program = await self._come_up()
            if program is None:
                return 0
            self._open()
            watch = asyncio.ensure_future(self._watching.watch())
            try:
                await self._ended(program)
            finally:
                watch.cancel()
            return await self._close(program)
        finally:
            if program is not None:
                await program.end(0)
            (self._asked.folder / "ready.json").unlink(missing_ok=True)
            self._state.write(self._asked.folder)
            door.cancel()
            await asyncio.gather(door, return_exceptions=True)

    def _ask_to_stop(self, why: str) -> None:
        if not self._stop.is_set():
            self._state.phase, self._state.why = STOPPING, why
            self._stop.set()

    async def _come_up(self) -> Program | None:
        """The program, usable through the door; None if it was stopped before."""
        for _ in range(PORT_TRIES):
            program = await self._start()
            if await self._is_usable(program):
                return program
            code, tail = program.code, program.tail
            await program.end()
            if self._stop.is_set():
                return None
            if self._has_socket() or is_free(self._port):
                break
            _say(f"port {self._port} was taken by somebody else: trying another")
        how = "was not usable in time" if code is None else f"ended with exit code {code}"
        raise Unusable(f"{self._asked.words[0]} {how}\n{tail}".rstrip(), code or UNAVAILABLE)

    async def _start(self) -> Program:
        asked, place = self._asked, str(self._place / "app")
        Path(place).unlink(missing_ok=True)
        if not self._has_socket():
            self._port = free_port()
        words = asked.filled(socket=place, port=self._port)
        environment = self._environment()
        if asked.isolate:
            enter = [sys.executable, "-m", "sluice_train.app", "inside"]
            words = [*enter, place, str(self._port), "--", *words]
            environment["PYTHONPATH"] = os.pathsep.join(
                filter(None, [environment.get("PYTHONPATH"), str(KIT)])
            )
        try:
            return await Program.start(words, folder=asked.shown, environment=environment)
        except OSError as error:
            raise Unusable(f"{asked.words[0]} cannot be started: {error.strerror}") from error

    def _environment(self) -> dict[str, str]:
        """Jupyter's own files, and its kernels' sockets, lie where nobody else can reach them."""
        runtime = self._place / "r"
        runtime.mkdir(exist_ok=True)
        binds = [os.environ.get("APPTAINER_BIND"), str(self._place)]
        return {
            **os.environ,
            "JUPYTER_RUNTIME_DIR": str(runtime),
            "APPTAINER_BIND": ",".join(filter(None, binds)),
        }

    async def _is_usable(self, program: Program) -> bool:
        """Ask through the door until it answers; False when it has ended, or time is over."""
        end = time.monotonic() + START_SECONDS
        target = self._asked.base + self._asked.ready
        waits = {asyncio.ensure_future(program.wait()), asyncio.ensure_future(self._stop.wait())}
        try:
            while not any(wait.done() for wait in waits) and time.monotonic() < end:
                if await self._answers(target):
                    return True
                await asyncio.wait(
                    waits, timeout=PROBE_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
            return False
        finally:
            for wait in waits:
                wait.cancel()

    async def _answers(self, target: str) -> bool:
        if self._has_socket() and not (self._place / "app").exists():
            return False  # costs nothing, while the program takes all it can to come up
        try:
            status, _ = await client.get(
                self._through_door, target, seconds=ANSWER_SECONDS, key=self._key
            )
        except NoAnswer:
            return False
        # Whoever else listens at the port must not be shown as the person's program.
        return status < FIRST_ERROR and (self._has_socket() or is_ours(self._port))

    def _has_socket(self) -> bool:
        """Whether a Unix socket leads to the program; else a port that others may take."""
        return self._asked.listen == "socket" or self._asked.isolate

    async def _reach(self) -> socket.socket:
        if self._has_socket():
            return await client.connect(str(self._place / "app"))
        return await client.connect(("127.0.0.1", self._port))

    async def _through_door(self) -> socket.socket:
        host, port = self._listener.getsockname()[:2]
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared only
        return await client.connect((everywhere.get(host, host), port))

    def _open(self) -> None:
        at = time.time()
        self._state.phase, self._state.active_at = READY, at
        self._state.write(self._asked.folder)
        ready = {
            "address": self._address,
            "port": self._listener.getsockname()[1],
            "key": self._key,
            "pid": os.getpid(),
            "at": round(at, 3),
        }
        write_private(self._asked.folder / "ready.json", json.dumps(ready))
        _say("it can be used")

    async def _ended(self, program: Program) -> None:
        """Until the program has ended, or is to end."""
        waits = {asyncio.ensure_future(program.wait()), asyncio.ensure_future(self._stop.wait())}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()

    async def _close(self, program: Program) -> int:
        state = self._state
        if self._stop.is_set():
            state.write(self._asked.folder)
            _say(f"stopping: {state.why}")
            await program.end()
            return 0
        code = program.code or 0
        if code:
            state.phase, state.text = FAILED, program.tail
            _say(f"the program ended with exit code {code}")
            return code
        state.phase, state.why = STOPPING, QUIT
        return 0

    def _own(self, method: str, name: str) -> Answer:
        """The door's own pages."""
        verbs: dict[str, tuple[str, Callable[[], int]]] = {
            ".sluice/state": ("GET", lambda: 200),
            ".sluice/keep": ("POST", self._watching.keep),
            ".sluice/save": ("POST", self._saving.begin),
        }
        if name not in verbs:
            return Answer(404, {"error": "not_found"})
        wanted, act = verbs[name]
        if method != wanted:
            return Answer(405, {"error": "method"})
        status = act()
        self._state.connections = self._door.connections
        return Answer(status, self._state.told())


def _say(text: str) -> None:
    with suppress(OSError):
        print(f"application: {text}", flush=True)
