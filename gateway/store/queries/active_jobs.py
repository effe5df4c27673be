"""Open jobs of some QoS and groups, for what a change of policy does to them; and their past."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
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
# In the order of ActiveJob, but for what is worked out: 100,000 rows become jobs by their place.
_COLUMNS = (
    *(_JOB.id, _JOB.slurm_id, _JOB.user, _JOB.group_name, _JOB.qos, _JOB.partition),
    *(_JOB.priority, _JOB.submit_time, _JOB.start_time, _JOB.time_limit_minutes),
    *(_JOB.nodes, _JOB.cpus, _JOB.gpus, _JOB.gpu_type),
    *(_JOB.state, _JOB.reason, _JOB.array_task, _JOB.array_tasks),
)
_OWN = len(_COLUMNS) - 4


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


def _job(row: Sequence[Any]) -> ActiveJob:
    id_, slurm_id, user, group, qos, partition, priority, *facts = row[:_OWN]
    state, reason, task, tasks = row[_OWN:]
    running = state in _RUNS
    values: tuple[Any, ...] = (
        *(id_, slurm_id, user, group, qos or "", partition, priority or 0),
        *facts,
        *(running, not running and _is_its_own(reason), None if running else reason),
        (tasks or 1) if task is None and not running else 1,
    )
    return ActiveJob(*values)


@lru_cache(maxsize=1024)
def _is_its_own(reason: str | None) -> bool:
    return reason_key(reason) in _OWN_REASONS


def _date(found: Any) -> date:
    return date.fromisoformat(found) if isinstance(found, str) else found
