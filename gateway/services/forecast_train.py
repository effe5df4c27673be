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

from gateway.core.forecast import Here
from gateway.services.forecaster import FOLDER, load_model

if TYPE_CHECKING:
    from gateway.history.forecasting.model import Model

EVERY = timedelta(days=1)
_AGAIN = timedelta(hours=1)  # after one that came to no end, or to no model that answers
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


def is_due(history: Path, *, now: datetime, here: Here | None = None) -> bool:
    """A day after the last training; an hour after one that was killed, or left no model that
    answers. Never while there are too few runs to learn from."""
    tried = _tried(history / FOLDER)
    passed = None if tried is None else now - tried
    # A clock that was set back is no reason to wait until it has caught up.
    if tried is not None and passed is not None and timedelta(0) <= passed < EVERY:
        found = look(history) if passed >= _AGAIN else None
        done = found is not None and found.calibrated and found.moment >= tried
        if passed < _AGAIN or done:
            return False
    return _has_enough(history, now=now, here=here)


def _tried(folder: Path) -> datetime | None:
    """When the last training began, to the second as a model's moment is."""
    try:
        return datetime.fromtimestamp(int((folder / _TRIED).stat().st_mtime), UTC)
    except OSError:
        return None


def _has_enough(history: Path, *, now: datetime, here: Here | None) -> bool:
    """Of the rows that `train` reads: counting our own jobs spares opening files."""
    from gateway.history import blocks, reading, sets  # noqa: PLC0415
    from gateway.history.forecasting import rows  # noqa: PLC0415

    manifest = blocks.load(history)
    if manifest is not None and manifest.highest >= _LEAST_RUNS:
        return True
    if here is None or not sets.listed(history.parent / sets.FOLDER):
        return False
    with reading.runs(history) as connection:
        return rows.started(connection, now=now, here=here) >= _LEAST_RUNS


def look(history: Path) -> Trained | None:
    """The model that there is; None: none, or one of another version."""
    found = load_model(history / FOLDER, trees=False)
    return None if found is None else _told(found)


def train(history: Path, *, now: datetime, here: Here | None = None) -> Trained:
    """Here and now, after another that goes on. Readers have the old model until the new one is
    whole. `here`: what imported sets tell of this cluster's earlier days teaches, too."""
    from gateway.history import blocks, reading  # noqa: PLC0415  # megabytes that only this needs
    from gateway.history.forecasting import model, rows  # noqa: PLC0415

    folder = history / FOLDER
    with blocks.writing(folder, wait=True):
        with reading.runs(history) as connection:
            found = rows.read(connection, now=now, here=here)
        learned = model.train(found, now=now, before=load_model(folder))
        learned.save(folder)
    return _told(learned)


def start(history: Path, *, now: datetime, here: Here | None = None) -> "subprocess.Popen[bytes]":
    """The same in a process of its own, which ends itself after a quarter of an hour."""
    folder = history / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    tried = folder / _TRIED
    tried.touch()
    os.utime(tried, (now.timestamp(), now.timestamp()))
    argv = [sys.executable, "-m", __name__, str(history), now.isoformat()]
    if here is not None:
        argv += [here.cluster, *here.partitions]
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL)  # noqa: S603  # our own


def main() -> None:
    """`python -m gateway.services.forecast_train HISTORY MOMENT [CLUSTER PARTITION …]`."""
    os.nice(19)
    signal.alarm(_LIMIT_SECONDS)  # not by the worker: it may be gone by then
    history, moment, *where = sys.argv[1:]
    here = Here(where[0], tuple(where[1:])) if where else None
    train(Path(history), now=datetime.fromisoformat(moment), here=here)


def _told(model: "Model") -> Trained:
    return Trained(
        moment=datetime.fromtimestamp(model.moment, UTC),
        calibrated=model.shifts is not None,
        waits=sum(sum(by_qos.values()) for by_qos in model.started.values()),
        partitions=len(model.started),
    )


if __name__ == "__main__":
    main()
