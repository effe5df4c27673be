"""`sluice forecast backtest`: how good the forecasts would have been on a past that is known."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from gateway.cli.common import now, said, settings
from gateway.cli.history_sets import mapping_in, zone_named
from gateway.cli.output import JSON, local, put, table
from gateway.core.wait_figures import Wait
from gateway.history.forecasting.backtest import BASELINES, Report, Score
from gateway.history.forecasting.backtest import backtest as ask_the_past
from gateway.history.forecasting.model import SHARES
from gateway.history.forecasting.trace import Trace, read_trace
from gateway.history.importing.load import Given

_FEWEST = 0.01  # of the jobs asked about: smaller parts are in --json alone
_NAMES = [f"p{100 * share:.0f}" for share in SHARES]


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--format",
    "kind",
    type=click.Choice(["csv", "sacct", "swf"]),
    default="csv",
    show_default=True,
    help="As `sluice history import` has them.",
)
@click.option(
    "--mapping",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="csv, swf: a TOML file that says which column is what.",
)
@click.option("--timezone", "zone", help="Of times without one. [default: the site's]")
@click.option(
    "--train",
    type=click.FloatRange(0.05, 0.95),
    default=0.7,
    show_default=True,
    help="The share of the jobs, by submit time, that is only learned from.",
)
@click.option(
    "--wait",
    type=click.Choice([one.value for one in Wait]),
    default=Wait.SUBMIT.value,
    show_default=True,
    help="What the wait counts from.",
)
@JSON
@said
def backtest(
    file: str,
    *,
    kind: str,
    mapping: Path | None,
    zone: str | None,
    train: float,
    wait: str,
    as_json: bool,
) -> None:
    """Ask the forecast about the jobs of FILE, each at its submission, with what was known then.

    The model learns from the first part of the jobs, and is trained anew after each day that is
    asked about. The baselines are the running quantiles of the last 200 started jobs of the
    partition, and of the partition and class of cards. Nothing is stored, no Slurm is needed.

    Exit 1 where a forecast knew of what came after its moment: each run looks for that.
    """
    site = settings().timezone.key
    given = Given(
        path=file,
        kind="swf" if kind == "swf" else "csv",
        source="backtest",
        zone=zone_named(zone) if zone else site,
        now=now(),
        mapping=mapping_in(mapping),
        delimiter="|" if kind == "sacct" else None,
    )
    trace = read_trace(given, wait=Wait(wait))
    report = ask_the_past(trace.rows, train=train)
    put(_facts(trace, report), [] if as_json else list(_lines(trace, report)), as_json=as_json)


def _facts(trace: Trace, report: Report) -> dict[str, Any]:
    return {
        "jobs": len(trace.rows),
        "held": trace.held,
        "learned": report.learned,
        "asked": report.total.jobs,
        "unstarted": report.unstarted,
        "silent": report.silent,
        "since": datetime.fromtimestamp(report.since, UTC).isoformat(),
        "trained": report.trained,
        "leaks_checked": True,
        "seconds": round(report.seconds, 1),
        "total": _score(report.total),
        "by_partition": {name: _score(one) for name, one in report.by_partition.items()},
        "by_gpu_class": {name: _score(one) for name, one in report.by_gpu_class.items()},
    }


def _score(score: Score) -> dict[str, Any]:
    """Losses in seconds, coverage as a share, improvement in per cent."""
    found: dict[str, Any] = {"n": score.jobs}
    for place, name in enumerate(_NAMES):
        found[name] = {
            "coverage": round(score.coverage[place], 4),
            "pinball_s": round(score.pinball[place], 1),
            "baselines_s": {
                title: round(one[place], 1)
                for title, one in zip(BASELINES, score.baselines, strict=True)
            },
            "improvement_percent": round(score.improvement[place], 2),
        }
    return found


def _lines(trace: Trace, report: Report) -> Iterator[str]:
    zone = settings().timezone
    since = datetime.fromtimestamp(report.since, UTC)
    yield (
        f"Learned from {report.learned:,} jobs; {report.total.jobs:,} asked about, from"
        f" {local(since, zone)} on. Trained {report.trained} times, once a day;"
        f" {report.seconds:,.0f} s in all."
    )
    if trace.held:
        yield f"{trace.held:,} rows could not be read."
    if report.unstarted:
        yield f"{report.unstarted:,} more have no known start: they are in no figure."
    if report.silent:
        yield f"For {report.silent:,} more there was too little to learn from: no answer."
    yield "Leak check: what came after a moment was changed, and no forecast until then with it."
    yield ""
    parts = [("all", report.total)]
    parts += [(f"{name} GPUs", one) for name, one in report.by_gpu_class.items()]
    parts += [(f"partition {name}", one) for name, one in report.by_partition.items()]
    least = _FEWEST * report.total.jobs
    yield from _table([(name, one) for name, one in parts if one.jobs >= least])
    yield ""
    yield "Coverage: the share of waits not longer than the forecast. Loss: mean pinball loss in"
    yield "seconds, beside that of the better baseline."


def _table(parts: list[tuple[str, Score]]) -> list[str]:
    head = ["", ">jobs"]
    for name in _NAMES:
        head += [f">{name} covers %", ">loss s", ">baseline s", ">better by %"]
    rows = []
    for title, score in parts:
        cells = [title, f"{score.jobs:,}"]
        for place in range(len(_NAMES)):
            cells += [
                f"{100 * score.coverage[place]:.1f}",
                f"{score.pinball[place]:,.0f}",
                f"{score.better[place]:,.0f}",
                f"{score.improvement[place]:.1f}",
            ]
        rows.append(cells)
    return table(head, rows)
