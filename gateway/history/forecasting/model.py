"""The model of waits: trained by the worker, kept in a folder, asked by web processes.

    rows = read(connection, now=now)           # all that a model learns from
    model = train(rows, now=now, before=last)  # nightly; `last` night's model, if there is one
    model.save(folder)
    queue = Queue.of(read(connection, now=now, open_days=QUEUE_DAYS))  # as fresh as wished
    Model.load(folder).forecast(asks, queue)

The method and its record: docs/engineering/forecast.md.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.core.forecast import Ask, Forecast, ForecastSource, NoForecast
from gateway.history.forecasting import censored, files, trees
from gateway.history.forecasting.features import NAMES, REACH, Queue, of_asks, questions
from gateway.history.forecasting.rows import NAMED, NEVER, Rows, seconds
from gateway.history.forecasting.trees import Trees

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, Any]

Counts = Mapping[str, Mapping[str, int]]  # by partition and what stands there, of waits

SHARES = (0.5, 0.9)
DAY = 24 * 3600
QUEUE_DAYS = 2 * REACH // DAY  # rows that `Queue` needs for a job that waits since `REACH`
LEAST = 200  # waits, to learn from, to calibrate by, and of a partition to speak of it
LEAST_OF_KIND = 30  # of a QoS or type in the partition: what is hardly seen is not called quick
_SPOKEN_OF = 30 * DAY  # of a partition, within so long
_CALIBRATED = 7 * DAY
_APART = 20 * 3600  # between fits that are kept, where somebody trains more often than nightly
_SHORTEST = 3 * DAY  # of forecasts: jobs of one day are often one person's, and tell of one wait
_EARLIER = (7, 5, 3, 1)  # days back of the fits that the first training makes
_SHORT = 60  # seconds that are added before the logarithm: waits below a minute are alike
_SHAPE = 3
_FILE = "model.npz"


@dataclass(frozen=True, slots=True)
class Fit:
    """Trees for the logarithm of the wait at each of SHARES, of what was known at `moment`."""

    moment: int
    quantiles: tuple[Trees, ...]

    def predict(self, features: "Numbers") -> "Numbers":
        """Logarithms of seconds: a row a question, a column a share."""
        import numpy as np  # noqa: PLC0415

        return np.column_stack([one.predict(features) for one in self.quantiles])


@dataclass(frozen=True, slots=True)
class Model:
    """The newest fit, those of the days before (their forecasts calibrate), by how much forecasts
    of the last week were too short (`shifts`, logarithms, for each of SHARES; None: unknown), and
    how many waits each partition had lately, by QoS ("": without one), and those for cards by type
    asked for ("": any). `moment`: nothing later is known to it."""

    moment: int
    fits: tuple[Fit, ...]
    shifts: tuple[float, ...] | None
    started: Counts
    typed: Counts

    def forecast(self, asks: Sequence[Ask], queue: Queue) -> list[Forecast | NoForecast]:
        """Seconds from `Ask.at` to the start. A job that waits is asked about with the queue as it
        was when it was submitted and with how long it has waited since."""
        kinds = [self._gpu_type(ask) for ask in asks]
        jobs = [
            0 if kind is None else self._jobs(ask) for ask, kind in zip(asks, kinds, strict=True)
        ]
        if not asks or self.shifts is None or not self.fits:
            return [NoForecast.TOO_THIN for _ in asks]
        asks = [replace(ask, gpu_type=kind) for ask, kind in zip(asks, kinds, strict=True)]
        asked, waited = of_asks(asks, queue.rows)
        left = remaining(self.waits(queue.features(asked)), waited)
        return [
            Forecast(round(p50), round(p90), ForecastSource.HISTORY, number)
            if number
            else NoForecast.TOO_THIN
            for (p50, p90), number in zip(left.tolist(), jobs, strict=True)
        ]

    def _jobs(self, ask: Ask) -> int:
        """Waits of the partition that an answer rests on; 0 where they, or those of the QoS, are
        too few."""
        by_qos = self.started.get(ask.partition, {})
        known = by_qos.get(ask.qos or "", 0) >= LEAST_OF_KIND or by_qos.keys() == {""}
        number = sum(by_qos.values())
        return number if known and number >= LEAST else 0

    def _gpu_type(self, ask: Ask) -> str | None:
        """The type to ask with ("": any); None where waits for it are too few. In a partition where
        only one is ever named it makes no difference: what most say there is known best."""
        asked, by_type = ask.gpu_type or "", self.typed.get(ask.partition, {})
        if not ask.gpus:
            return ""
        if by_type.get(asked, 0) >= LEAST_OF_KIND:
            return asked
        if len({*by_type, asked} - {""}) > 1:
            return None
        return max(by_type, key=lambda kind: by_type[kind], default="")

    def waits(self, features: "Numbers") -> "Numbers":
        """Seconds of the whole wait: a row a question, a column a share."""
        import numpy as np  # noqa: PLC0415

        if self.shifts is None:
            raise ValueError("a model that is not calibrated tells nothing")
        logarithms = self.fits[-1].predict(features) + np.array(self.shifts)
        wait = np.maximum(np.exp(np.minimum(logarithms, 21)) - _SHORT, 0)  # 21: some 40 years
        result: Numbers = np.maximum.accumulate(wait, axis=1)
        return result

    def save(self, folder: Path) -> None:
        """Into one file: whole or not at all."""
        import numpy as np  # noqa: PLC0415

        facts = {
            "shape": _SHAPE,
            "moment": self.moment,
            "moments": [fit.moment for fit in self.fits],
            "shifts": self.shifts,
            "started": self.started,
            "typed": self.typed,
        }
        arrays = {
            f"{number}_{share}_{field.name}": getattr(one, field.name)
            for number, fit in enumerate(self.fits)
            for share, one in zip(SHARES, fit.quantiles, strict=True)
            for field in fields(Trees)
        }
        files.save(folder / _FILE, {"facts": np.array(json.dumps(facts)), **arrays})

    @classmethod
    def load(cls, folder: Path, *, trees: bool = True) -> "Model":
        """OSError where there is none, ValueError where it is of another shape, or broken. Without
        its trees it is read in a millisecond, tells what it rests on, and answers nothing."""
        with files.opened(folder / _FILE) as found:
            facts = json.loads(str(found["facts"]))
            if facts["shape"] != _SHAPE:
                raise ValueError("a forecast model of another version")
            fits = tuple(
                Fit(_moment(moment), tuple(_read(found, f"{number}_{share}_") for share in SHARES))
                for number, moment in enumerate(facts["moments"] if trees else ())
            )
            counts = _counts(facts["started"]), _counts(facts["typed"])
            return cls(_moment(facts["moment"]), fits, _shift(facts["shifts"]), *counts)


def _read(found: "Mapping[str, Numbers]", prefix: str) -> Trees:
    read = Trees(**{field.name: found[prefix + field.name] for field in fields(Trees)})
    read.check(features=len(NAMES))
    return read


def _moment(found: object) -> int:
    if type(found) is not int or not 0 <= found < NEVER:
        raise ValueError("no moment")
    return found


def _shift(found: Sequence[float] | None) -> tuple[float, ...] | None:
    shifts = None if found is None else tuple(float(one) for one in found)
    if shifts is not None and (len(shifts) != len(SHARES) or not all(map(isfinite, shifts))):
        raise ValueError("no shifts")
    return shifts


def _counts(found: Counts) -> Counts:
    return {
        str(partition): {str(kind): int(number) for kind, number in by_kind.items()}
        for partition, by_kind in found.items()
    }


def train(rows: Rows, *, now: datetime, before: Model | None = None) -> Model:
    """What can be learned from what was known at `now`. `before`: an earlier model of the same
    site, whose fits calibrate this one; without it, or when it is old, some are made."""
    known = rows.known(seconds(now))
    features = Queue.of(known).features(questions(known))
    return learn(known, features, moment=seconds(now), before=before)


def learn(known: Rows, features: "Numbers", *, moment: int, before: Model | None) -> Model:
    """`features`: of each row's own question at its moment."""
    kept = _kept(before.fits if before else (), moment)
    if not kept:
        made = (_fit(known, features, moment - days * DAY) for days in _EARLIER)
        kept = [fit for fit in made if fit is not None]
    shifts = _shifts(known, features, kept, moment) if kept else None
    newest = _fit(known, features, moment)
    fits = tuple(kept) if newest is None else (*kept, newest)
    lately = known.started & known.counts & (known.left >= moment - _SPOKEN_OF)
    started = _counted(known, lately, "qos")
    return Model(
        moment, fits, shifts, started, _counted(known, lately & (known.gpus > 0), "gpu_type")
    )


