"""Drift: what was changed behind the portal's back is shown, and adopted or set back."""

from dataclasses import replace

import pytest

from gateway.core.policy_change import ChangeState, Item, Of, Source
from gateway.core.qos import GroupPolicy, Qos
from gateway.errors import Refused
from gateway.services import policy_apply, policy_drift, policy_retire, poll
from gateway.services.policy_drift import How
from gateway.testing.policy_site import PolicySite
from gateway.wire import policy as p


@pytest.fixture
def site(begin):
    return PolicySite(begin)


def behind(site, name="normal", **values):
    """Somebody with sacctmgr."""
    site.broker.policy.qos[name] = replace(site.broker.policy.qos[name], **values)


def adopt(site, name, of=Of.QOS):
    return policy_drift.adopt(of, name, viewer=site.ada, begin=site.begin, now=site.now)


def restore(site, name, of=Of.QOS, **more):
    return policy_drift.restore(
        of,
        name,
        viewer=site.ada,
        reason="",
        second_approval=False,
        key=f"restore {name}",
        begin=site.begin,
        now=site.now,
        **more,
    )


def test_the_first_sight_is_version_one_and_no_drift(site):
    for of, name in ((Of.QOS, "normal"), (Of.GROUP, "nlp")):
        [version] = site.versions(of, name)
        assert (version.number, version.source) == (1, Source.FOUND)
        assert version.policy == site.in_slurm(of, name)
    assert site.poll() == 0
    site.agree()


def test_a_change_behind_the_portals_back_is_told_with_field_and_since_when(site):
    behind(site, priority=5, max_jobs_per_user=2)
    assert site.poll() == 1
    since = site.now
    site.poll()
    [drift] = site.drift().values()
    assert (drift.object, drift.how, drift.version) == ("qos:normal", How.CHANGED, 1)
    assert [(one.field.key, one.before, one.after) for one in drift.changes] == [
        ("priority", 100, 5),
        ("max_jobs_per_user", None, 2),
    ]
    assert site.told("policy_drift") == {"policy_drift:qos:normal": since}
    assert drift.since == since
    assert "set-qos" not in site.broker.calls


def test_adopted_it_is_a_version_and_told_no_more(site):
    behind(site, priority=5)
    site.poll()
    assert adopt(site, "normal") == 2
    assert not site.drift()
    assert not site.told("policy_drift")
    version = site.versions(Of.QOS, "normal")[-1]
    assert (version.source, version.by) == (Source.ADOPTED, "ada")
    assert version.policy == site.in_slurm(Of.QOS, "normal")
    site.wait(seconds=30)
    assert site.poll() == 0
    with pytest.raises(Refused, match="policy_no_drift"):
        adopt(site, "normal")


def test_restored_it_is_a_change_like_others(site):
    was = site.qos()
    behind(site, priority=5)
    site.poll()
    change = restore(site, "normal")
    assert site.change(change).line.source is Source.RESTORED
    assert site.apply(change) is ChangeState.APPLIED
    assert site.in_slurm(Of.QOS, "normal") == was
    assert not site.drift()
    site.wait(seconds=30)
    assert site.poll() == 0
    assert not site.told("policy_drift")


def test_set_back_behind_the_portals_back_it_is_over(site):
    behind(site, priority=5)
    site.poll()
    behind(site, priority=100)
    assert site.poll() == 0
    assert not site.told("policy_drift")


def test_a_qos_that_appears_later_is_drift_and_retires_or_is_adopted(site):
    for name in ("sneaky", "fine"):
        site.broker.policy.qos[name] = Qos(name=name, priority=10**6)
    assert site.poll() == 2
    assert {one.how for one in site.drift().values()} == {How.APPEARED}
    assert adopt(site, "fine") == 1
    assert site.apply(restore(site, "sneaky")) is ChangeState.APPLIED
    assert site.versions(Of.QOS, "sneaky")[-1].retired
    site.wait(seconds=30)
    assert site.poll() == 0


