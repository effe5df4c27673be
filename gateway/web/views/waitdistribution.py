"""How waits and runs are distributed: histograms on a log axis, and curves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.core.wait_shapes import Bar, Distribution, Survival
from gateway.web import wait_charts, wait_tables
from gateway.web.charts import thinned
from gateway.web.csvtext import csv_row
from gateway.web.texts import gettext
from gateway.web.views.waitrows import plain_heads
from gateway.web.views.waits_frame import Frame
from gateway.web.wait_charts import Curve, Histogram, Lines
from gateway.web.wait_tables import Cell, TableRow, WaitTable

_MOST_ROWS = 40


@dataclass(frozen=True, slots=True)
class DistributionView:
    """`seen` False: of too few people to be shown."""

    seen: bool
    waits: Histogram | None
    runs: Histogram | None
    bars: WaitTable
    bars_csv: str
    curves: Lines | None
    points: WaitTable
    curves_csv: str


def view(frame: Frame, found: Distribution | None, left: Survival | None) -> DistributionView:
    bars = found.bars if found else ()
    drawn = _curves(found, left)
    return DistributionView(
        seen=found is not None,
        waits=wait_charts.histogram(bars, of_runs=False, label=gettext("How long jobs waited")),
        runs=wait_charts.histogram(bars, of_runs=True, label=gettext("How long jobs ran")),
        bars=_bar_table(bars),
        bars_csv=frame.asked.url("waits.distribution_csv"),
        curves=wait_charts.curves(
            drawn, gettext("Share of jobs that waited, or ran, no longer than so")
        ),
        points=_point_table(drawn),
        curves_csv=frame.asked.url("waits.curves_csv"),
    )


def bars_csv(found: Distribution | None) -> Iterator[str]:
    """A bar has the durations from `from_s` to below `below_s`."""
    yield csv_row(("from_s", "below_s", "waits", "runs"))
    for bar in found.bars if found else ():
        yield csv_row((bar.low_s, "" if bar.high_s is None else bar.high_s, bar.waits, bar.runs))


def curves_csv(found: Distribution | None, left: Survival | None) -> Iterator[str]:
    """`share` of the jobs took no longer than `seconds`."""
    yield csv_row(("curve", "seconds", "share"))
    for key, points in _points(found, left):
        for seconds, share in points:
            yield csv_row((key, seconds, f"{share:.6f}"))


def _points(
    found: Distribution | None, left: Survival | None
) -> Iterator[tuple[str, Sequence[tuple[int, float]]]]:
    yield "wait_started", found.wait_ecdf if found else ()
    yield "wait_all", [(seconds, 1 - share) for seconds, share in left.all] if left else ()
    yield "run", found.run_ecdf if found else ()


def _curves(found: Distribution | None, left: Survival | None) -> list[Curve]:
    words = {
        "wait_started": ("wait", gettext("wait of the started")),
        "wait_all": ("wait-more", gettext("wait of all (Kaplan–Meier)")),
        "run": ("run", gettext("run time")),
    }
    return [Curve(*words[key], points) for key, points in _points(found, left) if points]


def _bar_table(bars: Sequence[Bar]) -> WaitTable:
    rows = tuple(
        TableRow(
            wait_charts.between(bar),
            (wait_tables.number(bar.waits), wait_tables.number(bar.runs)),
        )
        for bar in bars
        if bar.waits or bar.runs
    )
    heads = plain_heads(gettext("Duration"), gettext("Waits"), gettext("Runs"))
    return WaitTable(gettext("How many jobs waited, and ran, so long"), heads, rows)


def _point_table(drawn: Sequence[Curve]) -> WaitTable:
    """Some points of each curve; the CSV has all of them."""
    rows = tuple(
        TableRow(curve.word, (wait_tables.seconds(seconds), Cell(f"{share * 100:.1f} %")))
        for curve in drawn
        for seconds, share in thinned(curve.points, _MOST_ROWS)
    )
    heads = plain_heads(gettext("Curve"), gettext("Duration"), gettext("Share"))
    return WaitTable(gettext("Points of the curves"), heads, rows)
