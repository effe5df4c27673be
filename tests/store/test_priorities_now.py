"""Points of waiting jobs, shares and reservations, as the last poll saw them."""

from dataclasses import replace
from datetime import timedelta

from gateway.errors import BrokerUnreachable
from gateway.services import poll
from gateway.store import polls, snapshot
from gateway.store.uow import Begin
from gateway.testing.builders import NOW
from gateway.testing.fakebroker import FakeBroker
from gateway.wire import policy as p

ONE = p.PriorityFactors(
    12, "nlp-1", "nlp", "a100", "normal", 13383, 0, 5, 1, 833, 15, 20, 10000, -50, "gres/gpu=2500"
)
WEIGHTS = p.PriorityWeights(1000, 10, 10000, 100, 20, 100000, "GRES/gpu=5000")


def test_what_is_read_is_what_was_told_and_the_old_is_gone(begin: Begin) -> None:
    two, later = replace(ONE, partition="rtx4090", priority=15899), replace(ONE, job_id=13)
    broker = FakeBroker()
    for told in ((ONE, two, later), (ONE, two)):
        found = p.Priorities(WEIGHTS, told)
        broker.priorities = lambda found=found: found  # type: ignore[method-assign,misc]
        assert poll.poll_priority(begin=begin, broker=broker, now=NOW).error_code is None
    with begin() as session:
        assert snapshot.priorities(session) == p.Priorities(WEIGHTS, (two, ONE))
        assert set(snapshot.priority_of(session, 12)) == {ONE, two}
        assert snapshot.priority_of(session, 13) == ()


def test_nobody_who_waits_is_an_answer_and_slurm_away_is_none(begin: Begin) -> None:
    broker = FakeBroker()
    with begin() as session:
        snapshot.replace_priorities(session, p.Priorities(WEIGHTS, (ONE,)))
    broker.unreachable = True
    report = poll.poll_priority(begin=begin, broker=broker, now=NOW)
    assert report.error_code == BrokerUnreachable.code
    with begin() as session:
        assert snapshot.priority_of(session, 12) == (ONE,)
        assert polls.get(session, poll.PRIORITY).error_code == BrokerUnreachable.code
    broker.unreachable = False
    assert poll.poll_priority(begin=begin, broker=broker, now=NOW).error_code is None
    with begin() as session:
        assert snapshot.priority_of(session, 12) == ()


def test_shares_of_accounts_and_reservations_are_replaced_whole(begin: Begin) -> None:
    broker = FakeBroker()
    share = p.FairShare("nlp", None, None, 7, 0.25, 600, 0.5, None, None)
    own = p.FairShare("nlp", "nlp-1", None, None, 0.25, 600, 0.5, 0.75, None)
    window = p.Reservation(
        "maint", NOW, NOW + timedelta(hours=1), ("a100-1",), None, ("MAINT",), ("root",), ()
    )
    broker.policy.fair_share, broker.policy.reservations = (share, own), (window,)
    for _ in range(2):
        poll.poll_policy(begin=begin, broker=broker, now=NOW)
        poll.poll_cluster(begin=begin, broker=broker, now=NOW)
    with begin() as session:
        assert snapshot.fair_shares(session) == (share,)
        assert snapshot.reservations(session) == (window,)
        assert {one.policy.name for one in snapshot.accounts(session)} == {
            "nlp",
            "vision",
            "biolab",
        }
    broker.accounts = lambda: ()  # type: ignore[method-assign]
    assert poll.poll_policy(begin=begin, broker=broker, now=NOW).error_code == "empty_answer"
    with begin() as session:
        assert snapshot.accounts(session)