def test_a_qos_that_vanished_is_made_again_or_its_end_is_adopted(site):
    was = {name: site.broker.policy.qos.pop(name) for name in ("spot", "urgent")}
    assert site.poll() == 2
    assert {one.how for one in site.drift().values()} == {How.VANISHED}
    adopt(site, "urgent")
    assert site.versions(Of.QOS, "urgent")[-1].policy is None
    assert site.apply(restore(site, "spot")) is ChangeState.APPLIED
    assert site.in_slurm(Of.QOS, "spot") == was["spot"]
    site.wait(seconds=30)
    assert site.poll() == 0
    site.broker.policy.qos["urgent"] = was["urgent"]
    assert site.poll() == 1
    assert site.drift()["qos:urgent"].how is How.APPEARED


def test_a_group_that_comes_is_found_and_one_that_goes_cannot_be_made_again(site):
    accounts = site.broker.policy.accounts
    accounts["passing"] = p.Account(GroupPolicy(name="passing"), None, "", "", ())
    site.poll()
    accounts["new"] = p.Account(GroupPolicy(name="new"), None, "", "", ())
    del accounts["passing"]
    assert site.poll() == 1
    assert site.versions(Of.GROUP, "new")[0].source is Source.FOUND
    with pytest.raises(Refused, match="policy_cannot_restore"):
        restore(site, "passing", Of.GROUP)
    adopt(site, "passing", Of.GROUP)
    site.wait(seconds=30)
    assert site.poll() == 0


def test_a_poll_that_was_read_before_a_write_and_kept_after_it_is_no_drift(site):
    """The worker read, the page wrote, the worker kept what it had read."""
    site.wait()
    began, old = site.now, site.broker.qos()
    before = site.qos()
    site.apply(site.propose(Item(before, replace(before, priority=5))))
    live, site.broker.qos = site.broker.qos, lambda: old
    poll.poll_policy(begin=site.begin, broker=site.broker, now=began)
    look = {"begin": site.begin, "read": site.begin, "now": site.now}
    assert policy_drift.look(**look) == 0
    assert site.qos().priority == 5  # a form shows what was written
    site.broker.qos = live
    site.wait()
    assert site.poll() == 0


def test_the_time_of_a_version_is_that_of_its_write_however_long_the_call_took(site):
    """With `now` of the request's start, a poll that began during the call would show drift."""
    before = site.qos()
    change = site.propose(Item(before, replace(before, priority=5)))
    site.wait()
    seconds = iter(range(0, 10**6, 10))
    policy_apply.apply(
        change,
        viewer=site.ada,
        begin=site.begin,
        broker=site.broker,
        now=site.now,
        stopwatch=lambda: float(next(seconds)),
    )
    assert (site.versions(Of.QOS, "normal")[-1].at - site.now).total_seconds() >= 20


def test_what_is_being_sent_is_not_drift(site):
    before = site.qos()
    change = site.propose(Item(before, replace(before, priority=5)))
    site.broker.silent_after_next()
    assert site.apply(change) is ChangeState.UNKNOWN
    assert site.poll() == 0
    site.wait(minutes=1)
    site.due()
    site.wait(minutes=1)
    assert site.poll() == 0
    site.agree()


def test_without_a_poll_nothing_is_said(begin):
    with begin() as session:
        assert policy_drift.find(session) == ()
    assert policy_drift.look(begin=begin, read=begin, now=None) == 0


def test_a_change_of_something_else_takes_no_drift_over(site):
    behind(site, max_jobs_per_user=3)
    site.poll()
    before = site.qos()
    assert before.max_jobs_per_user == 3
    assert site.apply(site.propose(Item(before, replace(before, priority=77)))) is (
        ChangeState.APPLIED
    )
    assert site.in_slurm(Of.QOS, "normal") == replace(before, priority=77)
    assert site.poll() == 1
    (still,) = site.drift()["qos:normal"].changes
    assert (still.field.key, still.before, still.after) == ("max_jobs_per_user", None, 3)
    first, second = site.versions(Of.QOS, "normal")
    assert (second.before, second.policy) == (first.policy, replace(first.policy, priority=77))
    site.apply(restore(site, "normal"))
    site.poll()
    assert site.drift() == {}
    site.agree()


def test_retiring_takes_no_drift_over(site):
    before = site.qos("spot")
    site.apply(site.propose(*policy_retire.retire("spot", replacement=None, begin=site.begin)))
    behind(site, "spot", priority=3)
    site.poll()
    back = policy_retire.bring_back("spot", begin=site.begin)
    assert site.apply(site.propose(*back)) is ChangeState.APPLIED
    assert site.poll() == 1
    assert site.drift()["qos:spot"].ours == before
