"""Spot on a real cluster: preempted by a normal job, back in the queue, done; and what it came to.

The price is high, so that seconds show.
"""

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from gateway.core.credits import MILLION
from gateway.core.pricing import cost
from gateway.services import credit, prices, spot
from gateway.services.verify import verify
from gateway.store.queries import job as reads
from gateway.testing.money import balance, set_price
from gateway.testing.portal import ask, portal

pytestmark = pytest.mark.slurm

PER_HOUR = 3600  # one credit a card-second
FACTOR = 820_000
WHOLE_NODE = ask(
    template="command",
    partition="debug",
    nodes="1",
    nproc_per_node="1",
    time_limit="5",
    working_directory="/home/nlp-1",
    values={"command": "sleep 8", "gpus_per_node": "2"},
)


def now():
    return datetime.now(UTC)


@pytest.fixture
def site(begin, cluster_site):
    made = portal(begin, broker=cluster_site.broker, clock=now)
    # Accounting still has the runs of other tests: they are from before there was a price.
    time.sleep(1.1)
    starts = now().replace(microsecond=0)
    set_price(begin, "a100", str(PER_HOUR), starts=starts)
    prices.set_terms(
        "spot", "0.82", preempted="free", starts=starts, begin=begin, now=now(), backdated=True
    )
    credit.top_up("nlp", 5000 * MILLION, begin=begin, now=now())
    return made


def until(true, seconds=60.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"still not so after {seconds} s"
        time.sleep(0.3)


def job_named(site, name):
    return next((job for job in site.jobs() if job.name == name), None)


def has_state(site, name, state):
    site.work()
    found = job_named(site, name)
    return found is not None and found.state == state


def test_a_preempted_spot_job_is_one_job_with_two_runs_and_its_saving_is_right(
    begin, site, cluster
):
    site.submit(replace(WHOLE_NODE, qos="spot", name="cheap"))
    until(lambda: has_state(site, "cheap", "RUNNING"))
    time.sleep(2)  # some seconds on nodes, which will be given back
    quick = replace(WHOLE_NODE, values={"command": "sleep 1", "gpus_per_node": "2"})
    site.submit(replace(quick, qos="normal", name="dear"), key="form-2")
    until(lambda: has_state(site, "dear", "COMPLETED"))
    cheap = job_named(site, "cheap")
    assert cheap.active
    cluster.run(["scontrol", "update", f"JobId={cheap.slurm_id}", "StartTime=now"])
    until(lambda: has_state(site, "cheap", "COMPLETED"))
    until(lambda: site.work() or not any(run.to_settle for run in site.runs()))

    with begin() as session:
        runs = reads.runs(session, cheap.id)
        row = reads.job(session, cheap.id).row
        saved = spot.saved(session, row, viewer=site.viewer, now=now())
        record = spot.record(session, now=now(), zone=UTC, fresh=True, least_people=1)
    assert [run.state for run in runs] == ["PREEMPTED", "COMPLETED"]
    assert row.restarts == 1
    seconds = [run.elapsed_seconds for run in runs]
    paid = cost(2 * seconds[1], PER_HOUR * MILLION, FACTOR)
    assert saved.charged == paid
    assert saved.elsewhere == sum(cost(2 * one, PER_HOUR * MILLION, MILLION) for one in seconds)
    assert saved.money == saved.elsewhere - paid > 0
    assert (saved.preempted, saved.runs, saved.again) == (1, 2, None)
    assert saved.waited == runs[1].start_time - runs[0].end_time
    dear = next(run for run in site.runs() if run.job_id == job_named(site, "dear").id)
    other = cost(2 * dear.elapsed_seconds, PER_HOUR * MILLION, MILLION)
    assert balance(begin, "nlp") == 5000 * MILLION - paid - other
    assert verify(read=begin).broken == ()

    found = record.find("a100", "spot")
    mine = [run for run in site.runs() if run.qos == "spot" and "gpu:a100=" in run.alloc_tres]
    of_spot = [run for run in mine if run.elapsed_seconds]
    assert found.whole.events == sum(run.state == "PREEMPTED" for run in of_spot) >= 1
    assert found.runs == len(of_spot)
    assert found.whole.seconds == sum(run.elapsed_seconds for run in of_spot)
