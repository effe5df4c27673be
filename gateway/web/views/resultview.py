"""What the pages of results get: a job's metrics, and jobs side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flask import url_for
from werkzeug.datastructures import MultiDict

from gateway.core.results import Axis, Result
from gateway.services import compare
from gateway.services.compare import Compared
from gateway.store import results as store
from gateway.web.access import viewer
from gateway.web.csvtext import csv_row
from gateway.web.deps import deps
from gateway.web.money import money_text
from gateway.web.show import duration, size_text
from gateway.web.texts import gettext
from gateway.web.training_texts import moment_of
from gateway.web.views import joblist
from gateway.web.views import resultcharts as charts
from gateway.web.views.jobview import JobView
from gateway.web.views.resultcharts import CurveView, Line, number

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

DRAWN = 12  # the others are in the table, and are drawn when their name is asked for
LONGEST_NAME = 64
Args = MultiDict[str, str]


@dataclass(frozen=True, slots=True)
class ResultRow:
    name: str
    last: str
    step: str
    low: str
    low_step: str
    high: str
    high_step: str
    best: str
    count: int
    odd: int
    csv: str


@dataclass(frozen=True, slots=True)
class Choice:
    word: str
    url: str
    on: bool


@dataclass(frozen=True, slots=True)
class ResultsView:
    """`waits`: nothing has been reported, and still may be."""

    rows: list[ResultRow]
    curves: list[CurveView]
    axes: list[Choice]
    scales: list[Choice]
    here: str
    csv: str
    skipped: str
    beyond: int
    undrawn: int
    waits: bool


@dataclass(frozen=True, slots=True)
class Value:
    """A result of one job; `best` among those compared."""

    last: str
    best: str
    wins: bool


@dataclass(frozen=True, slots=True)
class Column:
    id: int
    number: str
    name: str
    state: str
    wait: str
    ran: str
    cost: str
    goodput: str
    own: bool


@dataclass(frozen=True, slots=True)
class CompareView:
    """`differing` and `results` are rows: a word, and a cell a job."""

    columns: list[Column]
    differing: list[tuple[str, list[str | None]]]
    results: list[tuple[str, list[Value]]]
    metric: str
    metrics: list[str]
    axis: str
    axes: list[tuple[str, str]]
    scale: str
    scales: list[tuple[str, str]]
    curve: CurveView | None
    left_out: int
    hides_forms: bool
    csv: str


def build(page: JobView, args: Mapping[str, str]) -> ResultsView:
    """`by` and `scale` of the address; nonsense is as if it were not there."""
    job = page.job
    with deps().read() as session:
        found = store.last(session, [job.id])[job.id]
        names = _shown(found, args.get("metric", ""), told=page.training.told)
        curves = store.curves(session, job.id, names)
        gap = store.gap(session, job.id)
        own = compare.compare(session, [job.id], viewer=viewer(), now=deps().clock())[0]
    has_steps = any(one.step is not None for one in found)
    axis = _one_of(args.get("by"), (charts.STEP, charts.TIME), "step" if has_steps else "time")
    scale = _one_of(args.get("scale"), charts.SCALES, "auto")
    lines = [
        (one.result.name, Line(one.result.name, compare.along(own, one, axis))) for one in curves
    ]
    drawn = [
        charts.drawn(name, [line], axis=axis, scale=scale, key=f"result-{n}")
        for n, (name, line) in enumerate(lines)
    ]
    return ResultsView(
        rows=[_row(job.id, one) for one in found],
        curves=[one for one in drawn if one is not None],
        axes=_choices(job.id, "by", charts.axis_words(), axis, scale=scale)[:2],
        scales=_choices(job.id, "scale", charts.scale_words(), scale, by=axis),
        here=url_for("results.show", job_id=job.id, by=axis, scale=scale),
        csv=url_for("results.csv", job_id=job.id),
        skipped=size_text(gap.skipped_bytes) if gap.skipped_bytes else "",
        beyond=gap.names,
        undrawn=max(0, len(found) - len(names) - (1 if page.training.told else 0)),
        waits=not found and page.active and page.detail.submission is not None,
    )


def compared(args: Args) -> CompareView:
    """Raises NotFound for a job that is not there, or not the viewer's to see."""
    asked = ids(args)
    with deps().read() as session:
        found = compare.compare(session, asked, viewer=viewer(), now=deps().clock())
        names = compare.names(found)
        metric = _one_of(args.get("metric"), names, names[0] if names else "")
        axis = _one_of(args.get("by"), charts.AXES, charts.STEP)
        scale = _one_of(args.get("scale"), charts.SCALES, "auto")
        lines = _lines(session, found, metric, axis) if metric else []
    curve = charts.drawn(metric, lines, axis=axis, scale=scale, key="compared") if lines else None
    facts = _fact_words()
    return CompareView(
        columns=[_column(one) for one in found],
        differing=[
            (facts.get(name, name), values) for name, values in compare.differing(found).items()
        ],
        results=[(name, _values(found, name)) for name in names],
        metric=metric,
        metrics=names,
        axis=axis,
        axes=list(charts.axis_words().items()),
        scale=scale,
        scales=list(charts.scale_words().items()),
        curve=curve,
        left_out=max(0, len(dict.fromkeys(asked)) - compare.MOST_JOBS),
        hides_forms=any(one.form is None and one.job.template for one in found),
        csv=url_for("results.compare_csv", job=[one.job.id for one in found]),
    )


