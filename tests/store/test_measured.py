"""How fast jobs trained, as both databases tell it."""

import pytest

from gateway.store.queries import measured
from gateway.store.training_models import TrainingEvent, TrainingPoint
from gateway.store.uow import Begin
from gateway.testing import builders as b


def test_a_rate_is_the_tokens_after_the_first_line_over_the_time_since(begin: Begin) -> None:
    job = b.add_job(begin, state="COMPLETED", active=False)
    with begin() as session:
        session.add(TrainingEvent(job_id=job, at=1.0, restart=0, kind="model", facts={"params": 7}))
        for restart, first in ((0, 0.0), (1, 500.0)):
            for minute in range(2):
                session.add(point(job, restart, first + 60 * minute))
        session.flush()
        (found,) = measured.trained(session, [job], seconds=60)
        assert measured.trained(session, [job], seconds=1000) == []
    # Of each restart 120 lines with 10 tokens each, the first of them before the 110 s.
    assert found.rate == pytest.approx(2 * 1190 / (2 * 110))
    assert found.facts == {"params": 7}


def point(job_id: int, restart: int, at: float) -> TrainingPoint:
    """60 lines within 50 seconds, ten tokens each."""
    zeros = dict.fromkeys(
        ("first_step", "last_step", "losses", "samples", "timed", "peak_bytes"), 0
    )
    return TrainingPoint(
        job_id=job_id,
        restart=restart,
        at=int(at),
        lines=60,
        first_at=at,
        last_at=at + 50,
        loss=0.0,
        seconds=0.0,
        tokens=600,
        **zeros,
    )
