"""Forecasts from the site's history: by the model and the queue that the worker left in a folder.

The worker trains the model and writes down the queue of the moment every five minutes; web
processes read both when they have changed. They need NumPy for it, and no DuckDB.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.core.forecast import Ask, Forecast, Here, NoForecast
from gateway.store import snapshot
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from gateway.history.forecasting.features import Queue
    from gateway.history.forecasting.model import Model

# How a file that is not the one it should be is met.
_UNREAD = (OSError, ValueError)
FOLDER = "forecast"  # in that of the history
_QUEUE = "queue.npz"
_MODEL = "model.npz"


@dataclass(frozen=True, slots=True)
class Answers:
    """A model and a queue: what answers. `model` None: nothing was learned yet."""

    model: "Model | None"
    queue: "Queue | None"

    @property
    def version(self) -> str | None:
        """The moment (UTC) after which nothing is known to the model."""
        if self.model is None:
            return None
        return datetime.fromtimestamp(self.model.moment, UTC).strftime("%Y-%m-%dT%H:%MZ")

    def forecast(self, asks: Sequence[Ask]) -> Sequence[Forecast | NoForecast]:
        """An answer for each, in their order."""
        if self.model is None or self.queue is None:
            return [NoForecast.NO_HISTORY] * len(asks)
        return self.model.forecast(asks, self.queue) if asks else []


class Forecaster:
    """What web processes ask, about requests of now. `history` is $SLUICE_HOME/history. Several
    threads may ask at once."""

    def __init__(self, history: Path) -> None:
        self._folder = history / FOLDER
        self._lock = threading.Lock()
        self._stamps: tuple[int, int] | None = None
        self._answers = Answers(None, None)

    @property
    def version(self) -> str | None:
        return self._load().version

    def forecast(self, asks: Sequence[Ask]) -> Sequence[Forecast | NoForecast]:
        """As Answers; NO_HISTORY also while the worker has left nothing."""
        return self._load().forecast(asks)

    def warm(self) -> None:
        """Import and read what the first question would: before processes are forked, once."""
        from gateway.history.forecasting import model, moment  # noqa: F401, PLC0415

        self._load()

    def _load(self) -> Answers:
        """What is in the files now; the last of it where one is gone or cannot be read."""
        with self._lock:
            stamps = _stamps(self._folder)
            if stamps is not None and stamps != self._stamps:
                self._stamps = stamps  # also of what cannot be read: once is enough
                found = _read(self._folder)
                if found is not None:
                    self._answers = found
            return self._answers


def here(cluster: str, *, read: Begin) -> Here:
    """This cluster with the partitions that the last poll saw."""
    with read() as session:
        return Here(cluster, tuple(one.name for one in snapshot.partitions(session)))


def answers_now(
    history: Path, *, now: datetime, here: Here | None = None, keep: bool = False
) -> Answers:
    """By the queue as the history has it, for jobs that wait already, too. `here`: as the model was
    trained. `keep`: also write down the queue of the moment for the web processes."""
    from gateway.history import reading  # noqa: PLC0415  # megabytes that few processes need
    from gateway.history.forecasting import features, model, moment, rows  # noqa: PLC0415

    folder = history / FOLDER
    with reading.runs(history) as connection:
        found = rows.read(connection, now=now, here=here, open_days=model.QUEUE_DAYS)
    queue = features.Queue.of(found)
    if keep:
        moment.Moment.at(queue, rows.seconds(now)).save(folder / _QUEUE)
    return Answers(load_model(folder), queue)


def load_model(folder: Path, *, trees: bool = True) -> "Model | None":
    """None where there is none, or one of another version; without its trees it is a look."""
    from gateway.history.forecasting.model import Model  # noqa: PLC0415

    try:
        return Model.load(folder, trees=trees)
    except _UNREAD:
        return None


def _stamps(folder: Path) -> tuple[int, int] | None:
    try:
        model, queue = ((folder / name).stat().st_mtime_ns for name in (_MODEL, _QUEUE))
    except OSError:
        return None
    return model, queue


def _read(folder: Path) -> Answers | None:
    """None while a file is of another version: the worker makes it anew."""
    from gateway.history.forecasting.moment import Moment  # noqa: PLC0415

    model = load_model(folder)
    try:
        return None if model is None else Answers(model, Moment.load(folder / _QUEUE))
    except _UNREAD:
        return None
