"""What the guard looks at: the files of the run folder, and the log."""

from __future__ import annotations

import json
import os
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice_train.files import LINE_BYTES, lines
from sluice_train.node.stall import Seen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sluice_train.files import RunFolder

LATE_STEPS = 50
READ_BYTES = 1 << 20


class Sight:
    """Reads what came since the look before. A file that is not there shows nothing."""

    def __init__(self, run: RunFolder, *, nodes: int, log: Path | None, stale: float) -> None:
        """`stale`: seconds after which a node's telemetry tells nothing of the present."""
        self._run, self._nodes, self._log, self._stale = run, nodes, log, stale
        self._metrics = _Tail(run, run.metrics)
        self._events = _Tail(run, run.events)
        self._step: int | None = None
        self._step_at: float | None = None
        self._seconds: deque[float] = deque(maxlen=LATE_STEPS)
        self._saving = False

    def look(self, now: float) -> Seen:
        """Everything as it is at `now`, seconds since 1970."""
        for line in self._metrics.new():
            self._note_step(line)
        for line in self._events.new():
            if line.get("kind") == "save_begin":
                self._saving = True
            elif line.get("kind") in ("saved", "save_failed"):
                self._saving = False
        nodes = list(self._telemetry(now))
        alive, expected = _total(nodes, "procs"), _total(nodes, "expected")
        known = len(nodes) >= self._nodes
        ordered = sorted(self._seconds)
        return Seen(
            alive=alive if known else None,
            expected=expected if known else None,
            step=self._step,
            step_seconds=ordered[len(ordered) // 2] if ordered else None,
            saving=self._saving,
            log_bytes=self.log_bytes(),
            busiest=_busiest(nodes) if known else None,
        )

    def log_bytes(self) -> int | None:
        """How long the job's log is; None where it is no file."""
        if self._log is None:
            return None
        with suppress(OSError):
            return self._log.stat().st_size
        return None

    def _note_step(self, line: dict[str, Any]) -> None:
        step, at, took = line.get("step"), line.get("at"), line.get("seconds")
        if not isinstance(step, int) or not isinstance(at, (int, float)):
            return
        if not isinstance(took, (int, float)) and self._step is not None and step > self._step:
            took = (at - (self._step_at or at)) / (step - self._step)
        if isinstance(took, (int, float)):
            self._seconds.append(took)
        self._step, self._step_at = step, at

    def _telemetry(self, now: float) -> Iterator[dict[str, Any]]:
        """The last line of each node that is of this start and not old."""
        for path in (self._run.path / "telemetry").glob("*.jsonl"):
            found = None
            for line in lines(path, last_bytes=2 * LINE_BYTES):
                if _is_ours(self._run, line):
                    found = line
            at = found.get("at") if found else None
            if found and isinstance(at, (int, float)) and abs(now - at) < self._stale:
                yield found


class _Tail:
    """Whole new lines of a file, those of this start only; begins at its end."""

    def __init__(self, run: RunFolder, path: Path) -> None:
        self._run, self._path, self._offset = run, path, 0
        with suppress(OSError):
            self._offset = path.stat().st_size

    def new(self) -> Iterator[dict[str, Any]]:
        content = b""
        with suppress(OSError), self._path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size < self._offset:
                self._offset = 0
            stream.seek(self._offset)
            content = stream.read(READ_BYTES)
        complete = content.rfind(b"\n") + 1
        # A line longer than all that is read at once is none of ours.
        self._offset += complete or (len(content) if len(content) == READ_BYTES else 0)
        for text in content[:complete].split(b"\n"):
            with suppress(ValueError, RecursionError):
                line = json.loads(text)
                if isinstance(line, dict) and _is_ours(self._run, line):
                    yield line


def _is_ours(run: RunFolder, line: dict[str, Any]) -> bool:
    return line.get("job") == run.job and line.get("restart") == run.restart


def _total(nodes: list[dict[str, Any]], name: str) -> int | None:
    """The sum over the nodes; None where one does not know."""
    counts = [node.get(name) for node in nodes]
    whole = [count for count in counts if isinstance(count, int)]
    return sum(whole) if counts and len(whole) == len(counts) else None


def _busiest(nodes: list[dict[str, Any]]) -> float | None:
    """The use in percent of the busiest card of all; None where one does not tell."""
    cards = [card for node in nodes for card in node.get("cards") or () if isinstance(card, dict)]
    uses = [card.get("util") for card in cards]
    known = [float(use) for use in uses if isinstance(use, (int, float))]
    return max(known) if known and len(known) == len(uses) else None
