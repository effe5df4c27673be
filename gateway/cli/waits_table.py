"""Figures of waits for people, in 100 columns."""

from collections.abc import Sequence

from gateway.cli.output import table
from gateway.cli.waits_json import WORDS
from gateway.core.wait_figures import Figures, Question, Wait
from gateway.core.wait_shapes import Bar

_HEAD = (
    ">jobs",
    ">waiting",
    ">left",
    ">median",
    ">p90",
    ">p99",
    ">KM p50",
    ">run p50",
    ">ratio",
    ">GPU-h",
)
_WIDEST = 22
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def lines(
    question: Question, name: str, found: Sequence[tuple[str, Figures]], whole: Figures
) -> list[str]:
    """A row a key, and all together at the end."""
    rows = [_row(key, figures) for key, figures in found]
    told = [
        *_definition(question.wait),
        "",
        *table((name, *_HEAD), [*rows, _row("all", whole)]),
        "",
        "left: never started. median, p90, p99: of the jobs that started. KM p50: half have",
        "started, with those that wait or left counted as longer. ratio: sum of waits over sum of",
        "runs.",
    ]
    if whole.throttled or whole.requeue_wait.n:
        told.append(
            f"Apart from the waits: {whole.throttled:,} tasks of throttled arrays,"
            f" {whole.requeue_wait.n:,} waits after a requeue."
        )
    return told


def bar_lines(found: Sequence[Bar]) -> list[str]:
    """How many waits and runs took how long."""
    rows = [(_range(bar), f"{bar.waits:,}", f"{bar.runs:,}") for bar in found]
    return table(("how long", ">waits", ">runs"), rows)


def duration(seconds: float | None) -> str:
    """`35 s`, `12 min`, `3.4 h`, `2.1 d`; `-` where there is none."""
    if seconds is None:
        return "-"
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _definition(wait: Wait) -> list[str]:
    first, _, rest = WORDS[wait].partition("; ")
    return [f"{first};", f"{rest}."]


def _row(key: str, figures: Figures) -> tuple[str, ...]:
    short = key if len(key) <= _WIDEST else f"{key[: _WIDEST - 1]}…"
    ratio = "-" if figures.ratio_of_sums is None else f"{figures.ratio_of_sums:,.2f}"
    return (
        short,
        f"{figures.jobs:,}",
        f"{figures.waiting:,}",
        f"{figures.never_started:,}",
        duration(figures.wait.median_s),
        duration(figures.wait.p90_s),
        duration(figures.wait.p99_s),
        duration(figures.censored.median_s),
        duration(figures.run.median_s),
        ratio,
        f"{figures.gpu_hours:,.0f}",
    )


def _range(bar: Bar) -> str:
    low = duration(bar.low_s)
    return f"{low} and more" if bar.high_s is None else f"{low} to below {duration(bar.high_s)}"
