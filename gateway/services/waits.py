"""Questions about past waits, asked of the job history. Definitions: docs/engineering/waits.md."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.core.wait_figures import Dimension, Figures, Question
from gateway.core.wait_shapes import (
    LOG_BOUNDS,
    CausesRow,
    Distribution,
    HeatCell,
    Overview,
    Span,
    Step,
    Survival,
    TimePoint,
)
from gateway.history import reading

if TYPE_CHECKING:
    from gateway.history.stats.columns import Part
    from gateway.history.stats.part_files import Parts


class PastWaits:
    """Answers about one moment of the history. NumPy is imported with the first question."""

    def __init__(self, parts: "Sequence[Part]", folder: Path) -> None:
        self._parts, self._folder = parts, folder

    def figures(self, question: Question) -> Figures:
        """Of all rows together."""
        from gateway.history.stats import waits  # noqa: PLC0415

        return waits.figures(self._parts, question)

    def others(self, question: Question) -> int:
        """`Figures.others` alone, at a fraction of the cost."""
        from gateway.history.stats import waits  # noqa: PLC0415

        return waits.others(self._parts, question)

    def overview(self, question: Question, dimension: Dimension) -> Overview:
        """The period, the one before it, and the period by one dimension."""
        from gateway.history.stats import waits  # noqa: PLC0415

        return waits.overview(self._parts, question, dimension)

    def by(
        self, question: Question, dimension: Dimension, *, brief: bool = False
    ) -> list[tuple[str, Figures]]:
        """By one dimension: classes and times in their order, others by number of jobs. `brief`:
        without deferrals and the mean and median of ratios, in half of the time."""
        from gateway.history.stats import waits  # noqa: PLC0415

        return waits.by(self._parts, question, dimension, brief=brief)

    def all_and_by(
        self, question: Question, dimension: Dimension
    ) -> tuple[Figures, list[tuple[str, Figures]]]:
        """All rows together, and by one dimension: one reading for both."""
        from gateway.history.stats import waits  # noqa: PLC0415

        return waits.all_and_by(self._parts, question, dimension)

    def distribution(
        self, question: Question, bounds: tuple[int, ...] = LOG_BOUNDS
    ) -> Distribution:
        """How long waits and runs were. `bounds`: the lowest seconds of each bar."""
        from gateway.history.stats import series  # noqa: PLC0415

        return series.distribution(self._parts, question, bounds)

    def over_time(self, question: Question, step: Step) -> list[TimePoint]:
        """In the order of time; a step without jobs is not there."""
        from gateway.history.stats import series  # noqa: PLC0415

        return series.over_time(self._parts, question, step)

    def heat(self, question: Question) -> list[HeatCell]:
        """All 168 hours of the week."""
        from gateway.history.stats import series  # noqa: PLC0415

        return series.heat(self._parts, question)

    def survival(self, question: Question) -> Survival:
        """How many still waited after how long."""
        from gateway.history.stats import series  # noqa: PLC0415

        return series.survival(self._parts, question)

    def causes(self, question: Question, dimension: Dimension | None) -> list[CausesRow]:
        """Where the waits went; None: one row, its key empty."""
        from gateway.history.stats import causes  # noqa: PLC0415

        return causes.causes(self._parts, question, dimension)

    def span(self, question: Question) -> Span:
        """When the first and the last job was submitted, and ended."""
        from gateway.history.stats import span  # noqa: PLC0415

        return span.span(self._parts, question)

    def names(self, dimension: Dimension) -> list[str]:
        """Every value that the dimension has, in order, perhaps `unknown`; nothing is counted."""
        from gateway.history.stats.chosen import Keys  # noqa: PLC0415

        return Keys(self._parts, dimension).names


@contextmanager
def past_waits(folder: Path) -> Iterator[PastWaits]:
    """The history in `folder` ($SLUICE_HOME/history) as it is at this moment."""
    yield PastWaits(parts_of(folder), folder)


def parts_of(folder: Path) -> "list[Part]":
    """The history as it is at this moment, as statistics read it."""
    from gateway.history.stats import part_files  # noqa: PLC0415

    return _kept().of(reading.files(folder), folder / part_files.FOLDER)


def prepare(folder: Path) -> None:
    """Have the history in the form that questions read, so that nobody's question waits for it."""
    from gateway.history.stats import part_files  # noqa: PLC0415

    part_files.make(reading.files(folder), folder / part_files.FOLDER)


@cache
def _kept() -> "Parts":
    """What this process has open: files that never change, looked up again for each question."""
    from gateway.history.stats.part_files import Parts  # noqa: PLC0415

    return Parts()
