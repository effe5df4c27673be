"""Ask the model about a past that is known: each job at its moment, with what was known then.

The first part of the jobs (by submit time) is only learned from; about the rest the model is
asked, and trained anew each day as the worker does. Before anything is told, `check_leaks` has
changed the future and seen that no forecast noticed.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gateway.core.wait_figures import GPU_CLASSES
from gateway.errors import GatewayError
from gateway.history.forecasting.features import Extra, Queue, questions
from gateway.history.forecasting.model import DAY, LEAST, SHARES, Model, learn
from gateway.history.forecasting.rows import NEVER, Rows
from gateway.history.forecasting.tallies import Latest

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, Any]

BASELINES = ("partition", "partition and cards")
_LAST = 200  # started jobs that a baseline looks at


class Leak(GatewayError):
    """A forecast knew of something that came after its moment."""

    code = "forecast_leak"


class TooFewJobs(GatewayError):
    """The file has too few jobs that started to learn from and to ask about."""

    code = "forecast_too_few"


@dataclass(frozen=True, slots=True)
class Score:
    """Of jobs that started. `coverage`: shares of waits not longer than each of SHARES;
    `pinball`: mean loss in seconds; `baselines`: the same of each of BASELINES."""

    jobs: int
    coverage: tuple[float, ...]
    pinball: tuple[float, ...]
    baselines: tuple[tuple[float, ...], ...]

    @property
    def better(self) -> tuple[float, ...]:
        """For each share the pinball loss of the better baseline."""
        return tuple(min(column) for column in zip(*self.baselines, strict=True))

    @property
    def improvement(self) -> tuple[float, ...]:
        """By how many per cent the loss is below that of the better baseline."""
        pairs = zip(self.pinball, self.better, strict=True)
        return tuple(100 * (1 - ours / theirs) if theirs else 0.0 for ours, theirs in pairs)


@dataclass(frozen=True, slots=True)
class Report:
    """`since`: the moment of the first question; `unstarted`: asked about, but without a known
    start; `silent`: there was no model that answers. Both are in no score."""

    learned: int
    since: int
    trained: int
    unstarted: int
    silent: int
    seconds: float
    total: Score
    by_partition: Mapping[str, Score]
    by_gpu_class: Mapping[str, Score]


def backtest(rows: Rows, *, train: float = 0.7, extra: Extra | None = None) -> Report:
    """Raises Leak, or TooFewJobs. `extra` is a feature more."""
    import numpy as np  # noqa: PLC0415

    began = time.monotonic()
    first = _first(rows, train)
    asked = _ask(rows, first, extra=extra)
    check_leaks(rows, first, asked, extra=extra)
    waits = (rows.left - rows.asked).astype(np.float64)
    theirs = [_baseline(rows, keys) for keys in (rows.partition, _cards(rows))]
    answered = ~np.isnan(asked.waits[:, 0])
    started = rows.started & rows.counts
    scored = started & answered

    def score(which: "Numbers") -> Score:
        at = np.flatnonzero(which & scored)
        return Score(
            len(at),
            tuple(float(x) for x in (waits[at, None] <= asked.waits[at]).mean(axis=0)),
            _pinball(waits[at], asked.waits[at]),
            tuple(_pinball(waits[at], one[at]) for one in theirs),
        )

    if not scored.any():
        raise TooFewJobs(
            f"No forecast could be made: that takes {LEAST} jobs that started, then three days"
            " of jobs to see how far off they are."
        )
    later = np.arange(len(rows)) >= first
    return Report(
        learned=first,
        since=int(rows.asked[first]),
        trained=asked.trained,
        unstarted=int((later & ~started).sum()),
        silent=int((later & started & ~answered).sum()),
        seconds=time.monotonic() - began,
        total=score(scored),
        by_partition=dict(_each(rows.partition, rows.partitions.tolist(), scored, score)),
        by_gpu_class=dict(
            _each(_gpu_class(rows), [name for name, _, _ in GPU_CLASSES], scored, score)
        ),
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """`features` of each job at its moment; `waits`: seconds, a row a job and a column a share, NaN
    where nothing was answered."""

    features: "Numbers"
    waits: "Numbers"
    trained: int


def check_leaks(
    rows: Rows, first: int, asked: Asked, *, extra: Extra | None = None, days: float = 1.5
) -> None:
    """Change all that comes after a moment in the first days of asking, ask again until then, and
    compare bit by bit: the forecasts, and what they were made of, for trees may have no use for a
    feature today that tells them of the future tomorrow. Raises Leak where one differs."""
    import numpy as np  # noqa: PLC0415

    moment = int(rows.asked[first] + days * DAY)
    other = changed_after(rows, moment)
    again = _ask(other, first, until=moment, extra=extra)
    until = int(np.searchsorted(rows.asked, moment))
    same = np.array_equal(asked.features[:until], again.features[:until])
    if not (same and np.array_equal(asked.waits[:until], again.waits[:until], equal_nan=True)):
        raise Leak("A forecast changed when what came after its moment was changed.")


def changed_after(rows: Rows, moment: int) -> Rows:
    """The same past with another future: jobs that wait start at other times or never, those that
    run end at others, and others are submitted."""
    import numpy as np  # noqa: PLC0415

    chance = np.random.default_rng(1)
    late = np.flatnonzero(rows.asked >= moment)
    other = np.arange(len(rows))
    other[late] = chance.permutation(late)
    changed = replace(rows.take(other), asked=rows.asked)
    later = moment + chance.integers(0, 30 * DAY, (2, len(rows)))
    later = np.maximum(later, rows.asked)
    gone = (chance.random(len(rows)) < 0.1) & (changed.left >= moment)
    left = np.where(gone, NEVER, np.where(changed.left >= moment, later[0], changed.left))
    end = np.where(changed.end >= moment, np.maximum(later[1], left), changed.end)
    return replace(changed, left=left, end=end, started=changed.started & ~gone)


def _first(rows: Rows, train: float) -> int:
    """The place of the first job that is asked about: the first of its second, so that nobody asks
    in a second that was learned from."""
    import numpy as np  # noqa: PLC0415

    first = int(train * len(rows))
    if not 0 < first < len(rows):
        raise TooFewJobs("The file has too few jobs: there is nothing to learn from, or to ask.")
    return int(np.searchsorted(rows.asked, rows.asked[first]))


def _ask(rows: Rows, first: int, *, until: int | None = None, extra: Extra | None = None) -> Asked:
    """Day by day: learn what is known at its beginning, ask about the jobs of the day.

    Features are made once for all rows: that they hold nothing that came after their row's moment
    is what `check_leaks` proves.
    """
    import numpy as np  # noqa: PLC0415

    features = Queue.of(rows).features(questions(rows))
    if extra is not None:
        column = extra(rows, questions(rows)).astype(np.float32)
        features = np.column_stack([features, column])
    waits = np.full((len(rows), len(SHARES)), np.nan)
    model: Model | None = None
    trained = 0
    for moment in _mornings(rows, first, until):
        begin, end = np.searchsorted(rows.asked, [moment, moment + DAY])
        model = learn(rows.known(moment), features[:begin], moment=moment, before=model)
        trained += 1
        if model.shifts is not None:
            waits[begin:end] = model.waits(features[begin:end])
    return Asked(features, waits, trained)


def _mornings(rows: Rows, first: int, until: int | None) -> Iterator[int]:
    end = int(rows.asked[-1]) + 1 if until is None else until
    yield from range(int(rows.asked[first]), end, DAY)


def _baseline(rows: Rows, keys: "Numbers") -> "Numbers":
    """The running quantile of the waits of the last 200 jobs of the key that had started before
    the question (nearest rank; of fewer, while there are not as many; of all jobs, while there is
    none): a row a job, a column a share."""
    import numpy as np  # noqa: PLC0415

    ran = rows.started & rows.counts
    waits = (rows.left - rows.asked)[ran]

    def latest(of: "Numbers") -> "Numbers":
        found = Latest.of(of[ran], rows.left[ran], waits)
        return found.quantiles(of, rows.asked, SHARES, last=_LAST)

    own = latest(keys)
    result: Numbers = np.where(own < 0, np.maximum(latest(np.zeros_like(keys)), 0), own)
    return result


def _each(
    keys: "Numbers", names: Sequence[str], scored: "Numbers", score: "Callable[[Numbers], Score]"
) -> Iterator[tuple[str, Score]]:
    import numpy as np  # noqa: PLC0415

    for key in np.unique(keys[scored]).tolist():
        yield str(names[key]), score(keys == key)


def _gpu_class(rows: Rows) -> "Numbers":
    import numpy as np  # noqa: PLC0415

    result: Numbers = (
        np.searchsorted([least for _, least, _ in GPU_CLASSES], rows.gpus, "right") - 1
    )
    return result


def _cards(rows: Rows) -> "Numbers":
    result: Numbers = rows.partition * len(GPU_CLASSES) + _gpu_class(rows)
    return result


def _pinball(waits: "Numbers", forecasts: "Numbers") -> tuple[float, ...]:
    """The mean loss at each share: what is too short costs the share of it, too long the rest."""
    import numpy as np  # noqa: PLC0415

    short = waits[:, None] - forecasts
    shares = np.array(SHARES)
    return tuple(float(x) for x in np.maximum(shares * short, (shares - 1) * short).mean(axis=0))
