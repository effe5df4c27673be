"""Changes of policy on a real Slurm: after each, and after each fault, Slurm is what the newest
versions say."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from broker_fixture import own_broker
from policy_hands import blows, until_answered

from gateway.core.policy_change import ChangeState, Item, ItemState, Of, Source
from gateway.core.qos import Qos, tres
from gateway.services import policy_drift, policy_history, policy_retire
from gateway.services.policy_drift import How
from gateway.store.queries import policy_changes as rows
from gateway.testing import builders as b
from gateway.testing.contract_policy import fresh_name, kept
from gateway.testing.policy_site import PolicySite

pytestmark = pytest.mark.slurm

DONE = (ItemState.DONE, None)
GROUPS = ("nlp", "vision", "biolab")
OPEN = (ChangeState.APPROVED, ChangeState.APPLYING, ChangeState.UNKNOWN)


class RealSite(PolicySite):
    """The same portal over a real broker; time is the test's all the same."""

    def __init__(self, begin, broker):
        self.begin, self.broker, self.now = begin, broker, b.NOW
        self.ada, self.bob = self._administrator("ada"), self._administrator("bob")
        self.poll()

    def in_slurm(self, of, name):
        there = {one.name: one for one in self.broker.qos()}
        if of is Of.GROUP:
            there = {one.policy.name: one.policy for one in self.broker.accounts()}
        return there.get(name)

    def agree(self):
        with self.begin() as session:
            said = {which: row.policy for which, row in rows.newest(session).items()}
        assert said == {
            **{(Of.QOS, one.name): one for one in self.broker.qos()},
            **{(Of.GROUP, one.policy.name): one.policy for one in self.broker.accounts()},
        }

    def made(self, **values):
        """A QoS of this test alone, made by a change."""
        wanted = Qos(name=fresh_name(), **values)
        change = self.propose(Item(None, wanted))
        assert self.apply(change) is ChangeState.APPLIED
        return wanted

    def settled(self, change):
        """What it ends as; turns of the worker go by until then."""
        end = time.monotonic() + 60
        while (state := self.change(change).state) in OPEN:
            assert time.monotonic() < end, state
            time.sleep(0.05)
            self.wait(seconds=40)
            self.due()
        return state


def changed(before, **values):
    return Item(before, replace(before, **values))


@pytest.fixture
def site(begin, broker, tidy):
    with kept(broker, *GROUPS):
        yield RealSite(begin, broker)


@pytest.fixture
def own(cluster):
    with own_broker(cluster, SLUICE_BROKER_KILL_TIMEOUT_SECONDS="4") as process:
        yield process


def test_what_is_applied_is_in_slurm_and_in_the_audit_and_goes_back(site, sacctmgr):
    one = site.made(priority=7, description="Deadline week")
    nlp = site.group("nlp")
    more = replace(nlp, shares=9, qos=tuple(sorted((*nlp.qos, one.name))), max_wall_minutes=90)
    change = site.propose(
        changed(site.qos(one.name), grp_tres=tres({"gres/gpu": 8, "mem": 1500})), Item(nlp, more)
    )
    assert site.apply(change) is ChangeState.APPLIED
    site.agree()
    assert sacctmgr.shown(one.name, "Priority", "GrpTRES", "Description") == [
        "7",
        "gres/gpu=8,mem=1500M",
        "deadline week",
    ]
    made, version = site.versions(Of.QOS, one.name)
    assert (version.before, version.by, version.change_id) == (made.policy, "ada", change)
    assert site.versions(Of.GROUP, "nlp")[-1].policy == more
    undone = site.propose(
        *policy_history.undo_change(change, begin=site.begin), source=Source.UNDO, about_id=change
    )
    assert site.apply(undone) is ChangeState.APPLIED
    site.agree()
    assert (site.group("nlp"), site.qos(one.name)) == (nlp, made.policy)


def test_undo_leads_to_any_version_and_is_one_itself(site):
    name = site.made(priority=1, flags=("DenyOnLimit",), preempts=("spot",)).name
    site.apply(site.propose(changed(site.qos(name), flags=(), preempts=(), grp_jobs=0)))
    site.apply(site.propose(changed(site.qos(name), priority=3, max_wall_minutes=5)))
    first = site.versions(Of.QOS, name)[0]
    back = site.propose(*policy_history.undo(Of.QOS, name, 1, begin=site.begin))
    assert site.apply(back) is ChangeState.APPLIED
    newest = site.versions(Of.QOS, name)[-1]
    assert (newest.number, newest.policy) == (4, first.policy)
    site.agree()


