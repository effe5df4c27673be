"""`sluice forecast`: when jobs will start, and how good what was said has been."""

from datetime import timedelta
from typing import Any

import click

from gateway.cli.common import database, has_database, now, said, settings
from gateway.cli.forecast_backtest import backtest
from gateway.cli.output import JSON, local, put, table
from gateway.cli.past import history_in_step
from gateway.config import Settings
from gateway.core.durations import BadTimeLimit, parse_time_limit
from gateway.core.forecast import Ask, Here, NoForecast
from gateway.core.forecast_record import Coverage, Score
from gateway.core.wait_sight import Sight
from gateway.services import forecast_record, forecast_train, forecaster
from gateway.services.forecast_record import Line
from gateway.store.queries.forecasts import SUBMIT, WAITING, Asked

_NO = {
    NoForecast.NO_HISTORY: "No forecast: nothing was learned yet. `sluice forecast train` learns "
    "from the history.",
    NoForecast.TOO_THIN: "No forecast: too few jobs have started in this partition in the last 30 "
    "days, or too few of this QoS or type of GPU, or the last week's forecasts are too few to "
    "calibrate by.",
    NoForecast.NEVER: "No forecast: such a job can never start.",
}


@click.group()
def forecast() -> None:
    """When jobs will start, and how good such forecasts have been."""


forecast.add_command(backtest)


@forecast.command("now")
@click.option("--partition", required=True)
@click.option("--gpus", type=click.IntRange(min=0), required=True, help="Of the whole job.")
@click.option("--limit", required=True, help="The time limit, as Slurm takes it: 12:00:00, 2-12.")
@click.option("--group", default="", help="Whose job it is; without, one that nobody knows.")
@click.option("--gpu-type")
@click.option("--qos")
@click.option("--nodes", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--cpus", type=click.IntRange(min=1), help="Of the whole job. [default: 8 a GPU]")
@JSON
@said
def now_(**given: Any) -> None:
    """When a job would start that is sent now, by the history and the queue as it has it."""
    found, at = settings(), now()
    try:
        minutes = parse_time_limit(given["limit"])
    except BadTimeLimit as error:
        raise click.BadParameter(str(error), param_hint="--limit") from error
    asked = Ask(
        at=at,
        group=given["group"],
        partition=given["partition"],
        qos=given["qos"],
        gpus=given["gpus"],
        gpu_type=given["gpu_type"],
        nodes=given["nodes"],
        cpus=given["cpus"] or max(1, 8 * given["gpus"]),
        limit_minutes=minutes,
    )
    answers = forecaster.answers_now(history_in_step(found), now=at, here=_here(found))
    (answer,) = answers.forecast([asked])
    if isinstance(answer, NoForecast):
        put({"forecast": None, "why": answer.value}, (_NO[answer],), as_json=given["as_json"])
        return
    p50 = at + timedelta(seconds=answer.p50_s)
    p90 = None if answer.p90_s is None else at + timedelta(seconds=answer.p90_s)
    facts = {
        "p50_s": answer.p50_s,
        "p90_s": answer.p90_s,
        "p50_at": p50.isoformat(),
        "p90_at": p90.isoformat() if p90 else None,
        "jobs": answer.jobs,
        "source": answer.source.value,
        "model": answers.version,
    }
    lines = [
        f"p50 {_time(answer.p50_s)}, at {local(p50, found.timezone)}",
        *([f"p90 {_time(answer.p90_s)}, at {local(p90, found.timezone)}"] if p90 else []),
        f"An estimate by {answer.jobs:,} starts in {asked.partition} in the last 30 days "
        f"(model of {answers.version}).",
    ]
    put({"forecast": facts, "why": None}, lines, as_json=given["as_json"])


@forecast.command()
@click.option("--days", type=click.IntRange(1, 180), default=90, show_default=True)
@click.option("--partition", multiple=True, help="Only these.")
@click.option("--waiting", is_flag=True, help="Forecasts made while jobs waited, not at submit.")
@JSON
@said
def record(days: int, *, partition: tuple[str, ...], waiting: bool, as_json: bool) -> None:
    """How good forecasts have been: ours, and Slurm's plan."""
    at, everything = now(), Sight(least=1, all=True, user="", groups=())
    asked = Asked(
        since=at - timedelta(days=days),
        until=at,
        moment=WAITING if waiting else SUBMIT,
        partitions=partition,
    )
    with database(read_only=True) as read:
        found = forecast_record.record(asked, sight=everything, read=read, now=at)
    parts = (("gpu_class", found.by_cards), ("partition", found.by_partition))
    lines = [("all", found.whole), *((by, line) for by, part in parts for line in part)]
    facts = [_facts(by, line) for by, line in lines]
    rows = [row for by, line in lines for row in _rows(by, line)]
    heads = ("by", "key", "source", "forecasts", "by p50", "by p90", "error")
    put(
        {"days": days, "moment": asked.moment, "rows": facts},
        table(heads, rows) if rows else ("No forecasts are on record.",),
        as_json=as_json,
    )


@forecast.command()
@JSON
@said
def train(as_json: bool) -> None:
    """Learn from the history now, as the worker does once a day."""
    found = settings()
    done = forecast_train.train(history_in_step(found), now=now(), here=_here(found))
    facts = {
        "moment": done.moment.isoformat(),
        "calibrated": done.calibrated,
        "waits": done.waits,
        "partitions": done.partitions,
    }
    word = "answers" if done.calibrated else "does not answer yet: too few waits to calibrate by"
    text = f"{done.waits:,} starts of the last 30 days in {done.partitions} partitions; it {word}."
    put(facts, (text,), as_json=as_json)


def _here(found: Settings) -> Here | None:
    if not has_database(found):
        return None
    with database(read_only=True) as read:
        return forecaster.here(found.cluster_name, read=read)


def _facts(by: str, line: Line) -> dict[str, Any]:
    scores = {"history": line.ours, "slurm": line.slurm}
    return {"by": by, "key": line.key} | {
        name: None if score is None else _score(score) for name, score in scores.items()
    }


def _score(score: Score) -> dict[str, Any]:
    return {
        "forecasts": score.forecasts,
        "started": score.started,
        "waiting": score.waiting,
        "p50": _coverage(score.p50),
        "p90": _coverage(score.p90),
        "error_s": score.error_s,
        "error_times": score.error_times,
    }


def _coverage(one: Coverage) -> dict[str, Any]:
    return {
        "judged": one.counted,
        "started_by": one.covered,
        "share": one.share,
        "still_wait": one.late,
        "not_due": one.early,
        "left": one.left,
    }


def _rows(by: str, line: Line) -> list[tuple[str, ...]]:
    return [
        (
            by,
            line.key,
            name,
            f"{score.forecasts:,}",
            _share(score.p50),
            _share(score.p90),
            "-" if score.error_s is None else _time(score.error_s),
        )
        for name, score in (("history", line.ours), ("slurm", line.slurm))
        if score is not None
    ]


def _share(one: Coverage) -> str:
    return "-" if one.share is None else f"{100 * one.share:.1f} % of {one.counted:,}"


def _time(seconds: float | None) -> str:
    return str(timedelta(seconds=round(seconds or 0)))
