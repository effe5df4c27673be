"""Applications: what the node and the portal say to each other. Pure; see workbench.md.

The files are the owner's own and anybody's hand may have written them: they are parsed as such.
"""

import json
import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TypeGuard

from gateway.core.manifest import App

KEY_HEADER, WHO_HEADER = "X-Sluice-Key", "X-Sluice-Who"
PREFIX = "/apps/"
STATE, KEEP, SAVE = ".sluice/state", ".sluice/keep", ".sluice/save"  # below the base
CUT = ".sluice/cut"
MOST_BYTES = 16_384  # of ready.json and state.json; what is longer is not ours
MOST_TEXT = 4_000
LOWEST_PORT = 1024
_KEY = re.compile(r"[A-Za-z0-9_-]{43}")  # 256 random bits
_JOB = re.compile(r"[1-9][0-9]{0,17}")


class Phase(StrEnum):
    STARTING = "starting"
    READY = "ready"
    WARNED = "warned"  # it can be used, and will be stopped at `stops_at`; `why` says for what
    STOPPING = "stopping"
    FAILED = "failed"


class Why(StrEnum):
    """For what it is warned or stopped."""

    NONE = ""
    IDLE = "idle"  # nothing was done with it
    TIME_LIMIT = "time_limit"
    CANCELLED = "cancelled"  # whoever ended the job: its owner, an administrator, Slurm
    QUIT = "quit"  # the person ended the program itself


@dataclass(frozen=True, slots=True)
class Ready:
    """Where the door of an application is, and what opens it. The key is a secret."""

    address: str
    port: int
    key: str
    pid: int
    at: datetime

    def __repr__(self) -> str:
        return f"Ready({self.address}:{self.port})"


@dataclass(frozen=True, slots=True)
class AppState:
    """What the node says of an application. `gpu_util` is the highest of its cards in per cent."""

    at: datetime
    phase: Phase
    why: Why = Why.NONE
    text: str = ""  # the last lines of a program that failed: shown to its owner, as text
    active_at: datetime | None = None
    idle_seconds: int = 0  # after so much idleness it is stopped; 0: never
    stops_at: datetime | None = None
    connections: int = 0
    gpu_util: float | None = None
    saving: bool = False
    saved: str = ""  # the id of the snapshot that was saved last
    save_error: str = ""


def base(job: int) -> str:
    """The path below which the application of Slurm's job is seen."""
    return f"{PREFIX}{job}/"


def job_of_base(path: str) -> int | None:
    """Slurm's job that a path below /apps/ is of; None where it is none."""
    first = path.removeprefix(PREFIX).partition("/")[0]
    return int(first) if path.startswith(PREFIX) and _JOB.fullmatch(first) else None


def folder(working_directory: str, job: int) -> str:
    """Where the application's files lie, as the node wrote them."""
    return str(PurePosixPath(working_directory) / ".sluice" / "apps" / str(job))


def ready_path(working_directory: str, job: int) -> str:
    return f"{folder(working_directory, job)}/ready.json"


def state_path(working_directory: str, job: int) -> str:
    return f"{folder(working_directory, job)}/state.json"


def node_options(app: App) -> tuple[str, ...]:
    """The words for `sluice_train.app run`; the program's own come behind `--`."""
    words = [f"--listen={app.listen}", f"--ready={app.ready}", f"--activity={app.activity}"]
    return (*words, *(["--isolate"] if app.isolate else []))


def parse_ready(text: str | bytes, addresses: Collection[str]) -> Ready | None:
    """The door; None unless everything is there and it stands on one of the `addresses`."""
    found = _object(text)
    address, port, key = found.get("address"), found.get("port"), found.get("key")
    pid, at = found.get("pid"), _time(found.get("at"))
    if not isinstance(address, str) or address not in addresses or at is None:
        return None
    if not _is_whole(port) or not LOWEST_PORT <= port <= 65_535:
        return None
    if not isinstance(key, str) or not _KEY.fullmatch(key) or not _is_whole(pid) or pid < 1:
        return None
    return Ready(address, port, key, pid, at)


def parse_state(text: str | bytes) -> AppState | None:
    """The state; None where it is none. A part that makes no sense is left out."""
    found = _object(text)
    at, phase = _time(found.get("at")), found.get("phase")
    if at is None or phase not in list(Phase):
        return None
    why, util = found.get("why"), found.get("gpu_util")
    return AppState(
        at=at,
        phase=Phase(str(phase)),
        why=Why(str(why)) if why in list(Why) else Why.NONE,
        text=_text(found.get("text")),
        active_at=_time(found.get("active_at")),
        idle_seconds=_count(found.get("idle_seconds")),
        stops_at=_time(found.get("stops_at")),
        connections=_count(found.get("connections")),
        gpu_util=min(max(float(util), 0.0), 100.0) if _is_number(util) else None,
        saving=found.get("saving") is True,
        saved=_text(found.get("saved"))[:64],
        save_error=_text(found.get("save_error")),
    )


def _object(text: str | bytes) -> dict[str, object]:
    if len(text) > MOST_BYTES:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, float):
        return math.isfinite(value)
    return _is_whole(value) and abs(value) < 2**53


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _count(value: object) -> int:
    return int(value) if _is_number(value) and 0 <= value < 2**31 else 0


def _text(value: object) -> str:
    """Printable text and line ends; what JSON calls a text may hold half a character."""
    if not isinstance(value, str):
        return ""
    return "".join(c for c in value[-MOST_TEXT:] if c.isprintable() or c == "\n")


def _time(value: object) -> datetime | None:
    """Seconds since 1970, within the centuries that make sense."""
    if not _is_number(value) or not 0 <= value < 2**33:
        return None
    return datetime.fromtimestamp(float(value), UTC)
