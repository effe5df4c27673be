"""Jobs that nobody has seen before, with their run, many at once.

Rows come prepared as flat tuples of texts and numbers, so that another process can make them.
SQLite gets them as they are; other databases get them with their own types.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Boolean, Table, bindparam, case, cast, func, select, text
from sqlalchemy.orm import Session

from gateway.store import history
from gateway.store.models import Job, Run, table_of
from gateway.store.types import UtcDateTime
from gateway.store.uow import BUSY_MILLISECONDS
from gateway.store.upsert import chunks, insert_ignoring

# A null in a prepared row. Python's sqlite3 takes ten times as long for None as for a text, and
# no text that Slurm gives can hold this sign.
NONE = "\0"

# The order of a prepared job. First come the fields of a wire RunRecord, in its order.
JOB = (
    "slurm_id", "user", "uid", "name", "group_name", "partition", "qos", "state", "submit_time",
    "eligible_time", "start_time", "end_time", None, None, "time_limit_minutes", "nodes", "cpus",
    None, None, "node_list", "exit_code", "exit_signal", "restarts", "reason",
    "working_directory", None, "array_job_id", "array_task", None, "array_tasks",
    "cluster", "active", "gpus", "gpu_type", "req_gpu_type", "token", "seen_at", "accounted",
)  # fmt: skip
# The order of a prepared run: which job's it is, and what the job's row does not hold.
RUN = (
    "slurm_id", "cluster", "submit_time", "over", "elapsed_seconds", "suspended_seconds", "gpus",
    "alloc_tres", "cancelled_by",
)  # fmt: skip
_SHARED = (
    "cluster", "slurm_id", "user", "group_name", "partition", "qos", "state", "submit_time",
    "eligible_time", "start_time", "nodes", "cpus", "node_list", "exit_code", "exit_signal",
    "restarts",
)  # fmt: skip
_JOBS, _RUNS = table_of(Job), table_of(Run)
_FEW_JOBS = 20_000


def put(session: Session, jobs: Sequence[tuple[Any, ...]], runs: Sequence[tuple[Any, ...]]) -> None:
    """Insert prepared jobs and their runs; one that somebody has made already is left as it is."""
    before = history.highest(session)
    if session.connection().dialect.name == "sqlite":
        _put_as_they_are(session, jobs, runs)
    else:
        _put_typed(session, jobs, runs)
    history.mark_since(session, before)


def _put_as_they_are(
    session: Session, jobs: Sequence[tuple[Any, ...]], runs: Sequence[tuple[Any, ...]]
) -> None:
    # Straight to the driver: SQLAlchemy would look at each row and each value.
    driver: Any = session.connection().connection.driver_connection
    driver.executemany(_SQLITE_JOB, jobs)
    driver.executemany(_SQLITE_RUN, runs)


def known_ids(session: Session, cluster: str, slurm_ids: Sequence[int]) -> set[int]:
    """Which of these ids the store has, as whatever job."""
    highest = session.execute(_HIGHEST).scalar()
    if highest is None or min(slurm_ids, default=0) > highest:
        return set()
    found: set[int] = set()
    for part in chunks(slurm_ids):
        query = select(_JOBS.c.slurm_id).where(
            _JOBS.c.cluster == cluster, _JOBS.c.slurm_id.in_(part)
        )
        found.update(session.scalars(query))
    return found


def write_straight(session: Session) -> None:
    """Where nobody else has the SQLite file open, and it holds few jobs, write into it rather
    than into its log first: a million jobs are a gigabyte, twice. Called before anything was
    written. A kill leaves a journal, from which whoever opens the file next restores it.
    """
    if session.get_bind().dialect.name == "sqlite" and not _many_jobs(session):
        _journal(session, "DELETE")


def write_as_ever(session: Session) -> None:
    """Undoes `write_straight`, in a transaction of its own."""
    if session.get_bind().dialect.name == "sqlite":
        _journal(session, "WAL")


def _journal(session: Session, mode: str) -> None:
    driver: Any = session.connection().connection.driver_connection
    driver.execute("COMMIT")
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        driver.execute(f"PRAGMA journal_mode = {mode}")
    except sqlite3.OperationalError:
        pass  # somebody else has it open: the log it is
    finally:
        driver.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
        driver.execute("BEGIN IMMEDIATE")


def drop_indexes(session: Session) -> list[str]:
    """Where few jobs are stored, drop what only speeds up reading, and answer the statements
    that make it again. SQLite sorts a whole index in a tenth of the time that a million
    single insertions take. In one transaction with the insertions: a kill leaves the old state.
    """
    if session.get_bind().dialect.name != "sqlite" or _many_jobs(session):
        return []
    found = session.execute(
        text(
            "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
            " AND tbl_name IN ('job', 'run') AND sql NOT LIKE 'CREATE UNIQUE%'"
        )
    ).all()
    for name, _ in found:
        session.connection().exec_driver_sql(f'DROP INDEX "{name}"')
    return [statement for _, statement in found]


def make_indexes(session: Session, statements: Sequence[str]) -> None:
    for statement in statements:
        session.connection().exec_driver_sql(statement)


def _many_jobs(session: Session) -> bool:
    return session.execute(select(_JOBS.c.id).offset(_FEW_JOBS).limit(1)).scalar() is not None


_HIGHEST = select(func.max(_JOBS.c.slurm_id))


def insert_job(marks: Mapping[str, str]) -> str:
    """SQLite's statement, with what stands for each column of JOB."""
    given = {"last_submit_time": marks["submit_time"], **marks}
    return (
        f"INSERT INTO job ({', '.join(map(_quoted, given))}) VALUES ({', '.join(given.values())})"  # noqa: S608  # our own names
        " ON CONFLICT DO NOTHING"
    )


