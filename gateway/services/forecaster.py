"""Forecasts from the site's history: the model and the queue that the worker left in a folder.

The worker trains the model and writes the queue down every five minutes; all that answers reads
both when they have changed. NumPy is needed for answers, DuckDB only for writing.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.core.forecast import Ask, Forecast, NoForecast

if TYPE_CHECKING:
    from gateway.history.forecasting.features import Queue
    from gateway.history.forecasting.model import Model

FOLDER = "forecast"  # in that of the history
_QUEUE = "queue.npz"
_MODEL = "model.npz"


@dataclass(frozen=True, slots=True)
class _Loaded:
    stamps: tuple[int, int]  # of the two files, as they were read
    model: "Model"
    queue: "Queue"


class Forecaster:
    """What web and worker ask. `history` is $SLUICE_HOME/history. Several threads may ask at once;
    nothing is read before the first question."""

    def __init__(self, history: Path) -> None:
        self._folder = history / FOLDER
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None

    @property
    def version(self) -> str | None:
        """Which model answers: the moment (UTC) after which nothing is known to it."""
        found = self._load()
        if found is None:
            return None
        return datetime.fromtimestamp(found.model.moment, UTC).strftime("%Y-%m-%dT%H:%MZ")

    def forecast(self, asks: Sequence[Ask]) -> Sequence[Forecast | NoForecast]:
        """An answer for each, in their order. NO_HISTORY where nothing was learned yet."""
        found = self._load()
        if found is None:
            return [NoForecast.NO_HISTORY] * len(asks)
        return found.model.forecast(asks, found.queue)

    def _load(self) -> _Loaded | None:
        """What is in the files now; the last of it where one is gone or cannot be read."""
        with self._lock:
            stamps = _stamps(self._folder)
            if stamps is not None and (self._loaded is None or self._loaded.stamps != stamps):
                self._loaded = _read(self._folder, stamps) or self._loaded
            return self._loaded


def answer_now(
    history: Path, asks: Sequence[Ask], *, now: datetime
) -> Sequence[Forecast | NoForecast]:
    """The same with the queue as the history has it at this moment; nothing is written."""
    from gateway.history import reading  # noqa: PLC0415
    from gateway.history.forecasting import features, model, rows  # noqa: PLC0415

    try:
        learned = model.Model.load(history / FOLDER)
    except (OSError, ValueError, KeyError):
        return [NoForecast.NO_HISTORY] * len(asks)
    with reading.runs(history) as connection:
        queue = features.Queue.of(rows.read(connection, now=now, open_days=model.QUEUE_DAYS))
    return learned.forecast(asks, queue)


def write_queue(history: Path, *, now: datetime) -> int:
    """The queue as the history has it, for those that answer: how many rows. The file is put in
    its place whole."""
    from gateway.history import reading  # noqa: PLC0415  # megabytes that only the worker needs
    from gateway.history.forecasting import model, rows  # noqa: PLC0415

    folder = history / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with reading.runs(history) as connection:
        found = rows.read(connection, now=now, open_days=model.QUEUE_DAYS)
    found.save(folder / _QUEUE)
    return len(found)


def _stamps(folder: Path) -> tuple[int, int] | None:
    try:
        model, queue = ((folder / name).stat().st_mtime_ns for name in (_MODEL, _QUEUE))
    except OSError:
        return None
    return model, queue


def _read(folder: Path, stamps: tuple[int, int]) -> _Loaded | None:
    """None while a file is of another version: the worker makes it anew."""
    from gateway.history.forecasting import features, model, rows  # noqa: PLC0415

    try:
        return _Loaded(
            stamps,
            model.Model.load(folder),
            features.Queue.of(rows.Rows.load(folder / _QUEUE)),
        )
    except (OSError, ValueError, KeyError):
        return None
