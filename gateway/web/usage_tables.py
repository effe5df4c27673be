"""Tables of use: a row's figures as cells, with their names in a CSV and the API."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from gateway.core.credits import format_credits
from gateway.core.usage_figures import (
    HOUR,
    By,
    CardDay,
    LimitBin,
    Limits,
    LimitWait,
    Use,
    advised_limit,
)
from gateway.core.wait_figures import UNKNOWN
from gateway.store.queries.group_spend import Spend
from gateway.web.csvtext import csv_row
from gateway.web.money import money_text
from gateway.web.texts import Lazy, gettext
from gateway.web.texts import lazy_gettext as _l
from gateway.web.wait_tables import Cell, Head, TableRow, WaitTable, hours, number, seconds

T = TypeVar("T")
MOST_ACROSS = 12  # columns of a table by two things; CSV has all
MOST_DOWN = 50  # and its rows

BY_WORDS: dict[By, Lazy] = {
    By.GROUP: _l("Group"),
    By.USER: _l("Person"),
    By.GPU_TYPE: _l("GPU type"),
    By.PARTITION: _l("Partition"),
    By.QOS: _l("QoS"),
    By.TEMPLATE: _l("Template"),
    By.STATE: _l("State"),
    By.MONTH: _l("Month"),
}


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One figure: its key in a CSV, its word, its cell."""

    key: str
    word: Lazy
    cell: Callable[[T], Cell]


def percent(part: float | None, whole: float | None) -> Cell:
    """To the tenth; nothing of nothing is no share."""
    if part is None or not whole:
        return Cell("–")
    share = part / whole * 100
    return Cell(f"{share:.1f} %", f"{share:.6f}".rstrip("0").rstrip("."))


def amount(millionths: int | None) -> Cell:
    """In the site's currency; exact for machines."""
    if millionths is None:
        return Cell("–")
    exact = format_credits(millionths).replace(",", "")
    return Cell(money_text(millionths), exact, exact)


def card_hours(card_seconds: int | None) -> Cell:
    return hours(None if card_seconds is None else card_seconds / HOUR)


def people(one: Use) -> Cell:
    """A set of another site may know no people: that is not nobody."""
    return number(one.people) if one.people or not one.runs else Cell("–")


def use_columns(whole: int, *, money: bool) -> tuple[Column[Use], ...]:
    """`whole`: card-seconds of all rows, of which each is a share."""
    found: tuple[Column[Use], ...] = (
        Column("gpu_hours", _l("GPU-hours"), lambda one: card_hours(one.gpu_seconds)),
        Column("share_percent", _l("Share"), lambda one: percent(one.gpu_seconds, whole)),
        Column("runs", _l("Runs"), lambda one: number(one.runs)),
        Column("people", _l("People"), people),
        Column("cpu_hours", _l("CPU-hours"), lambda one: card_hours(one.cpu_seconds)),
        Column("runs_ended", _l("Ended"), lambda one: number(one.ended)),
        Column("runs_without_cards_told", _l("Cards unknown"), lambda one: number(one.untold)),
    )
    if money:
        found += (Column("charged", _l("Charged at end"), lambda one: amount(one.charge)),)
    return found


