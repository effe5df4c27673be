"""What datasets were used for: by the submissions that named them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from gateway.store.dataset_models import DatasetUse, DatasetVersion
from gateway.store.models import Job, Run, Submission

# Not the copying of datasets to nodes, which uses them for another job.
_PERSONS = Submission.template != "stage-dataset"


@dataclass(frozen=True, slots=True)
class Usage:
    """`jobs` are submissions that became jobs; `card_seconds` those of their ended runs."""

    version_id: int
    version: int
    jobs: int
    people: int
    card_seconds: int
    last_at: datetime | None


def usage(session: Session, dataset_ids: Sequence[int]) -> dict[int, list[Usage]]:
    """By dataset, a row for each version that was used, newest first."""
    query = (
        select(
            DatasetVersion.dataset_id,
            DatasetVersion.id,
            DatasetVersion.version,
            func.count(Submission.id),
            func.count(Submission.person_id.distinct()),
            func.max(Submission.created_at),
        )
        .join(DatasetUse, DatasetUse.version_id == DatasetVersion.id)
        .join(Submission, Submission.id == DatasetUse.submission_id)
        .where(DatasetVersion.dataset_id.in_(dataset_ids), Submission.job_id.is_not(None), _PERSONS)
        .group_by(DatasetVersion.dataset_id, DatasetVersion.id, DatasetVersion.version)
        .order_by(DatasetVersion.dataset_id, DatasetVersion.version.desc())
    )
    seconds = _card_seconds(session, dataset_ids)
    found: dict[int, list[Usage]] = {}
    for dataset_id, version_id, number, jobs, users, last in session.execute(query):
        row = Usage(version_id, number, jobs, users, seconds.get(version_id, 0), last)
        found.setdefault(dataset_id, []).append(row)
    return found


def people(session: Session, dataset_ids: Sequence[int]) -> dict[int, int]:
    """How many people used any version of each: they are not the sum over its versions."""
    query = (
        select(DatasetVersion.dataset_id, func.count(Submission.person_id.distinct()))
        .join(DatasetUse, DatasetUse.version_id == DatasetVersion.id)
        .join(Submission, Submission.id == DatasetUse.submission_id)
        .where(DatasetVersion.dataset_id.in_(dataset_ids), Submission.job_id.is_not(None), _PERSONS)
        .group_by(DatasetVersion.dataset_id)
    )
    return {row[0]: row[1] for row in session.execute(query)}


def _card_seconds(session: Session, dataset_ids: Sequence[int]) -> dict[int, int]:
    """Tasks of an array share the submission's token."""
    held = Run.elapsed_seconds * case((Run.gpus.is_(None), 0), else_=Run.gpus)
    query = (
        select(DatasetVersion.id, func.sum(held))
        .join(DatasetUse, DatasetUse.version_id == DatasetVersion.id)
        .join(Submission, Submission.id == DatasetUse.submission_id)
        .join(Job, Job.token == Submission.token)
        .join(Run, Run.job_id == Job.id)
        .where(DatasetVersion.dataset_id.in_(dataset_ids))
        .group_by(DatasetVersion.id)
    )
    return {version_id: int(total or 0) for version_id, total in session.execute(query)}
