"""Statistics of waits and runs over the view `waits`. Definitions: docs/engineering/waits.md.

Every figure is exact. Each function takes a connection of history.reading.
"""

from typing import TYPE_CHECKING

from gateway.core.wait_figures import Dimension, Figures, Question
from gateway.core.wait_shapes import (
    LOG_BOUNDS,
    CausesRow,
    Choice,
    Distribution,
    HeatCell,
    Overview,
    Step,
    Survival,
    TimePoint,
)

if TYPE_CHECKING:
    import duckdb

    Connection = duckdb.DuckDBPyConnection


def figures(connection: "Connection", question: Question) -> Figures:
    """Of all rows of the question together."""
    raise NotImplementedError


def overview(connection: "Connection", question: Question, dimension: Dimension) -> Overview:
    """The period, the one before it, and the period by one dimension."""
    raise NotImplementedError


def by(
    connection: "Connection", question: Question, dimension: Dimension
) -> list[tuple[str, Figures]]:
    """By one dimension: classes and times in their order, others by number of jobs."""
    raise NotImplementedError


def distribution(
    connection: "Connection", question: Question, bounds: tuple[int, ...] = LOG_BOUNDS
) -> Distribution:
    """How long waits and runs were. `bounds`: the lowest seconds of each bar."""
    raise NotImplementedError


def over_time(connection: "Connection", question: Question, step: Step) -> list[TimePoint]:
    """In the order of time; a step without jobs is not there."""
    raise NotImplementedError


def heat(connection: "Connection", question: Question) -> list[HeatCell]:
    """All 168 hours of the week."""
    raise NotImplementedError


def survival(connection: "Connection", question: Question) -> Survival:
    """How many still waited after how long."""
    raise NotImplementedError


def causes(
    connection: "Connection", question: Question, dimension: Dimension | None
) -> list[CausesRow]:
    """Where the waits went; None: one row, its key empty."""
    raise NotImplementedError


def options(connection: "Connection", question: Question) -> dict[Dimension, list[Choice]]:
    """What filters can choose, the commonest first. Of the question only the period and whose rows
    are one's own count."""
    raise NotImplementedError
