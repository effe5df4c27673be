"""The portal's use cases on a real cluster with real faults: each ends with one job or none.

Each test stops, freezes or kills a real process, which is why they take seconds.
"""

import contextlib
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from broker_fixture import BrokerProcess
from test_broker_faults import KILL_AFTER_YES

from gateway.errors import BrokerSilent, BrokerUnreachable
from gateway.services import act
from gateway.testing.portal import Portal, ask, portal

pytestmark = pytest.mark.slurm

SLEEPS = ask(
    template="command",
    nodes="1",
    nproc_per_node="1",
    time_limit="5",
    name="outbox",
    working_directory="/home/nlp-1",
    values={"command": "sleep 200", "gpus_per_node": "1"},
)


class Clock:
    """The real time, and a part that tests skip instead of sleeping through it."""

    def __init__(self):
        self.skipped = timedelta()

    def __call__(self):
        return datetime.now(UTC) + self.skipped

    def skip(self, seconds):
        self.skipped += timedelta(seconds=seconds)


@pytest.fixture
def site(begin, broker, cluster_site):
    made = portal(begin, broker=broker, clock=Clock())
    yield made
    _cancel_all(made)


def until(true, seconds=30.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"still not so after {seconds} s"
        time.sleep(0.2)


def jobs_of(site, submission_id):
    token = site.submission(submission_id).token
    return [job for job in site.broker.queue().jobs if job.comment == f"sluice:{token}"]


def settle(site, submission_id, seconds=60.0):
    """Run the outbox until the outcome is known; its pauses are skipped, Slurm's are not."""

    def settled():
        site.deliver_due()
        site.clock.skip(5)
        return site.submission(submission_id).state in {"accepted", "refused"}

    until(settled, seconds)
    return site.submission(submission_id)


@contextlib.contextmanager
def stopped(cluster, site):
    cluster.daemon("slurmctld", "stop")
    try:
        yield
    finally:
        cluster.daemon("slurmctld", "start")
        until(lambda: _answers(site.broker))


def _answers(broker):
    with contextlib.suppress(BrokerSilent, BrokerUnreachable):
        return broker.queue() is not None
    return False


def _cancel_all(site):
    for job in site.broker.queue().jobs:
        if (job.comment or "").startswith("sluice:") and job.end_time is None:
            with contextlib.suppress(Exception):
                site.broker.cancel(job.job_id, user=job.user)


def test_a_submission_becomes_one_job_that_is_followed_to_its_end(site):
    submission_id = site.submit(replace(SLEEPS, values=SLEEPS.values | {"command": "hostname"}))
    assert site.submission(submission_id).state == "accepted"

    def over():
        site.poll()
        return not site.jobs()[0].active

    until(over)
    job = site.jobs()[0]
    assert (job.state, job.exit_code, job.gpus, job.group) == ("COMPLETED", 0, 1, "nlp")

    def counted():
        site.ingest()
        return any(run.end_time for run in site.runs() if run.job_id == job.id)

    until(counted)
    (run,) = [run for run in site.runs() if run.job_id == job.id]
    assert (run.state, run.gpus) == ("COMPLETED", 1)


def test_slurmctld_stopped_before_the_submit(cluster, site):
    with stopped(cluster, site):
        submission_id = site.submit(SLEEPS)
        assert site.submission(submission_id).state in {"queued", "unknown"}
        assert site.poll().error_code is not None
    assert settle(site, submission_id).state == "accepted"
    assert len(jobs_of(site, submission_id)) == 1


def test_slurmctld_frozen_during_the_submit(cluster, site):
    cluster.daemon("slurmctld", "freeze")
    try:
        submission_id = site.submit(SLEEPS)
        assert site.submission(submission_id).state in {"queued", "unknown"}
    finally:
        cluster.daemon("slurmctld", "thaw")
    until(lambda: _answers(site.broker))
    assert settle(site, submission_id).state == "accepted"
    time.sleep(2)  # what the frozen controller still had in hand comes through now
    assert len(jobs_of(site, submission_id)) == 1


def test_slurmctld_stopped_after_the_submit(cluster, site):
    submission_id = site.submit(SLEEPS)
    until(lambda: site.poll().error_code is None and site.jobs()[0].state == "RUNNING")
    with stopped(cluster, site):
        for _ in range(3):
            assert site.poll().error_code is not None
        assert site.jobs()[0].active
    site.poll()
    job = site.jobs()[0]
    assert (job.active, job.left_queue_at) == (True, None)
    assert len(jobs_of(site, submission_id)) == 1


def test_the_broker_killed_between_slurms_yes_and_its_answer(cluster, begin):
    inject = cluster.folders.run / "inject"
    inject.mkdir(exist_ok=True)
    (inject / "sitecustomize.py").write_text(KILL_AFTER_YES)
    env = {"PYTHONPATH": "/run/sluice/inject:/opt/sluice"}
    process = BrokerProcess(cluster, name="outbox", env=env)
    process.start()
    try:
        site = portal(begin, broker=process.client(), clock=Clock())
        (cluster.folders.run / "kill-after-yes").touch()
        submission_id = site.submit(SLEEPS)
        assert site.submission(submission_id).state == "unknown"
        assert settle(site, submission_id).state == "accepted"
        (job,) = jobs_of(site, submission_id)
        assert site.jobs()[0].slurm_id == job.job_id
        _cancel_all(site)
    finally:
        process.stop()


def test_a_requeued_job_has_two_runs_under_one_row(cluster, site):
    submission_id = site.submit(SLEEPS)
    until(lambda: site.poll().error_code is None and site.jobs()[0].state == "RUNNING")
    job_id = site.jobs()[0].id
    first_submit = site.jobs()[0].submit_time
    _act(site, job_id, "requeue")

    def requeued():
        site.poll()
        job = _job(site, job_id)
        return (job.state, job.restarts) == ("PENDING", 1)

    until(requeued)
    # Slurm waits two minutes before it starts a requeued job again, unless told otherwise.
    slurm_id = _job(site, job_id).slurm_id
    now = ["scontrol", "update", f"jobid={slurm_id}", "starttime=now"]
    assert cluster.run(now, user="nlp-1").returncode == 0
    until(lambda: site.poll().error_code is None and _job(site, job_id).state == "RUNNING")
    _act(site, job_id, "cancel")

    def over():
        site.poll()
        site.ingest()
        return not _job(site, job_id).active

    until(over)
    job = _job(site, job_id)
    assert (job.submit_time, job.state) == (first_submit, "CANCELLED")
    assert job.last_submit_time > first_submit
    assert site.submission(submission_id).job_id == job_id
    until(lambda: site.ingest().error_code is None and _states(site, job_id)[1:] == ["CANCELLED"])
    assert _states(site, job_id) == ["REQUEUED", "CANCELLED"]


def test_a_cancel_while_it_waits_leaves_no_run(site):
    # Eight nodes' worth of GPUs are not free at once on four: it waits.
    wide = replace(SLEEPS, nodes="4", values=SLEEPS.values | {"gpus_per_node": "8"})
    site.submit(wide, key="first")
    submission_id = site.submit(replace(wide, name="waits"), key="second")
    job_id = site.submission(submission_id).job_id
    _act(site, job_id, "cancel")
    until(lambda: site.poll().error_code is None and not _job(site, job_id).active)
    assert (_job(site, job_id).state, _job(site, job_id).start_time) == ("CANCELLED", None)


def _job(site: Portal, job_id):
    return next(job for job in site.jobs() if job.id == job_id)


def _states(site, job_id):
    return [run.state for run in site.runs() if run.job_id == job_id]


def _act(site, job_id, action):
    act.act(
        job_id,
        action,
        viewer=site.viewer,
        begin=site.begin,
        broker=site.broker,
        now=site.now,
    )
