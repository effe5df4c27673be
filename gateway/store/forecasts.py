"""Forecasts of starts: kept as they were made, and what came of them."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from gateway.core.forecast import ForecastSource
from gateway.store.forecast_models import ForecastNow, StartForecast
from gateway.store.models import Job, Run, Submission, table_of
from gateway.store.upsert import chunks

_TOLD, _NOW = table_of(StartForecast), table_of(ForecastNow)
_JOB, _RUN, _SUBMISSION = table_of(Job), table_of(Run), table_of(Submission)
_OPEN = and_(_TOLD.c.started_at.is_(None), _TOLD.c.left_at.is_(None))
_WAITS = and_(_JOB.c.active, _JOB.c.start_time.is_(None))
# The queue was read a moment before the forecast was made: the start may lie between.
_BEFORE = timedelta(minutes=2)
_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Made:
    """A forecast to be kept for the record. `moment`: submit or waiting."""

    job_id: int | None
    submission_id: int | None
    made_at: datetime
    moment: str
    source: ForecastSource
    p50_at: datetime
    p90_at: datetime | None
    partition: str
    group_name: str
    qos: str | None
    gpus: int
    gpu_type: str | None
    limit_minutes: int | None
    jobs: int
    model: str | None


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest of a job that waits. `why` in the place of the times: core.forecast.NoForecast."""

    job_id: int
    source: ForecastSource
    made_at: datetime
    p50_at: datetime | None
    p90_at: datetime | None
    jobs: int
    why: str | None


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """A job that waits, as a forecast asks about it. `is_array`: the record of several tasks."""

    id: int
    partition: str
    group: str
    qos: str | None
    gpus: int
    gpu_type: str | None
    nodes: int
    cpus: int
    limit_minutes: int | None
    priority: int | None
    reason: str | None
    submit_time: datetime
    eligible_time: datetime | None
    estimated_start: datetime | None
    is_array: bool


_WAITING: Select[Any] = select(
    _JOB.c.id,
    _JOB.c.partition,
    _JOB.c.group_name,
    _JOB.c.qos,
    _JOB.c.gpus,
    _JOB.c.req_gpu_type,
    _JOB.c.nodes,
    _JOB.c.cpus,
    _JOB.c.time_limit_minutes,
    _JOB.c.priority,
    _JOB.c.reason,
    _JOB.c.last_submit_time,
    _JOB.c.eligible_time,
    _JOB.c.estimated_start,
    and_(_JOB.c.array_job_id.is_not(None), _JOB.c.array_task.is_(None)),
).where(_WAITS, _JOB.c.left_queue_at.is_(None))


def waiting(session: Session, *, most: int) -> list[WaitingRow]:
    """Jobs that wait, those with most points first, held ones without any last."""
    query = _WAITING.order_by(_JOB.c.priority.desc().nulls_last(), _JOB.c.id).limit(most)
    return [WaitingRow(*row) for row in session.execute(query)]


def last_kept(session: Session) -> dict[tuple[int, str], datetime]:
    """When the newest of the record was made, by job that waits and source."""
    query = (
        select(_TOLD.c.job_id, _TOLD.c.source, func.max(_TOLD.c.made_at))
        .where(_OPEN, _TOLD.c.job_id.is_not(None))
        .group_by(_TOLD.c.job_id, _TOLD.c.source)
    )
    return {(job, source): at for job, source, at in session.execute(query)}


def keep(session: Session, made: Sequence[Made]) -> None:
    """Add to the record."""
    if made:
        session.execute(insert(_TOLD), [asdict(one) for one in made])


def is_kept(session: Session, submission_id: int) -> bool:
    """Whether this submission's forecasts are in the record."""
    found = select(_TOLD.c.id).where(_TOLD.c.submission_id == submission_id).limit(1)
    return session.scalar(found) is not None


def renew(session: Session, job_ids: Collection[int], newest: Sequence[Newest]) -> None:
    """The newest of these jobs, in the place of what stood there."""
    for part in chunks(sorted(job_ids)):
        session.execute(delete(_NOW).where(_NOW.c.job_id.in_(part)))
    if newest:
        session.execute(insert(_NOW), [asdict(one) for one in newest])


def forget_others(session: Session) -> None:
    """The newest of jobs that wait no more: nobody is shown it."""
    session.execute(delete(_NOW).where(~exists().where(_JOB.c.id == _NOW.c.job_id, _WAITS)))


def link(session: Session) -> None:
    """Forecasts of submissions to the jobs that these have become."""
    job = select(_SUBMISSION.c.job_id).where(_SUBMISSION.c.id == _TOLD.c.submission_id)
    session.execute(
        update(_TOLD)
        .where(
            _TOLD.c.job_id.is_(None),
            exists().where(
                _SUBMISSION.c.id == _TOLD.c.submission_id, _SUBMISSION.c.job_id.is_not(None)
            ),
        )
        .values(job_id=job.scalar_subquery())
    )


def resolve(session: Session) -> int:
    """Fill in what came of forecasts whose jobs have started, or are gone: how many."""
    ran = exists().where(_RUN.c.job_id == _TOLD.c.job_id, _RUN.c.start_time >= _TOLD.c.made_at)
    query = (
        select(
            _TOLD.c.id,
            _TOLD.c.made_at,
            _TOLD.c.job_id,
            _JOB.c.start_time,
            _JOB.c.active,
            _JOB.c.end_time,
            _JOB.c.seen_at,
        )
        .join(_JOB, _JOB.c.id == _TOLD.c.job_id)
        .where(_OPEN, or_(_JOB.c.start_time.is_not(None), ~_JOB.c.active, ran))
    )
    found = session.execute(query).all()
    starts = _starts(session, {row.job_id for row in found})
    changes = [change for row in found if (change := _outcome(row, starts)) is not None]
    if changes:
        session.connection().execute(
            update(_TOLD)
            .where(_TOLD.c.id == bindparam("one"))
            .values(started_at=bindparam("started"), left_at=bindparam("left")),
            changes,
        )
    return len(changes)


def prune(session: Session, *, before: datetime) -> None:
    """Forget what was made before."""
    session.execute(delete(_TOLD).where(_TOLD.c.made_at < before))


def _starts(session: Session, job_ids: Collection[int]) -> dict[int, list[datetime]]:
    found: dict[int, list[datetime]] = {}
    for part in chunks(sorted(job_ids)):
        query = select(_RUN.c.job_id, _RUN.c.start_time).where(_RUN.c.job_id.in_(part))
        for job_id, at in session.execute(query):
            found.setdefault(job_id, []).append(at)
    return found


def _outcome(row: Any, starts: dict[int, list[datetime]]) -> dict[str, Any] | None:
    """The first start after the forecast: a requeued job has several."""
    known = [*starts.get(row.job_id, []), *([row.start_time] if row.start_time else [])]
    after = [at for at in known if at >= row.made_at - _BEFORE]
    if after:
        return {"one": row.id, "started": max(min(after), row.made_at), "left": None}
    if row.active:
        return None
    return {"one": row.id, "started": None, "left": max(row.end_time or row.seen_at, row.made_at)}
