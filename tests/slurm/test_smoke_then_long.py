"""A smoke job and the long job after it on a real cluster: run as asked, or cancelled in words."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gateway.services import smoke
from gateway.store.uow import make_begin
from gateway.testing.database import database
from gateway.testing.portal import Portal, ask, portal

pytestmark = pytest.mark.slurm

LONG = ask(
    template="command",
    nodes="1",
    nproc_per_node="1",
    time_limit="30",
    name="long",
    working_directory="/home/nlp-1",
    values={"command": "sleep 200", "gpus_per_node": "1"},
)


@pytest.fixture
def site(tmp_path, broker, cluster_site):
    with database(tmp_path) as engine:
        made = portal(make_begin(engine), broker=broker, clock=lambda: datetime.now(UTC))
        yield made
        for job in made.broker.queue().jobs:
            if job.state in {"PENDING", "RUNNING"}:
                made.broker.cancel(job.job_id, user=job.user)


def send(site: Portal, command: str) -> tuple[int, int]:
    """The smoke job of a form, and its long job after it; both as the form's button does."""
    form = ask_with(command)
    smoke_id = site.submit(form, key=f"smoke-{command}", smoke_on="debug")
    long_id = site.submit(form, key=f"long-{command}", after=smoke_id)
    turn(site)
    return smoke_id, long_id


def ask_with(command: str):
    return replace(LONG, values=LONG.values | {"command": command})


def turn(site: Portal) -> None:
    """What the worker does."""
    options = {"begin": site.begin, "read": site.begin, "now": site.now}
    smoke.release(**options)
    site.deliver_due()
    site.poll()
    smoke.cancel_stranded(broker=site.broker, **options)


def job_of(site: Portal, submission_id: int):
    job_id = site.submission(submission_id).job_id
    return next((job for job in site.jobs() if job.id == job_id), None)


def until(site: Portal, true, seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, [(job.name, job.state, job.reason) for job in site.jobs()]
        time.sleep(0.5)
        turn(site)


def test_the_long_job_starts_when_the_smoke_job_has_passed(site: Portal) -> None:
    smoke_id, long_id = send(site, "sleep 5")
    first, second = job_of(site, smoke_id), job_of(site, long_id)
    assert (first.partition, first.time_limit_minutes, first.purpose) == ("debug", 5, "smoke")
    assert (second.partition, second.time_limit_minutes, second.purpose) == ("a100", 30, None)
    assert f"--dependency=afterok:{first.slurm_id}" in site.submission(long_id).script
    until(site, lambda: job_of(site, long_id).reason == "Dependency")
    until(site, lambda: job_of(site, smoke_id).state == "COMPLETED")
    until(site, lambda: job_of(site, long_id).state in {"RUNNING", "COMPLETED"})


def test_the_long_job_is_cancelled_when_the_smoke_job_failed(site: Portal) -> None:
    smoke_id, long_id = send(site, "false")
    until(site, lambda: job_of(site, smoke_id).state == "FAILED")
    until(site, lambda: job_of(site, long_id).state == "CANCELLED")
    assert job_of(site, long_id).start_time is None
    assert site.events(long_id).count("smoke_failed") == 1
