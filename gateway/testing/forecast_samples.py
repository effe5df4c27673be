"""Forecasts of starts with what came of them, as a site has them after some weeks."""

import random
from datetime import datetime, timedelta
from math import exp
from typing import Any

from sqlalchemy import func, insert, select

from gateway.core.forecast import ForecastSource
from gateway.store.forecast_models import StartForecast
from gateway.store.forecasts import Made, keep
from gateway.store.models import Job, table_of
from gateway.store.uow import Begin

PEOPLE = tuple(f"waits-{number}" for number in range(1, 8))
_P90 = 1.2816  # of the normal curve
_MEDIAN_MINUTES = {0: 2, 1: 8, 2: 25, 4: 60, 8: 300, 16: 900}


def fill_forecasts(
    begin: Begin,
    *,
    now: datetime,
    cluster: str,
    jobs: int = 600,
    days: int = 25,
    people: tuple[str, ...] = PEOPLE,
    partitions: tuple[str, ...] = ("a100", "debug"),
) -> None:
    """Ended, cancelled and waiting jobs; ours are right on average, Slurm's plan is too late."""
    chance = random.Random(23)  # noqa: S311  # the same sample each time
    with begin() as session:
        first = (session.scalar(select(func.max(Job.slurm_id))) or 100) + 1
        made, rows = [], []
        for number in range(jobs):
            gpus = chance.choice(list(_MEDIAN_MINUTES))
            submit = now - timedelta(minutes=chance.randrange(5, days * 1440))
            median = 60 * _MEDIAN_MINUTES[gpus] * (0.3 if number % 4 == 0 else 1)
            facts = {
                "cluster": cluster,
                "slurm_id": first + number,
                "user": chance.choice(people),
                "group_name": "nlp",
                "partition": partitions[1 if number % 4 == 0 else 0],
                "gpus": gpus,
            }
            wait = timedelta(seconds=median * exp(chance.gauss(0, 1)))
            rows.append(_job(facts, submit, wait, now, gave_up=chance.random() < 0.05))
            made.append((rows[-1], median, chance.gauss(1, 0.6)))
        session.execute(insert(table_of(Job)), rows)
        known = select(Job.slurm_id, Job.id).where(Job.slurm_id >= first, Job.cluster == cluster)
        ids = {row.slurm_id: row.id for row in session.execute(known)}
        keep(session, [one for job in made for one in _forecasts(*job, ids)])
        told = table_of(StartForecast)
        for row in rows:
            session.execute(
                told.update()
                .where(told.c.job_id == ids[row["slurm_id"]])
                .values(
                    started_at=row["start_time"],
                    left_at=None if row["start_time"] or row["active"] else row["end_time"],
                )
            )


def _job(
    facts: dict[str, Any], submit: datetime, wait: timedelta, now: datetime, *, gave_up: bool
) -> dict[str, Any]:
    end = submit + wait / 2 if gave_up else submit + wait + timedelta(hours=1)
    start = None if gave_up or submit + wait > now else submit + wait
    waits = start is None and not (gave_up and end <= now)
    state = "PENDING" if waits else "CANCELLED" if start is None else "COMPLETED"
    return facts | {
        "name": "sweep",
        "qos": "normal",
        "state": state,
        "active": waits,
        "submit_time": submit,
        "last_submit_time": submit,
        "eligible_time": submit,
        "start_time": start,
        "end_time": None if waits else min(end, now),
        "time_limit_minutes": 720,
        "nodes": 1,
        "cpus": 8,
        "gpu_type": "a100" if facts["gpus"] else None,
        "restarts": 0,
        "working_directory": "/home/member",
        "seen_at": now,
        "accounted": not waits,
    }


def _forecasts(row: dict[str, Any], median: float, slurm: float, ids: dict[int, int]) -> list[Made]:
    shared = {
        "job_id": ids[row["slurm_id"]],
        "submission_id": None,
        "made_at": row["submit_time"],
        "moment": "submit",
        "partition": row["partition"],
        "group_name": row["group_name"],
        "qos": row["qos"],
        "gpus": row["gpus"],
        "gpu_type": row["gpu_type"],
        "limit_minutes": row["time_limit_minutes"],
    }
    at = row["submit_time"]
    ours = Made(
        **shared,
        source=ForecastSource.HISTORY,
        p50_at=at + timedelta(seconds=median),
        p90_at=at + timedelta(seconds=median * exp(_P90)),
        jobs=200,
        model="sample",
    )
    plan = at + timedelta(seconds=median * exp(slurm))
    slurms = Made(
        **shared, source=ForecastSource.SLURM, p50_at=plan, p90_at=None, jobs=0, model=None
    )
    return [ours, slurms]
