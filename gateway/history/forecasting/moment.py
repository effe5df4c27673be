"""The queue at one moment: what a web process needs to answer about a request of now.

A few hundred kilobytes whatever the site's size, where the rows behind them are hundreds of
megabytes once they are counted for every moment.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.history.forecasting.features import (
    _LIMITS,
    _SCOPES,
    Questions,
    Queue,
    _counted,
    _keys,
    _own,
)
from gateway.history.forecasting.rows import Rows

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Moment(Queue):
    """Answers as `Queue` does, of jobs that are asked about now. `tables` has for each scope a row
    a key; `rows` only the names."""

    tables: "tuple[Numbers, ...]"

    @classmethod
    def at(cls, queue: Queue, moment: int) -> "Moment":
        """`moment` in seconds since 1970."""
        import numpy as np  # noqa: PLC0415

        names = queue.rows.take(np.zeros(0, dtype=np.int64))
        tables = []
        for scope, number, last in zip(
            queue.scopes, _numbers(names), _SCOPES.values(), strict=True
        ):
            key = np.arange(number)
            counted = _counted(scope, key, np.full(number, moment), last)
            tables.append(np.column_stack(counted).astype(np.float32))
        return cls(names, (), tuple(tables))

    def features(self, asked: Questions) -> "Numbers":
        import numpy as np  # noqa: PLC0415

        keys = _keys(asked, self.rows)
        counted = [table[key] for table, key in zip(self.tables, keys, strict=True)]
        return np.column_stack([*_own(asked), *counted]).astype(np.float32)

    def save(self, file: Path) -> None:
        """Whole or not at all."""
        import numpy as np  # noqa: PLC0415

        arrays: dict[str, Any] = {f"table_{n}": table for n, table in enumerate(self.tables)}
        new = file.with_suffix(".new.npz")
        np.savez(new, groups=self.rows.groups, partitions=self.rows.partitions, **arrays)
        new.replace(file)

    @classmethod
    def load(cls, file: Path) -> "Moment":
        """OSError where there is none, ValueError or KeyError where it is something else."""
        import numpy as np  # noqa: PLC0415

        none = np.zeros(0, dtype=np.int64)
        with np.load(file, allow_pickle=False) as found:
            tables = tuple(found[f"table_{number}"] for number in range(len(_SCOPES)))
            empty = dict.fromkeys(_columns(), none)
            rows = Rows(**empty, groups=found["groups"], partitions=found["partitions"])
        return cls(rows, (), tables)


def _numbers(names: Rows) -> list[int]:
    """How many keys each of _SCOPES has; the last of each is for what the rows do not know."""
    groups, partitions = len(names.groups) + 1, len(names.partitions) + 1
    return [1, partitions, partitions * (len(_LIMITS) + 1), groups, groups * partitions]


def _columns() -> tuple[str, ...]:
    return tuple(name for name in Rows.__slots__ if name not in {"groups", "partitions"})
