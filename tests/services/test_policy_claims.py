"""Two processes at one change, or at one object: nothing is written twice, nothing overwritten."""

from dataclasses import replace

import pytest

from gateway.core.policy_change import ChangeState, Item, ItemState, Of
from gateway.errors import Refused
from gateway.services import policy_decide
from gateway.testing.policy_site import PolicySite


@pytest.fixture
def site(begin):
    return PolicySite(begin)


def lower(site, **values):
    before = site.qos()
    return Item(before, replace(before, **values))


def test_one_that_slept_past_its_claim_leaves_what_another_has_settled(site):
    change = site.propose(lower(site, max_wall_minutes=60))
    write = site.broker.set_qos

    def slow(request):
        found = write(request)
        site.wait(minutes=4)
        assert site.due() == {change: ChangeState.APPLIED}
        return found

    site.broker.set_qos = slow
    assert site.apply(change) is ChangeState.APPLIED
    assert [one.number for one in site.versions(Of.QOS, "normal")] == [1, 2]
    site.agree()


def test_a_late_no_does_not_undo_what_another_has_settled(site):
    """Frozen before the call: the other one has sent it, and the broker says that it changed."""
    change = site.propose(lower(site, max_wall_minutes=60))
    write = site.broker.set_qos

    def frozen(request):
        site.broker.set_qos = write
        site.wait(minutes=4)
        assert site.due() == {change: ChangeState.APPLIED}
        return write(request)

    site.broker.set_qos = frozen
    assert site.apply(change) is ChangeState.APPLIED
    assert site.items(change) == {"qos:normal": (ItemState.DONE, None)}
    site.agree()


@pytest.mark.parametrize("second", [False, True])
def test_a_second_yes_while_it_is_applied_takes_it_from_nobody(site, second):
    """Approved again, it could be withdrawn although Slurm has it."""
    change = site.propose(lower(site, max_wall_minutes=60), second=True)
    yes = {"viewer": site.bob, "second_approval": second, "begin": site.begin, "now": site.now}
    policy_decide.decide(change, **yes)
    write = site.broker.set_qos

    def meanwhile(request):
        found = write(request)
        with pytest.raises(Refused, match="policy_not_waiting"):
            policy_decide.decide(change, **yes)
        return found

    site.broker.set_qos = meanwhile
    assert site.apply(change) is ChangeState.APPLIED
    assert site.change(change).state is ChangeState.APPLIED
    site.agree()
