"""Lines over time as an SVG of 100 by 100 that is stretched to its place: shapes only, no text in
it, as the burn-down. Numbers stand beside it, and in the table beneath."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Series:
    """One line: values at moments, in seconds since 1970. None is a gap, as is a new `part`."""

    kind: str
    word: str
    values: Sequence[tuple[float, float | None, int]]  # moment, value, part


@dataclass(frozen=True, slots=True)
class Drawn:
    """`paths` are the points of polylines, one for each stretch without a gap."""

    kind: str
    word: str
    paths: list[str]
    now: float | None


@dataclass(frozen=True, slots=True)
class Chart:
    """`low` and `high` are the ends of its scale, `first` and `last` those of its time."""

    lines: list[Drawn]
    low: float
    high: float
    first: datetime
    last: datetime


def chart(series: Sequence[Series], *, from_zero: bool = True) -> Chart | None:
    """None when there is nothing to draw. `from_zero`: the scale begins at 0, as it must for what
    is compared by its height; a loss is looked at for its shape."""
    known = [(at, y) for one in series for at, y, _ in one.values if y is not None]
    if not known:
        return None
    first, last = min(at for at, _ in known), max(at for at, _ in known)
    low, high = min(y for _, y in known), max(y for _, y in known)
    if from_zero:
        low = min(0.0, low)
    if high <= low:
        low, high = (0.0, high or 1.0) if high >= 0 else (low, 0.0)
    frame = _Frame(first, max(last - first, 1.0), high, high - low)
    return Chart(
        lines=[Drawn(one.kind, one.word, _paths(one, frame), _now(one)) for one in series],
        low=low,
        high=high,
        first=datetime.fromtimestamp(first, UTC),
        last=datetime.fromtimestamp(last, UTC),
    )


def draw(series: Sequence[Series]) -> list[Drawn]:
    """Each line on the scale of all: for axes that are not of time, and scales of one's own."""
    known = [(at, y) for one in series for at, y, _ in one.values if y is not None]
    first, last = min(at for at, _ in known), max(at for at, _ in known)
    low, high = min(y for _, y in known), max(y for _, y in known)
    # Of one value alone the line goes through the middle.
    tall = high - low or 2.0 * max(abs(high), 1.0)
    frame = _Frame(first, last - first or 1.0, high if high > low else high + tall / 2, tall)
    return [Drawn(one.kind, one.word, _paths(one, frame), _now(one)) for one in series]


def thinned(rows: Sequence[T], most: int) -> list[T]:
    """So many of them at most, evenly, the last one among them."""
    if len(rows) <= most:
        return list(rows)
    step = (len(rows) - 1) / (most - 1)
    return [rows[round(n * step)] for n in range(most)]


@dataclass(frozen=True, slots=True)
class _Frame:
    first: float
    wide: float
    high: float
    tall: float

    def place(self, at: float, y: float) -> str:
        across = (at - self.first) / self.wide * 100
        return f"{across:.2f},{(self.high - y) / self.tall * 100:.2f}"


def _paths(series: Series, frame: _Frame) -> list[str]:
    paths: list[list[str]] = []
    open_part: int | None = None
    for at, y, part in series.values:
        if y is None:
            open_part = None
            continue
        if part != open_part:
            paths.append([])
            open_part = part
        paths[-1].append(frame.place(at, y))
    # One point alone draws nothing; twice the same is a dot.
    return [" ".join(path if len(path) > 1 else path * 2) for path in paths]


def _now(series: Series) -> float | None:
    return next((y for _, y, _ in reversed(series.values) if y is not None), None)
