"""Forecasts of starts for pages: of one job, and the record of all."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, case, func, or_, select
from sqlalchemy.orm import Session

from gateway.core.forecast import ForecastSource
from gateway.core.forecast_record import Told
from gateway.store.forecast_models import ForecastNow, StartForecast
from gateway.store.forecasts import Newest
from gateway.store.models import Job, table_of

_TOLD, _NOW, _JOB = table_of(StartForecast), table_of(ForecastNow), table_of(Job)
_NEWEST = 300  # forecasts that tell how good one like them will be
SUBMIT, WAITING = "submit", "waiting"


@dataclass(frozen=True, slots=True)
class Asked:
    """Which forecasts of the record: made in [since, until), at this moment. Empty: all.
    `least_gpus` and `most_gpus` include both ends."""

    since: datetime
    until: datetime
    moment: str = SUBMIT
    partitions: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    gpu_types: tuple[str, ...] = ()
    gpus: tuple[tuple[int, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A forecast of one job, as it was made."""

    made_at: datetime
    moment: str
    source: ForecastSource
    p50_at: datetime
    p90_at: datetime | None


@dataclass(frozen=True, slots=True)
class Likes:
    """Of the newest forecasts like one: how many are judged, and started by what was named.
    `others`: people besides the reader."""

    counted: int
    by_p50: int
    by_p90: int
    others: int


def newest(session: Session, job_id: int) -> dict[ForecastSource, Newest]:
    """The newest forecasts of a job that waits."""
    rows = session.execute(_NOW.select().where(_NOW.c.job_id == job_id))
    found = [Newest(row[0], ForecastSource(row[1]), *row[2:]) for row in rows]
    return {one.source: one for one in found}


def of_job(session: Session, job_id: int, submission_id: int | None) -> list[KeptRow]:
    """Those that are kept, in the order in which they were made."""
    whose = _TOLD.c.job_id == job_id
    if submission_id is not None:
        whose = or_(whose, _TOLD.c.submission_id == submission_id)
    query = (
        select(_TOLD.c.made_at, _TOLD.c.moment, _TOLD.c.source, _TOLD.c.p50_at, _TOLD.c.p90_at)
        .where(whose)
        .order_by(_TOLD.c.made_at, _TOLD.c.source)
    )
    return [
        KeptRow(at, moment, ForecastSource(source), p50, p90)
        for at, moment, source, p50, p90 in session.execute(query)
    ]


def record(
    session: Session, asked: Asked, *, user: str, groups: Collection[str], most: int
) -> list[Told]:
    """The newest `most` of them, of jobs that Slurm accepted. `user` and `groups`: whose are the
    reader's own."""
    query = (
        select(
            _TOLD.c.made_at,
            _TOLD.c.source,
            _TOLD.c.p50_at,
            _TOLD.c.p90_at,
            _TOLD.c.partition,
            _TOLD.c.gpus,
            _JOB.c.user,
            _TOLD.c.group_name,
            _TOLD.c.started_at,
            _TOLD.c.left_at,
        )
        .join(_JOB, _JOB.c.id == _TOLD.c.job_id)
        .order_by(_TOLD.c.made_at.desc())
        .limit(most)
    )
    return [
        Told(
            row.made_at,
            ForecastSource(row.source),
            row.p50_at,
            row.p90_at,
            row.partition,
            row.gpus,
            row.user,
            row.user == user or row.group_name in groups,
            row.started_at,
            row.left_at,
        )
        for row in session.execute(_filtered(query, asked))
    ]


def choices(session: Session, since: datetime) -> dict[str, list[str]]:
    """What the record of since then can be filtered by."""
    columns = {
        "partition": _TOLD.c.partition,
        "qos": _TOLD.c.qos,
        "group": _TOLD.c.group_name,
        "gpu_type": _TOLD.c.gpu_type,
    }
    return {
        name: sorted(
            value
            for (value,) in session.execute(
                select(column).distinct().where(_TOLD.c.made_at >= since)
            )
            if value
        )
        for name, column in columns.items()
    }


def likes(
    session: Session,
    source: ForecastSource,
    *,
    user: str,
    partition: str,
    gpus: tuple[int, int | None],
    since: datetime,
    now: datetime,
) -> Likes:
    """How the newest forecasts at submit for this partition and class of cards have done."""
    by = func.coalesce(_TOLD.c.p90_at, _TOLD.c.p50_at)
    judged = (
        _with_gpus(
            select(_TOLD.c.p50_at, by.label("by_at"), _TOLD.c.started_at, _TOLD.c.job_id).where(
                _TOLD.c.moment == SUBMIT,
                _TOLD.c.source == source.value,
                _TOLD.c.partition == partition,
                _TOLD.c.made_at >= since,
                _TOLD.c.job_id.is_not(None),
                by <= now,
                or_(_TOLD.c.left_at.is_(None), _TOLD.c.left_at > by),
            ),
            (gpus,),
        )
        .order_by(_TOLD.c.made_at.desc())
        .limit(_NEWEST)
        .subquery()
    )
    started = judged.c.started_at
    row = session.execute(
        select(
            func.count(),
            func.sum(case((started <= judged.c.p50_at, 1), else_=0)),
            func.sum(case((started <= judged.c.by_at, 1), else_=0)),
            func.count(func.nullif(_JOB.c.user, user).distinct()),
        ).select_from(judged.join(_JOB, _JOB.c.id == judged.c.job_id))
    ).one()
    return Likes(*(int(number or 0) for number in row))


def _filtered(query: Select[Any], asked: Asked) -> Select[Any]:
    query = query.where(
        _TOLD.c.moment == asked.moment,
        _TOLD.c.made_at >= asked.since,
        _TOLD.c.made_at < asked.until,
    )
    for column, values in (
        (_TOLD.c.partition, asked.partitions),
        (_TOLD.c.qos, asked.qos),
        (_TOLD.c.group_name, asked.groups),
        (_TOLD.c.gpu_type, asked.gpu_types),
    ):
        if values:
            query = query.where(column.in_(values))
    return _with_gpus(query, asked.gpus)


def _with_gpus(query: Select[Any], classes: Collection[tuple[int, int | None]]) -> Select[Any]:
    if not classes:
        return query
    return query.where(
        or_(
            *(
                _TOLD.c.gpus >= low if high is None else _TOLD.c.gpus.between(low, high)
                for low, high in classes
            )
        )
    )