def _kept(fits: Sequence[Fit], moment: int) -> list[Fit]:
    """One a day of the last week, and one from before it."""
    kept: list[Fit] = []
    for fit in fits:
        apart = not kept or fit.moment - kept[-1].moment >= _APART
        if apart and moment - _CALIBRATED - DAY < fit.moment <= moment:
            kept.append(fit)
    return kept


def remaining(waits: "Numbers", waited: "Numbers") -> "Numbers":
    """Seconds still to wait for who has waited so long: a row a job, a column a share.

    Between and beyond p50 and p90 the wait is taken for log-logistic, the curve of two numbers
    whose tail is as heavy as those of queues: who has waited long will wait in proportion."""
    import numpy as np  # noqa: PLC0415

    middle = waits[:, :1] + _SHORT
    slope = np.log(9) / np.log(np.maximum((waits[:, 1:] + _SHORT) / middle, 1.05))
    with np.errstate(divide="ignore"):  # nothing waited yet
        passed = np.logaddexp(0, slope * np.log(waited[:, None] / middle))
    chance = passed - np.log(1 - np.array(SHARES))
    total = middle * np.exp((chance + np.log(-np.expm1(-chance))) / slope) - _SHORT
    result: Numbers = np.maximum(total - waited[:, None], 0)
    return result


