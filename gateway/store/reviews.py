"""Runs that wait for a person."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import exists, select, text, update
from sqlalchemy.orm import Session

from gateway.store import history
from gateway.store import money_models as mm
from gateway.store.models import HeldRow, Job, Run, Submission


@dataclass(frozen=True, slots=True)
class LostRun:
    """A run without an end; `last_seen` is when the queue had its job last."""

    id: int
    group: str
    user: str
    partition: str
    qos: str | None
    state: str
    start: datetime
    cpus: int
    gpus: int | None
    alloc_tres: str
    node_list: str | None
    last_seen: datetime
    time_limit_minutes: int | None


@dataclass(frozen=True, slots=True)
class LostHold:
    id: int
    group: str
    user: str
    amount: int
    job_id: int
    slurm_id: int


@dataclass(frozen=True, slots=True)
class RunRow:
    id: int
    group: str
    gpus: int | None
    start: datetime
    end_time: datetime | None


@dataclass(frozen=True, slots=True)
class ReviewRow:
    """One run of the review with the evidence: what accounting says, and what the queue saw."""

    charge_id: int
    run_id: int
    job_id: int
    slurm_id: int
    cluster: str
    group: str
    user: str
    name: str
    partition: str
    qos: str | None
    reason: str
    state: str
    amount: int
    pending: int | None
    at: datetime
    run_state: str
    start: datetime
    end: datetime | None
    elapsed_seconds: int
    seen_until: datetime | None
    last_seen: datetime
    time_limit_minutes: int | None
    nodes: int
    gpus: int | None
    gpus_asked: int
    gpu_type: str | None
    alloc_tres: str
    node_list: str | None
    decision: dict[str, Any] | None


_EVIDENCE = (
    mm.Charge.id,
    Run.id,
    Job.id,
    Run.slurm_id,
    Run.cluster,
    Run.group,
    Run.user,
    Job.name,
    Run.partition,
    Run.qos,
    mm.Charge.reason,
    mm.Charge.state,
    mm.Charge.amount,
    mm.Charge.pending,
    mm.Charge.at,
    Run.state,
    Run.start_time,
    Run.end_time,
    Run.elapsed_seconds,
    Run.seen_until,
    Job.seen_at,
    Job.time_limit_minutes,
    Run.nodes,
    Run.gpus,
    Job.gpus,
    Job.gpu_type,
    Run.alloc_tres,
    Run.node_list,
    mm.Charge.decision,
)


def waiting(
    session: Session,
    *,
    limit: int = 200,
    group: str | None = None,
    charge_id: int | None = None,
) -> list[ReviewRow]:
    """The review, oldest first; also charges on which a corrected record threw a doubt."""
    query = (
        select(*_EVIDENCE)
        .join(Run, Run.id == mm.Charge.run_id)
        .join(Job, Job.id == Run.job_id)
        .where(text("charge.reason is not null"))  # as the partial index says it
        .order_by(mm.Charge.at, mm.Charge.id)
        .limit(limit)
    )
    if group is not None:
        query = query.where(mm.Charge.group == group)
    if charge_id is not None:
        query = query.where(mm.Charge.id == charge_id)
    return [ReviewRow(*tuple(row)) for row in session.execute(query)]


def lost_runs(session: Session, *, before: datetime, limit: int = 200) -> list[LostRun]:
    """Runs that accounting calls open, of jobs that the queue has not had since `before`."""
    charged = exists().where(mm.Charge.run_id == Run.id)
    gone = select(Job.id).where(Job.left_queue_at.is_not(None), Job.left_queue_at < before)
    columns = (
        Run.id,
        Run.group,
        Run.user,
        Run.partition,
        Run.qos,
        Run.state,
        Run.start_time,
        Run.cpus,
        Run.gpus,
        Run.alloc_tres,
        Run.node_list,
        Job.seen_at,
        Job.time_limit_minutes,
    )
    query = (
        select(*columns)
        .join(Job, Job.id == Run.job_id)
        .where(Run.job_id.in_(gone), Run.end_time.is_(None), ~charged)
        .order_by(Run.id)
        .limit(limit)
    )
    return [LostRun(*tuple(row)) for row in session.execute(query)]


def lost_holds(session: Session, *, before: datetime, limit: int = 200) -> list[LostHold]:
    """Open holds of jobs that never ran as far as accounting knows, and that the queue has not
    had since `before`."""
    ran = exists().where(Run.job_id == Job.id)
    query = (
        select(mm.Hold.id, mm.Hold.group, mm.Hold.user, mm.Hold.amount, Job.id, Job.slurm_id)
        .join(Submission, Submission.id == mm.Hold.submission_id)
        .join(Job, Job.id == Submission.job_id)
        .where(mm.Hold.closed_at.is_(None), ~ran)
        .where(Job.left_queue_at.is_not(None), Job.left_queue_at < before)
        .order_by(mm.Hold.id)
        .limit(limit)
    )
    return [LostHold(*row) for row in session.execute(query)]


def lock_run(session: Session, run_id: int) -> RunRow | None:
    """The run, nobody else's until the transaction ends: settling waits for the decision."""
    columns = (Run.id, Run.group, Run.gpus, Run.start_time, Run.end_time)
    query = select(*columns).where(Run.id == run_id)
    found = session.execute(query.with_for_update()).one_or_none()
    return RunRow(*found) if found else None


def end_by_decision(session: Session, run_id: int, seconds: int) -> None:
    """A run without an end gets the one that the decision implies, and is settled with it. Its
    job is over for the portal: slurmctld denies it."""
    run = session.get_one(Run, run_id)
    end = run.start_time + timedelta(seconds=seconds)
    session.execute(
        update(Run)
        .where(Run.id == run_id)
        .values(end_time=end, elapsed_seconds=seconds, suspended_seconds=0, to_settle=True)
    )
    history.mark(session, [run.job_id])
    session.execute(
        update(Job)
        .where(Job.id == run.job_id)
        .values(active=False, accounted=True, end_time=end, left_queue_at=None)
    )


def held_row(session: Session, row_id: int) -> bool:
    found = session.get(HeldRow, row_id)
    return found is not None and found.settled_at is None


def settle_held_row(session: Session, row_id: int, *, now: datetime) -> None:
    """A person has dealt with it: it leaves the list, and stays in the table."""
    session.execute(
        update(HeldRow)
        .where(HeldRow.id == row_id, HeldRow.settled_at.is_(None))
        .values(settled_at=now)
    )
