"""Metrics that a job reports under names of its own: by a printed line, or by lines of its folder.

All of it was written by people's programs: what is no number, no name or no step is passed over,
and nothing here raises. What is kept of a name does not grow with the number of its lines.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

MOST_NAMES = 64  # of a job
MOST_CELLS = 512  # of a name on each axis
MARK = "::metric "
# What torchrun and srun put before the lines of a rank.
_BEFORE = re.compile(r"(\[[^\]\s]{1,40}\]: ?|\d{1,5}: )?")
_LONGEST_LINE = 4000
_LARGEST = 2**53  # a step beyond it is no exact number
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,64}", re.ASCII)
# About the line, or of the training's own charts: no results.
_NOT_RESULTS = frozenset({"at", "job", "restart", "step", "tokens", "samples", "seconds"}) | {
    "peak_bytes"
}
_LOWER = re.compile(r"(loss|err(or)?|ppl|perplexity|wer|cer|mae|mse|rmse|latency|time|seconds|nll)")
_HIGHER = re.compile(
    r"(acc(uracy)?|f1|auc|bleu|rouge|score|map|iou|dice|reward|precision|recall|throughput|mfu"
    r"|r2|psnr|ssim|mrr|ndcg)"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """The numbers of one line; None is one that was not finite. `at` in seconds since 1970."""

    at: float
    restart: int
    step: int | None
    values: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Cell:
    """The values of one place on an axis: `place` counts the places from 0 of time or of steps.

    `mean`, `low` and `high` are over `count` values of one restart, the latest that told of the
    place; `at`, `step` and `last` are of the last of them."""

    place: int
    restart: int
    count: int
    mean: float
    low: float
    high: float
    last: float
    at: float
    step: int | None


@dataclass(frozen=True, slots=True)
class Axis:
    """Cells in order; each is `wide` seconds or steps."""

    wide: int = 1
    cells: tuple[Cell, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """What is known of a name over all its values: of the last, the lowest and the highest one.

    `odd` values were not finite; a name that has only such has no `last`. `count` is without
    them. `at` in seconds since 1970."""

    name: str
    count: int = 0
    odd: int = 0
    first_at: float | None = None
    at: float | None = None
    step: int | None = None
    last: float | None = None
    low: float | None = None
    low_step: int | None = None
    high: float | None = None
    high_step: int | None = None

    @property
    def lower_is_better(self) -> bool | None:
        """None: the name does not say."""
        return lower_is_better(self.name)

    @property
    def best(self) -> tuple[float, int | None] | None:
        """The best value and its step, where the name says which that is."""
        if self.low is None or self.high is None or self.lower_is_better is None:
            return None
        if self.lower_is_better:
            return self.low, self.low_step
        return self.high, self.high_step


@dataclass(frozen=True, slots=True)
class Curve:
    """All that is kept of a name."""

    result: Result
    by_time: Axis = field(default=Axis())
    by_step: Axis = field(default=Axis())


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and text not in _NOT_RESULTS


def lower_is_better(name: str) -> bool | None:
    """By the words in the name; None where they do not say, or say both."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    lower = any(_LOWER.fullmatch(word) for word in words)
    higher = any(_HIGHER.fullmatch(word) for word in words)
    return lower if lower is not higher else None


def printed(line: str) -> tuple[int | None, dict[str, float | None]] | None:
    """Step and numbers of a line `::metric name=value … step=…`; None for any other line.

    A word of it that is neither is passed over, for the line goes to people as well.
    """
    place = line.find(MARK)
    if place < 0 or len(line) > _LONGEST_LINE or not _BEFORE.fullmatch(line[:place]):
        return None
    step: int | None = None
    values: dict[str, float | None] = {}
    for word in line[place + len(MARK) :].split():
        name, equals, text = word.partition("=")
        if not equals:
            continue
        if name == "step":
            step = _step(text)
        elif is_name(name) and len(values) < MOST_NAMES:
            number = _number(text)
            if number is not None:
                values[name] = number if math.isfinite(number) else None
    return (step, values) if values else None


def of_object(found: Mapping[str, Any]) -> dict[str, float | None]:
    """The numbers of a line of metrics.jsonl; null stands for one that was not finite."""
    values: dict[str, float | None] = {}
    for name, value in found.items():
        if len(values) == MOST_NAMES:
            break
        if isinstance(value, bool) or not (value is None or isinstance(value, int | float)):
            continue
        if is_name(name):
            values[name] = _finite(value)
    return values


def gathered(
    readings: Iterable[Reading], known: Mapping[str, Curve]
) -> tuple[dict[str, Curve], set[str]]:
    """The curves that change by these lines, and the names that are too many to be kept."""
    given: dict[str, list[tuple[Reading, float | None]]] = {}
    beyond: set[str] = set()
    for reading in readings:
        for name, value in reading.values.items():
            if name in given or name in known or len(known.keys() | given.keys()) < MOST_NAMES:
                given.setdefault(name, []).append((reading, value))
            elif len(beyond) < MOST_NAMES:
                beyond.add(name)
    return {
        name: _told(known.get(name, Curve(Result(name))), lines) for name, lines in given.items()
    }, beyond


