"""How busy cards were while training runs told of them (docs/engineering/training.md)."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from gateway.store.models import Job
from gateway.store.training_models import TrainingMinute


@dataclass(frozen=True, slots=True)
class Measured:
    """Minutes of nodes that told of their cards, and the mean use of these in percent."""

    gpu_type: str
    node_minutes: int
    percent: float


def measured(session: Session, since: datetime, until: datetime) -> dict[str, Measured]:
    """By GPU type, of minutes that began in [since, until)."""
    minute = TrainingMinute
    rows = session.execute(
        select(Job.gpu_type, func.count(), func.avg(minute.util))
        .join(minute, minute.job_id == Job.id)
        .where(Job.start_time < until, or_(Job.end_time.is_(None), Job.end_time >= since))
        .where(minute.at >= int(since.timestamp()), minute.at < int(until.timestamp()))
        .where(minute.util.is_not(None), Job.gpu_type.is_not(None))
        .group_by(Job.gpu_type)
    )
    return {name: Measured(name, int(count), float(mean)) for name, count, mean in rows}
