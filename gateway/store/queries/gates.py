"""The gate for pages: who is shut, who would be, and which jobs wait behind it."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from gateway.store import money_models as mm
from gateway.store.models import Job


@dataclass(frozen=True, slots=True)
class GateState:
    """Of a group, or of one member (`user` not empty). `reason`: core.gate.Why.

    Not closed with another reason than `open`: the gate only watches, and would shut.
    `confirmed_at` None: Slurm has not been seen to have it. The two limits are what the portal
    wants Slurm to have, None: no limit.
    """

    group: str
    user: str
    closed: bool
    reason: str
    submit: int | None
    run_minutes: int | None
    changed_at: datetime
    confirmed_at: datetime | None
    error_code: str | None

    @property
    def would_close(self) -> bool:
        return not self.closed and self.reason != "open"


@dataclass(frozen=True, slots=True)
class HeldLine:
    """A job that waits until its group can pay for it."""

    job_id: int
    slurm_id: int
    user: str
    name: str
    at: datetime
    reason: str


def gates(session: Session, group: str | None = None) -> list[GateState]:
    """By group, each with its members after it; None: of all groups."""
    gate = mm.Gate
    query = select(gate).order_by(gate.group, gate.user)
    if group is not None:
        query = query.where(gate.group == group)
    return [
        GateState(
            group=row.group,
            user=row.user,
            closed=row.closed,
            reason=row.reason,
            submit=row.wanted.get("submit"),
            run_minutes=row.wanted.get("run_minutes"),
            changed_at=row.changed_at,
            confirmed_at=row.confirmed_at,
            error_code=row.error_code,
        )
        for row in session.scalars(query)
    ]


def held(session: Session, group: str, *, limit: int = 100) -> list[HeldLine]:
    """The group's jobs behind the gate, the oldest first."""
    query = (
        select(
            mm.GateHeldJob.job_id,
            Job.slurm_id,
            Job.user,
            Job.name,
            mm.GateHeldJob.at,
            mm.GateHeldJob.reason,
        )
        .join(Job, Job.id == mm.GateHeldJob.job_id)
        .where(Job.group == group)
        .order_by(Job.submit_time, Job.id)
        .limit(limit)
    )
    return [HeldLine(*row) for row in session.execute(query)]


def why_held(session: Session, job_id: int) -> str | None:
    """Why the gate holds this job; None: it does not, so JobHeldAdmin is a person's doing."""
    query = select(mm.GateHeldJob.reason).where(mm.GateHeldJob.job_id == job_id)
    return session.scalar(query)
