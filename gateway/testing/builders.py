"""Things for tests: each builder needs only what the test is about, the rest is plausible."""

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from argon2 import PasswordHasher
from sqlalchemy import func, select

from gateway.core.access import Role, Viewer
from gateway.core.qos import tres
from gateway.core.states import JobState
from gateway.core.tres import GPU
from gateway.store import history
from gateway.store import models as t
from gateway.store.uow import Begin
from gateway.wire import messages as m
from gateway.wire.codec import dump

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
PASSWORD = "a password for tests"  # noqa: S105  # opens nothing
CLUSTER = "cluster"


@cache
def cheap_hash(password: str = PASSWORD) -> str:
    """As the portal stores it, but fast to make: a sign-in replaces it by a real one."""
    return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(password)


def viewer(unix_user: str = "member", **values: Any) -> Viewer:
    """Somebody signed in, who need not be in the database."""
    facts: dict[str, Any] = {
        "person_id": 1,
        "session_id": 1,
        "login": unix_user,
        "unix_user": unix_user,
        "display_name": unix_user.capitalize(),
        "role": Role.RESEARCHER,
        "groups": ("nlp",),
        "leads": (),
    }
    return Viewer(**(facts | values))


def add_person(begin: Begin, login: str = "member", **values: Any) -> int:
    """A portal account with PASSWORD."""
    facts: dict[str, Any] = {
        "login": login,
        "unix_user": login,
        "display_name": login.capitalize(),
        "password_hash": cheap_hash(),
        "role": Role.RESEARCHER.value,
        "created_at": NOW - timedelta(days=30),
    }
    with begin() as session:
        person = t.Person(**(facts | values))
        session.add(person)
        session.flush()
        return person.id


def add_job(begin: Begin, **values: Any) -> int:
    """A job; pending unless told otherwise. `active` follows the state."""
    state = JobState(values.get("state", JobState.PENDING))
    submit_time = values.get("submit_time", NOW - timedelta(hours=1))
    facts: dict[str, Any] = {
        "cluster": CLUSTER,
        "user": "member",
        "uid": 20001,
        "name": "train",
        "group": "nlp",
        "partition": "a100",
        "qos": "normal",
        "template": "ddp",
        "state": state.value,
        "active": not (state.is_ended or state is JobState.PREEMPTED),
        "submit_time": submit_time,
        "last_submit_time": submit_time,
        "eligible_time": submit_time,
        "time_limit_minutes": 60,
        "nodes": 1,
        "cpus": 4,
        "gpus": 2,
        "gpu_type": "a100",
        "working_directory": "/home/member",
        "output": "/home/member/slurm-1.out",
        "seen_at": NOW,
    }
    with begin() as session:
        last = session.scalar(select(func.max(t.Job.slurm_id))) or 100
        job = t.Job(**({"slurm_id": last + 1} | facts | values))
        session.add(job)
        session.flush()
        history.mark(session, [job.id])
        return job.id


def add_run(begin: Begin, job_id: int, **values: Any) -> int:
    """A run of a job that is in the store; an hour long, completed, ended at NOW."""
    with begin() as session:
        job = session.get_one(t.Job, job_id)
        facts: dict[str, Any] = {
            "job_id": job_id,
            "cluster": job.cluster,
            "slurm_id": job.slurm_id,
            "user": job.user,
            "group": job.group,
            "partition": job.partition,
            "qos": job.qos,
            "state": JobState.COMPLETED.value,
            "submit_time": job.submit_time,
            "eligible_time": job.eligible_time,
            "start_time": NOW - timedelta(hours=1),
            "end_time": NOW,
            "elapsed_seconds": 3600,
            "suspended_seconds": 0,
            "nodes": job.nodes,
            "cpus": job.cpus,
            "gpus": job.gpus,
            "alloc_tres": f"cpu={job.cpus},gres/gpu={job.gpus},node={job.nodes}",
            "node_list": "a100-1",
            "exit_code": 0,
            "exit_signal": 0,
            "restarts": 0,
        }
        run = t.Run(**(facts | values))
        session.add(run)
        session.flush()
        history.mark(session, [run.job_id])
        return run.id


def add_submission(begin: Begin, person_id: int, **values: Any) -> int:
    """What a person asked for; queued, with no job yet."""
    with begin() as session:
        count = session.scalar(select(func.count()).select_from(t.Submission)) or 0
        facts: dict[str, Any] = {
            "token": f"token-{count + 1}",
            "form_key": f"form-{count + 1}",
            "person_id": person_id,
            "cluster": CLUSTER,
            "state": "queued",
            "template": "ddp",
            "ask": {"template": "ddp", "name": "train", "group": "nlp", "partition": "a100"},
            "request": {"name": "train", "account": "nlp", "partition": "a100", "qos": "normal"},
            "script": "#!/bin/bash\nsrun hostname\n",
            "created_at": NOW - timedelta(minutes=5),
        }
        submission = t.Submission(**(facts | values))
        session.add(submission)
        session.flush()
        return submission.id


