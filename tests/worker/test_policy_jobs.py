"""The worker's turns of policy: what it sees first becomes versions, what is due is applied."""

from dataclasses import replace

import pytest

from gateway.core.policy_change import ChangeState, Item, Of
from gateway.store.uow import make_begin
from gateway.testing.database import database
from gateway.testing.policy_site import PolicySite
from gateway.worker.jobs import JOBS, Context

RUN = {job.name: job.run for job in JOBS}


@pytest.fixture
def begin(tmp_path):
    with database(tmp_path) as engine:
        yield make_begin(engine)


def test_versions_changes_and_drift_by_the_worker_alone(begin):
    site = PolicySite(begin, polled=False)
    context = Context(begin, begin, site.broker, "cluster", 15.0, 30.0, lambda: site.now)
    RUN["policy"](context)
    assert [one.number for one in site.versions(Of.QOS, "normal")] == [1]
    change = site.propose(Item(site.qos(), replace(site.qos(), priority=3)))
    site.wait()
    RUN["policy_changes"](context)
    assert site.change(change).state is ChangeState.APPLIED
    assert site.broker.policy.qos["normal"].priority == 3
    site.broker.policy.qos["normal"] = replace(site.qos(), priority=4)
    site.wait(minutes=2)
    RUN["policy"](context)
    assert list(site.drift()) == ["qos:normal"]
    assert site.broker.policy.qos["normal"].priority == 4
