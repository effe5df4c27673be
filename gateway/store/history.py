"""Runs and waits by blocks of their jobs, for the columnar history, and the marks of what changed.

A block holds all rows of a job, so that one that starts is in one of them at each moment.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import bindparam, delete, func, insert, select
from sqlalchemy.orm import Session

from gateway.store.history_models import HistoryMark
from gateway.store.models import Job, Run, table_of
from gateway.store.upsert import chunks

BLOCK = 16_384  # jobs a block: made again in some 200 ms

_RUN, _JOB, _MARK = map(table_of, (Run, Job, HistoryMark))
_ADD = insert(_MARK)
_HIGHEST_JOB, _HIGHEST_RUN = select(func.max(_JOB.c.id)), select(func.max(_RUN.c.id))
_NEXT = select(func.min(_JOB.c.id)).where(_JOB.c.id >= bindparam("first"))
# Runs of jobs that were there before.
_NEW_RUNS = select(_RUN.c.job_id).where(
    _RUN.c.id > bindparam("run"), _RUN.c.job_id <= bindparam("job")
)


def mark(session: Session, job_ids: Iterable[int]) -> None:
    """These jobs, or runs of them, were written in this transaction: their blocks are to be made
    again."""
    found = sorted({job_id // BLOCK for job_id in job_ids})
    if found:
        session.connection().execute(_ADD, [{"block": block} for block in found])


def mark_runs(session: Session, run_ids: Sequence[int]) -> None:
    """The same for the jobs of these runs."""
    for part in chunks(run_ids):
        mark(session, session.scalars(select(_RUN.c.job_id).where(_RUN.c.id.in_(part))))


def highest(session: Session) -> tuple[int, int]:
    """Ids of the newest job and of the newest run; 0 where there is none."""
    connection = session.connection()
    return connection.scalar(_HIGHEST_JOB) or 0, connection.scalar(_HIGHEST_RUN) or 0


def mark_since(session: Session, before: tuple[int, int]) -> None:
    """The same for all jobs and runs that are newer than those of `before`: see `highest`."""
    job, run = before
    now = highest(session)
    if now[0] > job:
        mark(session, [*range(job + 1, now[0], BLOCK), now[0]])
    if now[1] > run and job:
        mark(session, session.scalars(_NEW_RUNS, {"run": run, "job": job}))


def marks(session: Session) -> dict[int, list[int]]:
    """Ids of marks by block."""
    found: dict[int, list[int]] = defaultdict(list)
    for mark_id, block in session.execute(select(_MARK.c.id, _MARK.c.block)):
        found[block].append(mark_id)
    return dict(found)


def unmark(session: Session, mark_ids: Sequence[int]) -> None:
    """What was marked meanwhile has other ids, and stays."""
    for part in chunks(mark_ids):
        session.execute(delete(_MARK).where(_MARK.c.id.in_(part)))


def blocks(session: Session) -> list[int]:
    """All that hold a job: a hop from block to block."""
    found: list[int] = []
    job_id = session.scalar(_NEXT, {"first": 0})
    while job_id is not None:
        found.append(job_id // BLOCK)
        job_id = session.scalar(_NEXT, {"first": (found[-1] + 1) * BLOCK})
    return found
