"""The verdict of a smoke job: two short passes, the second from what the first one saved."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sluice_train import checkpoint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sluice_train.files import RunFolder

FAILED = 70


@dataclass(frozen=True)
class Verdict:
    """What the event `smoke` says; times in seconds, None where nothing was reported."""

    ok: bool
    text: str
    world: int | None = None
    step_seconds: float | None = None
    peak_bytes: int | None = None
    save_seconds: float | None = None
    save_bytes: int | None = None
    loaded: bool | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """For the event."""
        return asdict(self)


def between(run: RunFolder, code: int) -> int:
    """After the first pass: 0 when a second one makes sense, and the marks are cleared for it."""
    saved = checkpoint.newest(run.checkpoints)
    # A program that does not use the library is not made to save: its one pass says all.
    if not run.managed.exists():
        return 1
    if code != 0 and not run.stopped.exists():
        return 1
    if saved is None:
        print("sluice: the first pass of the smoke job saved nothing", file=sys.stderr)
        return 1
    run.done.unlink(missing_ok=True)
    run.stopped.unlink(missing_ok=True)
    return 0


def judge(
    *,
    events: Sequence[Mapping[str, Any]],
    metrics: Sequence[Mapping[str, Any]],
    expected: int,
    code: int,
    managed: bool,
    stop_asked: bool,
) -> Verdict:
    """What the lines of this job say, `expected` being the ranks there should be."""
    ready = [event for event in events if event.get("kind") == "ready"]
    saved = [event for event in events if event.get("kind") == "saved"]
    if not ready:
        return _unready(code, ran=not managed and (code == 0 or stop_asked))
    save = saved[0] if saved else {}
    loaded = len(ready) > 1 and bool(saved) and ready[1].get("step") == save.get("step")
    world = _whole(ready[0].get("world"))
    failure = _failure(events, world, expected, code, saved=bool(saved), loaded=loaded)
    peaks = [found for line in metrics if (found := _whole(line.get("peak_bytes"))) is not None]
    return Verdict(
        ok=failure is None,
        text=failure or f"{world} ranks met, made a step, saved it and loaded it again",
        world=world,
        step_seconds=next((_number(line.get("seconds")) for line in metrics[::-1]), None),
        peak_bytes=max(peaks, default=None),
        save_seconds=_number(save.get("seconds")),
        save_bytes=_whole(save.get("bytes")),
        loaded=loaded,
    )


def _failure(
    events: Sequence[Mapping[str, Any]],
    world: int | None,
    expected: int,
    code: int,
    *,
    saved: bool,
    loaded: bool,
) -> str | None:
    """The first thing that went wrong."""
    if world != expected:
        return f"{world} ranks met instead of {expected}"
    if not saved:
        error = next((e.get("error") for e in events if e.get("kind") == "save_failed"), None)
        told = f": {error}" if error else ""
        return f"no checkpoint was saved{told} (the program ended with code {code})"
    if not loaded:
        return f"the checkpoint was not loaded again (the program ended with code {code})"
    if code != 0:
        return f"the second pass ended with code {code}"
    return None


def _unready(code: int, *, ran: bool) -> Verdict:
    if ran:
        text = "the program ran; it does not use sluice_train, so no more is known of it"
        return Verdict(ok=True, text=text)
    return Verdict(ok=False, text=f"the program ended with code {code} before all ranks had met")


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and value is not True else None
