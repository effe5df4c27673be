"""The queue at one moment: what a web process needs to answer about a request of now.

A few hundred kilobytes whatever the site's size, where the rows behind them are hundreds of
megabytes once they are counted for every moment.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gateway.history.forecasting import files
from gateway.history.forecasting.features import (
    _COUNTED,
    _SCOPES,
    Questions,
    Queue,
    _counted,
    _keys,
    _own,
    numbers,
)
from gateway.history.forecasting.rows import COLUMNS, NAMED, Rows

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Moment(Queue):
    """Answers as `Queue` does, of jobs that are asked about now. `tables` has for each scope a row
    a key, and a last one for no key (-1); `rows` only the names."""

    tables: "tuple[Numbers, ...]"

    @classmethod
    def at(cls, queue: Queue, moment: int) -> "Moment":
        """`moment` in seconds since 1970."""
        import numpy as np  # noqa: PLC0415

        names = queue.rows.take(np.zeros(0, dtype=np.int64))
        tables = []
        for scope, number, last in zip(queue.scopes, numbers(names), _SCOPES.values(), strict=True):
            key = np.append(np.arange(number), -1)
            counted = _counted(scope, key, np.full(len(key), moment), last)
            tables.append(np.column_stack(counted).astype(np.float32))
        return cls(names, (), tuple(tables))

    def features(self, asked: Questions) -> "Numbers":
        import numpy as np  # noqa: PLC0415

        keys = _keys(asked, self.rows)
        counted = [table[key] for table, key in zip(self.tables, keys, strict=True)]
        return np.column_stack([*_own(asked), *counted]).astype(np.float32)

    def save(self, file: Path) -> None:
        """Whole or not at all."""
        tables = {f"table_{n}": table for n, table in enumerate(self.tables)}
        files.save(file, {name: getattr(self.rows, name) for name in NAMED.values()} | tables)

    @classmethod
    def load(cls, file: Path) -> "Moment":
        """OSError where there is none, ValueError where it is something else."""
        import numpy as np  # noqa: PLC0415

        none = np.zeros(0, dtype=np.int64)
        with files.opened(file) as found:
            names = {name: files.named(found[name]) for name in NAMED.values()}
            rows = Rows(**dict.fromkeys(COLUMNS, none), **names)
            tables = tuple(found[f"table_{number}"] for number in range(len(_SCOPES)))
            for table, keys in zip(tables, numbers(rows), strict=True):
                if table.shape != (keys + 1, len(_COUNTED)) or table.dtype.kind != "f":
                    raise ValueError("no table of a queue")
        return cls(rows, (), tables)
