"""The rules of changes: order, read-backs, ways back, and which states follow which."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.policy_change import (
    FOLLOWS,
    OPEN,
    ChangeState,
    Item,
    ItemState,
    Reading,
    as_slurm_keeps,
    in_order,
    outcome,
    preemption_loop,
    reading,
    way_back,
)
from gateway.core.qos import GroupPolicy, Qos, tres

NORMAL = Qos(name="normal", priority=1, max_wall_minutes=60)
GROUP = GroupPolicy(name="nlp", qos=("normal",), shares=3)
STATES = st.lists(st.sampled_from(ItemState), min_size=1, max_size=5)


@given(STATES)
def test_what_a_change_is_follows_from_its_items(states):
    found = outcome(states)
    assert found in FOLLOWS[ChangeState.APPLYING] | {ChangeState.APPLYING}
    touched = {ItemState.DONE, ItemState.HALF} & set(states)
    assert (found is ChangeState.APPLIED) == (set(states) == {ItemState.DONE})
    assert (found in OPEN) == bool({ItemState.SENT, ItemState.WAITING} & set(states))
    if found is ChangeState.REFUSED:
        assert not touched
    if found in (ChangeState.PARTLY, ChangeState.APPLYING):
        assert touched


def test_what_is_over_stays_so_but_for_a_way_back():
    over = {state for state, after in FOLLOWS.items() if not after}
    assert over == {ChangeState.REFUSED, ChangeState.WITHDRAWN, ChangeState.ENDED}
    assert FOLLOWS.keys() == set(ChangeState)


def test_a_read_back_says_whose_it_is():
    item = Item(NORMAL, replace(NORMAL, priority=2))
    assert reading(item, item.after) is Reading.AFTER
    assert reading(item, NORMAL) is Reading.BEFORE
    assert reading(item, replace(NORMAL, priority=3)) is Reading.OTHER
    assert reading(item, None) is Reading.OTHER
    assert reading(Item(None, NORMAL), None) is Reading.BEFORE


def test_of_shares_alone_only_the_shares_are_compared():
    item = Item(GROUP, replace(GROUP, shares=9))
    assert item.only_shares
    assert reading(item, replace(GROUP, shares=9, grp_jobs=4)) is Reading.AFTER
    assert reading(item, replace(GROUP, shares=3, grp_jobs=4)) is Reading.BEFORE
    assert reading(item, replace(GROUP, shares=4)) is Reading.OTHER
    both = Item(GROUP, replace(GROUP, shares=9, grp_jobs=4))
    assert not both.only_shares
    assert reading(both, replace(GROUP, shares=9)) is Reading.OTHER


def test_slurm_is_told_of_qos_before_what_names_them_and_of_retiring_last():
    made = Item(None, Qos(name="made", preempts=("deep",)))
    deep = Item(None, Qos(name="deep"))
    takes = Item(NORMAL, replace(NORMAL, preempts=("made",)))
    spot = Qos(name="spot", preempts=("normal",))
    drops = Item(spot, replace(spot, preempts=()))
    group = Item(GROUP, replace(GROUP, qos=("made",)))
    old = Qos(name="old")
    retires = Item(old, old, retires=True)
    order = in_order([retires, group, takes, drops, made, deep])
    assert order == (deep, made, drops, takes, group, retires)


@given(st.permutations("abcd"), st.data())
def test_new_qos_come_after_those_that_they_preempt(names, data):
    """Any web without a circle."""
    items = [
        Item(None, Qos(name=name, preempts=tuple(data.draw(st.sets(st.sampled_from(before))))))
        if (before := names[:place])
        else Item(None, Qos(name=name))
        for place, name in enumerate(names)
    ]
    told = [item.after for item in in_order(data.draw(st.permutations(items)))]
    for place, qos in enumerate(told):
        assert set(qos.preempts) <= {one.name for one in told[:place]}


def test_a_circle_is_found_however_long():
    assert preemption_loop({"a": ("b",), "b": ("c",), "c": ("a",), "x": ()}) == "a"
    assert preemption_loop({"a": ("b", "c"), "b": ("c",), "c": ("gone",)}) is None


def test_a_way_back_touches_only_what_was_changed():
    item = Item(NORMAL, replace(NORMAL, priority=2))
    now = replace(item.after, max_wall_minutes=5)
    back = way_back(item, now)
    assert back == Item(now, replace(now, priority=1))
    assert way_back(item, replace(now, priority=1)) is None
    meanwhile = way_back(item, replace(now, priority=7))
    assert meanwhile is not None
    assert meanwhile.before != replace(now, priority=7)
    with pytest.raises(ValueError, match="retires"):
        way_back(Item(None, NORMAL), NORMAL)


LIMITS = st.none() | st.integers(0, 5)
QOS = st.builds(
    Qos,
    name=st.just("q"),
    priority=st.integers(0, 3),
    max_wall_minutes=LIMITS,
    grp_jobs=LIMITS,
    grp_tres=st.dictionaries(st.sampled_from(["cpu", "mem"]), st.integers(0, 3)).map(tres),
)


@given(QOS, QOS, QOS)
def test_a_way_back_gives_what_was_before_and_keeps_all_else(before, after, later):
    item = Item(before, after)
    touched = {change.field.key for change in item.changes}
    kept = {key: getattr(after, key) for key in touched}
    now = replace(later, **kept)  # others moved meanwhile, these did not
    back = way_back(item, now)
    if back is None:
        assert not touched
        return
    assert back.before == now
    assert all(getattr(back.after, key) == getattr(before, key) for key in touched)
    assert {change.field.key for change in back.changes} == touched


def test_a_proposal_is_as_slurm_would_give_it_back():
    wanted = replace(NORMAL, description="High", preempts=("spot", "low", "low"))
    kept = as_slurm_keeps(Item(NORMAL, wanted)).after
    assert (kept.description, kept.preempts) == ("high", ("low", "spot"))
