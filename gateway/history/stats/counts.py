"""How many jobs and people, and how many hours of cards and processors."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.core.wait_figures import Question
from gateway.history.stats import chosen
from gateway.history.stats.chosen import Keys, Rows, entries
from gateway.history.stats.columns import ENDED, LEFT, RUNNING, WAITING, Part
from gateway.history.stats.people import People
from gateway.history.stats.periods import inside
from gateway.history.stats.select import RUN, Cells, Selection
from gateway.history.stats.threads import each
from gateway.history.stats.time_keys import TimeKeys

if TYPE_CHECKING:
    from gateway.history.stats.chosen import Entries

    Numbers = np.ndarray[Any, Any]

_KINDS = 4
_FLAGS = 8 * _KINDS


@dataclass(frozen=True)
class Counts:
    """By key, the last of all together."""

    started: "Numbers"
    never: "Numbers"
    waiting: "Numbers"
    throttled: "Numbers"
    gpu_jobs: "Numbers"
    people: "Numbers"
    others: "Numbers"


@dataclass(frozen=True)
class Hours:
    """By key, the last of all together. `rows`: those that have a part in them, for counting whose
    they are."""

    gpu_seconds: "Numbers"
    cpu_seconds: "Numbers"
    rows: "list[tuple[Part, Entries]]"


def count(selection: Selection, keys: Keys | TimeKeys, used: Hours | None = None) -> Counts:
    """Of the rows submitted in the period; people also of those in the hours."""
    size = len(keys.names)
    people = People(selection.parts, selection.question, size)
    codes = (size + 1) * _FLAGS

    def one(cells: Cells) -> "Numbers":
        found = selection.rows(cells, cells.wanted)
        if found is None:
            return np.zeros(codes, np.int64)
        key, cell, n = entries(keys, found)
        people.add(cells.part, (key, cell, n))
        code = np.minimum(key, size) * _FLAGS + _flags(cells)[cell]
        return np.bincount(code, n, minlength=codes).astype(np.int64)

    table: Numbers = sum(each(one, selection.cells), np.zeros(codes, np.int64))
    for part, given in used.rows if used else ():
        people.add(part, given, hours=True)
    by_key = table.reshape(size + 1, _FLAGS)
    by_key[size] = by_key[:size].sum(axis=0)
    return _told(by_key.reshape(size + 1, 2, 2, 2, _KINDS), *people.counts())


def hours(selection: Selection, keys: Keys | TimeKeys) -> Hours:
    """The part of runs within the period; by times of a row, of jobs submitted in it, whole."""
    question, size = selection.question, len(keys.names)
    clipped = isinstance(keys, Keys)
    if clipped:
        question = replace(question, since=None, until=None)

    def one(cells: Cells) -> "tuple[Numbers, tuple[Part, Entries]] | None":
        started = cells.wanted & (cells.kind >= RUNNING)
        if clipped and not _is_near(cells, selection.question):
            return None
        found = chosen.rows(cells.part, question, started)
        if found is None:
            return None
        key, cell, n = entries(keys, found)
        seconds = _seconds(found, selection.question, n, clipped=clipped)
        cards = (np.maximum(cells.part.cells[name], 0)[cell] for name in ("gpus", "cpus"))
        sums = [np.bincount(key, c * seconds, minlength=size + 1) for c in cards]
        some = seconds > 0
        return np.stack(sums), (cells.part, (key[some], cell[some], n[some]))

    found = [part for part in each(one, selection.cells) if part is not None]
    sums: Numbers = sum((part[0] for part in found), np.zeros((2, size + 1)))
    sums[:, size] = sums[:, :size].sum(axis=1)
    return Hours(sums[0], sums[1], [part[1] for part in found])


def _flags(cells: Cells) -> "Numbers":
    with_cards = cells.part.cells["gpus"] > 0
    flags: Numbers = ((cells.counted * 2 + cells.held) * 2 + with_cards) * _KINDS + cells.kind
    return flags


def _told(table: "Numbers", people: "Numbers", others: "Numbers") -> Counts:
    """`table`: by key, whether counted, whether held back, whether with cards, and kind."""
    jobs = table[:, 1].sum(axis=(1, 2))
    return Counts(
        started=jobs[:, RUNNING] + jobs[:, ENDED],
        never=jobs[:, LEFT],
        waiting=jobs[:, WAITING],
        throttled=table[:, :, 1].sum(axis=(1, 2, 3)),
        gpu_jobs=table[:, 1, :, 1].sum(axis=(1, 2)),
        people=people,
        others=others,
    )


def _is_near(cells: Cells, question: Question) -> bool:
    """Whether a run of the part may have been in the period."""
    first, last = cells.part.started_to_ended
    if question.until is not None and first >= question.until.timestamp():
        return False
    return question.since is None or last > question.since.timestamp()


def _seconds(found: Rows, question: Question, n: "Numbers", *, clipped: bool) -> "Numbers":
    """Run time of each `n` rows side by side; until now where it goes on, and no longer than its
    limit, or than an imported set tells; the part that lies in the period where `clipped`."""
    first, last = found.part.started_to_ended
    now = int(question.now.timestamp())
    since = int(question.since.timestamp()) if question.since and clipped else 0
    until = int(question.until.timestamp()) if question.until and clipped else 2**32
    run = found.column("run")
    if since <= first and last <= min(until, now):
        told = found.summed(RUN) if n is found.counts else found.sums(run, n)
        return told.astype(np.float64)
    start, end = found.column("start"), found.column("end")
    goes_on = end == 0
    whole = (start >= since) & (end <= until) & ~goes_on
    seconds = found.sums(run * whole, n).astype(np.float64)
    over = np.flatnonzero(~whole & (start < until) & ((end > since) | goes_on))
    if over.size:
        latest = found.column("latest")[over] if "latest" in found.part.rows else end[over]
        began, ended = start[over].astype(np.int64), end[over].astype(np.int64)
        ended = np.where(ended > 0, ended, np.minimum(latest, now))
        lasted = np.where(goes_on[over], np.maximum(ended - began, 0), run[over])
        part = inside(began, ended, lasted, since, until)
        place = np.searchsorted(np.cumsum(n), over, side="right")
        seconds += np.bincount(place, part, minlength=len(seconds))
    return np.maximum(seconds, 0, out=seconds)