def add_event(begin: Begin, kind: str, **values: Any) -> None:
    with begin() as session:
        session.add(t.Event(**({"at": NOW, "kind": kind, "detail": {}} | values)))


def association(user: str = "member", account: str = "nlp", **values: Any) -> m.Association:
    facts: dict[str, Any] = {
        "partition": None,
        "qos": ("normal", "spot"),
        "default_qos": "normal",
        "is_default_account": True,
        "is_coordinator": False,
        "max_jobs": None,
        "max_submit_jobs": None,
        "max_wall_minutes": None,
        "max_gpus_per_job": None,
        "group_max_gpus": None,
    }
    return m.Association(user=user, account=account, **(facts | values))


def queue_job(job_id: int = 7, **values: Any) -> m.QueueJob:
    """One that waits, as the broker tells of it."""
    facts: dict[str, Any] = {
        "job_id": job_id,
        "user": "nlp-1",
        "uid": 20002,
        "name": "own",
        "account": "nlp",
        "partition": "a100",
        "qos": "normal",
        "state": "PENDING",
        "reason": "Priority",
        "submit_time": NOW,
        "eligible_time": NOW,
        "start_time": None,
        "end_time": None,
        "estimated_start": None,
        "time_limit_minutes": 60,
        "nodes": 1,
        "cpus": 4,
        "gpus": 2,
        "gpu_type": "a100",
        "node_list": None,
        "priority": 1000,
        "restarts": 0,
        "exit_code": None,
        "exit_signal": None,
        "working_directory": "/home/nlp-1",
        "output": None,
        "comment": None,
    }
    return m.QueueJob(**(facts | values))


def node(name: str = "a100-1", **values: Any) -> m.Node:
    facts: dict[str, Any] = {
        "state": "IDLE",
        "reason": None,
        "partitions": ("a100",),
        "cpus": 64,
        "cpus_used": 0,
        "memory_mb": 512_000,
        "gpu_type": "a100",
        "gpus": 8,
        "gpus_used": 0,
        "address": "127.0.0.1",
    }
    return m.Node(name=name, **(facts | values))


def partition(name: str = "a100", **values: Any) -> m.Partition:
    facts: dict[str, Any] = {
        "state": "UP",
        "is_default": name == "a100",
        "nodes": 4,
        "max_time_minutes": 7 * 24 * 60,
        "default_time_minutes": 60,
        "max_nodes": None,
        "allow_accounts": (),
        "deny_accounts": (),
        "allow_qos": (),
        "deny_qos": (),
        "gpu_types": (name,),
    }
    return m.Partition(name=name, **(facts | values))


_GPU_LIMITS = {
    "max_gpus_per_job": "max_tres_per_job",
    "max_gpus_per_user": "max_tres_per_user",
    "max_gpus_per_group": "max_tres_per_account",
}


def qos(name: str = "normal", **values: Any) -> m.Qos:
    """`max_gpus_per_…=N` stands for the limit of that TRES field on gres/gpu."""
    facts: dict[str, Any] = {"description": name}
    for key, found in values.items():
        if key not in _GPU_LIMITS:
            facts[key] = found
        elif found is not None:
            facts[_GPU_LIMITS[key]] = tres({GPU: found})
    return m.Qos(name=name, **facts)


def add_associations(begin: Begin, *given: m.Association) -> None:
    with begin() as session:
        for one in given or (association(),):
            session.add(t.AssociationNow(user=one.user, account=one.account, facts=dump(one)))


def add_cluster(
    begin: Begin,
    *,
    nodes: tuple[m.Node, ...] = (),
    partitions: tuple[m.Partition, ...] = (),
    qos_list: tuple[m.Qos, ...] = (),
) -> None:
    """The cluster as the last poll saw it, with polls that succeeded at NOW."""
    with begin() as session:
        session.add_all([t.NodeNow(name=one.name, facts=dump(one)) for one in nodes])
        session.add_all([t.PartitionNow(name=one.name, facts=dump(one)) for one in partitions])
        session.add_all([t.QosNow(name=one.name, facts=dump(one)) for one in qos_list])
        for name in ("queue", "cluster", "policy", "accounting"):
            session.add(t.Poll(name=name, tried_at=NOW, succeeded_at=NOW, interval_seconds=15.0))


def add_waiting(begin: Begin, **values: Any) -> None:
    """One line of the queue in sums."""
    facts: dict[str, Any] = {
        "partition": "a100",
        "gpu_type": "a100",
        "group": "nlp",
        "state": JobState.PENDING.value,
        "reason": "Priority",
        "jobs": 1,
        "gpus": 2,
        "oldest_eligible": NOW - timedelta(hours=1),
    }
    with begin() as session:
        session.add(t.QueueNow(**(facts | values)))
