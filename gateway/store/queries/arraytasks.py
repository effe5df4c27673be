"""The tasks of a job array: its first rows, and how many are in each state."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, ScalarSelect, case, func, or_, select
from sqlalchemy.orm import Session, aliased

from gateway.store.models import Job

MOST_TASKS = 200


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A task that has a record of its own; `task` is None for the record that stands for all
    that still wait, `tasks` of them (None: Slurm cut its text)."""

    id: int
    task: int | None
    tasks: int | None
    state: str
    active: bool
    submit_time: datetime
    eligible_time: datetime | None
    start_time: datetime | None
    end_time: datetime | None


@dataclass(frozen=True, slots=True)
class StateCount:
    """`at_least`: a record among them does not tell how many tasks it stands for."""

    state: str
    tasks: int
    at_least: bool


@dataclass(frozen=True, slots=True)
class ArrayOverview:
    """`records` counts all rows, those that are not in `rows` too."""

    rows: tuple[TaskRow, ...]
    records: int
    counts: tuple[StateCount, ...]


_SEEN = (
    Job.id,
    Job.array_task,
    Job.array_tasks,
    Job.state,
    Job.active,
    Job.submit_time,
    Job.eligible_time,
    Job.start_time,
    Job.end_time,
)


def array_overview(
    session: Session, job_id: int, *, groups: tuple[str, ...] | None
) -> ArrayOverview:
    """Of the array that this job belongs to; `groups` None: the viewer may see every task.

    The record of those that wait comes first, so that the limit never hides it."""
    wanted = _same_array(job_id, groups)
    order = (Job.array_task.is_not(None), Job.array_task, Job.id)
    rows = session.execute(select(*_SEEN).where(*wanted).order_by(*order).limit(MOST_TASKS))
    stands_for = func.coalesce(Job.array_tasks, 1)
    whole = func.sum(case((Job.array_task.is_(None), stands_for), else_=1))
    unsure = Job.array_task.is_(None) & Job.array_tasks.is_(None)
    numbers = (Job.state, func.count(), whole, func.count(Job.id).filter(unsure))
    found = session.execute(select(*numbers).where(*wanted).group_by(Job.state)).all()
    return ArrayOverview(
        rows=tuple(TaskRow(*row) for row in rows),
        records=sum(records for _, records, _, _ in found),
        counts=tuple(StateCount(state, int(tasks), bool(cut)) for state, _, tasks, cut in found),
    )


def _same_array(job_id: int, groups: tuple[str, ...] | None) -> list[ColumnElement[bool]]:
    own = aliased(Job)

    def its(column: Any) -> ScalarSelect[Any]:
        return select(column).where(own.id == job_id).scalar_subquery()

    token = its(own.token)
    wanted = [
        Job.array_job_id == its(own.array_job_id),
        _judged(Job.cluster) == its(own.cluster),
        _judged(Job.user) == its(own.user),
        # A cluster that was cleared counts from one again: a known token must not differ.
        or_(Job.token == token, Job.token.is_(None), token.is_(None)),
    ]
    return wanted if groups is None else [*wanted, _judged(Job.group).in_(groups)]


def _judged(column: Any) -> ColumnElement[str]:
    """Kept from leading: without statistics SQLite would walk all of a person's jobs."""
    return func.coalesce(column, "")
