"""Two at once: threads and processes on one SQLite file, and never two jobs."""

import multiprocessing
import threading
import time
from datetime import timedelta

import pytest

from gateway.errors import Busy
from gateway.services import deliver
from gateway.store.uow import make_begin, make_engine
from gateway.testing import builders as b
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.portal import ASK, Portal, portal

RACERS = 4


def together(count, work):
    start = threading.Barrier(count)
    outcomes = []

    def run():
        start.wait()
        outcomes.append(work())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_of_workers_that_race_for_a_submission_one_sends_it(begin):
    site = portal(begin)
    site.broker.unreachable = True
    submission_id = site.submit()
    site.broker.unreachable = False
    site.broker.advance(10)
    outcomes = together(
        RACERS,
        lambda: deliver.deliver(submission_id, begin=begin, broker=site.broker, now=site.now),
    )
    assert outcomes.count(deliver.Outcome.ACCEPTED) == 1
    assert outcomes.count(deliver.Outcome.NOTHING_DUE) == RACERS - 1
    assert site.broker.calls.count("submit") == 2  # the one that met nobody, and this one


def test_workers_that_race_for_an_unknown_one_look_once(begin):
    site = portal(begin)
    site.broker.silent_after_next()
    submission_id = site.submit()
    site.broker.advance(10)
    together(
        RACERS,
        lambda: deliver.deliver(submission_id, begin=begin, broker=site.broker, now=site.now),
    )
    assert site.broker.calls.count("find") == 1
    assert len(site.jobs()) == 1


def test_a_worker_that_slept_past_its_claim_changes_nothing(begin):
    site = portal(begin)
    real = site.broker.submit

    def slow(request):
        site.broker.submit = real
        site.broker.advance(600)
        assert site.deliver_due() == 1  # another worker looks for the token, in vain as yet
        return real(request)

    site.broker.submit = slow
    submission_id = site.submit()
    site.run_outbox(seconds=600)
    submission = site.submission(submission_id)
    assert (submission.state, len(site.broker.jobs)) == ("accepted", 1)


def test_a_refusal_that_comes_after_the_claim_ran_out_is_not_believed(begin):
    site = portal(begin)
    site.broker.unreachable = True
    submission_id = site.submit()
    site.broker.unreachable = False
    claimed = _claim(begin, submission_id, now=site.now + timedelta(minutes=1))
    site.broker.advance(600)
    site.run_outbox(seconds=5)
    site.broker.refuse_next("invalid_qos")
    deliver.carry_out(claimed, begin=begin, broker=site.broker, now=site.now)
    assert site.submission(submission_id).state != "refused"


def test_two_processes_that_post_one_form_80_ms_apart_make_one_job(engine, begin):
    """Case 17 (b), with real processes: each is a web worker with its own connection. The
    broker's answer takes longer than the pause between the two posts."""
    site = portal(begin)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    person_id = site.viewer.person_id
    posts = [
        context.Process(target=_post, args=(str(engine.url), person_id, pause, results))
        for pause in (0.0, 0.08)
    ]
    engine.dispose()
    for post in posts:
        post.start()
    for post in posts:
        post.join()
    answers = [results.get() for _ in posts]
    assert len({submission_id for submission_id, _ in answers}) == 1
    assert sorted(sent for _, sent in answers) == [0, 1]
    assert site.submission(answers[0][0]).state == "accepted"


def test_a_database_that_stays_locked_is_busy_and_keeps_nothing(engine, begin, monkeypatch):
    if engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL locks rows, not the database")
    site = portal(begin)
    monkeypatch.setattr("gateway.store.uow.BUSY_MILLISECONDS", 50)
    short = make_engine(str(engine.url))
    locked = engine.connect()
    locked.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        with pytest.raises(Busy):
            site.submit(begin=make_begin(short))
    finally:
        locked.exec_driver_sql("ROLLBACK")
        locked.close()
        short.dispose()
    assert site.broker.jobs == {}


def _post(url, person_id, pause, results):
    engine = make_engine(url)
    site = Portal(make_begin(engine), FakeBroker(), _viewer(person_id))
    real = site.broker.submit

    def slow(request):
        time.sleep(0.3)
        return real(request)

    site.broker.submit = slow
    time.sleep(pause)
    results.put((site.submit(ASK), len(site.broker.jobs)))
    engine.dispose()


def _viewer(person_id):
    return b.viewer("nlp-1", person_id=person_id)


def _claim(begin, submission_id, *, now):
    with begin() as session:
        claimed = deliver.claim(session, submission_id, now=now)
    assert claimed is not None
    return claimed
