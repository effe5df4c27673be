"""A smoke job, and the long job that waits for it: sent, released, cancelled, never twice."""

import pytest

from gateway.services import smoke
from gateway.store import models as t
from gateway.store.queries import run_times
from gateway.testing import builders as b
from gateway.testing.portal import Portal, ask, portal


@pytest.fixture
def site(begin) -> Portal:
    return portal(begin)


ASK = ask(nodes="1", nproc_per_node="2")


def send(site: Portal, *, long: bool = True) -> tuple[int, int | None]:
    smoke_id = site.submit(ASK, key="smoke", smoke_on="debug")
    if not long:
        return smoke_id, None
    return smoke_id, site.submit(ASK, key="long", after=smoke_id)


def work(site: Portal) -> None:
    """One turn of the worker's part in this."""
    smoke.release(begin=site.begin, read=site.begin, now=site.now)
    site.deliver_due()
    site.poll()
    smoke.cancel_stranded(begin=site.begin, read=site.begin, broker=site.broker, now=site.now)


def job_of(site: Portal, submission_id: int) -> t.Job:
    job_id = site.submission(submission_id).job_id
    return next(job for job in site.jobs() if job.id == job_id)


def test_a_smoke_job_is_the_same_job_for_five_minutes_where_it_fits(site: Portal) -> None:
    smoke_id, _ = send(site, long=False)
    row = site.submission(smoke_id)
    assert row.purpose == "smoke"
    assert (row.request["partition"], row.request["time_limit_minutes"]) == ("debug", 5)
    assert (row.request["nodes"], row.request["gpus_per_node"]) == (1, 2)
    assert "export SLUICE_SMOKE=1" in row.script
    assert row.ask["partition"] == "a100"  # the form's own, to be loaded again
    assert job_of(site, smoke_id).purpose == "smoke"


def test_the_long_job_waits_until_slurm_has_the_smoke_job(site: Portal) -> None:
    site.broker.unreachable = True
    smoke_id, long_id = send(site)
    work_without_slurm(site)
    assert site.submission(long_id).state == "queued"
    assert site.submission(long_id).attempts == 0
    site.broker.unreachable = False
    site.run_outbox(seconds=60)
    work(site)
    row = site.submission(long_id)
    slurm_id = job_of(site, smoke_id).slurm_id
    assert row.state == "accepted"
    assert row.request["after_ok"] == slurm_id
    assert f"#SBATCH --dependency=afterok:{slurm_id}\n" in row.script


def work_without_slurm(site: Portal) -> None:
    smoke.release(begin=site.begin, read=site.begin, now=site.now)
    site.deliver_due()


def test_it_starts_when_the_smoke_job_has_passed(site: Portal) -> None:
    smoke_id, long_id = send(site)
    work(site)
    site.broker.advance(10)
    site.poll()
    assert job_of(site, smoke_id).state == "RUNNING"
    assert (job_of(site, long_id).state, job_of(site, long_id).reason) == ("PENDING", "Dependency")
    site.broker.finish(job_of(site, smoke_id).slurm_id)
    site.broker.advance(10)
    work(site)
    assert job_of(site, long_id).state == "RUNNING"
    assert "smoke_failed" not in site.events(long_id)


@pytest.mark.parametrize("state", ["FAILED", "TIMEOUT", "CANCELLED"])
def test_it_is_cancelled_once_when_the_smoke_job_has_not_passed(site: Portal, state: str) -> None:
    smoke_id, long_id = send(site)
    work(site)
    site.broker.advance(10)
    site.broker.finish(job_of(site, smoke_id).slurm_id, state, code=70)
    site.broker.advance(10)
    for _ in range(3):
        work(site)
    assert job_of(site, long_id).state == "CANCELLED"
    assert site.events(long_id).count("smoke_failed") == 1
    assert site.broker.calls.count("cancel") == 1


def test_a_cancel_that_slurm_did_not_answer_is_tried_again(site: Portal) -> None:
    smoke_id, long_id = send(site)
    work(site)
    site.broker.advance(10)
    site.broker.finish(job_of(site, smoke_id).slurm_id, "FAILED", code=1)
    site.poll()
    site.broker.silent_before_next()
    work(site)
    assert "smoke_failed" not in site.events(long_id)
    work(site)
    work(site)
    assert job_of(site, long_id).state == "CANCELLED"
    assert site.events(long_id).count("smoke_failed") == 1


def test_where_slurm_does_not_answer_one_cancel_waits_for_it_and_not_all(site: Portal) -> None:
    longs = []
    for n in range(3):
        first = site.submit(ASK, key=f"smoke-{n}", smoke_on="debug")
        longs.append(site.submit(ASK, key=f"long-{n}", after=first))
        work_without_slurm(site)
        site.broker.finish(job_of(site, first).slurm_id, "FAILED", code=1)
    site.poll()
    site.broker.unreachable = True
    smoke.cancel_stranded(begin=site.begin, read=site.begin, broker=site.broker, now=site.now)
    assert site.broker.calls.count("cancel") == 1
    site.broker.unreachable = False
    work(site)
    site.poll()
    assert {job_of(site, one).state for one in longs} == {"CANCELLED"}


def test_a_preempted_smoke_job_that_goes_back_has_not_failed(site: Portal) -> None:
    smoke_id, long_id = send(site)
    work(site)
    site.broker.advance(10)
    site.broker.preempt(job_of(site, smoke_id).slurm_id)
    work(site)
    assert job_of(site, long_id).state == "PENDING"


def test_without_a_smoke_job_the_long_one_is_not_sent(site: Portal) -> None:
    site.broker.refuse_next("qos_max_submit")
    smoke_id, long_id = send(site)
    work(site)
    assert site.submission(smoke_id).state == "refused"
    row = site.submission(long_id)
    assert (row.state, row.error_code, row.job_id) == ("refused", "smoke_not_sent", None)
    assert "smoke_not_sent" in site.events(long_id)


def test_pressing_twice_is_one_of_each(site: Portal) -> None:
    first, again = send(site), send(site)
    assert first == again
    work(site)
    work(site)
    assert len(site.broker.jobs) == 2


def test_a_smoke_job_says_nothing_of_how_long_the_others_take(site: Portal) -> None:
    b.add_job(site.begin, user="nlp-1", state="COMPLETED", start_time=b.NOW, end_time=b.NOW)
    b.add_job(
        site.begin,
        user="nlp-1",
        state="COMPLETED",
        start_time=b.NOW,
        end_time=b.NOW,
        purpose="smoke",
    )
    with site.begin() as session:
        assert len(run_times.of_template(session, "ddp", group="nlp")) == 1
