"""The charts of a training run, each with the table beneath it, and all of it as CSV."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core.mfu import card_of, mfu
from gateway.core.planner.cards import Card
from gateway.core.training import series
from gateway.core.training.series import Row
from gateway.services import node_types
from gateway.services.training_run import TrainingRun
from gateway.store.queries import training as reads
from gateway.store.queries.jobs import JobRow
from gateway.store.queries.training import Use
from gateway.web.charts import Chart, Series, chart, thinned
from gateway.web.csvtext import csv_row
from gateway.web.deps import deps
from gateway.web.show import seconds_text, short, size_text
from gateway.web.texts import gettext
from gateway.web.training_texts import moment_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

PLACES = 240  # points of a line: more than a phone has pixels for
ALL_PLACES = 50_000  # of the CSV: what the store keeps
TABLE_ROWS = 24


@dataclass(frozen=True, slots=True)
class TableRow:
    """`step` is None where a line has none."""

    at: datetime
    step: int | None
    values: list[str]


@dataclass(frozen=True, slots=True)
class Charted:
    """A chart with its words. `note` says how a figure is made."""

    key: str
    title: str
    now: str
    label: str
    low: str
    high: str
    chart: Chart
    heads: list[str]
    rows: list[TableRow]
    note: str


@dataclass(frozen=True, slots=True)
class Figures:
    """What it does now. `mfu_note` is the definition with its numbers, or why there is none."""

    tokens_per_second: float | None
    mfu: float | None
    mfu_note: str


@dataclass(frozen=True, slots=True)
class Peak:
    """What a tokens' rate is worth on this job's cards."""

    run: TrainingRun
    cards: int
    card: Card | None

    def share(self, rate: float | None) -> float | None:
        if rate is None or self.run.model is None or self.card is None:
            return None
        flops = self.card.tflops_16bit * 1e12
        return mfu(rate, self.run.model, cards=self.cards, peak_flops=flops)


def charted(session: "Session", run: TrainingRun, job: JobRow) -> tuple[Figures, list[Charted]]:
    """The job's own charts, over all its stretches on nodes."""
    rows = series.rows(reads.points(session, job.id, places=PLACES))
    used = reads.use_of_cards(session, job.id, places=PLACES)
    peak = peak_of(session, run, job)
    rate = series.recent_rate(run.points)
    figures = Figures(rate, peak.share(rate), _mfu_note(peak, rate))
    found = [
        _of_rows("loss", gettext("Loss"), rows, [row.loss for row in rows], from_zero=False),
        _of_rows("step", gettext("Time of a step"), rows, [row.step_seconds for row in rows]),
        _of_rows("tokens", gettext("Tokens a second"), rows, [r.tokens_per_second for r in rows]),
        _of_rows(
            "mfu",
            gettext("MFU"),
            rows,
            [peak.share(row.tokens_per_second) for row in rows],
            note=figures.mfu_note,
        ),
        _use(used),
        _memory(used),
    ]
    return figures, [one for one in found if one is not None]


def peak_of(session: "Session", run: TrainingRun, job: JobRow) -> Peak:
    """A job that asked for any type has the one of its nodes."""
    kind = job.gpu_type or node_types.reader(session)(job.node_list, job.partition)
    return Peak(run, job.gpus, card_of(kind, deps().cards))


def csv_lines(session: "Session", run: TrainingRun, job: JobRow) -> Iterator[str]:
    """All that is kept of its metrics, then of its cards; times are UTC."""
    peak = peak_of(session, run, job)
    names = ("time", "restart", "step", "loss", "step_seconds", "tokens_per_second", "mfu")
    yield csv_row((*names, "gpu_percent", "gpu_percent_least", "gpu_percent_most", "gpu_bytes"))
    for row in series.rows(reads.points(session, job.id, places=ALL_PLACES)):
        share = peak.share(row.tokens_per_second)
        told = (row.loss, row.step_seconds, row.tokens_per_second, share)
        yield csv_row((_iso(row.at), row.restart, row.step, *map(_cell, told), "", "", "", ""))
    for use in reads.use_of_cards(session, job.id, places=ALL_PLACES):
        seen = (use.util, use.util_low, use.util_high, use.mem)
        yield csv_row((_iso(use.at), "", "", "", "", "", "", *map(_cell, seen)))


