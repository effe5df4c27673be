"""How fast jobs of people's scripts trained here, as the scripts themselves told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from gateway.store.models import Job, table_of
from gateway.store.training_models import TrainingEvent, TrainingPoint

NEWEST = 2000  # jobs that are looked through for those of a kind
MOST = 100  # of a kind, enough for a median
_J = table_of(Job).c
_ENDED = (
    select(_J.id, _J.gpu_type, _J.gpus)
    .where(
        # As the index ix_job_started_token has it, newest first.
        _J.active.is_(False),
        _J.token.is_not(None),
        _J.start_time.is_not(None),
        _J.end_time.is_not(None),
    )
    .order_by(_J.end_time.desc())
    .limit(NEWEST)
)


@dataclass(frozen=True, slots=True)
class Ended:
    id: int
    gpu_type: str
    gpus: int


@dataclass(frozen=True, slots=True)
class Trained:
    """`facts` are those of the event `model`; `rate` is in tokens a second of the whole job."""

    job_id: int
    facts: Mapping[str, Any]
    rate: float


def ended(session: Session) -> list[Ended]:
    """The newest that ran and are over, with their cards; a smoke job's step is no measure."""
    rows = session.execute(_ENDED.where(_J.purpose.is_(None)))
    return [Ended(*row) for row in rows if row[1] and row[2]]


def trained(session: Session, job_ids: Sequence[int], *, seconds: float) -> list[Trained]:
    """Of these jobs those that told their model and tokens over at least so many seconds."""
    ids = list(job_ids)[:MOST]
    rates = _rates(session, ids, seconds=seconds)
    query = (
        select(TrainingEvent.job_id, TrainingEvent.facts)
        .where(TrainingEvent.job_id.in_(ids), TrainingEvent.kind == "model")
        .order_by(TrainingEvent.at)
    )
    models = {row[0]: row[1] for row in session.execute(query)}
    return [Trained(one, models[one], rate) for one, rate in rates.items() if one in models]


def _rates(session: Session, ids: list[int], *, seconds: float) -> dict[int, float]:
    """Each stretch from its first line to its last. What the first line counts was before it."""
    point = TrainingPoint
    query = (
        select(
            point.job_id,
            func.sum(point.tokens),
            func.sum(point.lines),
            func.max(point.last_at) - func.min(point.first_at),
        )
        .where(point.job_id.in_(ids))
        .group_by(point.job_id, point.restart)
    )
    tokens, took = dict.fromkeys(ids, 0.0), dict.fromkeys(ids, 0.0)
    for job_id, *sums, passed in session.execute(query):
        count, lines = map(int, sums)  # PostgreSQL sums whole numbers as decimals
        tokens[job_id] += count * (lines - 1) / lines if lines else 0.0
        took[job_id] += float(passed)
    return {one: tokens[one] / took[one] for one in ids if took[one] >= seconds and tokens[one]}
