"""Metrics that jobs report under names of their own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from gateway.core.results import Curve, Reading, Result, dump_axis, gathered, load_axis
from gateway.store import result_models as rm
from gateway.store.models import table_of
from gateway.store.upsert import chunks

_METRIC, _GAP = table_of(rm.JobMetric), table_of(rm.JobMetricGap)
_RESULT = tuple(_METRIC.c[name] for name in Result.__slots__)


@dataclass(frozen=True, slots=True)
class Gap:
    """What of a job's reports is not kept."""

    skipped_bytes: int = 0
    names: int = 0


def last(session: Session, job_ids: Iterable[int]) -> dict[int, tuple[Result, ...]]:
    """Of each job the names that it has reported, in their order."""
    found: dict[int, list[Result]] = {job_id: [] for job_id in job_ids}
    for part in chunks(sorted(found)):
        query = select(_METRIC.c.job_id, *_RESULT).where(_METRIC.c.job_id.in_(part))
        for job_id, *rest in session.execute(query.order_by(_METRIC.c.name)):
            found[job_id].append(Result(*rest))
    return {job_id: tuple(results) for job_id, results in found.items()}


def curves(session: Session, job_id: int, names: Iterable[str] | None = None) -> list[Curve]:
    """All that is kept of these names, or of all."""
    query = select(*_RESULT, _METRIC.c.by_time, _METRIC.c.by_step)
    query = query.where(_METRIC.c.job_id == job_id).order_by(_METRIC.c.name)
    if names is not None:
        query = query.where(_METRIC.c.name.in_(sorted(names)))
    return [
        Curve(Result(*row[:-2]), load_axis(row[-2]), load_axis(row[-1]))
        for row in session.execute(query)
    ]


def gap(session: Session, job_id: int) -> Gap:
    query = select(_GAP.c.skipped_bytes, _GAP.c.names).where(_GAP.c.job_id == job_id)
    found = session.execute(query).one_or_none()
    return Gap(*found) if found else Gap()


def add(
    session: Session, job_id: int, readings: Sequence[Reading], *, skipped: int, now: datetime
) -> None:
    """Join what was read with what is known."""
    beyond: set[str] = set()
    if readings:
        known = {name: Curve(Result(name)) for name in _names(session, job_id)}
        told = {name for reading in readings for name in reading.values} & known.keys()
        known |= {curve.result.name: curve for curve in curves(session, job_id, told)}
        changed, beyond = gathered(readings, known)
        _put(session, job_id, changed)
    if skipped or beyond:
        was = gap(session, job_id)
        session.execute(delete(_GAP).where(_GAP.c.job_id == job_id))
        row = {"skipped_bytes": was.skipped_bytes + skipped, "names": max(was.names, len(beyond))}
        session.execute(insert(_GAP), {"job_id": job_id, "at": now, **row})


def _names(session: Session, job_id: int) -> list[str]:
    return list(session.scalars(select(_METRIC.c.name).where(_METRIC.c.job_id == job_id)))


def _put(session: Session, job_id: int, changed: Mapping[str, Curve]) -> None:
    session.execute(
        delete(_METRIC).where(_METRIC.c.job_id == job_id, _METRIC.c.name.in_(sorted(changed)))
    )
    rows = [
        {
            "job_id": job_id,
            **asdict(curve.result),
            "by_time": dump_axis(curve.by_time),
            "by_step": dump_axis(curve.by_step),
        }
        for curve in changed.values()
    ]
    if rows:
        session.connection().execute(insert(_METRIC), rows)
