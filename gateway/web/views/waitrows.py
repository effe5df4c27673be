"""Figures by one dimension: bars, and a table in the order of any of its columns."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gateway.core.wait_figures import GPU_CLASSES, LIMIT_CLASSES, UNKNOWN, Dimension, Figures
from gateway.core.wait_sight import Shown
from gateway.services.seen_waits import Row
from gateway.web import wait_tables, wait_words
from gateway.web.show import plain
from gateway.web.texts import gettext
from gateway.web.views.waits_frame import Frame
from gateway.web.wait_charts import Lengths, PairChart, pairs
from gateway.web.wait_filters import FILTERS
from gateway.web.wait_tables import BY_KEY, COLUMNS, Head, TableRow, WaitTable
from gateway.web.wait_texts import DIMENSION_WORDS, inner_word, value_word

PAGE = 50
_MOST_BARS = 20
_NAME = "name"
_CLASSES = [name for name, *_ in (*GPU_CLASSES, *LIMIT_CLASSES)]
ORDERS = frozenset({_NAME, *BY_KEY})


@dataclass(frozen=True, slots=True)
class Order:
    """By which column; `key` empty: as the history gives them, classes and times in their order."""

    key: str = ""
    up: bool = False

    @property
    def kept(self) -> dict[str, str]:
        found = {"sort": self.key} if self.key else {}
        return found | ({"dir": "up"} if self.up else {})


@dataclass(frozen=True, slots=True)
class BarsView:
    """Wait and run side by side. `rest`: how many rows the drawing leaves to the table."""

    key: str
    title: str
    chart: PairChart | None
    table: WaitTable
    csv: str
    more: str
    hidden: str
    rest: int


@dataclass(frozen=True, slots=True)
class RowsView:
    title: str
    bars: BarsView
    shown: str
    previous: str | None
    next: str | None


def order(args: Mapping[str, str]) -> Order:
    """Nonsense is as if it were not there."""
    key = args.get("sort", "")
    return Order(key, args.get("dir") == "up") if key in ORDERS else Order()


def sorted_rows(rows: Sequence[Row], by: Order) -> list[Row]:
    """Who has no such figure comes last, whichever way the others go."""
    if not by.key:
        return list(rows)
    if by.key == _NAME:
        return sorted(rows, key=lambda row: _place(row[0]), reverse=by.up)
    of = BY_KEY[by.key].of
    known = [row for row in rows if of(row[1]) is not None]
    none = [row for row in rows if of(row[1]) is None]
    return sorted(known, key=lambda row: of(row[1]) or 0, reverse=not by.up) + none


def _place(key: str) -> tuple[int, str]:
    """Classes have an order of their own, before names; 4 hours are less than 12."""
    return (_CLASSES.index(key) if key in _CLASSES else len(_CLASSES), key)


def view(frame: Frame, found: Shown[Row], along: Dimension, by: Order, *, page: int) -> RowsView:
    rows = sorted_rows(found.rows, by)
    last = max(1, -(-len(rows) // PAGE))
    page = min(max(page, 1), last)
    part = rows[(page - 1) * PAGE : page * PAGE]

    def turned(to: int) -> str:
        return frame.asked.url("waits.by", dimension=along.value, **by.kept, page=str(to))

    first = (page - 1) * PAGE + 1
    shown = gettext(
        "%(first)s–%(last)s of %(all)s",
        first=first,
        last=first + len(part) - 1,
        all=f"{len(rows):,}",
    )
    made = Shown(tuple(part), found.hidden)
    return RowsView(
        title=gettext("By %(dimension)s", dimension=inner_word(along)),
        bars=bars(frame, made, along, key="rows", by=by, most=_MOST_BARS),
        shown=shown if last > 1 else "",
        previous=turned(page - 1) if page > 1 else None,
        next=turned(page + 1) if page < last else None,
    )


def bars(
    frame: Frame,
    found: Shown[Row],
    along: Dimension,
    *,
    key: str,
    by: Order | None = None,
    most: int = _MOST_BARS,
) -> BarsView:
    """The first rows as bars, all of them in the table. With an order the table's heads sort."""
    drawn = [row for row in found.rows if row[1].wait.n or row[1].run.n][:most]
    label = gettext("Mean wait and run time by %(dimension)s", dimension=inner_word(along))
    url = frame.asked.url
    kept = by.kept if by else {}
    return BarsView(
        key=key,
        title=label,
        chart=pairs([_lengths(*row, along) for row in drawn], label),
        table=WaitTable(
            label,
            _heads(frame, along, by),
            tuple(_row(frame, name, figures, along) for name, figures in found.rows),
            wait_tables.groups(),
        ),
        csv=url("waits.by_csv", dimension=along.value, **kept),
        more=url("waits.by", dimension=along.value),
        hidden=wait_words.hidden_words(found.hidden, frame.least),
        rest=len(found.rows) - len(drawn),
    )


def csv(rows: Sequence[Row], along: Dimension) -> Iterator[str]:
    return wait_tables.figures_csv(along.value, rows)


def plain_heads(*words: str) -> tuple[Head, ...]:
    return tuple(Head(word) for word in words)


def _lengths(key: str, figures: Figures, along: Dimension) -> Lengths:
    wait, run = figures.wait, figures.run
    name, words = value_word(along, key), wait_words.beside(figures)
    count = wait_words.jobs_words(wait.n)
    return Lengths(name, words, count, wait.mean_s, run.mean_s, wait.median_s, run.median_s)


def _row(frame: Frame, key: str, figures: Figures, along: Dimension) -> TableRow:
    """Its name leads to the same page with this filter; a filter that is set leads nowhere."""
    name = value_word(along, key)
    value = key or UNKNOWN
    can = along in FILTERS and (along.value, value) not in frame.asked.pairs
    closed = FILTERS.get(along)
    url = (
        frame.asked.url("waits.index", **{along.value: value})
        if can and (closed is None or value in closed)
        else None
    )
    title = gettext("Only %(name)s", name=plain(name))
    return TableRow(name, wait_tables.cells(figures), url, title)


def _heads(frame: Frame, along: Dimension, by: Order | None) -> tuple[Head, ...]:
    words = [(_NAME, str(DIMENSION_WORDS[along])), *((one.key, str(one.word)) for one in COLUMNS)]
    if by is None:
        return tuple(Head(word) for _, word in words)
    return tuple(_sorting(frame, along, by, key, word) for key, word in words)


def _sorting(frame: Frame, along: Dimension, by: Order, key: str, word: str) -> Head:
    """A click sorts; a second one turns the order around. Names go up first, figures down."""
    on = by.key == key
    turned = Order(key, up=on and not by.up)
    url = frame.asked.url("waits.by", dimension=along.value, **turned.kept)
    rises = (not by.up) if key == _NAME else by.up
    return Head(word, url, ("ascending" if rises else "descending") if on else "")
