"""What an application tells of itself: state.json, and ready.json with the key."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

STARTING, READY, WARNED, STOPPING, FAILED = "starting", "ready", "warned", "stopping", "failed"
IDLE, TIME_LIMIT, CANCELLED, QUIT = "idle", "time_limit", "cancelled", "quit"


@dataclass
class State:
    """Times in seconds since 1970; `gpu_util` in per cent, the highest of the job's cards."""

    idle_seconds: int = 0
    phase: str = STARTING
    why: str = ""
    text: str = ""
    active_at: float = field(default_factory=time.time)
    stops_at: float | None = None
    connections: int = 0
    gpu_util: float | None = None
    saving: bool = False
    saved: str = ""
    save_error: str = ""

    def told(self) -> dict[str, Any]:
        """As the contract has it."""
        return {"at": round(time.time(), 3), **asdict(self)}

    def write(self, folder: Path) -> None:
        """Into state.json; a full disk is no reason to end the program."""
        with suppress(OSError):
            write_private(folder / "state.json", json.dumps(self.told()))


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, for its owner alone."""
    aside = path.with_name(f".{path.name}.tmp")
    with suppress(FileNotFoundError):
        aside.unlink()
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    aside.replace(path)
