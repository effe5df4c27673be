"""Runs in QoS spot as a busy cluster has them: preempted by day more than by night."""

import random
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, insert, select

from gateway.store.models import Job, Run, table_of
from gateway.store.uow import Begin

PEOPLE = tuple(f"spot-{number}" for number in range(1, 10))
DAYS = 80
_BY_DAY = range(8, 20)  # hours of UTC


def fill_spot(
    begin: Begin,
    *,
    now: datetime,
    cluster: str,
    runs: int = 900,
    types: tuple[str, ...] = ("a100", "rtx4090"),
    people: tuple[str, ...] = PEOPLE,
) -> None:
    """Ended jobs of one run each. By day one in six hours is preempted, by night one in thirty."""
    chance = random.Random(11)  # noqa: S311  # the same sample each time
    with begin() as session:
        first = (session.scalar(select(func.max(Job.slurm_id))) or 100) + 1
        jobs, made = [], []
        for number in range(runs):
            start = now - timedelta(minutes=chance.randrange(13 * 60, DAYS * 1440))
            facts = _facts(chance, start, chance.choice(people))
            kind, gpus = types[number % len(types)], chance.choice([1, 2, 4, 8])
            shared = facts | {"cluster": cluster, "slurm_id": first + number, "gpus": gpus}
            jobs.append(_job(shared, kind, now))
            made.append(_run(shared, kind))
        session.execute(insert(table_of(Job)), jobs)
        known = select(Job.slurm_id, Job.id).where(Job.slurm_id >= first, Job.cluster == cluster)
        ids = {row.slurm_id: row.id for row in session.execute(known)}
        session.execute(insert(table_of(Run)), [r | {"job_id": ids[r["slurm_id"]]} for r in made])


def _facts(chance: random.Random, start: datetime, user: str) -> dict[str, Any]:
    length = 3600 * chance.uniform(0.3, 12)
    seconds, preempted = 0, False
    while seconds < length and not preempted:
        seconds += 300
        hour = (start + timedelta(seconds=seconds)).hour
        preempted = chance.random() < 300 / 3600 / (6 if hour in _BY_DAY else 30)
    state = "PREEMPTED" if preempted else "COMPLETED"
    return {
        "user": user,
        "group_name": "nlp",
        "partition": "a100",
        "qos": "spot",
        "state": state,
        "submit_time": start - timedelta(minutes=20),
        "eligible_time": start - timedelta(minutes=chance.randint(1, 20)),
        "start_time": start,
        "end_time": start + timedelta(seconds=seconds),
        "nodes": 1,
        "cpus": 4,
        "restarts": chance.choice([0, 0, 0, 1]),
        "_seconds": seconds,
    }


def _job(shared: dict[str, Any], kind: str, now: datetime) -> dict[str, Any]:
    own = {
        "name": "sweep",
        "active": False,
        "last_submit_time": shared["submit_time"],
        "gpu_type": kind,
        "working_directory": "/home/member",
        "seen_at": now,
        "accounted": True,
    }
    return {name: value for name, value in shared.items() if name != "_seconds"} | own


def _run(shared: dict[str, Any], kind: str) -> dict[str, Any]:
    gpus = shared["gpus"]
    own = {
        "elapsed_seconds": shared["_seconds"],
        "suspended_seconds": 0,
        "alloc_tres": f"cpu=4,gres/gpu={gpus},gres/gpu:{kind}={gpus},node=1",
    }
    return {name: value for name, value in shared.items() if name != "_seconds"} | own
