"""Money on a real cluster: what was held comes back, what ran is charged once, also what people
send with plain sbatch and what ends while accounting is away.

Each test runs real jobs of some seconds; the price is high, so that seconds show.
"""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.core.credits import MILLION
from gateway.core.pricing import cost
from gateway.services import credit, ingest, settle
from gateway.services.verify import verify
from gateway.store import prices
from gateway.testing.money import balance, entries_of, set_price
from gateway.testing.portal import ask, portal

pytestmark = pytest.mark.slurm

PER_HOUR = 3600  # one credit a card-second
SHORT = ask(
    template="command",
    nodes="1",
    nproc_per_node="1",
    time_limit="5",
    name="money",
    working_directory="/home/nlp-1",
    values={"command": "sleep 2", "gpus_per_node": "2"},
)


def now():
    return datetime.now(UTC)


@pytest.fixture
def site(begin, cluster_site):
    made = portal(begin, broker=cluster_site.broker, clock=now)
    # Accounting still has the runs of other tests: they are from before there was a price.
    time.sleep(1.1)
    set_price(begin, "a100", str(PER_HOUR), starts=now().replace(microsecond=0))
    credit.top_up("nlp", 2000 * MILLION, begin=begin, now=now())
    yield made
    assert verify(read=begin).broken == ()


def until(true, seconds=60.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"still not so after {seconds} s"
        time.sleep(0.3)


def priced(site):
    with site.begin() as session:
        begins = prices.load(session).begins
    return [run for run in site.runs() if run.start_time >= begins]


def charged(site, runs=1):
    def work():
        site.work()
        ended = [run for run in priced(site) if run.end_time is not None]
        return len(ended) == runs and not any(run.to_settle for run in ended)

    return work


def bill(site):
    return sum(cost(2 * run.elapsed_seconds, PER_HOUR * MILLION, MILLION) for run in priced(site))


def test_a_job_of_the_portal_is_held_and_charged_by_accounting(begin, site):
    site.submit(SHORT)
    assert balance(begin, "nlp") == 1400 * MILLION  # 2 cards x 300 s
    until(charged(site))
    assert bill(site) > 0
    assert balance(begin, "nlp") == 2000 * MILLION - bill(site)
    assert [kind for kind, _ in entries_of(begin, "nlp")] == ["top_up", "hold", "release", "charge"]


def test_plain_sbatch_is_charged_like_any_other(begin, site, cluster):
    words = [
        "sbatch",
        "-A",
        "nlp",
        "-p",
        "a100",
        "--gpus=2",
        "-t5",
        "-o/dev/null",
        "--wrap=sleep 2",
    ]
    assert cluster.run(words, user="nlp-1").returncode == 0
    until(charged(site))
    assert balance(begin, "nlp") == 2000 * MILLION - bill(site)


def test_jobs_that_end_while_slurmdbd_is_down_are_charged_when_it_is_back(begin, site, cluster):
    """An hour of outage is ten seconds here; the import must not move on meanwhile."""
    site.submit(SHORT)
    until(lambda: site.poll() and site.jobs()[0].state == "RUNNING", 30)
    cluster.daemon("slurmdbd", "stop")
    try:
        until(lambda: site.poll() and not site.jobs()[0].active, 60)
        assert site.ingest().error_code is not None
        assert ingest.ingest(
            begin=begin, broker=site.broker, cluster="cluster", now=now() + timedelta(hours=1)
        ).error_code
        site.settle()
        assert balance(begin, "nlp") == 1400 * MILLION  # still held: nobody said what it cost
    finally:
        cluster.daemon("slurmdbd", "start")
    until(charged(site), 90)
    site.ingest()
    settle.settle(begin=begin, now=now())
    assert balance(begin, "nlp") == 2000 * MILLION - bill(site)
    assert len(priced(site)) == 1


def test_each_run_of_a_requeued_job_is_charged(begin, site):
    site.submit(replace(SHORT, values={"command": "sleep 3", "gpus_per_node": "2"}))
    until(lambda: site.poll() and site.jobs()[0].state == "RUNNING", 30)
    time.sleep(1.5)
    site.broker.requeue(site.jobs()[0].slurm_id, user="nlp-1")
    site.work()
    assert site.broker.queue().jobs
    site.broker.cancel(site.jobs()[0].slurm_id, user="nlp-1")
    until(charged(site))
    until(lambda: not site.work() and balance(begin, "nlp") == 2000 * MILLION - bill(site))
