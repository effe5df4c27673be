"""The overview of waits: the first line, sums against the period before, bars by cards and type."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from gateway.core.wait_figures import Dimension, Figures, Spread
from gateway.core.wait_sight import Shown
from gateway.services.seen_waits import Row, SeenOverview
from gateway.web import wait_words
from gateway.web.csvtext import csv_row
from gateway.web.show import duration
from gateway.web.texts import gettext
from gateway.web.views import waitrows
from gateway.web.views.waitrows import BarsView
from gateway.web.views.waits_frame import Frame
from gateway.web.wait_tables import (
    Cell,
    TableRow,
    WaitTable,
    digits,
    exact,
    hours,
    number,
    ratio,
    seconds,
    spread_row,
    spread_table,
)

_MOST_TYPES = 12


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure, the one before, and how many jobs it is made of."""

    kind: str
    word: str
    meaning: str
    now: Cell
    before: str
    beside: str


@dataclass(frozen=True, slots=True)
class Sums:
    """`figures` None: of too few people to be shown."""

    figures: Figures | None
    first: str
    longest: str
    tiles: tuple[Tile, ...]
    table: WaitTable | None
    exact: WaitTable | None
    cards: BarsView
    types: BarsView
    csv: str


def view(frame: Frame, seen: SeenOverview, types: Shown[Row]) -> Sums:
    now = seen.now
    return Sums(
        figures=now,
        first=wait_words.first_line(frame.asked, seen),
        longest=wait_words.longest_line(seen),
        tiles=tuple(_tiles(now, seen.before)) if now and now.jobs else (),
        table=_table(now, seen.before) if now and now.jobs else None,
        exact=_exact(now) if now and now.jobs else None,
        cards=waitrows.bars(frame, seen.rows, Dimension.GPU_CLASS, key="by-cards"),
        types=waitrows.bars(frame, types, Dimension.GPU_TYPE, key="by-type", most=_MOST_TYPES),
        csv=frame.asked.url("waits.index_csv"),
    )


def csv(seen: SeenOverview) -> Iterator[str]:
    """A line a figure; nothing where there is none, or none that may be seen."""
    yield csv_row(("figure", "now", "before"))
    before = dict(facts(seen.before)) if seen.before else {}
    for key, value in facts(seen.now) if seen.now else ():
        then = before.get(key)
        yield csv_row((key, *("" if one is None else exact(one) for one in (value, then))))


def facts(figures: Figures) -> Iterator[tuple[str, float | int | None]]:
    """Every figure under its name; those of a spread as `wait.median_s`."""
    for key, value in asdict(figures).items():
        if isinstance(value, dict):
            yield from ((f"{key}.{name}", one) for name, one in value.items())
        elif key not in {"people", "others"}:  # whom one may count is the rule's alone
            yield key, value


def _tiles(now: Figures, before: Figures | None) -> Iterator[Tile]:
    beside = wait_words.beside(now)

    def then(text: str | None) -> str:
        return gettext("before: %(figure)s", figure=text) if text else ""

    yield Tile(
        "waiting",
        gettext("Median wait of the started"),
        gettext("Half of the jobs that started had waited less. It leaves out who waits still."),
        seconds(now.wait.median_s),
        then(duration(before.wait.median_s) if before else None),
        beside,
    )
    yield Tile(
        "waiting",
        gettext("Median wait of all"),
        gettext(
            "By Kaplan and Meier: jobs that wait, or left before they started, count as longer than"
            " they have waited. Not known where fewer than half have started."
        ),
        seconds(now.censored.median_s),
        then(duration(before.censored.median_s) if before else None),
        gettext("p90 %(time)s", time=duration(now.censored.p90_s) or "–"),
    )
    yield Tile(
        "running",
        gettext("Median run time"),
        gettext("On nodes, as Slurm counts it."),
        seconds(now.run.median_s),
        then(duration(before.run.median_s) if before else None),
        wait_words.jobs_words(now.run.n),
    )
    yield Tile(
        "deferral",
        gettext("Wait ÷ run"),
        gettext("All hours waited over all hours run, of jobs that have both."),
        ratio(now.ratio_of_sums),
        then(ratio(before.ratio_of_sums).text if before else None),
        "",
    )
    yield Tile(
        "running",
        gettext("GPU-hours"),
        gettext("Cards times hours on nodes."),
        hours(now.gpu_hours),
        then(hours(before.gpu_hours).text if before else None),
        wait_words.jobs_words(now.gpu_jobs),
    )
    yield Tile(
        "failed",
        gettext("Never started"),
        gettext("Left the queue before they ran: cancelled, or past a deadline."),
        number(now.never_started),
        then(number(before.never_started).text if before else None),
        gettext("gave up after %(time)s", time=duration(now.gave_up.median_s))
        if now.gave_up.n
        else "",
    )
    yield Tile(
        "waiting",
        gettext("Still waiting"),
        gettext("Submitted in the period, and in the queue now."),
        number(now.waiting),
        "",
        gettext("of %(n)s", n=wait_words.jobs_words(now.jobs)),
    )


def _table(now: Figures, before: Figures | None) -> WaitTable:
    rows: list[TableRow] = []
    for name, this, then in _kinds(now, before):
        if this.n or (then and then.n):
            rows.append(spread_row(name, this))
            if then and then.n:
                rows.append(spread_row(gettext("– before"), then))
        if name == gettext("Wait of the started"):
            rows.append(_censored(now))
    return WaitTable(gettext("Waits and runs"), spread_table("", ()).heads, tuple(rows))


def _kinds(now: Figures, before: Figures | None) -> Iterator[tuple[str, Spread, Spread | None]]:
    yield gettext("Wait of the started"), now.wait, before.wait if before else None
    yield gettext("Run time"), now.run, before.run if before else None
    yield gettext("Deferral"), now.deferral, before.deferral if before else None
    yield gettext("Wait after a requeue"), now.requeue_wait, None
    yield gettext("Left without a start, after"), now.gave_up, None


def _censored(now: Figures) -> TableRow:
    """In the columns of a spread; of a curve there is no mean and no longest."""
    none = Cell("–")
    count = number(now.wait.n + now.never_started + now.waiting)
    curve = now.censored
    return TableRow(
        gettext("Wait of all (Kaplan–Meier)"),
        (
            count,
            none,
            *map(seconds, (curve.median_s, curve.p90_s)),
            none,
            seconds(curve.p99_s),
            none,
        ),
    )


def _exact(now: Figures) -> WaitTable:
    """Every figure to its last digit: for comparing with other tools."""
    rows: Sequence[TableRow] = tuple(
        TableRow(key, (Cell(digits(value), exact(value)),))
        for key, value in facts(now)
        if value is not None
    )
    heads = waitrows.plain_heads(gettext("Figure"), gettext("Value"))
    return WaitTable(gettext("Every figure in seconds and numbers"), heads, tuple(rows))
