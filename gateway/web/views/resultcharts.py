"""Curves of results as SVG: by step, by time or by cost, on a plain or a logarithmic scale, each
with the table beneath it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.core.credits import Credits
from gateway.core.results import Cell
from gateway.web.charts import Drawn, Series, draw, thinned
from gateway.web.money import money_text
from gateway.web.show import duration
from gateway.web.texts import gettext

TABLE_ROWS = 24
_FAR = 1e300  # beyond it the height of a scale is no number any more
_LOG_FROM = 100.0  # where the highest is so many times the lowest, a plain scale shows one bend
STEP, TIME, COST = "step", "time", "cost"
AXES = (STEP, TIME, COST)
SCALES = ("auto", "linear", "log")


@dataclass(frozen=True, slots=True)
class Line:
    """A curve of one job: its word, its cells along the axis, and the job's name."""

    word: str
    cells: Sequence[tuple[float, Cell]]
    name: str = ""


@dataclass(frozen=True, slots=True)
class CurveView:
    """`names` are the jobs' of its lines, `ends` the words of the axis' ends, `low` and `high`
    those of the scale; a row of the table has the axis' word and a value a line."""

    key: str
    title: str
    now: str
    label: str
    low: str
    high: str
    ends: tuple[str, str]
    lines: list[Drawn]
    names: list[str]
    is_log: bool
    note: str
    head: str
    heads: list[str]
    rows: list[list[str]]


def axis_words() -> dict[str, str]:
    return {STEP: gettext("Step"), TIME: gettext("Time on nodes"), COST: gettext("Cost")}


def scale_words() -> dict[str, str]:
    return {
        "auto": gettext("Scale as it fits"),
        "linear": gettext("Plain scale"),
        "log": gettext("Logarithmic scale"),
    }


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.5g}"


def drawn(name: str, lines: Sequence[Line], *, axis: str, scale: str, key: str) -> CurveView | None:
    """None when there is nothing to draw."""
    values = [cell.mean for line in lines for _, cell in line.cells]
    if not values:
        return None
    is_log = _is_log(values, scale)
    series = [
        Series(
            "main" if len(lines) == 1 else f"of-{n}",
            line.word,
            [(at, _height(cell.mean, is_log), cell.restart) for at, cell in line.cells],
        )
        for n, line in enumerate(lines)
    ]
    first = min(at for line in lines for at, _ in line.cells)
    last = max(at for line in lines for at, _ in line.cells)
    ends = _axis_text(first, axis), _axis_text(last, axis)
    low, high = number(min(values)), number(max(values))
    now = number(lines[0].cells[-1][1].last) if len(lines) == 1 and lines[0].cells else ""
    note = gettext("Logarithmic scale.") if is_log else ""
    if scale == "log" and not is_log:
        note = gettext("No logarithmic scale: not all values are above 0.")
    return CurveView(
        key=key,
        title=name,
        now=now,
        label=gettext(
            "%(title)s by %(axis)s, from %(low)s to %(high)s. The table beneath has the numbers.",
            title=name,
            axis=axis_words()[axis].lower(),
            low=low,
            high=high,
        ),
        low=low,
        high=high,
        ends=ends,
        lines=draw(series),
        names=[line.name for line in lines],
        is_log=is_log,
        note=note,
        head=axis_words()[axis],
        heads=[line.word for line in lines],
        rows=_table(lines, axis),
    )


def _is_log(values: Sequence[float], scale: str) -> bool:
    low, high = min(values), max(values)
    if low <= 0 or scale == "linear":
        return False
    return scale == "log" or high / low >= _LOG_FROM


def _height(value: float, is_log: bool) -> float:
    return math.log10(value) if is_log else max(-_FAR, min(_FAR, value))


def _table(lines: Sequence[Line], axis: str) -> list[list[str]]:
    """The newest first. Of several lines each has rows of its own, since their places differ."""
    rows: list[list[str]] = []
    each = max(4, TABLE_ROWS // len(lines))
    for n, line in enumerate(lines):
        for at, cell in reversed(thinned(line.cells, each)):
            values = [""] * len(lines)
            values[n] = number(cell.mean)
            rows.append([_axis_text(at, axis), *values])
    return rows


def _axis_text(at: float, axis: str) -> str:
    if axis == TIME:
        return duration(at)
    if axis == COST:
        return money_text(Credits(round(at)))
    return f"{at:.0f}"