def test_where_slurm_refuses_one_object_the_others_are_done_and_can_be_undone(site):
    one, two = site.made(), site.made()
    nlp = site.group("nlp")
    change = site.propose(
        changed(site.qos(one.name), priority=5),
        changed(site.qos(two.name), priority=6, max_tres_per_job=tres({"gres/nosuch": 1})),
        changed(nlp, max_jobs=4, max_submit_jobs=8),
    )
    assert site.apply(change) is ChangeState.PARTLY
    assert site.items(change) == {
        f"qos:{one.name}": DONE,
        f"qos:{two.name}": (ItemState.REFUSED, "policy_unknown_tres"),
        "group:nlp": DONE,
    }
    assert site.qos(two.name) == two
    site.agree()
    undone = site.propose(*policy_history.undo_change(change, begin=site.begin))
    assert site.apply(undone) is ChangeState.APPLIED
    assert set(site.items(undone)) == {f"qos:{one.name}", "group:nlp"}
    assert site.group("nlp") == nlp
    site.agree()


def test_a_group_whose_member_needs_the_qos_keeps_all_it_had(site, sacctmgr):
    user = ("user", "where", "name=nlp-1", "account=nlp", "cluster=dev", "set")
    nlp = site.group("nlp")
    sacctmgr("modify", *user, "DefaultQOS=urgent")
    try:
        change = site.propose(changed(nlp, shares=4, qos=("normal", "spot")))
        assert site.apply(change) is ChangeState.REFUSED
        assert site.items(change)["group:nlp"][1] == "policy_default_not_listed"
        site.agree()
    finally:
        sacctmgr("modify", *user, "DefaultQOS=-1")


def test_shares_of_all_groups_go_in_one_call_and_come_back(site):
    before = [site.group(name) for name in GROUPS]
    change = site.propose(*(changed(one, shares=20 + at) for at, one in enumerate(before)))
    assert site.apply(change) is ChangeState.APPLIED
    assert [site.group(name).shares for name in GROUPS] == [20, 21, 22]
    site.agree()
    undone = site.propose(*policy_history.undo_change(change, begin=site.begin))
    assert site.apply(undone) is ChangeState.APPLIED
    assert [site.group(name) for name in GROUPS] == before
    site.agree()


def test_a_qos_retires_when_all_groups_have_let_go_and_slurm_keeps_it(site):
    one = site.made(priority=3)
    nlp = site.group("nlp")
    site.apply(site.propose(changed(nlp, qos=tuple(sorted((*nlp.qos, one.name))))))
    gone = site.propose(*policy_retire.retire(one.name, replacement=None, begin=site.begin))
    assert site.apply(gone) is ChangeState.APPLIED
    assert site.group("nlp") == nlp
    assert site.in_slurm(Of.QOS, one.name) == one
    assert site.versions(Of.QOS, one.name)[-1].retired
    site.agree()


def test_of_two_administrators_at_once_one_wins_and_nothing_of_the_other_is_done(site):
    one = site.made()
    seen = site.qos(one.name)
    items = (changed(seen, priority=5, grp_jobs=5), changed(seen, max_wall_minutes=60))
    proposed = [
        site.propose(item, viewer=viewer)
        for item, viewer in zip(items, (site.ada, site.bob), strict=True)
    ]
    with ThreadPoolExecutor(2) as pool:
        states = list(pool.map(site.apply, proposed))
    # Who met the other's write under way is still to be tried: the worker does it in its next turn.
    waits = ChangeState.APPROVED
    states = [
        site.apply(change) if state is waits else state
        for change, state in zip(proposed, states, strict=True)
    ]
    assert sorted(states) == [ChangeState.APPLIED, ChangeState.REFUSED]
    lost = proposed[states.index(ChangeState.REFUSED)]
    refused = (ItemState.REFUSED, "policy_changed_meanwhile")
    assert site.items(lost) == {f"qos:{one.name}": refused}
    won = items[states.index(ChangeState.APPLIED)].after
    assert site.in_slurm(Of.QOS, one.name) == won
    site.agree()


def test_drift_by_hand_is_found_adopted_and_set_back(site, sacctmgr):
    one, two, three = site.made(priority=1), site.made(), site.made(grp_jobs=3)
    for name in (one.name, two.name):
        sacctmgr("modify", "qos", "where", f"name={name}", "set", "GrpTRES=cpu=9", "MaxWall=5")
    sacctmgr("delete", "qos", "where", f"name={three.name}")
    sacctmgr("modify", "account", "where", "name=nlp", "cluster=dev", "set", "Fairshare=77")
    assert site.poll() == 4
    found = site.drift()
    assert {key: [c.field.key for c in one.changes] for key, one in found.items()} == {
        f"qos:{one.name}": ["grp_tres", "max_wall_minutes"],
        f"qos:{two.name}": ["grp_tres", "max_wall_minutes"],
        f"qos:{three.name}": [],
        "group:nlp": ["shares"],
    }
    assert found[f"qos:{three.name}"].how is How.VANISHED
    policy_drift.adopt(Of.QOS, one.name, viewer=site.ada, begin=site.begin, now=site.now)
    assert site.qos(one.name).grp_tres == tres({"cpu": 9})
    for of, name in ((Of.QOS, two.name), (Of.QOS, three.name), (Of.GROUP, "nlp")):
        back = policy_drift.restore(
            of,
            name,
            viewer=site.ada,
            reason="",
            second_approval=False,
            key=f"restore {name}",
            begin=site.begin,
            now=site.now,
        )
        assert site.apply(back) is ChangeState.APPLIED, name
    site.agree()
    assert site.in_slurm(Of.QOS, two.name) == two
    assert site.in_slurm(Of.QOS, three.name) == three
    site.wait(minutes=2)
    assert site.poll() == 0