def insert_run(marks: Mapping[str, str]) -> str:
    """The same for RUN: the rest comes from the job's row."""
    own = {
        "job_id": "id",
        "end_time": f"CASE WHEN {marks['over']} THEN end_time END",
        "to_settle": f"{marks['over']} AND end_time IS NOT NULL",
        **{name: marks[name] for name in RUN[4:]},
    }
    names = ", ".join(map(_quoted, [*_SHARED, *own]))
    values = ", ".join([*map(_quoted, _SHARED), *own.values()])
    return (
        f"INSERT INTO run ({names}) SELECT {values} FROM job"  # noqa: S608  # our own names
        f" WHERE slurm_id = {marks['slurm_id']} AND cluster = {marks['cluster']}"
        f" AND submit_time = {marks['submit_time']} ON CONFLICT DO NOTHING"
    )


def or_null(mark: str) -> str:
    return f"nullif({mark}, char(0))"


def _all_marks(names: Sequence[str | None], table: Table) -> dict[str, str]:
    marks = {}
    for place, name in enumerate(names, start=1):
        if name is not None:
            nullable = name in table.c and table.c[name].nullable
            marks[name] = or_null(f"?{place}") if nullable else f"?{place}"
    return marks


def _quoted(name: str) -> str:
    return f'"{name}"'


def _put_typed(
    session: Session, jobs: Sequence[tuple[Any, ...]], runs: Sequence[tuple[Any, ...]]
) -> None:
    connection = session.connection()
    made = [_typed(_JOB_KINDS, row) for row in jobs]
    for row in made:
        row["last_submit_time"] = row["submit_time"]
    if made:
        connection.execute(insert_ignoring(session, _JOBS), made)
    if runs:
        connection.execute(_typed_run(session), [_typed(_RUN_KINDS, row) for row in runs])


def _typed_run(session: Session) -> Any:
    job = _JOBS.c
    of_job = {name: job[name] for name in _SHARED}
    over = bindparam("b_over", type_=Boolean)
    own = {
        "job_id": job.id,
        "end_time": case((over, job.end_time)),
        "to_settle": over & job.end_time.is_not(None),
        **{
            name: cast(bindparam(f"b_{name}", type_=_RUNS.c[name].type), _RUNS.c[name].type)
            for name in ("elapsed_seconds", "suspended_seconds", "gpus", "alloc_tres")
        },
        "cancelled_by": cast(bindparam("b_cancelled_by"), _RUNS.c.cancelled_by.type),
    }
    found = select(*of_job.values(), *own.values()).where(
        job.slurm_id == bindparam("b_slurm_id"),
        job.cluster == bindparam("b_cluster"),
        job.submit_time == bindparam("b_submit_time"),
    )
    return insert_ignoring(session, _RUNS).from_select([*of_job, *own], found)


def _typed(kinds: Sequence[tuple[str, Any] | None], row: Sequence[Any]) -> dict[str, Any]:
    return {
        kind[0]: None if value == NONE else kind[1](value)
        for kind, value in zip(kinds, row, strict=True)
        if kind is not None
    }


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _as_is(value: Any) -> Any:
    return value


def _kind(type_: Any) -> Any:
    if isinstance(type_, UtcDateTime):
        return _time
    return bool if isinstance(type_, Boolean) else _as_is


_JOB_KINDS = [None if name is None else (name, _kind(_JOBS.c[name].type)) for name in JOB]
_RUN_KINDS = [(f"b_{name}", bool if name == "over" else _kind(_RUNS.c[name].type)) for name in RUN]
_SQLITE_JOB, _SQLITE_RUN = insert_job(_all_marks(JOB, _JOBS)), insert_run(_all_marks(RUN, _RUNS))
