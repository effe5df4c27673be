"""Changes of policy: proposed, approved, applied, read back, taken back; Slurm and the audit
agree."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.core.policy_change import ChangeState, Item, ItemState, Of, Source
from gateway.core.qos import Qos, TresLimit, tres
from gateway.errors import NotFound, Refused
from gateway.services import policy_changes, policy_history, policy_retire, poll
from gateway.services.offer import offer
from gateway.testing import builders
from gateway.testing.policy_site import PolicySite

DONE = (ItemState.DONE, None)


@pytest.fixture
def site(begin):
    return PolicySite(begin)


def lower(site, name="normal", **values):
    before = site.qos(name)
    return Item(before, replace(before, **(values or {"max_wall_minutes": 60})))


def test_a_change_is_applied_read_back_and_has_a_version_with_before_after_and_who(site):
    item = lower(site)
    change = site.propose(item)
    assert site.change(change).state is ChangeState.APPROVED
    assert "set-qos" not in site.broker.calls
    assert site.apply(change) is ChangeState.APPLIED
    assert site.in_slurm(Of.QOS, "normal") == item.after
    found, made = site.versions(Of.QOS, "normal")
    assert (found.source, found.by, found.number) == (Source.FOUND, None, 1)
    assert (made.policy, made.before, made.by) == (item.after, item.before, "ada")
    assert (made.change_id, made.number, made.source) == (change, 2, Source.FORM)
    line = site.change(change).line
    assert (line.author, line.applied_by, line.done, line.total) == ("ada", "ada", 1, 1)
    assert line.names == ("qos:normal",)
    site.agree()


def test_the_same_key_is_the_same_change_and_a_second_press_sends_nothing(site):
    item = lower(site)
    assert site.propose(item, key="once") == site.propose(item, key="once")
    change = site.propose(item, key="once")
    site.apply(change)
    before = list(site.broker.calls)
    assert site.apply(change) is ChangeState.APPLIED
    assert site.broker.calls == before
    with pytest.raises(NotFound):
        site.apply(99)


def test_what_the_form_would_not_show_is_refused_and_nothing_overwritten(site):
    change = site.propose(lower(site))
    behind = replace(site.broker.policy.qos["normal"], max_jobs_per_user=3)
    site.broker.policy.qos["normal"] = behind
    assert site.apply(change) is ChangeState.REFUSED
    assert site.items(change) == {"qos:normal": (ItemState.REFUSED, "policy_changed_meanwhile")}
    assert site.change(change).items[0].found == behind
    assert site.broker.policy.qos["normal"] == behind
    assert [one.number for one in site.versions(Of.QOS, "normal")] == [1]


def test_of_two_administrators_the_second_is_refused(site):
    first, second = site.propose(lower(site)), site.propose(lower(site, max_wall_minutes=5))
    assert site.apply(first) is ChangeState.APPLIED
    assert site.apply(second) is ChangeState.REFUSED
    assert site.qos().max_wall_minutes == 60
    site.agree()


def test_one_refused_item_leaves_the_others_done_and_says_which(site):
    good, bad = lower(site), lower(site, "urgent", priority=7)
    site.broker.policy.qos["urgent"] = replace(bad.before, priority=9)
    change = site.propose(good, bad)
    assert site.apply(change) is ChangeState.PARTLY
    refused = (ItemState.REFUSED, "policy_changed_meanwhile")
    assert site.items(change) == {"qos:normal": DONE, "qos:urgent": refused}


def test_a_write_that_slurm_half_takes_is_kept_as_it_is(site):
    site.broker.policy.refuse_qos_fields = frozenset({"priority"})
    item = lower(site, max_wall_minutes=60, priority=5)
    change = site.propose(item)
    assert site.apply(change) is ChangeState.PARTLY
    assert site.items(change) == {"qos:normal": (ItemState.HALF, "policy_half_taken")}
    taken = replace(item.before, max_wall_minutes=60)
    assert site.change(change).items[0].found == taken
    assert site.versions(Of.QOS, "normal")[-1].policy == taken
    site.agree()
    site.wait(minutes=2)
    assert site.poll() == 0


def test_a_write_of_which_slurm_takes_nothing_is_refused(site):
    site.broker.policy.refuse_qos_fields = frozenset({"priority"})
    change = site.propose(lower(site, priority=5))
    assert site.apply(change) is ChangeState.REFUSED
    assert site.items(change) == {"qos:normal": (ItemState.REFUSED, "policy_not_taken")}
    site.agree()


@pytest.mark.parametrize("after", [True, False])
def test_silence_is_settled_by_reading_slurm(site, after):
    change = site.propose(lower(site))
    (site.broker.silent_after_next if after else site.broker.silent_before_next)()
    assert site.apply(change) is ChangeState.UNKNOWN
    assert site.due() == {}  # the broker may still be at work
    site.wait(seconds=40)
    assert site.due() == {change: ChangeState.APPLIED}
    assert site.broker.calls.count("set-qos") == (1 if after else 2)
    assert site.items(change) == {"qos:normal": DONE}
    site.agree()


def test_after_silence_something_else_is_refused_as_changed(site):
    item = lower(site)
    change = site.propose(item)
    site.broker.silent_before_next()
    site.apply(change)
    site.broker.policy.qos["normal"] = replace(item.before, priority=1)
    site.wait(seconds=40)
    assert site.due() == {change: ChangeState.REFUSED}
    assert site.items(change)["qos:normal"][1] == "policy_changed_meanwhile"
    assert f"policy_failed:{change}" in site.told("policy_failed")
    policy_changes.seen(change, begin=site.begin, now=site.now)
    assert not site.told("policy_failed")


def test_what_another_change_sent_into_silence_waits_for_its_end(site):
    """Shares alone would go through, and then nobody could tell whose the rest was."""
    group = site.group()
    first = site.propose(Item(group, replace(group, grp_jobs=3)))
    second = site.propose(Item(group, replace(group, shares=9)))
    site.broker.silent_after_next()
    assert site.apply(first) is ChangeState.UNKNOWN
    assert site.apply(second) is ChangeState.APPROVED
    site.wait(seconds=40)
    assert site.due() == dict.fromkeys((first, second), ChangeState.APPLIED)
    assert (site.group().grp_jobs, site.group().shares) == (3, 9)
    site.agree()


def test_while_slurm_is_away_nothing_is_done_and_the_worker_goes_on_later(site):
    change = site.propose(lower(site))
    site.broker.unreachable = True
    assert site.apply(change) is ChangeState.APPROVED
    site.broker.unreachable = False
    assert site.due() == {}
    site.wait(minutes=1)
    assert site.due() == {change: ChangeState.APPLIED}
    assert site.items(change) == {"qos:normal": DONE}


def test_the_worker_applies_what_nobody_did(site):
    change = site.propose(lower(site))
    assert site.due() == {change: ChangeState.APPLIED}
    assert site.change(change).line.applied_by is None


class Killed(BaseException):
    """No rule of ours catches it, as none catches kill -9."""


def dying(begin, at):
    """The same, dead before the transaction of this number."""
    count = iter(range(10**6))

    def mortal():
        if next(count) == at:
            raise Killed
        return begin()

    return mortal


@pytest.mark.parametrize("at", range(12))
def test_killed_before_any_transaction_it_ends_the_same(site, at):
    group = site.group()
    new = Qos(name="night", priority=5, max_wall_minutes=600)
    items = (
        Item(group, replace(group, qos=("night", *group.qos), shares=7)),
        Item(None, new),
        lower(site),
    )
    change = site.propose(*items)
    try:
        site.apply(change, begin=dying(site.begin, at))
    except Killed:
        assert at == 0 or site.due() == {}  # the dead one's claim
        site.wait(minutes=4)
        site.due()
    assert site.items(change) == dict.fromkeys(("qos:night", "qos:normal", "group:nlp"), DONE)
    assert site.change(change).state is ChangeState.APPLIED
    assert site.broker.calls.count("set-qos") == 2
    assert len(site.versions(Of.QOS, "normal")) == 2
    site.agree()


@pytest.mark.parametrize("call", range(3))
def test_killed_during_any_call_it_ends_the_same(site, call):
    """Slurm has taken it, and nobody heard the answer."""
    items = lower(site), lower(site, "urgent", priority=3), lower(site, "spot", priority=3)
    change = site.propose(*items)
    write, calls = site.broker.set_qos, iter(range(99))

    def dying_call(request):
        found = write(request)
        if next(calls) == call:
            raise Killed
        return found

    site.broker.set_qos = dying_call
    with pytest.raises(Killed):
        site.apply(change)
    site.wait(minutes=4)
    assert site.due() == {change: ChangeState.APPLIED}
    assert site.broker.calls.count("set-qos") == 3
    site.agree()


def test_a_second_administrator_has_to_approve(site):
    change = site.propose(lower(site), second=True)
    assert site.change(change).state is ChangeState.PROPOSED
    assert site.due() == {}
    assert site.apply(change) is ChangeState.PROPOSED
    with pytest.raises(Refused, match="policy_own_approval"):
        policy_changes.approve(change, viewer=site.ada, begin=site.begin, now=site.now)
    policy_changes.approve(change, viewer=site.bob, begin=site.begin, now=site.now)
    with pytest.raises(Refused, match="policy_not_waiting"):
        policy_changes.approve(change, viewer=site.bob, begin=site.begin, now=site.now)
    assert site.apply(change) is ChangeState.APPLIED
    line = site.change(change).line
    assert (line.author, line.approved_by) == ("ada", "bob")


def test_what_was_not_begun_can_be_withdrawn(site):
    change = site.propose(lower(site), starts_at=site.now + timedelta(days=1))
    policy_changes.withdraw(change, viewer=site.bob, begin=site.begin, now=site.now)
    site.wait(days=2)
    assert site.due() == {}
    assert site.change(change).state is ChangeState.WITHDRAWN
    other = site.propose(lower(site))
    site.apply(other)
    with pytest.raises(Refused, match="policy_too_late"):
        policy_changes.withdraw(other, viewer=site.ada, begin=site.begin, now=site.now)


def test_a_deadline_week_begins_and_goes_back_and_leaves_other_fields_alone(site):
    begins, ends = site.now + timedelta(days=1), site.now + timedelta(days=8)
    change = site.propose(lower(site), starts_at=begins, ends_at=ends)
    assert site.due() == {}
    assert site.apply(change) is ChangeState.APPROVED  # not due
    site.wait(days=1)
    assert site.due() == {change: ChangeState.APPLIED}
    other = site.propose(lower(site, priority=77))
    site.apply(other)
    site.wait(days=7)
    [(back, state)] = site.due().items()
    assert state is ChangeState.APPLIED
    assert site.change(change).state is ChangeState.ENDED
    assert site.change(back).line.about_id == change
    assert site.change(back).line.source is Source.SCHEDULE
    assert (site.qos().max_wall_minutes, site.qos().priority) == (None, 77)
    assert site.due() == {}
    site.agree()


def test_what_nobody_began_in_its_time_is_never_begun(site):
    """The worker was away for the whole deadline week, or nobody approved."""
    week = {"starts_at": site.now + timedelta(days=1), "ends_at": site.now + timedelta(days=8)}
    changes = site.propose(lower(site), **week), site.propose(lower(site), second=True, **week)
    site.wait(days=9)
    site.due()
    assert {site.change(one).state for one in changes} == {ChangeState.WITHDRAWN}
    assert site.due() == {}
    assert "set-qos" not in site.broker.calls


def test_what_found_no_slurm_until_its_end_is_never_done(site):
    change = site.propose(lower(site), ends_at=site.now + timedelta(hours=1))
    site.broker.unreachable = True
    assert site.apply(change) is ChangeState.APPROVED
    site.broker.unreachable = False
    site.wait(hours=2)
    assert site.due() == {}
    assert site.change(change).state is ChangeState.WITHDRAWN
    assert site.qos().max_wall_minutes is None
    site.agree()


def test_a_way_back_over_a_later_change_is_refused_and_told(site):
    change = site.propose(lower(site), ends_at=site.now + timedelta(days=1))
    site.apply(change)
    site.apply(site.propose(lower(site, max_wall_minutes=99)))
    site.wait(days=1)
    [(back, state)] = site.due().items()
    assert state is ChangeState.REFUSED
    assert site.qos().max_wall_minutes == 99
    assert f"policy_failed:{back}" in site.told("policy_not_back")
    assert site.change(change).state is ChangeState.APPLIED
    site.wait(minutes=5)
    assert site.due() == {}


def test_what_went_back_by_hand_has_nothing_left_to_go_back(site):
    change = site.propose(lower(site), ends_at=site.now + timedelta(days=1))
    site.apply(change)
    site.apply(site.propose(*policy_history.undo_change(change, begin=site.begin)))
    site.wait(days=1)
    assert site.due() == {}
    assert site.change(change).state is ChangeState.ENDED


def test_a_way_back_after_silence_is_one_change(site):
    change = site.propose(lower(site), ends_at=site.now + timedelta(days=1))
    site.apply(change)
    site.wait(days=1)
    site.broker.silent_after_next()
    [(back, state)] = site.due().items()
    assert state is ChangeState.UNKNOWN
    site.wait(minutes=1)
    assert site.due() == {back: ChangeState.APPLIED}
    assert site.change(change).state is ChangeState.ENDED


def test_a_qos_made_for_a_time_retires_at_its_end(site):
    group = site.group()
    new = Qos(name="rush", priority=9)
    use = Item(group, replace(group, qos=("rush", *group.qos)))
    change = site.propose(use, Item(None, new), ends_at=site.now + timedelta(days=1))
    assert site.apply(change) is ChangeState.APPLIED
    site.wait(days=1)
    assert list(site.due().values()) == [ChangeState.APPLIED]
    assert site.group().qos == group.qos
    assert site.versions(Of.QOS, "rush")[-1].retired
    site.agree()


def test_undo_of_a_version_and_of_a_change(site):
    first = site.propose(lower(site, max_tres_per_user=tres({"gres/gpu": 4, "cpu": 8})))
    site.apply(first)
    site.apply(site.propose(lower(site, priority=1)))
    undone = site.propose(*policy_history.undo_change(first, begin=site.begin))
    assert site.apply(undone) is ChangeState.APPLIED
    assert (site.qos().max_tres_per_user, site.qos().priority) == ((), 1)
    back = policy_history.undo(Of.QOS, "normal", 2, begin=site.begin)
    assert site.apply(site.propose(*back)) is ChangeState.APPLIED
    assert TresLimit("gres/gpu", 4) in site.qos().max_tres_per_user
    assert site.qos().priority == 100
    assert [one.number for one in site.versions(Of.QOS, "normal")] == [1, 2, 3, 4, 5]
    site.agree()


def test_undo_says_no_where_it_would_overwrite_or_do_nothing(site):
    first = site.propose(lower(site))
    site.apply(first)
    site.apply(site.propose(lower(site, max_wall_minutes=5)))
    with pytest.raises(Refused, match="policy_changed_meanwhile"):
        policy_history.undo_change(first, begin=site.begin)
    site.apply(site.propose(lower(site, max_wall_minutes=None)))
    with pytest.raises(Refused, match="policy_nothing_changes"):
        policy_history.undo_change(first, begin=site.begin)
    with pytest.raises(NotFound):
        policy_history.undo(Of.QOS, "normal", 77, begin=site.begin)
    with pytest.raises(NotFound):
        policy_history.undo_change(77, begin=site.begin)


def test_what_is_retired_is_not_offered_to_one_whose_own_list_has_it(site):
    """Slurm lets go of it where the group's list is inherited, and nowhere else."""
    site.apply(site.propose(*policy_retire.retire("spot", replacement=None, begin=site.begin)))
    theirs = tuple(replace(one, qos=("normal", "spot")) for one in site.broker.associations())
    site.broker.associations = lambda: theirs
    poll.poll_cluster(begin=site.begin, broker=site.broker, now=site.now)
    site.poll()
    found = offer(builders.viewer("nlp-1"), begin=site.begin)
    assert {q.name for g in found.groups for p in g.partitions for q in p.qos} == {"normal"}


