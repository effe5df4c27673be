"""What the run tells: events and marks in its folder, by the first rank alone."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from sluice_train.files import RunFolder, write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Report:
    """Lines that cannot be written are told once in the log, and the training goes on."""

    def __init__(self, folder: RunFolder, *, speaks: bool) -> None:
        self._folder = folder
        self._speaks = speaks
        self._complained = False

    def event(self, kind: str, **facts: Any) -> None:
        """Append to events.jsonl."""
        self._line(self._folder.events, {"kind": kind, **facts})

    def progress(self, line: Mapping[str, Any]) -> None:
        """Append to metrics.jsonl."""
        self._line(self._folder.metrics, line)

    def mark(self, path: Path, **facts: Any) -> None:
        """Put a mark into the run folder. OSError: it could not be written, and that matters."""
        if self._speaks:
            write_whole(path, json.dumps({**facts, "at": round(time.time(), 3)}) + "\n")

    def say(self, sentence: str) -> None:
        """A line in the job's log."""
        if self._speaks:
            print(f"sluice_train: {sentence}", file=sys.stderr, flush=True)

    def _line(self, path: Path, facts: Mapping[str, Any]) -> None:
        if not self._speaks:
            return
        try:
            self._folder.line(path, facts)
        except (OSError, ValueError) as error:
            if not self._complained:
                self._complained = True
                self.say(f"{path.name} could not be written, the training goes on: {error}")
