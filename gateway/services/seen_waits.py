"""Past waits as one person may see them: the only way from the history to a page, a CSV or the API.

Figures of too few other people are not there; the rule is core.wait_sight's.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from gateway.core.access import Viewer
from gateway.core.wait_figures import UNKNOWN, Dimension, Figures, Question
from gateway.core.wait_shapes import (
    CausesRow,
    Distribution,
    HeatCell,
    Step,
    Survival,
    TimePoint,
)
from gateway.core.wait_sight import OfPeople, Shown, Sight, shown, shown_parts
from gateway.history import blocks
from gateway.services.waits import PastWaits, past_waits
from gateway.store import history
from gateway.store.uow import Transaction

P = TypeVar("P", bound=OfPeople)
Row = tuple[str, Figures]


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the history is: `made_at` None: there is none. `behind`: blocks to be written."""

    made_at: datetime | None
    behind: int


def standing(folder: Path, session: Transaction) -> Standing:
    """How far the history in `folder` is behind the database."""
    manifest = blocks.load(folder)
    return Standing(manifest.made_at if manifest else None, len(history.marks(session)))


@dataclass(frozen=True, slots=True)
class SeenOverview:
    """A figure is None: of too few people, or, `before`, nothing to compare with."""

    now: Figures | None
    before: Figures | None
    rows: Shown[Row]


class SeenWaits:
    """What PastWaits tells, without what this person may not see."""

    def __init__(self, past: PastWaits, sight: Sight) -> None:
        self._past, self.sight = past, sight

    def figures(self, question: Question) -> Figures | None:
        """None: they stand for too few people."""
        asked = self.sight.asked(question)
        return None if asked is None else self._seen(self._past.figures(asked))

    def overview(self, question: Question, dimension: Dimension) -> SeenOverview:
        """The period, the one before it, and the period by one dimension."""
        asked = self.sight.asked(question)
        if asked is None:
            return SeenOverview(None, None, Shown(()))
        found = self._past.overview(asked, dimension)
        before = None if found.before is None else self._seen(found.before)
        rows = self._rows(asked, dimension, found.rows)
        return SeenOverview(self._seen(found.now), before, rows)

    def by(self, question: Question, dimension: Dimension, *, brief: bool = False) -> Shown[Row]:
        """Rows of one dimension, and how many are hidden for standing for too few people. `brief`:
        without deferrals and the mean and median of ratios, in half of the time."""
        if dimension is Dimension.USER and not self.sight.all:
            return self._persons(question)
        asked = self.sight.asked(question)
        if asked is None:
            return Shown(())
        return self._rows(asked, dimension, self._past.by(asked, dimension, brief=brief))

    def distribution(self, question: Question) -> Distribution | None:
        asked = self.sight.asked(question)
        return None if asked is None else self._seen(self._past.distribution(asked))

    def survival(self, question: Question) -> Survival | None:
        asked = self.sight.asked(question)
        return None if asked is None else self._seen(self._past.survival(asked))

    def over_time(self, question: Question, step: Step) -> Shown[TimePoint]:
        asked = self.sight.asked(question)
        points = [] if asked is None else self._past.over_time(asked, step)
        return shown_parts(points, self.sight)

    def heat(self, question: Question) -> Shown[HeatCell]:
        """Hours that may be seen, those without a job among them."""
        asked = self.sight.asked(question)
        cells = [] if asked is None else self._past.heat(asked)
        found = shown_parts(cells, self.sight)
        return Shown((*found.rows, *(cell for cell in cells if not cell.jobs)), found.hidden)

    def causes(self, question: Question) -> CausesRow | None:
        """Where all the waits went; None: they stand for too few people, or there are none."""
        asked = self.sight.asked(question)
        rows = [] if asked is None else self._past.causes(asked, None)
        return self._seen(rows[0]) if rows else None

    def causes_by(self, question: Question, dimension: Dimension) -> Shown[tuple[str, CausesRow]]:
        """The same by one dimension."""
        asked = self.sight.asked(question)
        if asked is None:
            return Shown(())
        rows = [(row.key, row) for row in self._past.causes(asked, dimension)]

        def together(keys: tuple[str, ...]) -> int:
            return self._past.others(_among(asked, dimension, keys))

        return shown(rows, self.sight, together)

    def proposals(self, dimensions: Iterable[Dimension]) -> dict[Dimension, tuple[str, ...]]:
        """Values that filters propose: of groups and people only those that one may know of."""
        own = {Dimension.GROUP: self.sight.member, Dimension.USER: (self.sight.user,)}
        return {
            dimension: tuple(
                own[dimension]
                if dimension in own and not self.sight.all
                else self._past.names(dimension)
            )
            for dimension in dimensions
        }

    def _rows(self, asked: Question, dimension: Dimension, rows: Iterable[Row]) -> Shown[Row]:
        def together(keys: tuple[str, ...]) -> int:
            return self._past.others(_among(asked, dimension, keys))

        return shown(rows, self.sight, together)

    def _persons(self, question: Question) -> Shown[Row]:
        ask = replace(question, own_user=self.sight.user, own_groups=self.sight.groups)
        led, mine = self.sight.by_person(ask)
        rows = dict(self._past.by(led, Dimension.USER)) if led else {}
        if mine:
            rows |= dict(self._past.by(mine, Dimension.USER))
        return Shown(tuple(sorted(rows.items(), key=lambda row: (-row[1].jobs, row[0]))))

    def _seen(self, figure: P) -> P | None:
        return figure if self.sight.sees(figure) else None


@contextmanager
def seen_waits(folder: Path, viewer: Viewer, *, least: int) -> Iterator[SeenWaits]:
    """The history in `folder` as this person may see it; `least` is the setting `waits_k`."""
    with past_waits(folder) as past:
        yield SeenWaits(past, Sight.of(viewer, least))


def _among(question: Question, dimension: Dimension, keys: tuple[str, ...]) -> Question:
    """The question about the rows of these keys alone."""
    values = tuple("" if key == UNKNOWN else key for key in keys)
    return replace(question, only={**question.only, dimension: values})