def test_retire_takes_it_from_all_groups_and_can_be_taken_back(site):
    items = policy_retire.retire("spot", replacement=None, begin=site.begin)
    change = site.propose(*items)
    assert site.apply(change) is ChangeState.APPLIED
    assert all("spot" not in site.group(name).qos for name in ("nlp", "vision", "biolab"))
    assert "spot" in site.broker.policy.qos
    group = site.group()
    with pytest.raises(Refused, match="policy_retired_qos"):
        site.propose(Item(group, replace(group, qos=("spot", *group.qos))))
    site.apply(site.propose(*policy_history.undo_change(change, begin=site.begin)))
    assert all("spot" in site.group(name).qos for name in ("nlp", "vision", "biolab"))
    with pytest.raises(Refused, match="policy_not_retired"):
        policy_retire.bring_back("spot", begin=site.begin)
    site.agree()


def test_a_default_needs_a_replacement_that_the_group_may_use(site):
    group = site.group("biolab")
    site.apply(site.propose(Item(group, replace(group, default_qos="spot"))))
    for replacement in (None, "spot", "urgent"):
        with pytest.raises(Refused, match="policy_default_needed"):
            policy_retire.retire("spot", replacement=replacement, begin=site.begin)
    items = policy_retire.retire("spot", replacement="normal", begin=site.begin)
    assert site.apply(site.propose(*items)) is ChangeState.APPLIED
    assert site.group("biolab").default_qos == "normal"


