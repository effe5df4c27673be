"""Runs that a dataset of the catalogue kept from beginning, and jobs that read one now."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from gateway.store.dataset_models import Dataset, DatasetUse, DatasetVersion
from gateway.store.models import Job, Run, Submission, table_of
from gateway.store.upsert import CHUNK, chunks

# What the prologue ends with, before the program starts (sluice_train.node.prepare).
BAD_DATASET = 65
# Whoever ended with 65 by themselves later than this has used the cards.
FIRST_SECONDS = 120


def lost_data(session: Session, run_ids: Sequence[int]) -> dict[int, list[str]]:
    """Of these runs, those that a dataset kept from beginning: their datasets, as name@version."""
    found: dict[int, list[str]] = {}
    for part in chunks(run_ids, CHUNK):
        query = (
            select(Run.id, Dataset.name, DatasetVersion.version)
            .join(Job, Job.id == Run.job_id)
            .join(Submission, Submission.token == Job.token)
            .join(DatasetUse, DatasetUse.submission_id == Submission.id)
            .join(DatasetVersion, DatasetVersion.id == DatasetUse.version_id)
            .join(Dataset, Dataset.id == DatasetVersion.dataset_id)
            .where(
                Run.id.in_(part),
                Run.exit_code == BAD_DATASET,
                Run.elapsed_seconds <= FIRST_SECONDS,
            )
            .order_by(Run.id, Dataset.name)
        )
        for run_id, name, version in session.execute(query):
            found.setdefault(run_id, []).append(f"{name}@{version}")
    return found


def running_with(session: Session, version_id: int) -> list[int]:
    """Submissions with this version that have a job on nodes now."""
    job, used = table_of(Job).c, table_of(DatasetUse).c
    query = (
        select(Submission.id)
        .join(DatasetUse, used.submission_id == Submission.id)
        .join(Job, job.token == Submission.token)
        .where(used.version_id == version_id, job.active, job.start_time.is_not(None))
        .distinct()
    )
    return list(session.scalars(query))
