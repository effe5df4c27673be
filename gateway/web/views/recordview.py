"""The forecast record as its page and its CSV show it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log

from gateway.core.forecast import ForecastSource
from gateway.core.forecast_record import EDGES, Bin, Coverage, Score
from gateway.core.wait_figures import Dimension
from gateway.services.forecast_record import Line, Record
from gateway.web.csvtext import csv_row
from gateway.web.deps import deps
from gateway.web.show import duration
from gateway.web.texts import gettext, ngettext
from gateway.web.wait_texts import value_word

PARTS = ("scores", "bins")
_LEAST_S, _LEAST_TOP_S = EDGES[1], EDGES[4]


@dataclass(frozen=True, slots=True)
class ScoreView:
    """`p50` and `p90` are percents, or – where they are too few; `of` tells what they are of."""

    forecasts: str
    p50: str
    p50_of: str
    p90: str
    p90_of: str
    error: str
    times: str


@dataclass(frozen=True, slots=True)
class LineView:
    key: str
    ours: ScoreView | None
    slurm: ScoreView | None


@dataclass(frozen=True, slots=True)
class BarView:
    """A bin of the chart, its places in percent of it from the left and from above."""

    x: float
    low: float
    middle: float
    high: float
    title: str


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    word: str


@dataclass(frozen=True, slots=True)
class BinRow:
    expected: str
    started: str
    p10: str
    median: str
    p90: str


@dataclass(frozen=True, slots=True)
class ChartView:
    """`label` says what it shows to who does not see it."""

    key: str
    title: str
    bars: list[BarView]
    ticks: list[Tick]
    rows: list[BinRow]
    hidden: str
    label: str


@dataclass(frozen=True, slots=True)
class RecordView:
    """`sentences` are the record in words, `hidden` says what is not shown. `empty`: nothing was
    forecast there and then."""

    empty: bool
    hidden: str
    sentences: list[str]
    whole: LineView
    tables: list[tuple[str, str, list[LineView]]]
    charts: list[ChartView]
    cut: bool


def build(record: Record) -> RecordView:
    whole = record.whole
    return RecordView(
        empty=whole.ours is None and whole.slurm is None and not record.hidden,
        hidden=_hidden() if record.hidden else "",
        sentences=[*_ours_words(whole.ours), *_slurm_words(whole.slurm)],
        whole=_line(whole, gettext("All")),
        tables=[
            (
                "cards",
                gettext("Cards per job"),
                [
                    _line(line, value_word(Dimension.GPU_CLASS, line.key))
                    for line in record.by_cards
                ],
            ),
            (
                "partition",
                gettext("Partition"),
                [_line(line, line.key) for line in record.by_partition],
            ),
        ],
        charts=[
            _chart(source, bins, record.hidden_bins[source])
            for source, bins in record.bins.items()
            if bins or record.hidden_bins[source]
        ],
        cut=record.cut,
    )


def csv(part: str, record: Record) -> Iterator[str]:
    if part == "bins":
        yield from _bins_csv(record)
        return
    counts = [
        f"{name}_{what}"
        for name in ("p50", "p90")
        for what in ("judged", "started_by", "still_wait", "not_due", "left")
    ]
    yield csv_row(("by", "key", "source", "forecasts", "started", *counts, "error_s", "times"))
    lines = [
        ("all", record.whole),
        *(("gpu_class", line) for line in record.by_cards),
        *(("partition", line) for line in record.by_partition),
    ]
    for by, line in lines:
        for source, score in (("history", line.ours), ("slurm", line.slurm)):
            if score is not None:
                cells = [*_counts(score.p50), *_counts(score.p90)]
                error = [_cell(score.error_s), _cell(score.error_times)]
                yield csv_row(
                    (by, line.key, source, score.forecasts, score.started, *cells, *error)
                )


def percent(share: float | None) -> str:
    return "–" if share is None else gettext("%(n)s %%", n=round(share * 100))


def _bins_csv(record: Record) -> Iterator[str]:
    names = ("started", "median_expected_s", "p10_s", "median_s", "p90_s")
    yield csv_row(("source", "from_s", "below_s", *names))
    for source, bins in record.bins.items():
        for one in bins:
            seconds = [
                round(n) for n in (one.median_expected_s, one.p10_s, one.median_s, one.p90_s)
            ]
            high = "" if one.high_s is None else one.high_s
            yield csv_row((source.value, one.low_s, high, one.started, *seconds))


def _counts(one: Coverage) -> tuple[int, ...]:
    return one.counted, one.covered, one.late, one.early, one.left


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _ours_words(score: Score | None) -> list[str]:
    if score is None:
        return []
    if score.p90.share is None:
        return [
            ngettext(
                "Ours: too few to say how good they are: %(num)d forecast whose time has come.",
                "Ours: too few to say how good they are: %(num)d forecasts whose time has come.",
                score.p90.counted,
            )
        ]
    return [
        gettext(
            "Ours: %(p50)s of the jobs started before their p50 (50 %% would be right), %(p90)s"
            " before their p90 (90 %%), of %(n)s forecasts whose time has come.",
            p50=percent(score.p50.share),
            p90=percent(score.p90.share),
            n=f"{score.p90.counted:,}",
        )
    ]


def _slurm_words(score: Score | None) -> list[str]:
    if score is None:
        return []
    if score.p50.share is None:
        return [
            ngettext(
                "Slurm's plan: too few to say how good it is: %(num)d forecast whose time has"
                " come.",
                "Slurm's plan: too few to say how good it is: %(num)d forecasts whose time has"
                " come.",
                score.p50.counted,
            )
        ]
    return [
        gettext(
            "Slurm's plan: %(p50)s of the jobs started by the time that it named, of %(n)s"
            " forecasts whose time has come.",
            p50=percent(score.p50.share),
            n=f"{score.p50.counted:,}",
        )
    ]


def _hidden() -> str:
    return gettext(
        "Figures of fewer than %(k)s people are hidden, and with them so many others that they"
        " cannot be reckoned.",
        k=deps().settings.waits_k,
    )


def _line(line: Line, word: str) -> LineView:
    return LineView(word, _score(line.ours), _score(line.slurm))


def _score(score: Score | None) -> ScoreView | None:
    if score is None:
        return None
    return ScoreView(
        forecasts=f"{score.forecasts:,}",
        p50=percent(score.p50.share),
        p50_of=_of(score.p50),
        p90=percent(score.p90.share),
        p90_of=_of(score.p90),
        error=duration(score.error_s) or "–",
        times="" if score.error_times is None else f"× {score.error_times:.1f}",
    )


def _of(one: Coverage) -> str:
    """What the percentage is of, and who is in none."""
    words = [gettext("%(covered)s of %(n)s", covered=f"{one.covered:,}", n=f"{one.counted:,}")]
    if one.late:
        words.append(gettext("%(n)s still wait", n=f"{one.late:,}"))
    if one.early:
        words.append(gettext("%(n)s not due", n=f"{one.early:,}"))
    if one.left:
        words.append(gettext("%(n)s gone before", n=f"{one.left:,}"))
    return ", ".join(words)


def _chart(source: ForecastSource, bins: Sequence[Bin], hidden: int) -> ChartView:
    top = max([_LEAST_TOP_S, *(max(one.p90_s, one.median_expected_s) for one in bins)])
    titles = {
        ForecastSource.HISTORY: gettext("Ours: p50 against the start"),
        ForecastSource.SLURM: gettext("Slurm's plan against the start"),
    }
    return ChartView(
        key=source.value,
        title=titles[source],
        bars=[_bar(one, top) for one in bins],
        ticks=[Tick(_place(edge, top), duration(edge)) for edge in EDGES[1:] if edge <= top],
        rows=[_row(one) for one in bins],
        hidden=ngettext(
            "%(num)d class is hidden: fewer than %(k)s people.",
            "%(num)d classes are hidden: fewer than %(k)s people.",
            hidden,
            k=deps().settings.waits_k,
        )
        if hidden
        else "",
        label=gettext(
            "Across: the time to the start that was forecast; upwards: the real one, both on a log"
            " scale. Each line is a class of forecasts; its dot is the median."
        ),
    )


def _bar(one: Bin, top: float) -> BarView:
    title = gettext(
        "Forecast %(expected)s: of %(n)s jobs half started within %(median)s, nine tenths within"
        " %(p90)s",
        expected=_range(one),
        n=f"{one.started:,}",
        median=duration(one.median_s),
        p90=duration(one.p90_s),
    )
    across = _place(one.median_expected_s, top)
    low, middle, high = (100 - _place(s, top) for s in (one.p10_s, one.median_s, one.p90_s))
    return BarView(across, round(low, 2), round(middle, 2), round(high, 2), title)


def _row(one: Bin) -> BinRow:
    p10, median, p90 = map(duration, (one.p10_s, one.median_s, one.p90_s))
    return BinRow(_range(one), f"{one.started:,}", p10, median, p90)


def _range(one: Bin) -> str:
    if one.high_s is None:
        return gettext("more than %(time)s", time=duration(one.low_s))
    if not one.low_s:
        return gettext("up to %(time)s", time=duration(one.high_s))
    return gettext("%(low)s to %(high)s", low=duration(one.low_s), high=duration(one.high_s))


def _place(seconds: float, top: float) -> float:
    """Percent of a log scale that begins at one minute."""
    return round(100 * log(max(seconds, _LEAST_S) / _LEAST_S) / log(top / _LEAST_S), 2)