def test_a_qos_that_a_group_kept_does_not_retire(site):
    items = policy_retire.retire("spot", replacement=None, begin=site.begin)
    change = site.propose(*items)
    group = site.broker.policy.accounts["nlp"]
    site.broker.policy.accounts["nlp"] = replace(group, policy=replace(group.policy, shares=99))
    assert site.apply(change) is ChangeState.PARTLY
    found = site.items(change)
    assert found["group:nlp"] == (ItemState.REFUSED, "policy_changed_meanwhile")
    assert found["qos:spot"] == (ItemState.REFUSED, "policy_qos_in_use")
    assert found["group:vision"] == DONE
    assert not site.versions(Of.QOS, "spot")[-1].retired


def test_shares_go_together_and_one_that_is_refused_does_not_hold_back_the_rest(site):
    items = [
        Item(group, replace(group, shares=40 + place))
        for place, group in enumerate(map(site.group, ("nlp", "vision", "biolab")))
    ]
    change = site.propose(*items, source=Source.CONTRIBUTION)
    account = site.broker.policy.accounts["vision"]
    behind = replace(account, policy=replace(account.policy, shares=3))
    site.broker.policy.accounts["vision"] = behind
    assert site.apply(change) is ChangeState.PARTLY
    found = site.items(change)
    assert found["group:vision"] == (ItemState.REFUSED, "policy_changed_meanwhile")
    assert (found["group:nlp"], found["group:biolab"]) == (DONE, DONE)
    assert site.group("biolab").shares == 42
    again = [Item(one, replace(one, shares=9)) for one in (site.group("nlp"), site.group("biolab"))]
    before = len(site.broker.calls)
    assert site.apply(site.propose(*again)) is ChangeState.APPLIED
    assert site.broker.calls[before:] == ["set-shares"]


