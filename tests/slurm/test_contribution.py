"""Contribution on a real Slurm: what groups brought becomes shares there, once, and goes back."""

import json
import time
from datetime import UTC, datetime

import pytest
from broker_fixture import own_broker
from policy_hands import blows

from gateway.core.contribution import Formula, Kind, Rules, Tier
from gateway.core.credits import MILLION
from gateway.core.policy_change import ChangeState, Source
from gateway.services import contribution, contribution_book, policy_apply, policy_drift, poll
from gateway.services.policy_changes import propose
from gateway.services.policy_history import undo_change
from gateway.store.queries import policy_changes as rows
from gateway.testing.contract_policy import kept

pytestmark = pytest.mark.slurm

OURS = tuple(f"gives{n}" for n in range(7))  # more than are told one by one
OTHERS = ("nlp", "vision", "biolab")
MONEY = Kind(key="money", name="Money", unit="CNY", weight=MILLION, half_life_days=100)
RULES = Rules(kinds=(MONEY,), formula=Formula(base=10, least=1), automatic=True)
OPEN = (ChangeState.APPROVED, ChangeState.APPLYING, ChangeState.UNKNOWN)


@pytest.fixture
def own(cluster):
    with own_broker(cluster, SLUICE_BROKER_KILL_TIMEOUT_SECONDS="4") as process:
        yield process


@pytest.fixture
def groups(cluster, broker, begin):
    """Accounts of this test alone, one of them below another, beside the cluster's own."""
    run = ["sacctmgr", "-i"]
    cluster.run([*run, "add", "account", ",".join(OURS[:-1]), "Fairshare=1"])
    cluster.run([*run, "add", "account", OURS[-1], f"parent={OURS[0]}", "Fairshare=1"])
    with kept(broker, *OTHERS):
        look(begin, broker)
        contribution_book.set_rules(RULES, expected=None, begin=begin, now=now())
        yield
    cluster.run([*run, "delete", "account", OURS[-1]])
    cluster.run([*run, "delete", "account", ",".join(OURS[:-1])])


def now():
    return datetime.now(UTC)


def look(begin, broker):
    assert poll.poll_policy(begin=begin, broker=broker, now=now()).error_code is None
    policy_drift.look(begin=begin, read=begin, now=now())


def bring(begin, group, amount):
    """As an administrator does, but for the portal's asking whether anybody is in the group."""
    return contribution_book.add(
        group, "money", amount * MILLION, day=now().date(), begin=begin, now=now()
    )


def computed(begin, key):
    return contribution.compute(
        key, second_approval=False, viewer=None, begin=begin, now=now(), zone=UTC
    )


def applied(begin, broker, change):
    return policy_apply.apply(change, viewer=None, begin=begin, broker=broker, now=now())


def state(begin, change):
    with begin() as session:
        return rows.change(session, change).state


def shares(cluster):
    """As sacctmgr prints them."""
    words = ["show", "associations", "where", "cluster=dev", "user=", "format=account,fairshare"]
    printed = cluster.run(["sacctmgr", "-nP", *words]).stdout.split()
    return {name: int(text) for name, text in (line.split("|") for line in printed)}


def acts(broker_process):
    events = [json.loads(line) for line in broker_process.acts_log.read_text().splitlines()]
    writes = ("set-shares", "set-group-policy", "set-qos")
    return sum(one["event"] == "begin" and one["verb"] in writes for one in events)


def agree(begin, broker):
    """The newest versions say what Slurm has."""
    look(begin, broker)
    with begin() as session:
        assert policy_drift.find(session) == ()


def test_what_was_brought_becomes_shares_once_and_goes_back(
    cluster, broker, broker_process, begin, groups
):
    before = shares(cluster)
    for n, name in enumerate(OTHERS):
        bring(begin, name, 5 * (n + 1))
    run = computed(begin, "first")
    assert run.differing == len(OURS) + len(OTHERS)
    assert applied(begin, broker, run.change_id) is ChangeState.APPLIED
    after = shares(cluster)
    wanted = dict.fromkeys(OURS, 10) | {"nlp": 15, "vision": 20, "biolab": 25}
    assert after == before | wanted
    agree(begin, broker)

    until = time.monotonic() + 20
    while {one.account: one.raw_shares for one in broker.fair_shares() if one.user is None}[
        "biolab"
    ] != 25:
        assert time.monotonic() < until, "sshare, so slurmctld, has other shares"
        time.sleep(0.3)

    counted = acts(broker_process)
    again = computed(begin, "second")
    assert (again.differing, again.change_id) == (0, None)
    assert acts(broker_process) == counted, "nothing differs, nothing is written"

    back = propose(
        undo_change(run.change_id, begin=begin),
        viewer=None,
        reason="",
        source=Source.UNDO,
        second_approval=False,
        key="undo",
        begin=begin,
        now=now(),
    )
    assert applied(begin, broker, back) is ChangeState.APPLIED
    assert shares(cluster) == before
    agree(begin, broker)


def test_slurmdbd_that_goes_away_in_the_middle_is_settled_when_it_is_back(
    cluster, broker, begin, groups
):
    before = shares(cluster)
    bring(begin, "nlp", 7)
    change = computed(begin, "cut").change_id
    cluster.daemon("slurmdbd", "stop")
    try:
        assert applied(begin, broker, change) in OPEN
    finally:
        cluster.daemon("slurmdbd", "start")
    until = time.monotonic() + 60
    later = now()
    while state(begin, change) in OPEN:
        assert time.monotonic() < until
        later = max(later, now()) + policy_apply.ASK_AGAIN
        policy_apply.apply_due(begin=begin, broker=broker, now=later)
        time.sleep(0.2)
    assert state(begin, change) is ChangeState.APPLIED
    assert shares(cluster) == before | dict.fromkeys((*OURS, "vision", "biolab"), 10) | {"nlp": 17}
    poll.poll_policy(begin=begin, broker=broker, now=later + policy_apply.ASK_AGAIN)
    with begin() as session:
        assert policy_drift.find(session) == ()


def test_broker_processes_that_are_killed_in_the_middle_leave_no_doubt(cluster, own, begin, groups):
    """The load of many accounts is cut off again and again."""
    broker = own.client()
    bring(begin, "nlp", 9)
    change = computed(begin, "killed").change_id
    later = now()
    with blows(own.kill_workers):
        until = time.monotonic() + 60
        while state(begin, change) in OPEN:
            assert time.monotonic() < until
            later += policy_apply.ASK_AGAIN * 2
            policy_apply.apply_due(begin=begin, broker=broker, now=later)
    assert state(begin, change) is ChangeState.APPLIED
    assert shares(cluster)["nlp"] == 19
    assert {shares(cluster)[name] for name in OURS} == {10}


def test_a_tier_gives_and_takes_its_qos(cluster, broker, begin, groups):
    rules = Rules(kinds=(MONEY,), tiers=(Tier(5 * MILLION, "urgent"),))
    contribution_book.set_rules(rules, expected=1, begin=begin, now=now())
    bring(begin, "biolab", 6)
    run = computed(begin, "tier")
    assert applied(begin, broker, run.change_id) is ChangeState.APPLIED
    there = {one.policy.name: one.policy.qos for one in broker.accounts()}
    assert "urgent" in there["biolab"]
    assert "urgent" not in there["nlp"]
    agree(begin, broker)
