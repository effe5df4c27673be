"""Open jobs of some QoS and groups, for what a change of policy does to them; and their past."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from gateway.core.impact import ActiveJob
from gateway.core.reasons import reason_key
from gateway.core.states import JobState
from gateway.store.models import Job, Run, table_of

_JOB, _RUN = table_of(Job).c, table_of(Run).c
_RUNS = frozenset(state.value for state in JobState if state.is_active)
_OWN_REASONS = frozenset(
    {
        "held_by_user",
        "held_by_admin",
        "held_after_requeues",
        "dependency",
        "dependency_never",
        "begin_time",
    }
)
_COLUMNS = (
    *(_JOB.id, _JOB.slurm_id, _JOB.user, _JOB.group_name, _JOB.qos, _JOB.partition),
    *(_JOB.state, _JOB.reason, _JOB.priority, _JOB.submit_time, _JOB.start_time),
    *(_JOB.time_limit_minutes, _JOB.nodes, _JOB.cpus, _JOB.gpus, _JOB.gpu_type),
    *(_JOB.array_task, _JOB.array_tasks),
)


@dataclass(frozen=True, slots=True)
class DayOfRuns:
    """What ended on one day: resource-seconds of runs of a QoS with cards of one type."""

    day: date
    qos: str | None
    gpu_type: str | None
    seconds: int
    cpu_seconds: int
    node_seconds: int
    gpu_seconds: int


def open_jobs(
    session: Session, *, qos: Collection[str], groups: Collection[str]
) -> list[ActiveJob]:
    """Of any of these QoS or of any of these groups. Not those that are completing: Slurm has given
    back what they held."""
    whose = or_(_JOB.qos.in_(qos), _JOB.group_name.in_(groups))
    rows = session.connection().execute(
        select(*_COLUMNS).where(_JOB.active, whose, _JOB.state != JobState.COMPLETING.value)
    )
    return [_job(row) for row in rows]


def ended_by_day(session: Session, *, qos: str | None, groups: Collection[str]) -> list[DayOfRuns]:
    """The ended runs of a QoS, or of groups where `qos` is None."""
    whose: ColumnElement[bool] = _RUN.group_name.in_(groups) if qos is None else _RUN.qos == qos
    day: ColumnElement[Any] = func.date(_RUN.end_time)
    seconds = _RUN.elapsed_seconds
    key = (day, _RUN.qos, _JOB.gpu_type)
    sums = (
        seconds,
        seconds * _RUN.cpus,
        seconds * _RUN.nodes,
        seconds * func.coalesce(_RUN.gpus, 0),
    )
    query = (
        select(*key, *(func.sum(one) for one in sums))
        .join_from(table_of(Run), table_of(Job), _JOB.id == _RUN.job_id)
        .where(_RUN.end_time.is_not(None), whose)
        .group_by(*key)
    )
    return [
        DayOfRuns(_date(row[0]), row[1], row[2], *(int(part) for part in row[3:]))
        for row in session.connection().execute(query)
    ]


def _job(row: Any) -> ActiveJob:
    running = row.state in _RUNS
    pending_tasks = row.array_tasks if row.array_task is None and not running else None
    return ActiveJob(
        id=row.id,
        slurm_id=row.slurm_id,
        user=row.user,
        group=row.group_name,
        qos=row.qos or "",
        partition=row.partition,
        running=running,
        blocked=not running and reason_key(row.reason) in _OWN_REASONS,
        reason=None if running else row.reason,
        priority=row.priority or 0,
        submit_time=row.submit_time,
        start_time=row.start_time,
        time_limit_minutes=row.time_limit_minutes,
        nodes=row.nodes,
        cpus=row.cpus,
        gpus=row.gpus,
        gpu_type=row.gpu_type,
        tasks=pending_tasks or 1,
    )


def _date(found: Any) -> date:
    return date.fromisoformat(found) if isinstance(found, str) else found
