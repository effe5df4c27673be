"""Which rows a figure is made of: docs/engineering/waits.md, in arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.core.wait_figures import Question, Wait
from gateway.history.stats import chosen
from gateway.history.stats.chosen import Keys, Measure, Rows, TimeKeys, entries
from gateway.history.stats.columns import ENDED, LEFT, RUNNING, WAITING, Part
from gateway.history.stats.threads import each

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]
    Piece = tuple[Numbers, Numbers]


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

    pieces: "list[Piece]"
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
    ) -> "list[Piece]":
        """Key and value of each row of the cells that `which` names; no value below 0 is given."""

        def one(cells: Cells) -> "Piece | None":
            found = self.rows(cells, which(cells))
            return None if found is None else (keys.of(found), value(found))

        return [piece for piece in each(one, self.cells) if piece is not None]

    def measured(
        self,
        keys: Keys | TimeKeys,
        which: Callable[[Cells], "Numbers"],
        measures: Sequence[Measure],
    ) -> "list[Measured]":
        """Pieces of each of these measures, and their sums."""
        size, many = len(keys.names), len(measures)

        def one(cells: Cells) -> "tuple[list[Piece], list[Numbers]] | None":
            found = self.rows(cells, which(cells))
            if found is None:
                return None
            key, (short, _, counts) = keys.of(found), entries(keys, found)
            values = [measure.of(found) for measure in measures]
            sums = [
                np.bincount(short, v if counts is None else found.summed(m, v), minlength=size + 1)
                for m, v in zip(measures, values, strict=True)
            ]
            return [(key, value) for value in values], sums

        found = [part for part in each(one, self.cells) if part is not None]
        sums = sum((np.stack(part[1])[:, :size] for part in found), np.zeros((many, size)))
        return [
            Measured([part[0][n] for part in found], np.append(sums[n], sums[n].sum()))
            for n in range(many)
        ]

    def waits(self, keys: Keys | TimeKeys) -> "list[Piece]":
        """Of those that started."""
        return self.pieces(keys, waited, self.wait)

    def runs(self, keys: Keys | TimeKeys) -> "list[Piece]":
        """Run times of runs that are over."""
        return self.pieces(keys, ended, run_time)

    def gave_up(self, keys: Keys | TimeKeys) -> "list[Piece]":
        """How long those waited that never started; who was never eligible did not."""
        return known(
            self.pieces(
                keys,
                lambda cells: cells.service & (cells.kind == LEFT),
                lambda rows: self._unstarted(rows, rows.column("end")),
            )
        )

    def waiting(self, keys: Keys | TimeKeys) -> "list[Piece]":
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


def between(since: "Numbers", until: "Numbers") -> "Numbers":
    """Seconds; 0 where a trace has the later one before the other."""
    found: Numbers = np.subtract(until, since).view(np.int32)
    return np.maximum(found, 0, out=found)


def _cells(part: Part, question: Question) -> Cells:
    wanted = chosen.wanted(part, question)
    if question.wait is Wait.SUBMIT:
        return Cells(part, wanted, wanted, np.zeros(len(wanted), bool))
    held = wanted & (part.cells["throttled"] > 0)
    return Cells(part, wanted, wanted & (part.cells["again"] == 0), held)


def known(pieces: "list[Piece]") -> "list[Piece]":
    """Without values below 0."""
    found = []
    for key, value in pieces:
        if value.size and value.min() < 0:
            found.append((key[value >= 0], value[value >= 0]))
        else:
            found.append((key, value))
    return found
