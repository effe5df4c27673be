"""The outbox's rare turns: each leaves one job or none, and nobody waits for another's fault."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.services import deliver, link
from gateway.store import models as t
from gateway.testing.builders import NOW
from gateway.testing.portal import portal


def raises(error):
    def call(*_, **__):
        raise error

    return call


def differs(site):
    """Slurm accepts, with another QoS."""
    real = site.broker.submit
    site.broker.submit = lambda request: replace(real(request), qos="urgent")


def test_a_request_of_an_older_version_is_refused_and_holds_nobody_up(begin):
    site = portal(begin)
    site.broker.unreachable = True
    old, new = site.submit(key="old"), site.submit(key="new")
    with begin() as session:
        session.get_one(t.Submission, old).request = {"user": "nlp-1", "gone": 1}
    site.broker.unreachable = False
    site.run_outbox(seconds=60)
    assert site.submission(old).error_code == "bad_message"
    assert site.submission(new).state == "accepted"


def test_an_unreadable_request_whose_outcome_is_open_stays_open(begin):
    site = portal(begin)
    site.broker.silent_after_next()
    submission_id = site.submit()
    with begin() as session:
        session.get_one(t.Submission, submission_id).request = {"user": "nlp-1"}
    site.run_outbox(seconds=60)
    assert site.submission(submission_id).state == "unknown"
    site.poll()
    assert site.submission(submission_id).state == "accepted"


@pytest.mark.parametrize("error", [BrokerRefused, BrokerUnreachable, BrokerSilent])
def test_no_error_of_a_search_is_a_denial(begin, error):
    site = portal(begin)
    site.broker.silent_before_next()
    submission_id = site.submit()
    site.broker.find = raises(error("no"))
    site.run_outbox(seconds=900)
    assert site.submission(submission_id).state == "unknown"
    assert site.broker.calls.count("submit") == 1


def test_a_different_job_that_cannot_be_cancelled_yet_is_tried_again(begin):
    site = portal(begin)
    differs(site)
    real = site.broker.cancel
    site.broker.cancel = raises(BrokerUnreachable("gone"))
    submission_id = site.submit()
    assert site.submission(submission_id).state == "unknown"
    site.broker.cancel = real
    found = site.broker.find
    site.broker.find = lambda *a, **k: replace(found(*a, **k), qos="urgent")
    site.run_outbox(seconds=60)
    submission = site.submission(submission_id)
    assert (submission.state, submission.error_code) == ("refused", "accepted_differs")
    assert site.broker.jobs[1].state == "CANCELLED"


def test_a_different_job_that_is_over_already_is_noted(begin):
    site = portal(begin)
    differs(site)
    site.broker.cancel = raises(BrokerRefused("over", code="already_done"))
    assert site.submission(site.submit()).error_code == "accepted_differs"


def test_a_job_known_to_accounting_only_is_not_compared(begin):
    site = portal(begin)
    site.broker.silent_after_next()
    submission_id = site.submit()
    found = site.broker.find
    site.broker.find = lambda *a, **k: replace(found(*a, **k), output=None, nodes=0, gpus=0)
    site.run_outbox(seconds=10)
    assert site.submission(submission_id).state == "accepted"
    assert site.jobs()[0].output == "/home/nlp-1/train-1.out"


def test_a_row_that_the_poll_made_first_is_taken(begin):
    site = portal(begin)
    real = site.broker.submit

    def polled_meanwhile(request):
        answer = real(request)
        site.poll()
        return answer

    site.broker.submit = polled_meanwhile
    submission = site.submission(site.submit())
    (job,) = site.jobs()
    assert (submission.state, submission.job_id, job.template) == ("accepted", job.id, "ddp")


def test_the_outbox_stops_at_the_first_that_nobody_answers(begin):
    site = portal(begin)
    site.broker.unreachable = True
    for key in ("one", "two", "three"):
        site.submit(key=key)
    site.broker.advance(60)
    before = len(site.broker.calls)
    assert site.deliver_due() == 1
    assert len(site.broker.calls) == before + 1


def test_what_is_not_due_is_left_alone(begin):
    site = portal(begin)
    submission_id = site.submit()
    outcome = deliver.deliver(submission_id, begin=begin, broker=site.broker, now=site.now)
    assert outcome is deliver.Outcome.NOTHING_DUE


def test_the_pauses_are_half_of_what_has_passed():
    waits = [deliver.pause(NOW, NOW + timedelta(seconds=s)) for s in (0, 10, 100, 100_000)]
    assert [wait.total_seconds() for wait in waits] == [2, 5, 50, 300]
    assert deliver.pause(None, NOW) == deliver.SHORTEST_PAUSE


def test_a_duplicate_that_cannot_be_cancelled_is_met_again_at_the_next_poll(begin):
    site = portal(begin)
    site.submit()
    twin = replace(site.broker.jobs[1], job_id=2, runs=[])
    site.broker.jobs[2] = twin
    found = site.poll().duplicates
    real = site.broker.cancel
    site.broker.cancel = raises(BrokerUnreachable("gone"))
    assert link.cancel_duplicates(found, begin=begin, broker=site.broker, now=site.now) == 0
    site.broker.cancel = real
    again = site.poll().duplicates
    assert link.cancel_duplicates(again, begin=begin, broker=site.broker, now=site.now) == 1


def test_a_second_job_is_stopped_though_the_first_is_no_longer_listed(begin):
    site = portal(begin)
    site.submit()
    twin = site.broker.jobs.pop(1)
    site.broker.jobs[2] = replace(twin, job_id=2, runs=[])
    assert [duplicate.slurm_id for duplicate in site.poll().duplicates] == [2]
