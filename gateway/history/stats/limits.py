"""Time limits: kept, used, waited for. Definitions: docs/engineering/waits.md."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gateway.core.states import JobState
from gateway.core.usage_figures import LimitBin, Limits, LimitWait
from gateway.core.wait_causes import Cause
from gateway.core.wait_figures import Dimension, Question
from gateway.history.stats import chosen
from gateway.history.stats.chosen import Keys, Rows
from gateway.history.stats.columns import ENDED, WAITING, Part, between
from gateway.history.stats.people import People
from gateway.history.stats.periods import Period
from gateway.history.stats.pieces import Piece
from gateway.history.stats.select import RUN, spread
from gateway.history.stats.spread import Tally
from gateway.history.stats.sums import summed
from gateway.history.stats.threads import each

if TYPE_CHECKING:
    Numbers = np.ndarray[Any, Any]
    Counted = tuple[Numbers, Numbers]

_MINUTE, _BINS = 60, 11
_LONG = 1 << 29  # minutes: no run has a tenth of it
_LIMITS = (Cause.USER_LIMIT, Cause.GROUP_LIMIT, Cause.QOS_LIMIT)


def limits(parts: Sequence[Part], question: Question, *, by_group: bool) -> list[Limits]:
    """Runs that ended in the period against their time limits, who kept most first; or all of them
    as one, with no key."""
    period = Period.of(parts, question)
    keys = Keys(parts, Dimension.GROUP if by_group else None)
    size = len(keys.names)
    people = People(parts, question, size)

    def one(part: Part) -> "tuple[Numbers, Numbers, Piece, Counted] | None":
        rows = _ended(part, question, period)
        if rows is None:
            return None
        people.add(part, (keys.of_cells(part)[rows.cells], rows.cells, rows.counts))
        sums = _sums(rows, keys.of_cells(part)[rows.cells], size)
        return *sums, *_completed(rows, keys)

    found = [part for part in each(one, parts) if part is not None]
    sums: Numbers = sum((part[0] for part in found), np.zeros((5, size), np.int64))
    longest = np.max([part[1] for part in found], axis=0, initial=-1) if found else sums[0]
    tally = Tally([part[2] for part in found], size)
    p90 = tally.at(-(-9 * tally.n[:, None] // 10) - 1)[:, 0].tolist()
    medians = _medians([part[3] for part in found], size)
    columns = (keys.names, sums.T.tolist(), people.lists()[1], medians, p90, longest.tolist())
    told = [_told(*row, by_group=by_group) for row in zip(*columns, strict=False) if row[1][0]]
    return sorted(told, key=lambda one: (-one.reserved_gpu_seconds, one.key or ""))


def _told(key: str, sums: Sequence[int], *more: int, by_group: bool) -> Limits:
    runs, unlimited, reserved, used, completed = sums
    others, median, p90, longest = more
    return Limits(
        key=key if by_group else None,
        runs=runs,
        others=others,
        unlimited=unlimited,
        reserved_gpu_seconds=reserved,
        used_gpu_seconds=used,
        completed=completed,
        median_limit_s=median * _MINUTE if completed else None,
        p90_s=int(p90) if completed else None,
        timeout_s=longest if longest >= 0 else None,
    )


def limit_bins(parts: Sequence[Part], question: Question) -> list[LimitBin]:
    """How much of their limits runs used that ended in the period and had one: all eleven bins."""
    period = Period.of(parts, question)
    people = People(parts, question, _BINS)

    def one(part: Part) -> "Numbers | None":
        every = _ended(part, question, period)
        rows = every and every.of(part.cells["limit_minutes"] > 0)
        if rows is None:
            return None
        run = rows.column("run")
        tenth = np.minimum(part.cells["limit_minutes"], _LONG).astype(np.uint32) * (_MINUTE // 10)
        bins = np.minimum(run.view(np.uint32) // rows.each(tenth), 10)
        pair = np.repeat(np.arange(rows.cells.size) * _BINS, rows.counts) + bins
        many = np.bincount(pair)
        some = np.flatnonzero(many)
        seconds = np.bincount(pair, run)[some].astype(np.int64)
        cell, key = rows.cells[some // _BINS], some % _BINS
        people.add(part, (key, cell, many[some]))
        gpu_seconds = np.maximum(part.cells["gpus"][cell], 0) * seconds
        return np.stack([summed(key, v, _BINS) for v in (many[some], gpu_seconds)])

    none = np.zeros((2, _BINS), np.int64)
    sums: Numbers = sum((part for part in each(one, parts) if part is not None), none)
    rows = zip(sums[0].tolist(), people.lists()[1], sums[1].tolist(), strict=False)
    return [LimitBin(low * 10, *row) for low, row in enumerate(rows)]


def limit_waits(parts: Sequence[Part], question: Question) -> list[LimitWait]:
    """What jobs that were submitted in the period waited for limits, by group, the longest first;
    groups without such a wait are left out."""
    keys = Keys(parts, Dimension.GROUP)
    size = len(keys.names)
    people = People(parts, question, size)

    def one(part: Part) -> "Numbers | None":
        rows = chosen.rows(part, question, chosen.wanted(part, question))
        if rows is None:
            return None
        key = keys.of_cells(part)[rows.cells]
        people.add(part, (key, rows.cells, rows.counts))
        columns = [rows.counts, *map(rows.sums, _waited(rows, question))]
        return np.stack([summed(key, column, size) for column in columns])

    none = np.zeros((6, size), np.int64)
    sums: Numbers = sum((part for part in each(one, parts) if part is not None), none)
    others = people.lists()[1]
    found = [
        LimitWait(keys.names[n], jobs, limited, others[n], *seconds)
        for n, (jobs, limited, *seconds) in enumerate(sums.T.tolist())
        if limited
    ]
    return sorted(found, key=lambda one: (-one.limit_s, one.group))


def _ended(part: Part, question: Question, period: Period) -> Rows | None:
    """Runs that ended in the period."""
    if not period.touches(part):
        return None
    cells = chosen.wanted(part, question) & (part.cells["kind"] == ENDED)
    rows = chosen.rows(part, replace(question, since=None, until=None), cells)
    if rows is None or period.holds(part):
        return rows
    end = rows.column("end")
    found = chosen.those(rows, (end >= period.lo) & (end < period.hi))
    return found if found.cells.size else None


def _sums(rows: Rows, key: "Numbers", size: int) -> "tuple[Numbers, Numbers]":
    """Runs, those without a limit, card-seconds kept and used, completed runs with a limit; and the
    longest run that its limit ended, -1 where there is none."""
    part, cells, counts = rows.part, rows.cells, rows.counts
    limit = part.cells["limit_minutes"][cells].astype(np.int64)
    gpus = np.maximum(part.cells["gpus"][cells], 0) * (limit >= 0)
    of_cells = (
        counts,
        counts * (limit < 0),
        gpus * limit * _MINUTE * counts,
        gpus * rows.summed(RUN),
        counts * (_is_in(part, JobState.COMPLETED)[cells] & (limit >= 0)),
    )
    longest = np.full(size, -1, np.int64)
    timeouts = rows.of(_is_in(part, JobState.TIMEOUT))
    if timeouts is not None:
        firsts = np.append(0, np.cumsum(timeouts.counts[:-1]))
        most = np.maximum.reduceat(timeouts.column("run"), firsts)
        of_cell = np.zeros(len(part.cells["rows"]), np.int64)
        of_cell[cells] = key
        np.maximum.at(longest, of_cell[timeouts.cells], most)
    return np.stack([summed(key, column, size) for column in of_cells]), longest


def _completed(rows: Rows, keys: Keys) -> "tuple[Piece, Counted]":
    """Of completed runs with a limit: key and run time of each; and by key and limit how many."""
    part = rows.part
    found = rows.of(_is_in(part, JobState.COMPLETED) & (part.cells["limit_minutes"] >= 0))
    if found is None:
        none = np.zeros(0, np.int64)
        return Piece(none, np.zeros(0, np.int32)), (none, none)
    key = keys.of_cells(part)[found.cells].astype(np.int64)
    limit = part.cells["limit_minutes"][found.cells]
    return spread(keys, found, RUN), ((key << 32) + limit, found.counts)


def _medians(pieces: "Sequence[Counted]", size: int) -> list[int]:
    """By key the limit that half of the runs had or less (nearest rank), in minutes."""
    none = np.zeros(0, np.int64)
    code = np.concatenate([none, *(code for code, _ in pieces)])
    order = np.argsort(code, kind="stable")
    until = np.cumsum(np.concatenate([none, *(n for _, n in pieces)])[order])
    key, limit = code[order] >> 32, code[order] & 0xFFFFFFFF
    if not code.size:
        return [0] * size
    ends = np.append(0, until)[np.searchsorted(key, np.arange(size + 1))]
    middle = ends[:-1] + (ends[1:] - ends[:-1] + 1) // 2
    found: list[int] = limit[np.minimum(np.searchsorted(until, middle), code.size - 1)].tolist()
    return found


def _is_in(part: Part, state: JobState) -> "Numbers":
    """By cell."""
    found: Numbers = np.array([text == state.value for text in part.texts["state"]], bool)
    return found[part.cells["state"]]


def _waited(rows: Rows, question: Question) -> "list[Numbers]":
    """By row: whether it waited for a limit, seconds for each of _LIMITS, and of the whole wait
    without the deferral. What came after the row was written is its present cause's."""
    part, start = rows.part, rows.column("start")
    now = np.full(1, int(question.now.timestamp()), np.uint32)
    seen = rows.column("seen").astype(np.uint32)
    waits = rows.each((part.cells["kind"] == WAITING) & ~part.imported)
    some_wait = bool(waits.any())
    since_seen = np.where(waits & (seen > 0), between(seen, now), 0) if some_wait else seen
    until = np.where(start > 0, start, rows.column("end"))
    until = np.where(until > 0, until, np.where(waits, now, seen)).astype(np.uint32)

    def seconds(cause: Cause) -> "Numbers":
        told = rows.column(f"cause_{cause}")
        if not some_wait:
            return told
        texts = np.array([text == cause.value for text in part.texts["cause_now"]], bool)
        return told + np.where(rows.each(texts[part.cells["cause_now"]]), since_seen, 0)

    for_limits = [seconds(cause) for cause in _LIMITS]
    wait = between(rows.column("submit"), until) - seconds(Cause.DEFERRAL)
    limited = (for_limits[0] + for_limits[1] + for_limits[2] > 0).astype(np.int32)
    return [limited, *for_limits, np.maximum(wait, 0)]
