"""What the run tells: events and marks in its folder, by the first rank alone."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice_train.files import RunFolder, write_whole
from sluice_train.progress import plain_number

if TYPE_CHECKING:
    from collections.abc import Mapping


def report(
    values: Mapping[str, Any] | None = None, *, step: int | None = None, **named: Any
) -> None:
    """Report numbers of a job under names of its own: `report(accuracy=0.9, step=100)`, or
    `report({"val/loss": 0.3})` for names that Python does not take.

    In a run of Sluice they are a line of metrics.jsonl in its folder (or where SLUICE_METRICS
    says), elsewhere a printed line `::metric …`, which the portal reads from a job's output. Only
    the first rank reports. Never raises: what cannot be written is told once on stderr.
    """
    if os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")) not in {"", "0"}:
        return
    line = {name: plain_number(value) for name, value in {**(values or {}), **named}.items()}
    if step is not None:
        line["step"] = int(step)
    path = os.environ.get("SLUICE_METRICS") or os.environ.get("SLUICE_RUN_DIR")
    try:
        if path is None:
            words = (f"{name}={value}" for name, value in line.items() if value is not None)
            print("::metric", *words, flush=True)
            return
        folder = RunFolder.of_environment()
        given = os.environ.get("SLUICE_METRICS")
        folder.line(Path(given) if given else folder.metrics, line)
    except (OSError, ValueError) as error:
        if not _COMPLAINED:
            _COMPLAINED.append(path or "")
            print(f"sluice_train: metrics could not be written: {error}", file=sys.stderr)


_COMPLAINED: list[str] = []  # the job goes on, and its log is not filled


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
