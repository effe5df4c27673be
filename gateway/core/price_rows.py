"""Dated rows, told apart: what is in force, what was, what is to come."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar


class Dated(Protocol):
    @property
    def starts(self) -> datetime: ...


Row = TypeVar("Row", bound=Dated)


@dataclass(frozen=True, slots=True)
class Rows(Generic[Row]):
    """`history` has the newest first, `to_come` the soonest."""

    in_force: tuple[Row, ...]
    history: tuple[Row, ...]
    to_come: tuple[Row, ...]


def told_apart(rows: Iterable[Row], name: Callable[[Row], str], now: datetime) -> Rows[Row]:
    """A row is in force from its start until a later one of the same name."""
    current: dict[str, Row] = {}
    history: list[Row] = []
    to_come: list[Row] = []
    for row in sorted(rows, key=lambda one: one.starts):
        if row.starts > now:
            to_come.append(row)
            continue
        key = name(row).casefold()
        if key in current:
            history.append(current[key])
        current[key] = row
    in_force = tuple(current[key] for key in sorted(current))
    history.sort(key=lambda one: one.starts, reverse=True)
    return Rows(in_force, tuple(history), tuple(to_come))
