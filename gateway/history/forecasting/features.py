"""What was known at a moment about a request and the queue: one implementation for learning from
the past and for asking about now.

Everything about the queue is a count or a quantile over events *before* the moment; a row's own
start and end never enter (`backtest.check_leaks`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gateway.core.forecast import Ask
from gateway.history.forecasting.rows import MAY_LACK, NAMED, Rows, seconds
from gateway.history.forecasting.tallies import Latest, Tally

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, Any]

_HOUR = 3600
_DAY = 24 * _HOUR
REACH = 7 * _DAY  # what is said of the recent past goes back so far
_LIMITS = (60, 240, 720, 1440, 4320)  # minutes: borders of the classes of time limits
# Whose jobs are counted, and how many of their last waits tell the recent quantiles.
_SCOPES: Mapping[str, int] = {
    "all": 200,
    "partition": 200,
    "partition_limit": 200,
    "group": 30,
    "group_partition": 30,
    "qos": 200,
    "partition_qos": 200,
    "partition_gpu_type": 200,
}
_OWN = ("hour", "day", "minutes", "gpus", "nodes", "cpus")
_COUNTED = (
    *("waiting", "waiting_work", "mean_age", "old", "running"),
    *("started_day", "asked_hour", "q50", "q90"),
)
NAMES = (*_OWN, *(f"{scope}_{what}" for scope in _SCOPES for what in _COUNTED))


@dataclass(frozen=True, slots=True)
class Questions:
    """Requests with the moments they are made at (`asked`); otherwise columns as of `Rows`, where
    a name that the rows do not know is the number after the last."""

    asked: "Numbers"
    group: "Numbers"
    partition: "Numbers"
    qos: "Numbers"
    gpu_type: "Numbers"
    gpus: "Numbers"
    nodes: "Numbers"
    cpus: "Numbers"
    minutes: "Numbers"


def questions(rows: Rows) -> Questions:
    """Each row's own request at the moment it was made."""
    return Questions(*(getattr(rows, name) for name in Questions.__slots__))


def of_asks(asks: Sequence[Ask], rows: Rows) -> "tuple[Questions, Numbers]":
    """What is asked of now, or since when a job waits, and how many seconds that is each."""
    import numpy as np  # noqa: PLC0415

    at = np.array([seconds(ask.at) for ask in asks])
    since = np.array([seconds(ask.submitted or ask.at) for ask in asks])

    def named(column: str) -> "Numbers":
        names = getattr(rows, NAMED[column]).tolist()
        places = {name: place for place, name in enumerate(names)}
        unknown = len(names)
        if column in MAY_LACK:
            places |= {None: -1, "": -1}
            unknown = unknown or -1  # nobody has one here
        return np.array([places.get(getattr(ask, column), unknown) for ask in asks])

    asked = Questions(
        asked=np.maximum(since, at - REACH),  # the rows do not tell of queues before that
        **{column: named(column) for column in NAMED},
        gpus=np.array([ask.gpus for ask in asks]),
        nodes=np.array([ask.nodes for ask in asks]),
        cpus=np.array([ask.cpus for ask in asks]),
        minutes=np.array([-1 if a.limit_minutes is None else a.limit_minutes for a in asks]),
    )
    return asked, np.maximum(at - since, 0).astype(np.float64)


Extra = Callable[[Rows, Questions], "Numbers"]  # a column more: tests plant a leak with it


@dataclass(frozen=True, slots=True)
class _Scope:
    asked: Tally  # count, work, moment
    left: Tally
    aged: Tally  # those that waited three days, at the end of the third
    aged_left: Tally
    started: Tally
    ended: Tally
    waits: Latest


@dataclass(frozen=True, slots=True)
class Queue:
    """The rows, counted so that questions about any moment that they cover are quick. A moment
    more than `REACH` before the last row's needs rows from `REACH` before it."""

    rows: Rows
    scopes: tuple[_Scope, ...]

    @classmethod
    def of(cls, rows: Rows) -> "Queue":
        keys = _keys(questions(rows), rows)
        return cls(rows, tuple(_scope(rows, key) for key in keys))

    def features(self, asked: Questions) -> "Numbers":
        """A row a question, a column a name of NAMES."""
        import numpy as np  # noqa: PLC0415

        features = np.empty((len(asked.asked), len(NAMES)), dtype=np.float32)
        features[:, : len(_OWN)] = np.column_stack(_own(asked))
        place = len(_OWN)
        for key, scope, last in zip(
            _keys(asked, self.rows), self.scopes, _SCOPES.values(), strict=True
        ):
            for column in _counted(scope, key, asked.asked, last):
                features[:, place] = column
                place += 1
        return features