LIMITS: tuple[Column[Limits], ...] = (
    Column("reserved_gpu_hours", _l("Asked"), lambda one: card_hours(one.reserved_gpu_seconds)),
    Column("used_gpu_hours", _l("Used"), lambda one: card_hours(one.used_gpu_seconds)),
    Column(
        "used_percent",
        _l("Used of asked"),
        lambda one: percent(one.used_gpu_seconds, one.reserved_gpu_seconds),
    ),
    Column("runs", _l("Runs"), lambda one: number(one.runs)),
    Column("without_limit", _l("No limit"), lambda one: number(one.unlimited)),
    Column("completed", _l("Completed"), lambda one: number(one.completed)),
    Column("median_limit_s", _l("Median limit"), lambda one: seconds(one.median_limit_s)),
    Column("p90_s", _l("Run time, p90"), lambda one: seconds(one.p90_s)),
    Column("longest_timeout_s", _l("Longest time-out"), lambda one: seconds(one.timeout_s)),
    Column("advised_limit_s", _l("Advised limit"), lambda one: seconds(advised_limit(one))),
)
BINS: tuple[Column[LimitBin], ...] = (
    Column("runs", _l("Runs"), lambda one: number(one.runs)),
    Column("gpu_hours", _l("GPU-hours"), lambda one: card_hours(one.gpu_seconds)),
)
SPEND: tuple[Column[Spend], ...] = (
    Column("charged", _l("Charged"), lambda one: amount(one.charged)),
    Column("refunded", _l("Given back"), lambda one: amount(one.refunded)),
    Column("spent", _l("Spent"), lambda one: amount(one.spent)),
)
CARD_DAYS: tuple[Column[CardDay], ...] = (
    Column("gpu_hours", _l("GPU-hours"), lambda one: card_hours(one.gpu_seconds)),
    Column("capacity_gpu_hours", _l("of possible"), lambda one: card_hours(one.capacity_s)),
    Column("percent", _l("Allocated"), lambda one: percent(one.gpu_seconds, one.capacity_s)),
    Column(
        "counted",
        _l("Cards"),
        lambda one: Cell(gettext("assumed") if one.assumed else gettext("counted"),
                         "0" if one.assumed else "1"),
    ),
)  # fmt: skip
LIMIT_WAITS: tuple[Column[LimitWait], ...] = (
    Column("limit_hours", _l("For limits"), lambda one: card_hours(one.limit_s)),
    Column("share_percent", _l("of the wait"), lambda one: percent(one.limit_s, one.wait_s)),
    Column("jobs_limited", _l("Jobs kept back"), lambda one: number(one.limited)),
    Column("jobs", _l("of all jobs"), lambda one: number(one.jobs)),
    Column("group_limit_hours", _l("Group limit"), lambda one: card_hours(one.group_limit_s)),
    Column("qos_limit_hours", _l("QoS limit"), lambda one: card_hours(one.qos_limit_s)),
    Column("user_limit_hours", _l("Limit per person"), lambda one: card_hours(one.user_limit_s)),
)


def table(
    caption: str,
    first: str,
    columns: Sequence[Column[T]],
    rows: Iterable[tuple[str, str | None, T]],
) -> WaitTable:
    """`rows`: name, where it leads, figures."""
    heads = (Head(first), *(Head(str(column.word)) for column in columns))
    return WaitTable(
        caption,
        heads,
        tuple(
            TableRow(name, tuple(column.cell(one) for column in columns), url)
            for name, url, one in rows
        ),
    )


def csv_lines(
    names: Sequence[str], columns: Sequence[Column[T]], rows: Iterable[tuple[Sequence[str], T]]
) -> Iterator[str]:
    """`names` of the keys; what is not known is empty."""
    yield csv_row((*names, *(column.key for column in columns)))
    for keys, one in rows:
        yield csv_row((*keys, *(column.cell(one).exact for column in columns)))


def crossed(caption: str, by: Sequence[By], rows: Sequence[Use]) -> WaitTable:
    """GPU-hours by two things: the first down, the second across, the most used of it."""
    across = _across(by[1], rows)
    cells = {row.keys: row.gpu_seconds for row in rows}
    totals: dict[str, int] = {}
    for row in rows:
        totals[row.keys[0]] = totals.get(row.keys[0], 0) + row.gpu_seconds
    heads = (
        Head(str(BY_WORDS[by[0]])),
        *(Head(key_word(by[1], key)) for key in across),
        Head(gettext("All")),
    )
    order = sorted(totals, key=lambda key: (key if by[0] is By.MONTH else "", -totals[key], key))
    return WaitTable(
        caption,
        heads,
        tuple(
            TableRow(
                key_word(by[0], key),
                (*(card_hours(cells.get((key, one))) for one in across), card_hours(totals[key])),
            )
            for key in order[:MOST_DOWN]
        ),
    )


def _across(by: By, rows: Sequence[Use]) -> list[str]:
    sums: dict[str, int] = {}
    for row in rows:
        sums[row.keys[1]] = sums.get(row.keys[1], 0) + row.gpu_seconds
    if by is By.MONTH:
        return sorted(sums)[-MOST_ACROSS:]
    return sorted(sums, key=lambda key: (-sums[key], key))[:MOST_ACROSS]


def key_word(by: By, key: str) -> str:
    """Names are as Slurm has them."""
    if key != UNKNOWN:
        return key
    return gettext("none or not known") if by is By.TEMPLATE else gettext("not known")
