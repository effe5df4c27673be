"""What stands before a job that waits: running jobs, the queue's length, points of priority."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session

from gateway.store.models import Job, Submission, table_of
from gateway.store.people_models import PriorityNow
from gateway.wire import policy as p

_JOB = table_of(Job).c
_POINTS = table_of(PriorityNow).c


@dataclass(frozen=True, slots=True)
class RunningRow:
    id: int
    slurm_id: int
    array_job_id: int | None
    array_task: int | None
    user: str
    group: str
    qos: str | None
    state: str
    gpus: int
    gpu_type: str | None
    cpus: int
    node_list: str | None
    start_time: datetime
    time_limit_minutes: int | None


@dataclass(frozen=True, slots=True)
class NumberRow:
    """What names a job."""

    id: int
    slurm_id: int
    array_job_id: int | None
    array_task: int | None
    user: str
    group: str


_NUMBER = (
    _JOB.id,
    _JOB.slurm_id,
    _JOB.array_job_id,
    _JOB.array_task,
    _JOB.user,
    _JOB.group_name,
)
_RUNNING: list[Any] = [
    *_NUMBER,
    *(_JOB.qos, _JOB.state, _JOB.gpus, _JOB.gpu_type, _JOB.cpus),
    *(_JOB.node_list, _JOB.start_time, _JOB.time_limit_minutes),
]


def running(
    session: Session,
    cluster: str,
    *,
    partition: str,
    user: str,
    groups: Collection[str],
    qos: Collection[str],
) -> tuple[RunningRow, ...]:
    """Jobs on nodes of the partition, of the person, of these groups, or in these QoS."""
    query = select(*_RUNNING).where(
        _JOB.active,
        _JOB.cluster == cluster,
        _JOB.start_time.is_not(None),
        _JOB.node_list.is_not(None),
        or_(
            _JOB.partition == partition,
            _JOB.user == user,
            _JOB.group_name.in_(sorted(groups)),
            _JOB.qos.in_(sorted(qos)),
        ),
    )
    return tuple(RunningRow(*row) for row in session.execute(query))


def queued(
    session: Session,
    cluster: str,
    *,
    user: str | None = None,
    groups: Collection[str] = (),
    qos: str | None = None,
) -> int:
    """Jobs that wait or run, each task of an array as one; of all that is given."""
    query = select(func.sum(func.coalesce(_JOB.array_tasks, 1))).where(
        _JOB.active, _JOB.cluster == cluster
    )
    if user is not None:
        query = query.where(_JOB.user == user)
    if groups:
        query = query.where(_JOB.group_name.in_(sorted(groups)))
    if qos is not None:
        query = query.where(_JOB.qos == qos)
    return int(session.scalar(query) or 0)


def waits_for(session: Session, submission_id: int) -> NumberRow | None:
    """The job whose good end the submission's job waits for, where the portal said so."""
    query = (
        select(*_NUMBER)
        .join(Submission, Submission.job_id == _JOB.id)
        .where(
            Submission.id
            == select(Submission.after_id).where(Submission.id == submission_id).scalar_subquery()
        )
    )
    row = session.execute(query).first()
    return None if row is None else NumberRow(*row)


def named(session: Session, cluster: str, slurm_id: int) -> NumberRow | None:
    """The open job with this number of Slurm; of an array any of its records."""
    query = (
        select(*_NUMBER)
        .where(
            _JOB.active,
            _JOB.cluster == cluster,
            or_(_JOB.slurm_id == slurm_id, _JOB.array_job_id == slurm_id),
        )
        .order_by(_JOB.slurm_id)
        .limit(1)
    )
    row = session.execute(query).first()
    return None if row is None else NumberRow(*row)


def standing_before(session: Session, own: p.PriorityFactors) -> tuple[int, int]:
    """Jobs of its partition that stand before it, and all that wait there."""
    earlier = or_(
        _POINTS.priority > own.priority,
        and_(_POINTS.priority == own.priority, _POINTS.slurm_id < own.job_id),
    )
    here = select(func.count()).where(_POINTS.partition == own.partition)
    return session.scalar(here.where(earlier)) or 0, session.scalar(here) or 0


def next_before(session: Session, own: p.PriorityFactors) -> p.PriorityFactors | None:
    """The nearest of those before it."""
    earlier = or_(
        _POINTS.priority > own.priority,
        and_(_POINTS.priority == own.priority, _POINTS.slurm_id < own.job_id),
    )
    query = (
        table_of(PriorityNow)
        .select()
        .where(_POINTS.partition == own.partition, earlier)
        .order_by(_POINTS.priority, _POINTS.slurm_id.desc())
        .limit(1)
    )
    row = session.execute(query).first()
    return None if row is None else p.PriorityFactors(*row)
