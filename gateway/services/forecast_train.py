"""Train the model of forecasts: in a process of its own, of low priority, with a time limit.

Run as a module it trains once. Killed at any moment it leaves the old model as it was.
"""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.services.forecaster import FOLDER, load_model

if TYPE_CHECKING:
    from gateway.history.forecasting.model import Model

EVERY = timedelta(days=1)
_YOUNG = timedelta(hours=1)  # while there is too little to say anything
_LIMIT_SECONDS = 900
_LEAST_RUNS = 200
_TRIED = "tried"  # a file in the folder: when the last training began


@dataclass(frozen=True, slots=True)
class Trained:
    """`calibrated`: whether it answers at all. `waits` it learned from, in the last 30 days."""

    moment: datetime
    calibrated: bool
    waits: int
    partitions: int


def is_due(history: Path, *, now: datetime) -> bool:
    """A day after the last training; each hour while there is no model that answers. Never while
    there are too few runs to learn from."""
    folder = history / FOLDER
    if not _has_enough(history):
        return False
    try:
        tried = datetime.fromtimestamp((folder / _TRIED).stat().st_mtime, UTC)
    except OSError:
        return True
    found = look(history)
    return now - tried >= (EVERY if found is not None and found.calibrated else _YOUNG)


def _has_enough(history: Path) -> bool:
    from gateway.history import blocks, sets  # noqa: PLC0415

    manifest = blocks.load(history)
    own = manifest.highest if manifest is not None else 0
    return own >= _LEAST_RUNS or bool(sets.files(history.parent / sets.FOLDER))


def look(history: Path) -> Trained | None:
    """The model that there is; None: none, or one of another version."""
    found = load_model(history / FOLDER)
    return None if found is None else _told(found)


def train(history: Path, *, now: datetime) -> Trained:
    """Here and now. Readers have the old model until the new one is whole."""
    from gateway.history import reading  # noqa: PLC0415  # megabytes that only this needs
    from gateway.history.forecasting import model, rows  # noqa: PLC0415

    folder = history / FOLDER
    with reading.runs(history) as connection:
        found = rows.read(connection, now=now)
    learned = model.train(found, now=now, before=load_model(folder))
    learned.save(folder)
    return _told(learned)


def start(history: Path, *, now: datetime) -> "subprocess.Popen[bytes]":
    """The same in a process of its own, which ends itself after a quarter of an hour."""
    folder = history / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    tried = folder / _TRIED
    tried.touch()
    os.utime(tried, (now.timestamp(), now.timestamp()))
    argv = [sys.executable, "-m", __name__, str(history), now.isoformat()]
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL)  # noqa: S603  # our own


def main() -> None:
    """`python -m gateway.services.forecast_train HISTORY MOMENT`."""
    os.nice(19)
    signal.alarm(_LIMIT_SECONDS)  # not by the worker: it may be gone by then
    train(Path(sys.argv[1]), now=datetime.fromisoformat(sys.argv[2]))


def _told(model: "Model") -> Trained:
    return Trained(
        moment=datetime.fromtimestamp(model.moment, UTC),
        calibrated=model.shifts is not None,
        waits=sum(sum(by_qos.values()) for by_qos in model.started.values()),
        partitions=len(model.started),
    )


if __name__ == "__main__":
    main()