def test_silence_on_shares_is_settled_for_each(site):
    items = [Item(one, replace(one, shares=9)) for one in map(site.group, ("nlp", "vision"))]
    change = site.propose(*items)
    site.broker.silent_after_next()
    assert site.apply(change) is ChangeState.UNKNOWN
    site.wait(minutes=1)
    assert site.due() == {change: ChangeState.APPLIED}
    assert site.broker.calls.count("set-shares") == 1
    site.agree()


REFUSED = {
    "policy_nothing_changes": lambda s: [Item(s.qos(), s.qos())],
    "policy_object_twice": lambda s: [lower(s), lower(s, priority=3)],
    "qos_exists": lambda s: [Item(None, Qos(name="spot"))],
    "policy_bad_name": lambda s: [Item(None, Qos(name="a'--"))],
    "policy_unknown_qos": lambda s: [lower(s, preempts=("gpu_hgih",))],
    "policy_preemption_loop": lambda s: [lower(s, "spot", preempts=("normal",))],
    "policy_preempts_itself": lambda s: [lower(s, preempts=("normal",))],
    "no_such_account": lambda s: [Item(None, s.group())],
    "policy_bad_number": lambda s: [lower(s, priority=-1)],
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_cannot_be_is_refused_at_the_proposal(site, code):
    with pytest.raises(Refused) as refused:
        site.propose(*REFUSED[code](site))
    assert refused.value.code == code


def test_a_loop_among_new_ones_is_refused_and_a_turn_of_the_order_is_not(site):
    a, b = Qos(name="a", preempts=("b",)), Qos(name="b", preempts=("a",))
    with pytest.raises(Refused, match="policy_preemption_loop"):
        site.propose(Item(None, a), Item(None, b))
    made = site.propose(Item(None, a), Item(None, Qos(name="b")))
    assert site.apply(made) is ChangeState.APPLIED
    turned = site.propose(
        Item(site.qos("b"), replace(site.qos("b"), preempts=("a",))),
        Item(site.qos("a"), replace(site.qos("a"), preempts=())),
    )
    assert site.apply(turned) is ChangeState.APPLIED


@pytest.mark.parametrize("reason", ["x" * 501, "a\x00b", "a\x1b[2J"])
def test_reasons_are_plain_text(site, reason):
    with pytest.raises(Refused, match="policy_bad_reason"):
        site.propose(lower(site), reason=reason)


def test_an_end_comes_after_the_start(site):
    for starts, ends in ((None, -1), (5, 5), (5, 4)):
        with pytest.raises(Refused, match="policy_ends_too_early"):
            site.propose(
                lower(site),
                starts_at=site.now + timedelta(hours=starts) if starts else None,
                ends_at=site.now + timedelta(hours=ends),
            )