def ids(args: Args) -> list[int]:
    """The jobs of the address; what is no number is passed over."""
    texts = [text for given in args.getlist("job") for text in given.split(",")]
    return [int(one) for one in texts if one.isascii() and one.isdigit() and len(one) < 10]


def csv_lines(job_id: int, name: str) -> Iterator[str]:
    """All that is kept of a job's metrics, or of one; times are UTC."""
    with deps().read() as session:
        found = store.curves(session, job_id, [name] if name else None)
    yield csv_row(
        ("metric", "axis", "time", "restart", "step", "count", "mean", "low", "high", "last")
    )
    for one in found:
        for axis, told in (("time", one.by_time), ("step", one.by_step)):
            yield from _cells(one.result.name, axis, told)


def compare_csv_lines(args: Args) -> Iterator[str]:
    """A row a job and metric, then a row a job and fact."""
    with deps().read() as session:
        found = compare.compare(session, ids(args), viewer=viewer(), now=deps().clock())
    yield csv_row(("job", "what", "name", "last", "step", "lowest", "highest", "count"))
    for one in found:
        label = joblist.number(one.job)
        for result in one.results:
            told = (result.last, result.step, result.low, result.high, result.count)
            yield csv_row((label, "metric", result.name, *map(_exact, told)))
        for name, value in _facts_of(one).items():
            yield csv_row((label, "fact", name, value, "", "", "", ""))


def _facts_of(one: Compared) -> dict[str, str]:
    whole = compare.facts(one)
    return {
        name: "" if value is None else str(value)
        for name, value in whole.items()
        if name != "results"
    }


def _cells(name: str, axis: str, told: Axis) -> Iterator[str]:
    for cell in told.cells:
        at = moment_of(cell.at).strftime("%Y-%m-%dT%H:%M:%SZ")
        values = map(_exact, (cell.mean, cell.low, cell.high, cell.last))
        yield csv_row((name, axis, at, cell.restart, _exact(cell.step), cell.count, *values))


def _exact(value: float | None) -> str:
    return "" if value is None else repr(value)


def _shown(found: Sequence[Result], asked: str, *, told: bool) -> list[str]:
    """The loss of a training has its chart there already."""
    names = [one.name for one in found if one.count and not (told and one.name == "loss")]
    chosen = [asked] if asked in {one.name for one in found} else []
    return [*chosen, *(name for name in names if name not in chosen)][:DRAWN]


def _lines(session: "Session", found: Sequence[Compared], metric: str, axis: str) -> list[Line]:
    lines = []
    for one in found:
        curve = compare.curve(session, one.job.id, metric)
        cells = compare.along(one, curve, axis) if curve else []
        lines.append(Line(joblist.number(one.job), cells, one.job.name))
    return lines


def _row(job_id: int, one: Result) -> ResultRow:
    return ResultRow(
        name=one.name,
        last=number(one.last),
        step=_step(one.step),
        low=number(one.low),
        low_step=_step(one.low_step),
        high=number(one.high),
        high_step=_step(one.high_step),
        best="" if one.lower_is_better is None else "low" if one.lower_is_better else "high",
        count=one.count,
        odd=one.odd,
        csv=url_for("results.csv", job_id=job_id, metric=one.name),
    )


def _step(step: int | None) -> str:
    return "" if step is None else str(step)


def _column(one: Compared) -> Column:
    return Column(
        id=one.job.id,
        number=joblist.number(one.job),
        name=one.job.name,
        state=one.job.state,
        wait=duration(one.wait) or "–",
        ran=duration(one.run_time) or "–",
        cost="–" if one.cost is None else money_text(one.cost),
        goodput="–" if one.goodput is None else f"{one.goodput * 100:.1f} %",
        own=one.form is not None,
    )


def _values(found: Sequence[Compared], name: str) -> list[Value]:
    results = [next((r for r in one.results if r.name == name), None) for one in found]
    won = compare.winners(results)
    return [
        Value(
            last="–" if one is None else number(one.last),
            best=number(one.best[0]) if one and one.best and one.best[0] != one.last else "",
            wins=n in won,
        )
        for n, one in enumerate(results)
    ]


def _choices(
    job_id: int, name: str, words: Mapping[str, str], now: str, **rest: str
) -> list[Choice]:
    def url(value: str) -> str:
        given: dict[str, Any] = {name: value} | rest
        return url_for("jobs.show", job_id=job_id, _anchor="results", **given)

    return [Choice(word, url(value), value == now) for value, word in words.items()]


def _one_of(given: str | None, known: Sequence[str], default: str) -> str:
    return given if given is not None and given in known else default


def _fact_words() -> dict[str, str]:
    return {
        "template": gettext("Template"),
        "name": gettext("Name"),
        "user": gettext("Person"),
        "group": gettext("Group"),
        "partition": gettext("Partition"),
        "qos": gettext("QoS"),
        "gpu_type": gettext("GPU type"),
        "gpus": gettext("GPUs"),
        "nodes": gettext("Nodes"),
        "time_limit": gettext("Time limit in minutes"),
        "state": gettext("State"),
        "environment": gettext("Environment"),
        "working_directory": gettext("Working folder"),
    }
