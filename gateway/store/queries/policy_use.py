"""What open jobs use of each QoS and group now, in sums: for the pages of policy."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from gateway.core.states import JobState
from gateway.store.models import Job

_RUNS = Job.state.in_([state.value for state in JobState if state.is_active])
# Slurm has given back what a job held that is completing.
_OPEN = Job.active & (Job.state != JobState.COMPLETING.value)
# A pending array is one record that stands for its tasks.
_STANDS_FOR = case((Job.array_task.is_(None), func.coalesce(Job.array_tasks, 1)), else_=1)


@dataclass(frozen=True, slots=True)
class QosUse:
    """`qos` None: Slurm named none."""

    qos: str | None
    running: int
    pending: int
    gpus: int


@dataclass(frozen=True, slots=True)
class UseRow:
    """Open jobs of one person in one group, on cards of one type (None: none, or mixed). `gpus`,
    `cpus` and `nodes` are those of running jobs."""

    group: str
    user: str
    qos: str | None
    gpu_type: str | None
    running: int
    pending: int
    gpus: int
    cpus: int
    nodes: int


def by_qos(session: Session) -> dict[str | None, QosUse]:
    query = select(Job.qos, *_jobs(), _used(Job.gpus)).where(_OPEN).group_by(Job.qos)
    return {row[0]: QosUse(*row) for row in session.execute(query)}


def of_qos(session: Session, name: str) -> list[UseRow]:
    return _rows(session, Job.qos == name)


def of_group(session: Session, name: str) -> list[UseRow]:
    return _rows(session, Job.group == name)


def _rows(session: Session, whose: ColumnElement[bool]) -> list[UseRow]:
    key = (Job.group, Job.user, Job.qos, Job.gpu_type)
    columns: list[Any] = [*key, *_jobs(), *map(_used, (Job.gpus, Job.cpus, Job.nodes))]
    query = select(*columns).where(_OPEN, whose).group_by(*key).order_by(*key)
    return [UseRow(*row) for row in session.execute(query)]


def _jobs() -> tuple[ColumnElement[int], ColumnElement[int]]:
    running = func.coalesce(func.sum(case((_RUNS, 1), else_=0)), 0)
    return running, func.coalesce(func.sum(case((_RUNS, 0), else_=_STANDS_FOR)), 0)


def _used(column: Any) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((_RUNS, column), else_=0)), 0)
