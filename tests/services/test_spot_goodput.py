"""What a preempted training made again is taken off what it would have cost elsewhere."""

from datetime import timedelta

from sqlalchemy import update

from gateway.core.credits import MILLION
from gateway.core.goodput import Use
from gateway.core.pricing import cost
from gateway.services import settle, spot, training
from gateway.services.training_run import training_run
from gateway.store.models import Job, Run
from gateway.store.queries import job as jobs
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing import money
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.training_samples import fill_training
from gateway.wire.messages import Qos

USER = "nlp-1"
LEVELS = (Qos(name="normal", preempts=("spot",)), Qos(name="spot", preempt_mode=("requeue",)))


def test_what_was_made_again_would_not_have_been_charged_elsewhere(begin: Begin) -> None:
    broker = FakeBroker(now=b.NOW)
    money.one_credit_an_hour(begin)
    money.set_terms(begin, "spot", "0.5")
    b.add_cluster(begin, qos_list=LEVELS)
    job = fill_training(begin, broker.files, now=b.NOW, user=USER).first
    with begin() as session:
        session.execute(update(Job).values(qos="spot"))
        session.execute(update(Run).values(qos="spot"))
    settle.settle(begin=begin, now=b.NOW)
    for turn in range(20):
        now = b.NOW + timedelta(seconds=turn * training.SLOWEST_SECONDS)
        training.follow(begin=begin, read=begin, broker=broker, now=now, budget_seconds=60.0)

    viewer = b.viewer(USER)
    with begin() as session:
        row = jobs.job(session, job).row  # type: ignore[union-attr]
        found = spot.saved(session, row, viewer=viewer, now=b.NOW)
        whole = training_run(session, job, viewer=viewer, now=b.NOW)
    first, second = (one for one in whole.stretches if one.job.id == job)
    again = second.goodput.parts[Use.REPEATED] + second.goodput.parts[Use.STARTING]
    needed = second.goodput.total - again
    assert again > 0
    assert found is not None
    assert found.elsewhere == cost(first.goodput.total, MILLION, MILLION) + cost(
        needed, MILLION, MILLION
    )
    assert found.charged == cost(first.goodput.total + second.goodput.total, MILLION, 500_000)
    assert found.again is not None
    assert abs(found.again - second.ran * (again / second.goodput.total)) < timedelta(seconds=1)
    assert found.waited == second.start - (first.end or first.start)
