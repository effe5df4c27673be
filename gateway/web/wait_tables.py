"""Tables of waits: figures as cells with their exact value beside the words, and rows of CSV."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gateway.core.wait_figures import Figures, Spread
from gateway.web.csvtext import csv_row
from gateway.web.show import duration
from gateway.web.texts import Lazy, gettext
from gateway.web.texts import lazy_gettext as _l

Value = float | int | None


@dataclass(frozen=True, slots=True)
class Cell:
    """`exact` is what a machine reads: seconds, or the number without its separators."""

    text: str
    exact: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    word: str
    url: str | None = None
    sorted: str = ""


@dataclass(frozen=True, slots=True)
class TableRow:
    """With a `url` its name adds a filter."""

    name: str
    cells: tuple[Cell, ...]
    url: str | None = None
    title: str = ""


@dataclass(frozen=True, slots=True)
class WaitTable:
    """`groups`: words over so many columns each, the first of them over the names."""

    caption: str
    heads: tuple[Head, ...]
    rows: tuple[TableRow, ...]
    groups: tuple[tuple[str, int], ...] = ()


def exact(value: float) -> str:
    """To the millionth, without zeros behind."""
    return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def digits(value: float) -> str:
    """All of them, in thousands."""
    whole, _, part = exact(value).partition(".")
    return f"{int(whole):,}" + (f".{part}" if part else "")


def seconds(value: Value) -> Cell:
    """Words, with the seconds beneath."""
    if value is None:
        return Cell("–")
    return Cell(duration(value), exact(value), gettext("%(n)s s", n=digits(value)))


def number(value: Value) -> Cell:
    """A count."""
    return Cell("–") if value is None else Cell(f"{value:,}", exact(value))


def hours(value: Value) -> Cell:
    """GPU-hours, to the tenth where they are few."""
    if value is None:
        return Cell("–")
    return Cell(f"{value:,.1f}" if value < 1000 else f"{value:,.0f}", exact(value))


def ratio(value: Value) -> Cell:
    return Cell("–") if value is None else Cell(f"{value:,.2f}", exact(value))


@dataclass(frozen=True, slots=True)
class Column:
    """One figure: its key in an address, a CSV and the API, its group and word in a table."""

    key: str
    group: str
    word: Lazy
    of: Callable[[Figures], Value]
    cell: Callable[[Value], Cell]


_STATISTICS: tuple[tuple[str, Lazy, Callable[[Spread], Value], Callable[[Value], Cell]], ...] = (
    ("n", _l("Jobs"), lambda one: one.n, number),
    ("mean_s", _l("mean"), lambda one: one.mean_s, seconds),
    ("median_s", _l("median"), lambda one: one.median_s, seconds),
    ("p90_s", _l("p90"), lambda one: one.p90_s, seconds),
    ("p95_s", _l("p95"), lambda one: one.p95_s, seconds),
    ("p99_s", _l("p99"), lambda one: one.p99_s, seconds),
    ("max_s", _l("longest"), lambda one: one.max_s, seconds),
)


def _spread(name: str, of: Callable[[Figures], Spread]) -> Iterator[Column]:
    for key, word, read, cell in _STATISTICS:
        yield Column(f"{name}_{key}", name, word, lambda f, read=read: read(of(f)), cell)  # type: ignore[misc]  # the default binds this turn's


COLUMNS: tuple[Column, ...] = (
    Column("jobs", "", _l("Jobs"), lambda f: f.jobs, number),
    Column("never_started", "", _l("never started"), lambda f: f.never_started, number),
    Column("waiting", "", _l("waiting"), lambda f: f.waiting, number),
    *_spread("wait", lambda f: f.wait),
    Column("all_median_s", "all", _l("median"), lambda f: f.censored.median_s, seconds),
    Column("all_p90_s", "all", _l("p90"), lambda f: f.censored.p90_s, seconds),
    *_spread("run", lambda f: f.run),
    Column("ratio_of_sums", "use", _l("wait ÷ run"), lambda f: f.ratio_of_sums, ratio),
    Column("gpu_hours", "use", _l("GPU-hours"), lambda f: f.gpu_hours, hours),
)
BY_KEY = {column.key: column for column in COLUMNS}
_GROUPS: dict[str, Lazy] = {
    "wait": _l("Wait of the started"),
    "all": _l("Wait of all (Kaplan–Meier)"),
    "run": _l("Run time"),
    "use": _l("Use"),
}


def cells(figures: Figures) -> tuple[Cell, ...]:
    """In the order of COLUMNS."""
    return tuple(column.cell(column.of(figures)) for column in COLUMNS)


def groups() -> tuple[tuple[str, int], ...]:
    """Over the name and the numbers of jobs nothing stands."""
    found: list[tuple[str, int]] = [("", 1 + sum(not column.group for column in COLUMNS))]
    for key, word in _GROUPS.items():
        found.append((str(word), sum(column.group == key for column in COLUMNS)))
    return tuple(found)


def spread_table(caption: str, rows: Iterable[tuple[str, Spread]]) -> WaitTable:
    """Durations of several kinds, a row each."""
    heads = (Head(""), *(Head(str(word)) for _, word, _, _ in _STATISTICS))
    return WaitTable(caption, heads, tuple(spread_row(name, one) for name, one in rows))


def spread_row(name: str, spread: Spread) -> TableRow:
    return TableRow(name, tuple(cell(read(spread)) for _, _, read, cell in _STATISTICS))


def figures_csv(first: str, rows: Sequence[tuple[str, Figures]]) -> Iterator[str]:
    """Seconds, hours and numbers as they are; nothing where there is none."""
    yield csv_row((first, *(column.key for column in COLUMNS)))
    for name, figures in rows:
        values = (column.of(figures) for column in COLUMNS)
        yield csv_row((name, *("" if one is None else exact(one) for one in values)))
