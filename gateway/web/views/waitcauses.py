"""Where waits went as bars, sentences, a table and a CSV."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.core.wait_causes import Cause
from gateway.core.wait_conclusion import conclude
from gateway.core.wait_figures import UNKNOWN, Dimension
from gateway.core.wait_shapes import CausesRow
from gateway.core.wait_sight import Shown
from gateway.web import wait_words
from gateway.web.csvtext import csv_row
from gateway.web.show import duration
from gateway.web.texts import gettext
from gateway.web.views.waits_frame import Frame
from gateway.web.wait_cause_texts import CAUSE_MEANINGS, CAUSE_WORDS, sentence, share_text
from gateway.web.wait_charts import clipped
from gateway.web.wait_tables import Cell, Head, TableRow, WaitTable, number
from gateway.web.wait_tables import seconds as seconds_cell
from gateway.web.wait_texts import DIMENSION_WORDS, inner_word, value_word

Row = tuple[str, CausesRow]
BY = (
    Dimension.GROUP,
    Dimension.PARTITION,
    Dimension.GPU_CLASS,
    Dimension.GPU_TYPE,
    Dimension.QOS,
)
_MOST_BARS = 20
_MOST_ROWS = 50  # the CSV has all
_ROW = 46
_LEGEND_ROW = 18


@dataclass(frozen=True, slots=True)
class Piece:
    """Percent of the width."""

    cause: str
    x: float
    wide: float
    word: str
    title: str


@dataclass(frozen=True, slots=True)
class Stack:
    """`count` is what a phone has room for of `words`."""

    name: str
    words: str
    count: str
    y: int
    pieces: tuple[Piece, ...]
    sentence: str
    own: bool


@dataclass(frozen=True, slots=True)
class Legend:
    cause: str
    word: str
    meaning: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class StackChart:
    label: str
    stacks: tuple[Stack, ...]
    legend: tuple[Legend, ...]
    top: int
    height: int


@dataclass(frozen=True, slots=True)
class CausesView:
    """`first`: the sentence about all of them. `own`: one's own groups, then the others."""

    title: str
    first: str
    chart: StackChart | None
    said: tuple[Stack, ...]
    meanings: tuple[Legend, ...]
    table: WaitTable
    csv: str
    hidden: str
    more: str


def view(
    frame: Frame, whole: CausesRow | None, found: Shown[Row], along: Dimension, own: Sequence[str]
) -> CausesView:
    mine = set(own) if along is Dimension.GROUP else set()
    rows = sorted(found.rows, key=lambda row: row[0] not in mine)
    word = str(DIMENSION_WORDS[along])
    title = gettext("Where the wait went, by %(dimension)s", dimension=inner_word(along))
    chart = _chart(rows[:_MOST_BARS], along, mine, title)
    return CausesView(
        title=title,
        first=sentence(conclude(whole.jobs, whole.seconds)) if whole else "",
        chart=chart,
        said=chart.stacks if chart else (),
        meanings=_legend(tuple(Cause)),
        table=WaitTable(
            title,
            (Head(word), *(Head(text) for text in _heads())),
            tuple(_table_row(frame, row, along) for row in rows[:_MOST_ROWS]),
        ),
        csv=frame.asked.url("wait_causes.index_csv", by=along.value),
        hidden=wait_words.hidden_words(found.hidden, frame.least),
        more=wait_words.more_words(len(rows) - _MOST_ROWS),
    )


def csv(rows: Sequence[Row], along: Dimension) -> Iterator[str]:
    """Whole seconds; they sum to the wait from submit to start."""
    yield csv_row((along.value, "jobs", "wait_s", *(f"{cause.value}_s" for cause in Cause)))
    for key, row in rows:
        values = [row.seconds.get(cause, 0) for cause in Cause]
        yield csv_row((key, str(row.jobs), str(sum(values)), *map(str, values)))


def _chart(rows: Sequence[Row], along: Dimension, mine: set[str], label: str) -> StackChart | None:
    drawn = [row for row in rows if sum(row[1].seconds.values())]
    if not drawn:
        return None
    used = tuple(cause for cause in Cause if any(row[1].seconds.get(cause) for row in drawn))
    legend = _legend(used)
    top = (-(-len(used) // 2)) * _LEGEND_ROW + 8
    stacks = tuple(
        _stack(key, row, along, place * _ROW, own=key in mine)
        for place, (key, row) in enumerate(drawn)
    )
    return StackChart(label, stacks, legend, top, len(drawn) * _ROW)


def _legend(causes: Sequence[Cause]) -> tuple[Legend, ...]:
    return tuple(
        Legend(
            cause.value,
            str(CAUSE_WORDS[cause]),
            str(CAUSE_MEANINGS[cause]),
            50 * (place % 2),
            place // 2 * _LEGEND_ROW,
        )
        for place, cause in enumerate(causes)
    )


def _stack(key: str, row: CausesRow, along: Dimension, y: int, *, own: bool) -> Stack:
    whole = sum(row.seconds.values())
    pieces, x = [], 0.0
    for cause in Cause:
        part = row.seconds.get(cause, 0)
        if not part:
            continue
        wide = part / whole * 100
        share = share_text(part / whole)
        title = f"{CAUSE_WORDS[cause]}: {share}, {duration(part)}"
        pieces.append(
            Piece(cause.value, round(x, 3), round(wide, 3), share if wide > 8 else "", title)
        )
        x += wide
    count = wait_words.jobs_words(row.jobs)
    words = gettext(
        "%(jobs)s, waited %(mean)s on average",
        jobs=count,
        mean=duration(whole / row.jobs),
    )
    said = sentence(conclude(row.jobs, row.seconds))
    return Stack(clipped(value_word(along, key)), words, count, y, tuple(pieces), said, own)


def _heads() -> tuple[str, ...]:
    return (gettext("Jobs"), gettext("mean wait"), *(str(CAUSE_WORDS[cause]) for cause in Cause))


def _table_row(frame: Frame, named: Row, along: Dimension) -> TableRow:
    """Its name adds a filter."""
    key, row = named
    whole = sum(row.seconds.values())
    shares = (_share(row.seconds.get(cause, 0), whole) for cause in Cause)
    value = key or UNKNOWN
    on = (along.value, value) in frame.asked.pairs
    url = (
        None if on else frame.asked.url("wait_causes.index", by=along.value, **{along.value: value})
    )
    cells = (number(row.jobs), seconds_cell(round(whole / row.jobs)), *shares)
    return TableRow(value_word(along, key), cells, url)


def _share(part: int, whole: int) -> Cell:
    """The seconds are beneath."""
    if not part:
        return Cell("–", "0")
    return Cell(share_text(part / whole), str(part), gettext("%(n)s s", n=f"{part:,}"))
