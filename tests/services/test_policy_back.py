"""What takes back a change that made a QoS: groups have all that they had, and it retires."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.core.policy_change import ChangeState, Item
from gateway.core.qos import Qos
from gateway.services import policy_history
from gateway.store.queries import policy_changes as rows
from gateway.testing.policy_site import PolicySite


@pytest.fixture
def site(begin):
    return PolicySite(begin)


def made(site, *names, **more):
    """A change that makes these QoS and lets a group use them, with `more` of the group."""
    group = site.group()
    use = replace(group, qos=(*group.qos, *names), **more)
    return [Item(group, use), *(Item(None, Qos(name=name, priority=9)) for name in names)]


def retired(site):
    with site.begin() as session:
        return rows.retired(session)


@pytest.mark.parametrize(
    ("names", "more"),
    [
        (("rush",), {"grp_jobs": 7}),
        (("rush",), {"default_qos": "rush"}),
        (("haste", "rush"), {}),
    ],
)
def test_at_its_end_the_group_has_all_that_it_had_and_what_was_made_retires(site, names, more):
    before = site.group()
    change = site.propose(*made(site, *names, **more), ends_at=site.now + timedelta(days=1))
    assert site.apply(change) is ChangeState.APPLIED
    site.wait(days=1)
    assert list(site.due().values()) == [ChangeState.APPLIED]
    assert site.group() == before
    assert retired(site) == set(names)
    assert site.change(change).state is ChangeState.ENDED
    site.agree()


def test_undone_it_is_the_same_and_a_group_that_got_it_later_lets_go_of_it_too(site):
    before, other = site.group(), site.group("vision")
    change = site.propose(*made(site, "haste", "rush", grp_jobs=7))
    site.apply(change)
    site.apply(site.propose(Item(other, replace(other, qos=(*other.qos, "haste")))))
    undone = site.propose(*policy_history.undo_change(change, begin=site.begin))
    assert site.apply(undone) is ChangeState.APPLIED
    assert (site.group(), site.group("vision")) == (before, other)
    assert retired(site) == {"haste", "rush"}
    site.agree()
