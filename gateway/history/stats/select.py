"""Which rows a figure is made of: docs/engineering/waits.md, in arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.core.wait_figures import Question, Wait
from gateway.history.stats import chosen
from gateway.history.stats.chosen import Keys, Measure, Rows, entries
from gateway.history.stats.columns import ENDED, LEFT, RUNNING, WAITING, Part, between
from gateway.history.stats.pieces import Piece
from gateway.history.stats.threads import each
from gateway.history.stats.time_keys import TimeKeys

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Cells:
    """By cell of a part, of those that filters let through. `counted`: first runs (every run under
    Wait.SUBMIT). `held`: arrays that held themselves back; `service`: counted and not held."""

    part: Part
    wanted: "Numbers"
    counted: "Numbers"
    held: "Numbers"

    @property
    def service(self) -> "Numbers":
        return self.counted & ~self.held

    @property
    def kind(self) -> "Numbers":
        return self.part.cells["kind"]

    @property
    def again(self) -> "Numbers":
        """Waits after a requeue that are over."""
        requeued = self.part.cells["again"] > 0
        found: Numbers = self.wanted & ~self.held & requeued & (self.kind >= RUNNING)
        return found

    @property
    def waited(self) -> "Numbers":
        found: Numbers = self.service & (self.kind >= RUNNING)
        return found

    @property
    def ended(self) -> "Numbers":
        found: Numbers = self.wanted & (self.kind == ENDED)
        return found


@dataclass(frozen=True)
class Measured:
    """Values with their keys; `sums`: by key, the last of all."""

    pieces: list[Piece]
    sums: "Numbers"


class Selection:
    """A question's rows in all parts."""

    def __init__(self, parts: Sequence[Part], question: Question) -> None:
        self.parts, self.question = parts, question
        self.cells = [_cells(part, question) for part in parts]
        self._submitted: dict[int, Rows | None] = {}

    def rows(self, cells: Cells, which: "Numbers") -> Rows | None:
        """Rows submitted in the period, of those cells; None: there is none."""
        if id(cells) not in self._submitted:
            found = chosen.rows(cells.part, self.question, cells.wanted)
            self._submitted[id(cells)] = found
        every = self._submitted[id(cells)]
        return None if every is None else every.of(which)

    def pieces(
        self,
        keys: Keys | TimeKeys,
        which: Callable[[Cells], "Numbers"],
        value: Callable[[Rows], "Numbers"],
    ) -> list[Piece]:
        """Key and value of each row of the cells that `which` names, one by one."""

        def one(cells: Cells) -> Piece | None:
            found = self.rows(cells, which(cells))
            return None if found is None else Piece(keys.of(found), value(found))

        return [piece for piece in each(one, self.cells) if piece is not None]

    def measured(
        self, keys: Keys | TimeKeys, which: Callable[[Cells], "Numbers"], measure: Measure
    ) -> Measured:
        """Pieces of a measure, and its sums."""
        size = len(keys.names)

        def one(cells: Cells) -> "tuple[Piece, Numbers] | None":
            found = self.rows(cells, which(cells))
            if found is None:
                return None
            key, _, n = entries(keys, found)
            if n is found.counts:
                piece, sums = spread(keys, found, measure), found.summed(measure)
            else:
                piece = Piece(keys.of(found), measure.of(found))
                sums = found.sums(piece.value, n)
            return piece, np.bincount(key, sums, minlength=size + 1)[:size]

        found = [part for part in each(one, self.cells) if part is not None]
        sums: Numbers = sum((part[1] for part in found), np.zeros(size))
        return Measured([part[0] for part in found], np.append(sums, sums.sum()))

    def waits(self, keys: Keys | TimeKeys) -> list[Piece]:
        """Of those that started."""
        return self.measured(keys, waited, self.waits_of_rows).pieces

    def runs(self, keys: Keys | TimeKeys) -> list[Piece]:
        """Run times of runs that are over."""
        return self.measured(keys, ended, RUN).pieces

    def gave_up(self, keys: Keys | TimeKeys) -> list[Piece]:
        """How long those waited that never started; who was never eligible did not."""
        return known(
            self.pieces(
                keys,
                lambda cells: cells.service & (cells.kind == LEFT),
                lambda rows: self._unstarted(rows, rows.column("end")),
            )
        )

    def waiting(self, keys: Keys | TimeKeys) -> list[Piece]:
        """How long those have waited that wait, until now; of an imported set, until its end."""
        return known(
            self.pieces(
                keys,
                lambda cells: cells.service & (cells.kind == WAITING),
                lambda rows: self._unstarted(rows, self._seen_until(rows)),
            )
        )

    @property
    def waits_of_rows(self) -> Measure:
        return Measure(f"wait since {self.question.wait}", self.wait)

    def wait(self, found: Rows) -> "Numbers":
        """Seconds of rows that started."""
        name = "submit" if self.question.wait is Wait.SUBMIT else "eligible"
        return between(found.column(name), found.column("start"))

    def _seen_until(self, found: Rows) -> "Numbers":
        now = np.full(1, int(self.question.now.timestamp()), np.uint32)
        if not found.part.imported.any() or "seen" not in found.part.rows:
            return now
        return np.where(found.each(found.part.imported), found.column("seen"), now)

    def _unstarted(self, found: Rows, until: "Numbers") -> "Numbers":
        if self.question.wait is Wait.SUBMIT:
            return between(found.column("submit"), until)
        eligible = found.column("eligible")
        known = (eligible > 0) & (eligible <= until)
        return np.where(known, between(eligible, until), -1)


def waited(cells: Cells) -> "Numbers":
    """Cells of rows of which the wait counts."""
    return cells.waited


def ended(cells: Cells) -> "Numbers":
    """Cells of runs that are over."""
    return cells.ended


def again(cells: Cells) -> "Numbers":
    """Cells of waits after a requeue."""
    return cells.again


def run_time(found: Rows) -> "Numbers":
    """Seconds of runs that are over."""
    return found.column("run")


def deferral(found: Rows) -> "Numbers":
    """Seconds between submit and eligible."""
    return between(found.column("submit"), found.column("eligible"))


RUN, DEFERRAL = Measure("run", run_time), Measure("deferral", deferral)


def spread(keys: Keys | TimeKeys, found: Rows, measure: Measure) -> Piece:
    """In stretches where the cells are whole and their numbers in order."""
    order = found.order(measure)
    if order is None or not isinstance(keys, Keys):
        return Piece(keys.of(found), measure.of(found))
    of_cells = keys.of_cells(found.part)
    keep = np.zeros(len(of_cells), bool)
    keep[found.cells] = True
    return order.piece(of_cells, keep)


def _cells(part: Part, question: Question) -> Cells:
    wanted = chosen.wanted(part, question)
    if question.wait is Wait.SUBMIT:
        return Cells(part, wanted, wanted, np.zeros(len(wanted), bool))
    held = wanted & (part.cells["throttled"] > 0)
    return Cells(part, wanted, wanted & (part.cells["again"] == 0), held)


def known(pieces: list[Piece]) -> list[Piece]:
    """Without values below 0."""
    return [
        piece.some(np.flatnonzero(piece.value >= 0)) if (piece.value < 0).any() else piece
        for piece in pieces
    ]
