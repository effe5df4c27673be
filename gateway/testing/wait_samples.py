"""Two months of waits in three groups, with what each poll saw: for the pages of waits and use."""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from math import exp
from typing import Any

from sqlalchemy import func, insert, select

from gateway.core.states import JobState
from gateway.store import history
from gateway.store.capacity_models import GpuCapacityDay
from gateway.store.models import Job, Run, table_of
from gateway.store.uow import Begin
from gateway.store.wait_models import WaitReason

DAYS = 60
CARDS = {"a100": 32, "rtx4090": 16}
# By group: who is in it, and the limit that kept it waiting beside the full cluster, and
# in which share of its waits.
GROUPS: dict[str, tuple[tuple[str, ...], str, float]] = {
    "nlp": (("nlp-1", "nlp-2", "nlp-lead", "nlp-3", "nlp-4"), "AssocGrpGRES", 0.25),
    "vision": (("vision-1", "vision-2", "vision-3", "vision-lead"), "QOSMaxGRESPerUser", 0.6),
    "biolab": (("biolab-1", "biolab-2", "biolab-3", "biolab-lead"), "QOSGrpGRES", 0.1),
}  # fmt: skip
_MEDIAN_MINUTES = {1: 6, 2: 20, 4: 50, 8: 260, 16: 700}
_STATES = (
    *[JobState.COMPLETED] * 12, JobState.FAILED, JobState.FAILED, JobState.TIMEOUT,
    JobState.OUT_OF_MEMORY, JobState.CANCELLED, JobState.NODE_FAIL,
)  # fmt: skip


def fill_waits(begin: Begin, *, now: datetime, cluster: str, jobs: int = 1600) -> None:
    """Ended jobs, some of which gave up; how many cards there were; and for every wait in the store
    of which nothing was seen, what might have been."""
    chance = random.Random(41)  # noqa: S311  # the same sample each time
    with begin() as session:
        first = (session.scalar(select(func.max(Job.slurm_id))) or 100) + 1
        made = [_job(chance, now, cluster, first + number) for number in range(jobs)]
        session.execute(insert(table_of(Job)), made)
        known = select(Job.slurm_id, Job.id).where(Job.slurm_id >= first, Job.cluster == cluster)
        ids = {row.slurm_id: row.id for row in session.execute(known)}
        runs = [_run(one, ids[one["slurm_id"]]) for one in made if one["start_time"]]
        session.execute(insert(table_of(Run)), runs)
        session.execute(insert(table_of(GpuCapacityDay)), list(_capacity(now)))
        waits = session.execute(
            select(
                Job.id,
                Job.group,
                func.coalesce(Run.submit_time, Job.submit_time).label("submit"),
                func.coalesce(Run.eligible_time, Job.eligible_time).label("eligible"),
                func.coalesce(Run.start_time, Job.start_time, Job.end_time).label("until"),
            )
            .join(Run, Run.job_id == Job.id, isouter=True)
            .where(Job.active.is_(False), Job.id.not_in(select(WaitReason.job_id)))
        ).all()
        seen = {
            (row["job_id"], row["submit"], row["since"]): row
            for wait in waits
            for row in _looks(chance, wait)
        }
        session.execute(insert(table_of(WaitReason)), list(seen.values()))
        history.mark(session, session.scalars(select(Job.id)))