def _keys(asked: Questions, rows: Rows) -> "list[Numbers]":
    """Of each scope, in the order of _SCOPES; -1 where the request does not tell."""
    import numpy as np  # noqa: PLC0415

    minutes = np.where(asked.minutes < 0, _LIMITS[-1] + 1, asked.minutes)
    limit = np.searchsorted(_LIMITS, minutes)
    return [
        np.zeros(len(asked.asked), dtype=np.int64),
        asked.partition,
        asked.partition * (len(_LIMITS) + 1) + limit,
        asked.group,
        asked.group * (len(rows.partitions) + 1) + asked.partition,
        asked.qos,
        _within(asked.partition, asked.qos, len(rows.qoses) + 1),
        _within(asked.partition, asked.gpu_type, len(rows.gpu_types) + 1),
    ]


def _within(partition: "Numbers", key: "Numbers", number: int) -> "Numbers":
    """The key in its partition, of so many keys."""
    import numpy as np  # noqa: PLC0415

    result: Numbers = np.where(key < 0, -1, partition * number + key)
    return result


def numbers(rows: Rows) -> list[int]:
    """How many keys each of _SCOPES has; the last of each is for what the rows do not know."""
    groups, partitions = len(rows.groups) + 1, len(rows.partitions) + 1
    limits, qoses = len(_LIMITS) + 1, len(rows.qoses) + 1
    return [
        *(1, partitions, partitions * limits, groups, groups * partitions),
        *(qoses, partitions * qoses, partitions * (len(rows.gpu_types) + 1)),
    ]


def _scope(rows: Rows, key: "Numbers") -> _Scope:
    import numpy as np  # noqa: PLC0415

    ones = np.ones((len(rows), 1))
    work = rows.cpus * np.maximum(rows.minutes, 0) // 60  # whole: the sums are exact
    sums = np.column_stack([ones, work, rows.asked]).astype(np.float64)
    # Who never left is at NEVER, which no moment is after.
    old = rows.left - rows.asked > 3 * _DAY
    ran = rows.started
    taught = ran & rows.counts
    return _Scope(
        asked=Tally.of(key, rows.asked, sums),
        left=Tally.of(key, rows.left, sums),
        aged=Tally.of(key[old], rows.asked[old] + 3 * _DAY, ones[old]),
        aged_left=Tally.of(key[old], rows.left[old], ones[old]),
        started=Tally.of(key[ran], rows.left[ran], ones[ran]),
        ended=Tally.of(key[ran], rows.end[ran], ones[ran]),
        waits=Latest.of(key[taught], rows.left[taught], (rows.left - rows.asked)[taught]),
    )


def _own(asked: Questions) -> "list[Numbers]":
    return [
        asked.asked % _DAY / _HOUR,
        (asked.asked // _DAY + 3) % 7,  # the first of January 1970 was a Thursday
        asked.minutes,
        asked.gpus,
        asked.nodes,
        asked.cpus,
    ]


def _counted(scope: _Scope, key: "Numbers", at: "Numbers", last: int) -> "list[Numbers]":
    """A column each of _COUNTED; -1 in all where the request does not tell the key."""
    import numpy as np  # noqa: PLC0415

    waiting, work, moments = (scope.asked.before(key, at) - scope.left.before(key, at)).T
    old = scope.aged.before(key, at) - scope.aged_left.before(key, at)
    started = scope.started.before(key, at)
    lately = started - scope.started.before(key, at - _DAY)
    asked = scope.asked.before(key, at) - scope.asked.before(key, at - _HOUR)
    recent = scope.waits.quantiles(key, at, (0.5, 0.9), last=last, reach=REACH)
    columns = [
        waiting,
        work,
        np.where(waiting > 0, at - moments / np.maximum(waiting, 1), -1),
        old[:, 0],
        (started - scope.ended.before(key, at))[:, 0],
        lately[:, 0],
        asked[:, 0],
        *recent.T,
    ]
    return [np.where(key < 0, -1, column) for column in columns]
