"""What the database tells of a block of jobs, as rows of the columnar history."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, bindparam, case, exists, null, select
from sqlalchemy import Integer as SqlInteger
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.functions import GenericFunction

from gateway.core.past_runs import COLUMNS, ColumnType, Row
from gateway.core.wait_causes import cause_at, split
from gateway.store import history, wait_reasons
from gateway.store.models import Job, Run, table_of
from gateway.store.money_models import Charge

_RUN, _JOB, _CHARGE = map(table_of, (Run, Job, Charge))
# The rest is made of what polls saw.
_FACTS = [name for name in COLUMNS if not name.startswith("cause_")]
_PLACE = {name: place for place, name in enumerate(_FACTS)}
_JOB_ID, _CLUSTER = _PLACE["job_id"], _PLACE["cluster"]
_SUBMIT, _ELIGIBLE, _START, _END, _SEEN = (
    _PLACE[name] for name in ("submit_time", "eligible_time", "start_time", "end_time", "seen_at")
)


class _Seconds(GenericFunction[int]):
    """Whole seconds since 1970 of a time: a million datetime objects would cost many seconds."""

    type = SqlInteger()
    inherit_cache = True
    name = "sluice_seconds"


@compiles(_Seconds, "sqlite")
def _on_sqlite(element: Any, compiler: Any, **kw: Any) -> str:
    return f"CAST(strftime('%s', {compiler.process(element.clauses, **kw)}) AS INTEGER)"


@compiles(_Seconds, "postgresql")
def _on_postgresql(element: Any, compiler: Any, **kw: Any) -> str:
    # Rounded down, as SQLite does it.
    return f"CAST(floor(extract(epoch FROM {compiler.process(element.clauses, **kw)})) AS BIGINT)"


def _of_run(name: str) -> ColumnElement[Any]:
    elsewhere = {
        "run_id": _RUN.c.id,
        "template": _JOB.c.template,
        "limit_minutes": _JOB.c.time_limit_minutes,
        "gpu_type": _JOB.c.gpu_type,
        "req_gpu_type": _JOB.c.req_gpu_type,
        "charge": _CHARGE.c.amount,
        "group": _RUN.c.group_name,
        "source": null(),
        "priority": _JOB.c.priority,
        "seen_at": null(),
    }
    return _as_kept(name, elsewhere.get(name, _RUN.c.get(name)))


def _of_job(name: str) -> ColumnElement[Any]:
    elsewhere = {
        "job_id": _JOB.c.id,
        "submit_time": _JOB.c.last_submit_time,  # of the wait that goes on, after a requeue
        "limit_minutes": _JOB.c.time_limit_minutes,
        "group": _JOB.c.group_name,
        "seen_at": null(),
    }
    return _as_kept(name, elsewhere.get(name, _JOB.c.get(name)))


def _as_kept(name: str, found: Any) -> ColumnElement[Any]:
    if found is None or COLUMNS[name] is not ColumnType.TIME:
        return cast(ColumnElement[Any], null() if found is None else found)
    return found if found is null() else _Seconds(found)


_FIRST, _PAST = bindparam("first", type_=SqlInteger), bindparam("past", type_=SqlInteger)
_RUNS = (
    select(*map(_of_run, _FACTS))
    .join_from(_RUN, _JOB, _JOB.c.id == _RUN.c.job_id)
    .outerjoin(_CHARGE, (_CHARGE.c.run_id == _RUN.c.id) & (_CHARGE.c.state == "posted"))
    .where(_RUN.c.job_id >= _FIRST, _RUN.c.job_id < _PAST)
    .order_by(_RUN.c.id)
)
# An open job waits, or has started a moment ago and accounting does not tell of it yet, where it
# has no run since it was last submitted. A job that is over has no row beside its runs.
_WITHOUT_RUN = ~exists().where(
    _RUN.c.job_id == _JOB.c.id,
    ~_JOB.c.active | (_RUN.c.submit_time >= _JOB.c.last_submit_time),
)
# Slurm keeps the tasks of an array that have not started in one record.
_TASKS = case((_JOB.c.start_time.is_(None) & _JOB.c.array_task.is_(None), _JOB.c.array_tasks))
_JOBS = (
    select(*map(_of_job, _FACTS), _JOB.c.reason, _TASKS)
    .where(_JOB.c.id >= _FIRST, _JOB.c.id < _PAST, _WITHOUT_RUN)
    .order_by(_JOB.c.id)
)


def rows(session: Session, block: int, *, now: datetime) -> list[tuple[Row, int]]:
    """Each row of the block, in the order of core.past_runs.COLUMNS, and of how many tasks of an
    array it tells."""
    bounds = {"first": block * history.BLOCK, "past": (block + 1) * history.BLOCK}
    connection = session.connection()
    looks = _Looks(session, bounds)
    found = [(looks.row(run), 1) for run in connection.execute(_RUNS, bounds)]
    seen = int(now.timestamp())
    for *facts, reason, tasks in connection.execute(_JOBS, bounds):
        if facts[_START] is None and facts[_END] is None:
            facts[_SEEN] = max(seen, facts[_SUBMIT])
        found.append((looks.row(facts, reason), max(tasks or 1, 1)))
    return found


class _Looks:
    """What polls saw of the waits of a block's jobs."""

    def __init__(self, session: Session, bounds: dict[str, int]) -> None:
        self._reasons = wait_reasons.between(session, bounds["first"], bounds["past"])
        self._gaps = wait_reasons.gaps(session)

    def row(self, facts: Sequence[Any], reason: str | None = None) -> Row:
        """With the causes of the wait; `reason` is the job's present one."""
        submit, eligible, seen = facts[_SUBMIT], facts[_ELIGIBLE], facts[_SEEN]
        until = next(t for t in (facts[_START], facts[_END], seen, submit) if t is not None)
        reasons = self._reasons.get((facts[_JOB_ID], submit), [])
        gaps = self._gaps.get(facts[_CLUSTER], []) if reasons else []
        parts = split(submit, eligible, until, reasons, gaps=gaps)
        cause_now = None
        if seen is not None:
            waits = eligible is not None and eligible <= seen
            last = reasons[-1][1] if reasons else reason
            cause_now = cause_at(last, eligible=waits)
        return (*facts, cause_now, *parts.values())