def _told(curve: Curve, lines: Sequence[tuple[Reading, float | None]]) -> Curve:
    numbers = [(reading, value) for reading, value in lines if value is not None]
    stepped = [(line.step, line, value) for line, value in numbers if line.step is not None]
    return Curve(
        _result(curve.result, numbers, odd=len(lines) - len(numbers)),
        _axis(curve.by_time, [(int(line.at), line, value) for line, value in numbers]),
        _axis(curve.by_step, stepped),
    )


def _result(was: Result, numbers: Sequence[tuple[Reading, float]], *, odd: int) -> Result:
    one = replace(was, odd=was.odd + odd, count=was.count + len(numbers))
    if not numbers:
        return one
    first = min(line.at for line, _ in numbers)
    one = replace(one, first_at=first if one.first_at is None else min(first, one.first_at))
    last, value = max(reversed(numbers), key=lambda pair: pair[0].at)  # of equals the later line
    if one.at is None or last.at >= one.at:
        one = replace(one, at=last.at, step=last.step, last=value)
    line, value = min(numbers, key=lambda pair: pair[1])
    if one.low is None or value < one.low:
        one = replace(one, low=value, low_step=line.step)
    line, value = max(numbers, key=lambda pair: pair[1])
    if one.high is None or value > one.high:
        one = replace(one, high=value, high_step=line.step)
    return one


def _axis(axis: Axis, lines: Sequence[tuple[int, Reading, float]]) -> Axis:
    """With these values at their seconds or steps. Places become twice as wide until there are
    few enough; what a later restart says of a place counts instead of what an earlier one said."""
    wide = axis.wide
    cells = {cell.place: _Sum.of(cell) for cell in axis.cells}
    for at, line, value in lines:
        there = cells.get(at // wide)
        if there is not None and there.restart == line.restart:
            there.take(line, value)
            continue
        _put(cells, at // wide, _Sum.one(line, value))
        while len(cells) > MOST_CELLS:
            wide *= 2
            finer, cells = cells, {}
            for place in sorted(finer):
                _put(cells, place // 2, finer[place])
    return Axis(wide, tuple(cells[place].cell(place) for place in sorted(cells)))


@dataclass(slots=True)
class _Sum:
    """A cell while values are added to it: millions of lines go through here."""

    restart: int
    count: int
    mean: float
    low: float
    high: float
    last: float
    at: float
    step: int | None

    @classmethod
    def one(cls, line: Reading, value: float) -> "_Sum":
        return cls(line.restart, 1, value, value, value, value, line.at, line.step)

    @classmethod
    def of(cls, cell: Cell) -> "_Sum":
        return cls(*(getattr(cell, name) for name in Cell.__slots__[1:]))

    def cell(self, place: int) -> Cell:
        return Cell(place, *(getattr(self, name) for name in Cell.__slots__[1:]))

    def take(self, line: Reading, value: float) -> None:
        self.count += 1
        self.mean += value / self.count - self.mean / self.count
        if value < self.low:
            self.low = value
        elif value > self.high:
            self.high = value
        if line.at >= self.at:
            self.last, self.at, self.step = value, line.at, line.step

    def add(self, other: "_Sum") -> None:
        count = self.count + other.count
        # Shares first: the sum of two numbers may be more than a float can hold.
        self.mean = self.mean * (self.count / count) + other.mean * (other.count / count)
        self.count = count
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        if other.at >= self.at:
            self.last, self.at, self.step = other.last, other.at, other.step


def _put(cells: dict[int, _Sum], place: int, one: _Sum) -> None:
    there = cells.get(place)
    if there is None or there.restart < one.restart:
        cells[place] = one
    elif there.restart == one.restart:
        there.add(one)


def dump_axis(axis: Axis) -> list[Any]:
    """As the store keeps it: the width, then nine numbers a cell."""
    return [axis.wide, *([getattr(cell, name) for name in Cell.__slots__] for cell in axis.cells)]


def load_axis(found: Sequence[Any]) -> Axis:
    return Axis(found[0], tuple(Cell(*cell) for cell in found[1:])) if found else Axis()


def _step(text: str) -> int | None:
    """A whole number from 0 on, also one that is written as 12.0."""
    number = _number(text)
    if number is None or not 0 <= number <= _LARGEST or number != int(number):
        return None
    return int(number)


def _number(text: str) -> float | None:
    """None for what is no number; what float() takes beside numbers (1_000, blanks) is none."""
    if len(text) > 400 or "_" in text or not text.isascii():
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _finite(value: int | float | None) -> float | None:
    try:
        found = None if value is None else float(value)
    except OverflowError:
        return None
    return found if found is not None and math.isfinite(found) else None
