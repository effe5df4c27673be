"""When the application was used last: its kernels or its connections, and the job's cards."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sluice_train.app import client
from sluice_train.app.client import NoAnswer

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable

ANSWER_SECONDS = 10.0
BUSY_PER_CENT = 5.0
LISTS = ("api/kernels", "api/terminals")


async def of_jupyter(
    reach: Callable[[], Awaitable[socket.socket]], base: str, now: float
) -> float | None:
    """When a kernel or a terminal worked last, in seconds since 1970; None: it does not tell.

    A kernel that calculates works now, also one that hangs: nobody can tell them apart.
    """
    found: list[float] = []
    for name in LISTS:
        try:
            status, body = await client.get(reach, base + name, seconds=ANSWER_SECONDS)
            told = json.loads(body) if status == 200 else []
        except (NoAnswer, ValueError, RecursionError):
            continue
        found += [_worked_at(entry, now) for entry in told if isinstance(entry, dict)]
    return max(found, default=None)


def _worked_at(entry: dict[str, Any], now: float) -> float:
    if entry.get("execution_state") == "busy":
        return now
    try:
        at = datetime.fromisoformat(str(entry.get("last_activity")).replace("Z", "+00:00"))
        return min(at.timestamp(), now)
    except (ValueError, OverflowError):
        return 0.0


class Load:
    """The job's cards through NVML; without it they count as idle."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._cards: Any = None

    def util(self) -> float | None:
        """The highest use of the job's cards in per cent; None where none can be asked."""
        # Slow to load, and not needed before the program is ready.
        from sluice_train.node.watch import Cards  # noqa: PLC0415

        try:
            if self._cards is None:
                self._cards = Cards(os.environ, self._stack)
            told = [card["util"] for card in self._cards.sample()]
        except Exception as error:
            print(f"no use of cards: {error}", file=sys.stderr, flush=True)
            return None
        return max((float(util) for util in told if util is not None), default=None)
