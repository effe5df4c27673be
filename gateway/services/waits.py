"""Questions about past waits, asked of the job history. Definitions: docs/engineering/waits.md."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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
from gateway.history import reading, waits

if TYPE_CHECKING:
    import duckdb


class PastWaits:
    """Answers about one moment of the history."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        self._connection = connection

    def figures(self, question: Question) -> Figures:
        """Of all rows together."""
        return waits.figures(self._connection, question)

    def overview(self, question: Question, dimension: Dimension) -> Overview:
        """The period, the one before it, and the period by one dimension."""
        return waits.overview(self._connection, question, dimension)

    def by(self, question: Question, dimension: Dimension) -> list[tuple[str, Figures]]:
        """By one dimension: classes and times in their order, others by number of jobs."""
        return waits.by(self._connection, question, dimension)

    def distribution(
        self, question: Question, bounds: tuple[int, ...] = LOG_BOUNDS
    ) -> Distribution:
        """How long waits and runs were."""
        return waits.distribution(self._connection, question, bounds)

    def over_time(self, question: Question, step: Step) -> list[TimePoint]:
        """In the order of time; a step without jobs is not there."""
        return waits.over_time(self._connection, question, step)

    def heat(self, question: Question) -> list[HeatCell]:
        """All 168 hours of the week."""
        return waits.heat(self._connection, question)

    def survival(self, question: Question) -> Survival:
        """How many still waited after how long."""
        return waits.survival(self._connection, question)

    def causes(self, question: Question, dimension: Dimension | None) -> list[CausesRow]:
        """Where the waits went; None: one row, its key empty."""
        return waits.causes(self._connection, question, dimension)

    def options(self, question: Question) -> dict[Dimension, list[Choice]]:
        """What filters can choose, the commonest first. Of the question only the period and whose
        rows are one's own count."""
        return waits.options(self._connection, question)


@contextmanager
def past_waits(folder: Path) -> Iterator[PastWaits]:
    """The history in `folder` ($SLUICE_HOME/history) as it is at this moment."""
    with reading.runs(folder) as connection:
        yield PastWaits(connection)
