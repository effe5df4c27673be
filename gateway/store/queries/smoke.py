"""What became of a smoke job, and of the job that waits for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from gateway.core.training.sums import load
from gateway.store.models import Job, Submission
from gateway.store.training_models import TrainingEvent, TrainingMinute

_MINUTES = 64  # of telemetry: a row for each node and minute


@dataclass(frozen=True, slots=True)
class After:
    """The long job's submission, and its job."""

    submission_id: int
    state: str
    job_id: int | None
    slurm_id: int | None
    job_state: str | None
    active: bool | None

    @property
    def is_over(self) -> bool:
        """It will not run any more, or has."""
        return self.state in {"refused", "withdrawn"} or self.active is False


@dataclass(frozen=True, slots=True)
class Smoke:
    """`ask` is that of the long job; what is of the job is None until there is one. `told` are
    the facts of the run folder's event `smoke`, None where it has none; `card_bytes` is the memory
    of its smallest card, as the card itself says."""

    submission_id: int
    person_id: int
    state: str
    error_code: str | None
    ask: Mapping[str, Any]
    job_id: int | None
    slurm_id: int | None
    job_state: str | None
    active: bool
    reason: str | None
    partition: str | None
    gpu_type: str | None
    end_time: datetime | None
    exit_code: int | None
    told: Mapping[str, Any] | None
    card_bytes: int | None
    after: After | None


def smoke(session: Session, submission_id: int) -> Smoke | None:
    """None where the submission is no smoke job's."""
    asked = session.get(Submission, submission_id)
    if asked is None or asked.purpose != "smoke":
        return None
    job = session.get(Job, asked.job_id) if asked.job_id is not None else None
    return Smoke(
        submission_id=asked.id,
        person_id=asked.person_id,
        state=asked.state,
        error_code=asked.error_code,
        ask=asked.ask,
        job_id=job.id if job else None,
        slurm_id=job.slurm_id if job else None,
        job_state=job.state if job else None,
        active=job.active if job else True,
        reason=job.reason if job else None,
        partition=job.partition if job else None,
        gpu_type=job.gpu_type if job else None,
        end_time=job.end_time if job else None,
        exit_code=job.exit_code if job else None,
        told=_told(session, job.id) if job else None,
        card_bytes=_card_bytes(session, job.id) if job else None,
        after=_after(session, submission_id),
    )


def _told(session: Session, job_id: int) -> Mapping[str, Any] | None:
    """The last one: a job that was requeued says it again."""
    query = (
        select(TrainingEvent.facts)
        .where(TrainingEvent.job_id == job_id, TrainingEvent.kind == "smoke")
        .order_by(TrainingEvent.at.desc())
        .limit(1)
    )
    found: Mapping[str, Any] | None = session.scalar(query)
    return found


def _card_bytes(session: Session, job_id: int) -> int | None:
    query = select(TrainingMinute.cards).where(TrainingMinute.job_id == job_id).limit(_MINUTES)
    sizes = [card.mem_total for cards in session.scalars(query) for card in load(cards)]
    return min((size for size in sizes if size), default=None)


def _after(session: Session, submission_id: int) -> After | None:
    query = (
        select(Submission.id, Submission.state, Job.id, Job.slurm_id, Job.state, Job.active)
        .outerjoin(Job, Job.id == Submission.job_id)
        .where(Submission.after_id == submission_id)
        .order_by(Submission.id.desc())
        .limit(1)
    )
    found = session.execute(query).one_or_none()
    return After(*found) if found else None