def _of_rows(
    key: str,
    title: str,
    rows: Sequence[Row],
    values: Sequence[float | None],
    *,
    from_zero: bool = True,
    note: str = "",
) -> Charted | None:
    line = [(row.at, value, row.restart) for row, value in zip(rows, values, strict=True)]
    drawn = chart([Series("main", title, line)], from_zero=from_zero)
    if drawn is None:
        return None
    known = [(row, value) for row, value in zip(rows, values, strict=True) if value is not None]
    table = [
        TableRow(moment_of(row.at), row.step, [_worded(key, value)])
        for row, value in reversed(thinned(known, TABLE_ROWS))
    ]
    return _charted(key, title, drawn, ([title], table), note=note)


def _use(used: Sequence[Use]) -> Charted | None:
    words = (gettext("Mean"), gettext("Least used"), gettext("Most used"))
    lines = [
        Series(kind, word, [(one.at, getattr(one, name), 0) for one in used])
        for kind, name, word in zip(
            ("main", "low", "high"), ("util", "util_low", "util_high"), words, strict=True
        )
    ]
    drawn = chart(lines)
    if drawn is None:
        return None
    known = [one for one in used if one.util is not None]
    table = [
        TableRow(
            moment_of(one.at),
            None,
            [_worded("use", value) for value in (one.util, one.util_low, one.util_high)],
        )
        for one in reversed(thinned(known, TABLE_ROWS))
    ]
    return _charted("use", gettext("GPU use"), drawn, (list(words), table))


def _memory(used: Sequence[Use]) -> Charted | None:
    title = gettext("Memory of the fullest GPU")
    drawn = chart([Series("main", title, [(one.at, one.mem, 0) for one in used])])
    if drawn is None:
        return None
    known = [one for one in used if one.mem is not None]
    table = [
        TableRow(moment_of(one.at), None, [_worded("memory", one.mem)])
        for one in reversed(thinned(known, TABLE_ROWS))
    ]
    return _charted("memory", title, drawn, ([title], table))


def _charted(
    key: str, title: str, drawn: Chart, table: tuple[list[str], list[TableRow]], *, note: str = ""
) -> Charted:
    low, high = _worded(key, drawn.low), _worded(key, drawn.high)
    now = _worded(key, drawn.lines[0].now)
    label = gettext(
        "%(title)s over time, from %(low)s to %(high)s; now %(now)s. The table beneath has the"
        " numbers.",
        title=title,
        low=low,
        high=high,
        now=now,
    )
    return Charted(key, title, now, label, low, high, drawn, *table, note)


def _worded(key: str, value: float | None) -> str:
    if value is None:
        return "–"
    match key:
        case "step":
            return seconds_text(value)
        case "mfu":
            return f"{value * 100:.1f} %"
        case "use":
            return f"{value:.0f} %"
        case "memory":
            return size_text(value)
    return short(value)


def _mfu_note(peak: Peak, rate: float | None) -> str:
    model, card = peak.run.model, peak.card
    if model is None:
        return gettext("No MFU: the script tells neither its parameters nor its FLOPs a token.")
    if card is None:
        return gettext("No MFU: nobody knows the peak of this GPU type; cards.toml can name it.")
    if rate is None or not peak.cards:
        return gettext("No MFU yet: the script has told no tokens.")
    flops = short(model.flops_per_token)
    if not model.exact:
        flops = gettext("6 × %(params)s parameters", params=short(model.params or 0.0))
    return gettext(
        "MFU = %(rate)s tokens a second × %(flops)s FLOPs a token ÷ (%(cards)s GPUs × %(peak)s"
        " TFLOP/s, the 16-bit peak of %(card)s).",
        rate=short(rate),
        flops=flops,
        cards=peak.cards,
        peak=short(card.tflops_16bit),
        card=card.name,
    )


def _iso(at: float) -> str:
    return moment_of(at).strftime("%Y-%m-%dT%H:%M:%SZ")


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