def _fit(known: Rows, features: "Numbers", moment: int) -> Fit | None:
    """Of what was known at the moment; None where that was too little."""
    import numpy as np  # noqa: PLC0415

    then = known.known(moment)
    taught = then.counts & then.started
    if taught.sum() < LEAST:
        return None
    wait, seen = _waits(then, moment)
    weights = np.zeros(len(then))
    weights[then.counts] = censored.weights(wait[then.counts], seen[then.counts])
    target = np.log(wait[taught] + _SHORT)
    rows = features[: len(then)][taught]
    fitted = (trees.fit(rows, target, weights[taught], quantile=share) for share in SHARES)
    return Fit(moment, tuple(fitted))


def _shifts(
    known: Rows, features: "Numbers", fits: Sequence[Fit], moment: int
) -> tuple[float, ...] | None:
    """By what the forecasts that could have been made in the last week were too short, those of
    jobs that still wait included as "at least". None: not asked for long enough, or too rarely."""
    import numpy as np  # noqa: PLC0415

    if not fits or fits[0].moment > moment - _SHORTEST:
        return None
    wait, seen = _waits(known, moment)
    residuals, ends = [], []
    untils = [*(fit.moment for fit in fits[1:]), moment]
    for fit, until in zip(fits, untils, strict=True):
        since = max(fit.moment, moment - _CALIBRATED)
        asked = (known.asked >= since) & (known.asked < until) & known.counts
        logarithms = np.log(wait[asked] + _SHORT)
        residuals.append(logarithms[:, None] - fit.predict(features[asked]))
        ends.append(seen[asked])
    if sum(int(one.sum()) for one in ends) < LEAST:
        return None
    residual, end = np.concatenate(residuals), np.concatenate(ends)
    return tuple(
        censored.quantile(residual[:, column], end, share) for column, share in enumerate(SHARES)
    )


def _waits(known: Rows, moment: int) -> "tuple[Numbers, Numbers]":
    """Seconds waited until the moment, and whether that was the wait to the start."""
    import numpy as np  # noqa: PLC0415

    return np.minimum(known.left, moment) - known.asked, known.started


def _counted(known: Rows, which: "Numbers", column: str) -> Counts:
    """How many of these rows each partition has, by one of rows.MAY_LACK."""
    import numpy as np  # noqa: PLC0415

    places = np.column_stack([known.partition[which], getattr(known, column)[which]])
    names = getattr(known, NAMED[column])
    pairs, numbers = np.unique(places, axis=0, return_counts=True)
    found: dict[str, dict[str, int]] = {}
    for (partition, kind), number in zip(pairs.tolist(), numbers.tolist(), strict=True):
        name = str(names[kind]) if kind >= 0 else ""
        found.setdefault(str(known.partitions[partition]), {})[name] = number
    return found
