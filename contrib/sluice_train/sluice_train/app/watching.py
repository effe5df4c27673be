"""Whether an application is still used, and how long it may go on."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, TypeVar

from sluice_train.app import activity
from sluice_train.app.state import IDLE, READY, STOPPING, TIME_LIMIT, WARNED
from sluice_train.node.slurm import job_now

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable

    from sluice_train.app.asked import Asked
    from sluice_train.app.door import Door
    from sluice_train.app.state import State

LOOK_SECONDS = 10.0
WRITE_SECONDS = 60.0
WARNING_SECONDS = 600.0
CARD_SECONDS = 10.0
END_SECONDS = 30.0  # before Slurm's own end, so that kernels can save
_Found = TypeVar("_Found")


class Watching:
    """`stop(why)` is called once nobody has used it for long enough, or the time is over."""

    def __init__(
        self,
        asked: Asked,
        state: State,
        door: Door,
        reach: Callable[[], Awaitable[socket.socket]],
        stop: Callable[[str], None],
    ) -> None:
        self._asked = asked
        self._state = state
        self._door = door
        self._reach = reach
        self._stop = stop
        self._load: activity.Load | None = activity.Load()
        self._limit_at: float | None = None
        self._limit: asyncio.Task[None] | None = None
        self._written_at = 0.0

    def keep(self) -> int:
        """Somebody is there."""
        self._state.active_at = time.time()
        self._judge()
        return 200

    def limit_is_near(self) -> None:
        """Slurm has given its warning; it gives it once, also where the limit is moved later."""
        if self._limit is None:
            self._limit = asyncio.ensure_future(self._until_limit())

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        idle = self._asked.idle_seconds
        pause = min(LOOK_SECONDS, idle / 10) if idle else LOOK_SECONDS
        while True:
            await self._look()
            self._judge()
            await asyncio.sleep(pause)

    async def _look(self) -> None:
        state, now = self._state, time.time()
        state.connections = self._door.connections
        if self._asked.activity == "jupyter":
            used = await activity.of_jupyter(self._reach, self._asked.base, now)
        else:
            used = self._door.moved_at
        state.gpu_util = await self._util()
        if state.gpu_util is not None and state.gpu_util >= activity.BUSY_PER_CENT:
            used = now
        state.active_at = max(state.active_at, used or 0.0)

    async def _util(self) -> float | None:
        if self._load is None:
            return None
        try:
            return await asyncio.wait_for(in_thread(self._load.util), CARD_SECONDS)
        except asyncio.TimeoutError:  # a driver that hangs would do so again
            self._load = None
            return None

    def _judge(self) -> None:
        state, now = self._state, time.time()
        if state.phase == STOPPING:
            return
        idle = self._asked.idle_seconds
        idle_at = state.active_at + idle if idle else None
        ends = [(at, why) for at, why in ((self._limit_at, TIME_LIMIT), (idle_at, IDLE)) if at]
        stops_at, why = min(ends, default=(0.0, ""))
        warning = min(WARNING_SECONDS, idle / 2) if why == IDLE else WARNING_SECONDS
        before = state.phase
        if why and stops_at - now <= warning:
            state.phase, state.why, state.stops_at = WARNED, why, stops_at
        else:
            state.phase, state.why, state.stops_at = READY, "", None
        if state.phase != before or now - self._written_at > WRITE_SECONDS:
            self._written_at = now
            state.write(self._asked.folder)
        if why and stops_at <= now:
            self._stop(why)

    async def _until_limit(self) -> None:
        """The limit may be moved, also more than once: Slurm is asked again."""
        ends_at = time.time() + self._asked.lead_seconds
        while True:
            told = await in_thread(lambda: job_now(self._asked.job).ends_at)
            ends_at = told or ends_at
            reserve = min(END_SECONDS, self._asked.lead_seconds / 2)
            left = ends_at - reserve - time.time()
            self._limit_at = ends_at - reserve if left <= WARNING_SECONDS else None
            self._judge()
            if left <= 0:
                return
            await asyncio.sleep(min(left, END_SECONDS))


async def in_thread(function: Callable[[], _Found]) -> _Found:
    """What may hang, in a thread that does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[_Found] = loop.create_future()

    def tell(act: Callable[[], None]) -> None:
        if not found.done():
            act()

    def run() -> None:
        try:
            result = function()
        except BaseException as error:
            told = error
            loop.call_soon_threadsafe(tell, lambda: found.set_exception(told))
        else:
            loop.call_soon_threadsafe(tell, lambda: found.set_result(result))

    threading.Thread(target=run, daemon=True).start()
    return await found
