"""Where waits went: seconds by cause."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.core.wait_causes import Cause
from gateway.core.wait_figures import Dimension, Question
from gateway.core.wait_shapes import CausesRow
from gateway.history.stats import chosen
from gateway.history.stats.chosen import Keys, Rows, entries
from gateway.history.stats.columns import WAITING, Part, between
from gateway.history.stats.people import People
from gateway.history.stats.threads import each
from gateway.history.stats.time_keys import TimeKeys
from gateway.history.stats.waits import keys_of

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]

_PLACES = {cause: place for place, cause in enumerate(Cause)}


def causes(
    parts: Sequence[Part], question: Question, dimension: Dimension | None
) -> list[CausesRow]:
    """Of every row of the question, waits after a requeue and arrays that held themselves back
    among them: seconds between submit and start, or the end of a job that never started, or now.
    Ordered as figures by this dimension are; None: one row, its key empty."""
    keys = keys_of(parts, question, dimension)
    size = len(keys.names)
    people = People(parts, question, size)

    def one(part: Part) -> "tuple[Numbers, Numbers] | None":
        found = chosen.rows(part, question, chosen.wanted(part, question))
        return None if found is None else _sums(found, keys, people, question)

    jobs, seconds = np.zeros(size, np.int64), np.zeros((size, len(_PLACES)), np.int64)
    for found in each(one, parts):
        if found is not None:
            jobs += found[0]
            seconds += found[1]
    columns = (keys.names, jobs.tolist(), seconds.tolist(), *people.lists())
    rows = [
        CausesRow(key, n, dict(zip(Cause, parts_s, strict=True)), p, o)
        for key, n, parts_s, p, o in zip(*columns, strict=False)
        if n
    ]
    if dimension is None or chosen.is_ordered(dimension):
        return rows
    return sorted(rows, key=lambda row: (-row.jobs, row.key))


def _sums(
    found: Rows, keys: Keys | TimeKeys, people: People, question: Question
) -> "tuple[Numbers, Numbers]":
    """Rows, and seconds by cause, of each key."""
    key, cell, n = entries(keys, found)
    people.add(found.part, (key, cell, n))
    size = len(keys.names)
    jobs = np.bincount(key, n, minlength=size + 1)[:size].astype(np.int64)
    seconds = np.zeros((size, len(_PLACES)), np.int64)
    for cause, place in _PLACES.items():
        if f"cause_{cause}" not in found.part.rows:
            continue
        values = found.column(f"cause_{cause}")
        seconds[:, place] = np.bincount(key, found.sums(values, n), minlength=size + 1)[:size]
    _add_since_seen(found, keys, question, seconds)
    return jobs, seconds


def _add_since_seen(
    found: Rows, keys: Keys | TimeKeys, question: Question, seconds: "Numbers"
) -> None:
    """What waits has waited on for the same cause since its row was written; of what waits in an
    imported set nobody knows more."""
    waits = found.each((found.part.cells["kind"] == WAITING) & ~found.part.imported)
    if not waits.any():
        return
    key = keys.of(found)[waits]
    causes = [_PLACES.get(_cause(text), 0) for text in found.part.texts["cause_now"]]
    place = np.array(causes)[found.each(found.part.cells["cause_now"])[waits]]
    seen = found.column("seen")[waits].astype(np.uint32)
    now = np.full(1, int(question.now.timestamp()), np.uint32)
    longer = np.where(seen > 0, between(seen, now), 0)
    inside = key < len(seconds)
    np.add.at(seconds, (key[inside], place[inside]), longer[inside])


def _cause(text: str) -> Cause:
    return Cause(text) if text in _PLACES else Cause.UNKNOWN
