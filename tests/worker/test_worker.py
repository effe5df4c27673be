"""One worker acts at a time, reads are paced, and what is skipped is counted."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from apscheduler import events as happened

from gateway.errors import BrokerUnreachable, Busy
from gateway.services import poll
from gateway.store import polls
from gateway.store.uow import make_begin
from gateway.testing import builders as b
from gateway.testing.database import database
from gateway.testing.portal import CLUSTER, portal
from gateway.worker import jobs as periodic
from gateway.worker.jobs import JOBS, Context, Periodic
from gateway.worker.leader import TERM, Leader, LeaseLost
from gateway.worker.main import Worker


class Clock:
    def __init__(self) -> None:
        self.now = b.NOW

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[object]:
    with database(tmp_path) as engine:
        yield engine


@pytest.fixture
def clock():
    return Clock()


def leader(engine, clock, name="one"):
    return Leader(holder=name, begin=make_begin(engine), clock=clock)


def context(engine, clock, **values):
    begin = make_begin(engine)
    site = portal(begin)
    facts = {
        "begin": begin,
        "read": make_begin(engine, read_only=True),
        "broker": site.broker,
        "cluster": CLUSTER,
        "poll_seconds": 15.0,
        "ingest_seconds": 30.0,
        "clock": clock,
        "stopwatch": lambda: 0.0,
    }
    return Context(**(facts | values))


def test_one_leads_and_the_standby_waits(engine, clock):
    one, two = leader(engine, clock), leader(engine, clock, "two")
    assert one.renew()
    assert not two.renew()
    assert (one.leads(), two.leads()) == (True, False)


def test_a_standby_takes_over_when_the_lease_ran_out(engine, clock):
    one, two = leader(engine, clock), leader(engine, clock, "two")
    one.renew()
    clock.advance(TERM.total_seconds() - 1)
    assert not two.renew()
    clock.advance(2)
    assert not one.leads()
    assert two.renew()
    assert not one.renew()


def test_a_leader_that_renews_stays(engine, clock):
    one, two = leader(engine, clock), leader(engine, clock, "two")
    for _ in range(10):
        assert one.renew()
        clock.advance(TERM.total_seconds() / 2)
        assert not two.renew()


def test_a_leader_that_slept_past_its_lease_commits_nothing(engine, clock):
    one, two = leader(engine, clock), leader(engine, clock, "two")
    one.renew()

    def sleeps():
        with one.begin() as session:
            polls.want(session, "queue", now=clock())
            clock.advance(60)

    with pytest.raises(LeaseLost):
        sleeps()
    two.renew()
    with pytest.raises(LeaseLost), one.begin():
        pass
    assert not one.leads()
    with make_begin(engine)() as session:
        assert polls.get(session, "queue").wanted_at is None


def test_an_orderly_end_hands_over_at_once(engine, clock):
    one, two = leader(engine, clock), leader(engine, clock, "two")
    one.renew()
    one.give_up()
    assert two.renew()


def test_a_standby_runs_nothing(engine, clock):
    one, two = leader(engine, clock), leader(engine, clock, "two")
    one.renew()
    ran = []
    standby = Worker(context(engine, clock), two)
    standby.renew()
    standby.run(Periodic("job", 1.0, ran.append))
    assert ran == []


@pytest.mark.parametrize(("error", "count"), [(Busy("locked"), 1), (LeaseLost("gone"), 0)])
def test_a_busy_store_costs_a_turn_and_no_more(engine, clock, error, count):
    one = leader(engine, clock)
    worker = Worker(context(engine, clock), one)
    worker.renew()

    def fails(_):
        raise error

    worker.run(Periodic("job", 1.0, fails))
    assert worker.counts["job.busy"] == count


def test_what_the_scheduler_would_skip_in_silence_is_counted(engine, clock):
    worker = Worker(context(engine, clock), leader(engine, clock))
    for code in (
        happened.EVENT_JOB_MISSED,
        happened.EVENT_JOB_MAX_INSTANCES,
        happened.EVENT_JOB_ERROR,
    ):
        worker.note(SimpleNamespace(code=code, job_id="queue", exception=ValueError("x")))
    assert worker.counts == {"queue.missed": 1, "queue.still_running": 1, "queue.error": 1}


def test_the_queue_is_read_at_its_interval_however_often_it_ticks(engine, clock):
    work = context(engine, clock)
    for _ in range(60):
        periodic.queue(work)
        clock.advance(1)
    assert work.broker.calls.count("queue") == 4


def test_a_hundred_wishes_are_one_read(engine, clock):
    work = context(engine, clock)
    periodic.queue(work)
    clock.advance(3)
    for _ in range(100):
        with work.begin() as session:
            polls.want(session, poll.QUEUE, now=clock())
    for _ in range(5):
        periodic.queue(work)
        clock.advance(1)
    assert work.broker.calls.count("queue") == 2


def test_a_slow_slurmctld_is_asked_less_often(engine, clock):
    moments = iter(range(0, 10_000, 5))
    work = context(engine, clock, stopwatch=lambda: float(next(moments)))
    periodic.queue(work)
    assert _interval(work) == 30.0
    for _ in range(200):
        clock.advance(1)
        periodic.queue(work)
    # Five seconds are a fifth of 25: from 30 on, the reads are no burden any more.
    assert _interval(work) == 30.0


def test_a_slurmctld_that_refuses_is_asked_less_and_less(engine, clock):
    work = context(engine, clock)

    def refuses():
        work.broker.calls.append("queue")
        raise BrokerUnreachable("down")

    work.broker.queue = refuses
    for _ in range(600):
        with work.begin() as session:
            polls.want(session, poll.QUEUE, now=clock())
        periodic.queue(work)
        clock.advance(1)
    assert _interval(work) == 120.0
    assert work.broker.calls.count("queue") <= 8
    del work.broker.queue
    for _ in range(400):
        periodic.queue(work)
        clock.advance(1)
    assert _interval(work) == 15.0


def test_every_job_runs_on_an_empty_store_and_again(engine, clock):
    work = context(engine, clock)
    for _ in range(2):
        for job in JOBS:
            job.run(work)
        clock.advance(601)
    assert {"queue", "nodes", "partitions", "associations", "qos", "accounting"} <= set(
        work.broker.calls
    )


def test_no_call_depends_on_who_looks(engine, clock):
    """RPCs at slurmctld are the worker's alone: a minute costs what its intervals say."""
    work = context(engine, clock)
    work.broker.calls.clear()
    for _ in range(600):
        for job in JOBS:
            if job.seconds <= 2:
                job.run(work)
        clock.advance(1)
    calls = work.broker.calls
    assert {name: calls.count(name) for name in sorted(set(calls))} == {
        "accounting": 24,
        "accounts": 10,
        "associations": 10,
        "fair-shares": 10,
        "nodes": 20,
        "partitions": 20,
        "priorities": 10,
        "qos": 10,
        "queue": 40,
        "reservations": 20,
    }


def _interval(work):
    with work.read() as session:
        return polls.get(session, poll.QUEUE).interval_seconds


def test_the_process_starts_takes_the_lease_and_ends_when_told(tmp_path):
    """A real process, since signals and threads are what it is about; under two seconds."""
    environ = {"SLUICE_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    with database(tmp_path) as engine:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway.worker"], env=environ, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        lines = [process.stderr.readline(), process.stderr.readline()]
        assert "lease_taken" in lines[0]
        assert "worker_started" in lines[1]
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=30)[1]
        assert process.returncode == 0
        assert "worker_stopped" in rest
        assert Leader(holder="next", begin=make_begin(engine), clock=Clock()).renew()