def _job(chance: random.Random, now: datetime, cluster: str, slurm_id: int) -> dict[str, Any]:
    """Waits grow with the cards, by day, and with the weeks; time limits are three runs long."""
    gpus, kind = chance.choice(list(_MEDIAN_MINUTES)), chance.choice(list(CARDS))
    group = chance.choice(list(GROUPS))
    submit = now - timedelta(minutes=chance.randrange(90, DAYS * 1440))
    busy = (1.6 if 8 <= submit.hour < 18 else 0.7) * (1.4 - (now - submit).days / DAYS)
    minutes = _MEDIAN_MINUTES[gpus] * busy * exp(chance.gauss(0, 0.9))
    eligible = submit + timedelta(minutes=chance.choice([0, 0, 0, 0, 0, 0, 0, 45]))
    start = eligible + timedelta(minutes=minutes)
    end = start + timedelta(minutes=60 * exp(chance.gauss(0.2, 0.8)) + 2)
    state = chance.choice(_STATES)
    gave_up = state is JobState.CANCELLED and chance.random() < 0.6
    late = end > now - timedelta(minutes=5)
    if late:
        end = now - timedelta(minutes=5)
    gave_up |= start >= end
    return {
        "cluster": cluster,
        "slurm_id": slurm_id,
        "user": chance.choice(GROUPS[group][0]),
        "group_name": group,
        "partition": kind,
        "qos": chance.choice(["normal", "normal", "normal", "urgent"]),
        "state": (JobState.CANCELLED if gave_up or late else state).value,
        "template": chance.choice(["ddp", "ddp", "hf-fsdp", "sweep", None]),
        "name": chance.choice(["bert-base", "lr-sweep", "resnet50", "eval"]),
        "active": False,
        "submit_time": submit,
        "last_submit_time": submit,
        "eligible_time": min(eligible, end),
        "start_time": None if gave_up else start,
        "end_time": start if gave_up and start < end else end,
        "time_limit_minutes": chance.choice([240, 720, 1440, 2880]),
        "nodes": max(1, gpus // 8),
        "cpus": gpus * 8,
        "gpus": gpus,
        "gpu_type": kind,
        "restarts": 0,
        "exit_code": 0,
        "exit_signal": 0,
        "node_list": None if gave_up else f"{kind}-1",
        "working_directory": "/home/member",
        "seen_at": end,
        "accounted": True,
    }


def _run(job: dict[str, Any], job_id: int) -> dict[str, Any]:
    gpus, kind = job["gpus"], job["gpu_type"]
    names = (
        "cluster", "slurm_id", "user", "group_name", "partition", "qos", "state", "submit_time",
        "eligible_time", "start_time", "end_time", "nodes", "cpus", "gpus", "node_list",
        "restarts", "exit_code", "exit_signal",
    )  # fmt: skip
    return {name: job[name] for name in names} | {
        "job_id": job_id,
        "elapsed_seconds": int((job["end_time"] - job["start_time"]).total_seconds()),
        "suspended_seconds": 0,
        "alloc_tres": f"cpu={job['cpus']},gres/gpu:{kind}={gpus},gres/gpu={gpus}",
        "to_settle": False,
    }


def _looks(chance: random.Random, wait: Any) -> Iterator[dict[str, Any]]:
    """First behind others or kept by a limit, at last first in line and nothing free."""
    submit = int(wait.submit.timestamp())
    since = int((wait.eligible or wait.submit).timestamp())
    length = int(wait.until.timestamp()) - since
    shared = {"job_id": wait.id, "submit": submit}
    if since > submit:
        yield shared | {"since": submit, "reason": "Dependency"}
    if length <= 0:
        return
    _, own, share = GROUPS.get(wait.group, ((), "", 0.0))
    parts = [("Priority", chance.uniform(0.3, 0.6)), ("Resources", 1.0)]
    if chance.random() < share:
        parts.insert(0, (own, chance.uniform(0.3, 0.9)))
    elif chance.random() < 0.08:
        parts.insert(0, ("ReqNodeNotAvail, UnavailableNodes:a100-3", chance.uniform(0.2, 0.7)))
    for reason, until in parts:
        yield shared | {"since": since, "reason": reason}
        step = int(length * until)
        since, length = since + step, length - step


def _capacity(now: datetime) -> Iterator[dict[str, Any]]:
    """As polls saw it until yesterday; today's is the poll's own."""
    for day in range(1, DAYS + 1):
        for kind, gpus in CARDS.items():
            yield {"day": (now - timedelta(days=day)).date(), "gpu_type": kind, "gpus": gpus}