def test_what_came_by_hand_after_the_form_is_not_overwritten(site, sacctmgr):
    one = site.made()
    change = site.propose(changed(site.qos(one.name), priority=9))
    sacctmgr("modify", "qos", "where", f"name={one.name}", "set", "MaxJobsPU=2")
    assert site.apply(change) is ChangeState.REFUSED
    assert site.in_slurm(Of.QOS, one.name) == replace(one, max_jobs_per_user=2)
    # Drift, until somebody decides.
    assert site.poll() == 1
    policy_drift.adopt(Of.QOS, one.name, viewer=site.bob, begin=site.begin, now=site.now)
    site.agree()


def test_without_slurmdbd_a_change_waits_and_is_done_once(site, cluster, own):
    site.broker = own.client()
    one, nlp = site.made(), site.group("nlp")
    change = site.propose(changed(site.qos(one.name), priority=4), changed(nlp, shares=5))

    class Stops:
        """slurmdbd goes between the first object and the second."""

        def __getattr__(self, name):
            if name == "set_shares":
                cluster.daemon("slurmdbd", "stop")
            return getattr(own.client(), name)

    site.broker = Stops()
    try:
        state = site.apply(change)
    finally:
        site.broker = own.client()
        cluster.daemon("slurmdbd", "start")
    assert state in OPEN
    assert site.items(change)[f"qos:{one.name}"] == DONE
    assert site.items(change)["group:nlp"][0] is not ItemState.DONE
    assert site.settled(change) is ChangeState.APPLIED
    assert [len(site.versions(Of.QOS, one.name)), len(site.versions(Of.GROUP, "nlp"))] == [2, 2]
    site.agree()


def test_a_write_that_slurmdbd_froze_over_is_unknown_and_settled_by_reading(site, cluster, own):
    site.broker = own.client()
    one = site.made()
    state, changes = ChangeState.APPLIED, 0
    while state is ChangeState.APPLIED and changes < 10:  # the write was faster than the frost
        seen = site.qos(one.name)
        change = site.propose(changed(seen, priority=seen.priority + 1))
        changes += 1
        with ThreadPoolExecutor(1) as pool:
            frost = pool.submit(_freeze_under_a_write, cluster, f"name={one.name}")
            try:
                state = site.apply(change)
            finally:
                frost.result()
                cluster.daemon("slurmdbd", "thaw")
    assert state is ChangeState.UNKNOWN
    assert site.items(change)[f"qos:{one.name}"] == (ItemState.SENT, None)
    assert site.settled(change) is ChangeState.APPLIED
    assert site.qos(one.name).priority == changes
    assert len(site.versions(Of.QOS, one.name)) == 1 + changes
    site.agree()


def _freeze_under_a_write(cluster, word):
    """As soon as a sacctmgr with this word among its own is there; gives up after a while."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:  # it has ended
                continue
            if words[0] == b"sacctmgr" and word.encode() in words:
                cluster.daemon("slurmdbd", "freeze")
                return


@pytest.mark.parametrize("who", ["slurmdbd", "broker"])
def test_whoever_is_killed_in_the_middle_a_change_ends_as_done_once(site, cluster, own, who):
    site.broker = own.client()
    one = site.made()

    def blow():
        if who == "broker":
            own.kill_workers()
        else:
            cluster.daemon("slurmdbd", "kill")
            cluster.daemon("slurmdbd", "start")

    hit = {ChangeState.UNKNOWN} if who == "broker" else set(OPEN)
    state, changes, end = ChangeState.APPLIED, 0, time.monotonic() + 60
    with blows(blow):
        while state not in hit:
            assert time.monotonic() < end
            seen = site.qos(one.name)
            change = site.propose(changed(seen, priority=seen.priority + 1))
            state = site.apply(change)
            changes += 1
            assert site.settled(change) is ChangeState.APPLIED
    until_answered(site.broker.qos)
    assert site.qos(one.name).priority == changes
    assert len(site.versions(Of.QOS, one.name)) == 1 + changes
    site.agree()
