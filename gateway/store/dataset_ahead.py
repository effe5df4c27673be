"""Waiting jobs whose datasets are to be on their nodes before they start, and the copying jobs."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from gateway.store.dataset_models import Dataset, DatasetUse, DatasetVersion
from gateway.store.environment_models import SiteJob
from gateway.store.models import Job, Person, Submission
from gateway.store.upsert import CHUNK, chunks

PENDING = "PENDING"
_YES = frozenset({"true", "on", "yes", "1", "y"})


@dataclass(frozen=True, slots=True)
class Part:
    """A dataset as a form names it, its bytes, and the MB (10^6 bytes) a second that it reads."""

    word: str
    bytes: int
    read_mbps: float | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job of the portal that waits, with the datasets that its nodes shall copy."""

    submission_id: int
    person_id: int
    token: str
    slurm_id: int
    partition: str
    group: str
    nodes: int
    parts: tuple[Part, ...]


def waiting(session: Session, tokens: Collection[str]) -> list[Waiting]:
    """Of these tokens, those that wait and whose form asks for copies; no arrays."""
    found: dict[int, Waiting] = {}
    for part in chunks(sorted(tokens), CHUNK):
        query = (
            select(Submission, Job, Dataset.name, DatasetVersion)
            .join(Job, Job.id == Submission.job_id)
            .join(DatasetUse, DatasetUse.submission_id == Submission.id)
            .join(DatasetVersion, DatasetVersion.id == DatasetUse.version_id)
            .join(Dataset, Dataset.id == DatasetVersion.dataset_id)
            .where(
                Submission.token.in_(part),
                Job.active,
                Job.state == PENDING,
                Job.array_job_id.is_(None),
                DatasetVersion.manifest.is_not(None),
            )
            .order_by(Submission.id, Dataset.name)
        )
        for asked, job, name, version in session.execute(query):
            if str(asked.ask.get("values", {}).get("stage_datasets", "")).lower() not in _YES:
                continue
            one = Part(f"{name}@{version.version}", version.bytes or 0, version.read_mbps)
            before = found[asked.id].parts if asked.id in found else ()
            found[asked.id] = _row(asked, job, (*before, one))
    return list(found.values())


def _row(asked: Submission, job: Job, parts: tuple[Part, ...]) -> Waiting:
    return Waiting(
        submission_id=asked.id,
        person_id=asked.person_id,
        token=asked.token,
        slurm_id=job.slurm_id,
        partition=job.partition,
        group=job.group,
        nodes=job.nodes,
        parts=parts,
    )


def sent(session: Session, kind: str, subject: str) -> int:
    """How many copying jobs there were for a submission, also those that could not be sent."""
    query = select(func.count()).where(SiteJob.kind == kind, SiteJob.subject == subject)
    return session.scalar(query) or 0


def open_count(session: Session, kind: str) -> int:
    query = select(func.count()).where(SiteJob.kind == kind, SiteJob.state == "open")
    return session.scalar(query) or 0


@dataclass(frozen=True, slots=True)
class Late:
    """A copying job that has not started although there is nothing to wait for any more."""

    slurm_id: int
    user: str


def late(session: Session, kind: str, *, now: datetime) -> list[Late]:
    """Those that still wait while the job that they were for does not, or has ended, or was
    expected to have started (`facts.until`, ISO)."""
    asked, ahead, job = aliased(Submission), aliased(Submission), aliased(Job)
    query = (
        select(Job.slurm_id, Person.unix_user, SiteJob.facts, job.state, job.active)
        .select_from(SiteJob)
        .join(Person, Person.id == SiteJob.person_id)
        .join(ahead, ahead.id == SiteJob.submission_id)
        .join(Job, Job.id == ahead.job_id)
        .outerjoin(asked, asked.id == SiteJob.facts["submission"].as_integer())
        .outerjoin(job, job.id == asked.job_id)
        .where(SiteJob.kind == kind, SiteJob.state == "open", Job.active, Job.state == PENDING)
    )
    return [
        Late(slurm_id, user)
        for slurm_id, user, facts, state, active in session.execute(query)
        if not active or state != PENDING or datetime.fromisoformat(facts["until"]) <= now
    ]
