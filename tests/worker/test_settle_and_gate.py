"""Money's jobs in the worker: nothing is charged before Slurm has said what it counts."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.core.billing import Doubt
from gateway.core.credits import MILLION
from gateway.core.gate import Mode
from gateway.services import credit
from gateway.store.uow import make_begin
from gateway.testing import builders as b
from gateway.testing.database import database
from gateway.testing.money import charge_of, one_credit_an_hour
from gateway.testing.portal import CLUSTER, portal
from gateway.worker import jobs
from gateway.worker.jobs import Context


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[object]:
    with database(tmp_path) as engine:
        yield make_begin(engine)


@pytest.fixture
def site(begin):
    made = portal(begin)
    made.broker.now = b.NOW
    one_credit_an_hour(begin)
    return made


def context(site, **values):
    facts = {
        "begin": site.begin,
        "read": site.begin,
        "broker": site.broker,
        "cluster": CLUSTER,
        "poll_seconds": 15,
        "ingest_seconds": 30,
        "clock": lambda: site.now,
    }
    return Context(**(facts | values))


def ended(begin):
    """A run on a GPU node of which accounting has no GPU."""
    job = b.add_job(begin, state="COMPLETED", gpus=0)
    return b.add_run(begin, job, gpus=0, alloc_tres="cpu=16", to_settle=True)


def test_where_gpus_are_not_counted_a_run_without_any_waits_for_a_person(site):
    site.broker.facts = replace(site.broker.facts, tracked=("cpu",))
    run = ended(site.begin)
    jobs.settle(context(site))
    assert charge_of(site.begin, run).reason == Doubt.GPUS_NOT_TRACKED.value


def test_nothing_is_charged_before_slurm_has_said_what_it_counts(site):
    run = ended(site.begin)
    have = context(site)
    site.broker.unreachable = True
    jobs.settle(have)
    with pytest.raises(KeyError):
        charge_of(site.begin, run)
    site.broker.unreachable = False
    site.broker.now += timedelta(seconds=60)
    jobs.settle(have)
    assert charge_of(site.begin, run).state == "posted"


def test_the_gate_has_its_turn_in_the_worker(site):
    site.poll()
    credit.top_up("vision", MILLION, begin=site.begin, now=site.now)
    have = context(site)
    jobs.enforce(have)
    assert site.broker.limits[("nlp", None)].grp_submit_jobs == 0
    assert site.broker.limits[("vision", None)].grp_submit_jobs is None
    have.gate = Mode.OFF
    site.broker.now += timedelta(seconds=70)
    jobs.enforce(have)
    assert site.broker.limits[("nlp", None)].grp_submit_jobs is None
