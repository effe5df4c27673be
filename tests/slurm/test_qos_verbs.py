"""QoS, groups and shares on a real Slurm: what is sent comes back, and what must not be, is not."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from typing import Any

import pytest
from broker_fixture import BrokerProcess
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from policy_hands import Sacctmgr

from contrib.devcluster.instance import Instance
from gateway.brokerclient.client import SocketBroker
from gateway.core.qos import FIELDS, FLAGS, Kind, Qos, tres
from gateway.core.qos_checks import (
    MOST_COUNT,
    MOST_MEBIBYTES,
    MOST_MILLIONTHS,
    MOST_MINUTES,
    MOST_TRES,
    as_kept,
    problems,
)
from gateway.errors import BrokerRefused, GatewayError
from gateway.testing.contract_policy import account_now, changed, fresh_name, kept, made, qos_now
from gateway.testing.contracts import refused
from gateway.wire import policy as p

pytestmark = pytest.mark.slurm

RESOURCES = ("cpu", "mem", "node", "energy", "billing", "vmem", "fs/disk", "pages")
CARDS = ("gres/gpu", "gres/gpu:a100", "gres/gpu:rtx4090")
MODES = (("cluster",), ("requeue",), ("cancel", "within"), ("gang", "suspend"), ("within",))


tidied = pytest.mark.usefixtures("tidy")


def _limits() -> st.SearchStrategy[Any]:
    mebibytes = st.integers(0, MOST_MEBIBYTES)
    amounts = {name: st.integers(0, MOST_TRES) for name in (*RESOURCES, *CARDS)}
    return st.fixed_dictionaries({}, optional={**amounts, "mem": mebibytes}).map(tres)


def _values(key: str, kind: Kind) -> st.SearchStrategy[Any]:
    optional = {
        Kind.COUNT: MOST_COUNT,
        Kind.MINUTES: MOST_MINUTES,
        Kind.SECONDS: MOST_COUNT,
        Kind.MILLIONTHS: MOST_MILLIONTHS,
    }
    match kind:
        case Kind.TEXT:
            return st.text("abz09 äü中.,;:=+-_/()[]{}<>%$#@!?*&^~", max_size=60)
        case Kind.NUMBER:
            return st.integers(0, MOST_COUNT)
        case Kind.TRES:
            return _limits()
        case Kind.FLAGS:
            return st.sets(st.sampled_from(FLAGS)).map(tuple)
        case Kind.NAMES:
            return st.sets(st.sampled_from(("spot", "urgent"))).map(tuple)
        case Kind.MODES:
            return st.sampled_from(MODES)
    numbers = st.integers(1 if key == "limit_factor_millionths" else 0, optional[kind])
    never_none = key in ("grace_seconds", "usage_factor_millionths")
    return numbers if never_none else st.none() | numbers


ANY_QOS = st.fixed_dictionaries({one.key: _values(one.key, one.kind) for one in FIELDS})


@tidied
@settings(
    max_examples=8,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(first=ANY_QOS, second=ANY_QOS)
def test_any_qos_comes_back_as_it_was_sent(
    broker: SocketBroker, first: dict[str, Any], second: dict[str, Any]
) -> None:
    name = fresh_name()
    one, two = (as_kept(Qos(name=name, **values)) for values in (first, second))
    assert (problems(one), problems(two)) == ((), ())
    assert made(broker, one) == one
    assert broker.set_qos(p.SetQos(one, two)) == two
    assert broker.set_qos(p.SetQos(two, Qos(name=name))) == Qos(name=name)


@tidied
def test_every_field_is_set_and_cleared_in_one_call_each(broker: SocketBroker) -> None:
    plain = made(broker, Qos(name=fresh_name()))
    some = {
        Kind.TEXT: "all of it",
        Kind.NUMBER: 5,
        Kind.COUNT: 7,
        Kind.MINUTES: 61,
        Kind.SECONDS: 3661,
        Kind.MILLIONTHS: 333_333,
        Kind.TRES: tres({"cpu": 0, "mem": 1500, "gres/gpu:a100": 3}),
        Kind.FLAGS: tuple(sorted(FLAGS)),
        Kind.NAMES: ("spot", "urgent"),
        Kind.MODES: ("cancel", "within"),
    }
    full = changed(broker, plain, **{one.key: some[one.kind] for one in FIELDS})
    assert all(getattr(full, one.name) != one.default for one in fields(Qos) if one.name != "name")
    assert changed(broker, full, **{one.key: getattr(plain, one.key) for one in FIELDS}) == plain


@tidied
@pytest.mark.parametrize(
    "mebibytes", [0, 1, 1500, 512_000, 512_001, 524_289, 525_312, 1_572_864, 1_573_888, 2**30]
)
def test_memory_goes_there_and_back_without_loss(broker: SocketBroker, mebibytes: int) -> None:
    one = made(broker, Qos(name=fresh_name(), max_tres_per_job=tres({"mem": mebibytes})))
    assert one.max_tres_per_job == tres({"mem": mebibytes})


@tidied
def test_memory_that_slurm_rounds_when_it_prints_is_refused(
    broker: SocketBroker, sacctmgr: Sacctmgr
) -> None:
    one = made(broker, Qos(name=fresh_name()))
    sacctmgr("modify", "qos", "where", f"name={one.name}", "set", "GrpTRES=mem=1049088")
    assert sacctmgr.shown(one.name, "GrpTRES") == ["mem=1.00T"]  # and half a GiB
    now = qos_now(broker, one.name)
    with refused("policy_bad_memory"):
        broker.set_qos(p.SetQos(now, replace(now, max_tres_per_job=tres({"mem": 1_049_088}))))
    # The one that is there stays as it is while another field is written.
    changed(broker, now, priority=3)


@tidied
def test_what_slurm_alone_would_do_with_such_names_never_happens(
    broker: SocketBroker, sacctmgr: Sacctmgr
) -> None:
    """An empty name means every QoS to sacctmgr, a comma several, `+x` an addition."""
    one = made(broker, Qos(name=fresh_name(), priority=1))
    before = broker.qos()
    for name in ("", one.name.upper(), f"{one.name},normal", "a'--", "+x", "-x", "x y", "é", "*"):
        with refused("policy_bad_name"):
            broker.set_qos(p.SetQos(Qos(name=name), Qos(name=name, priority=9)))
        with refused("policy_bad_name"):
            broker.set_qos(p.SetQos(None, Qos(name=name)))
        with refused("policy_bad_name"):
            broker.set_qos(p.SetQos(one, replace(one, preempts=(name,))))
    assert broker.qos() == before
    # By its own command Slurm holds the two letter cases for one, and says no.
    done = sacctmgr.cluster.run(["sacctmgr", "-i", "add", "qos", one.name.upper()])
    assert "Nothing new added" in done.stdout


@tidied
def test_of_two_writers_at_once_one_is_told(broker_process: BrokerProcess) -> None:
    client = broker_process.client()
    for _ in range(3):
        seen = made(client, Qos(name=fresh_name()))

        def write(jobs: int, seen: Qos = seen) -> Qos | GatewayError:
            try:
                wanted = replace(seen, grp_jobs=jobs)
                return broker_process.client().set_qos(p.SetQos(seen, wanted))
            except GatewayError as error:
                return error

        with ThreadPoolExecutor(2) as pool:
            ends = list(pool.map(write, (1, 2)))
        won = [end for end in ends if isinstance(end, Qos)]
        lost = [end for end in ends if isinstance(end, BrokerRefused)]
        assert [end.code for end in lost] == ["policy_changed_meanwhile"]
        assert won == [qos_now(client, seen.name)]


@tidied
def test_two_who_make_the_same_qos_make_one(broker_process: BrokerProcess) -> None:
    name = fresh_name()

    def make(priority: int) -> object:
        try:
            return broker_process.client().set_qos(
                p.SetQos(None, Qos(name=name, priority=priority))
            )
        except BrokerRefused as error:
            return error.code

    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(make, (1, 2)))
    assert "qos_exists" in ends
    assert qos_now(broker_process.client(), name) in ends


@tidied
def test_a_change_by_hand_between_is_seen_and_kept(
    broker: SocketBroker, sacctmgr: Sacctmgr
) -> None:
    one = made(broker, Qos(name=fresh_name()))
    sacctmgr("modify", "qos", "where", f"name={one.name}", "set", "GrpTRES=cpu=9", "MaxJobsPU=2")
    with refused("policy_changed_meanwhile"):
        broker.set_qos(p.SetQos(one, replace(one, priority=3)))
    now = qos_now(broker, one.name)
    assert now == replace(one, grp_tres=tres({"cpu": 9}), max_jobs_per_user=2)


def test_a_qos_that_is_somebodys_default_stays_in_the_list(
    broker: SocketBroker, sacctmgr: Sacctmgr
) -> None:
    user = ("user", "where", "name=nlp-1", "account=nlp", "cluster=dev", "set")
    with kept(broker, "nlp") as (first,):
        sacctmgr("modify", *user, "DefaultQOS=urgent")
        try:
            with refused("policy_default_not_listed"):
                broker.set_group_policy(
                    p.SetGroupPolicy(first, replace(first, shares=9, qos=("normal", "spot")))
                )
            assert account_now(broker, "nlp").policy == first  # not half of it
        finally:
            sacctmgr("modify", *user, "DefaultQOS=-1")


def test_members_with_a_list_of_their_own_keep_it(broker: SocketBroker, sacctmgr: Sacctmgr) -> None:
    user = ("user", "where", "name=nlp-1", "account=nlp", "cluster=dev", "set")

    def qos_of(name: str) -> list[str]:
        found = broker.associations()
        return next(sorted(a.qos) for a in found if (a.user, a.account) == (name, "nlp"))

    with kept(broker, "nlp") as (first,):
        sacctmgr("modify", *user, "QosLevel=normal,urgent")
        try:
            wanted = replace(first, qos=("normal", "spot"))
            broker.set_group_policy(p.SetGroupPolicy(first, wanted))
            assert qos_of("nlp-1") == ["normal", "urgent"]
            assert qos_of("nlp-lead") == ["normal", "spot"]
        finally:
            sacctmgr("modify", *user, "QosLevel=")


def test_the_gates_limits_are_never_touched(broker: SocketBroker, sacctmgr: Sacctmgr) -> None:
    account = ("account", "where", "name=nlp", "cluster=dev", "set")
    with kept(broker, "nlp") as (first,):
        sacctmgr("modify", *account, "GrpSubmitJobs=40", "GrpTRESRunMins=gres/gpu=60,cpu=7")
        try:
            wanted = replace(first, shares=3, grp_tres=tres({"cpu": 5}), max_submit_jobs=4)
            broker.set_group_policy(p.SetGroupPolicy(first, wanted))
            broker.set_group_policy(p.SetGroupPolicy(wanted, first))
            (gate,) = [x for x in broker.group_limits() if (x.account, x.user) == ("nlp", None)]
            assert (gate.grp_submit_jobs, gate.grp_gpu_run_minutes) == (40, 60)
            assert gate.grp_run_minutes_text == "cpu=7,gres/gpu=60"
        finally:
            sacctmgr("modify", *account, "GrpSubmitJobs=-1", "GrpTRESRunMins=gres/gpu=-1,cpu=-1")


def test_an_account_below_another_has_only_what_it_says_itself(
    broker: SocketBroker, sacctmgr: Sacctmgr
) -> None:
    below = ("account", "where", "name=nlp-sub", "cluster=dev")
    sacctmgr("add", "account", "nlp-sub", "parent=nlp", "cluster=dev", "Fairshare=parent")
    try:
        with kept(broker, "nlp") as (first,):
            wanted = replace(first, qos=("normal", "spot"), max_jobs=5, max_wall_minutes=90)
            broker.set_group_policy(p.SetGroupPolicy(first, wanted))
            sub = account_now(broker, "nlp-sub")
            assert (sub.parent, sub.policy.shares, sub.policy.qos) == ("nlp", None, ())
            assert (sub.policy.max_jobs, sub.policy.max_wall_minutes) == (None, None)
            assert sub.usable_qos == ("normal", "spot")
            # An addition to what is inherited is shown, and written, as the whole list.
            sacctmgr("modify", *below, "set", "QosLevel=+urgent")
            sub = account_now(broker, "nlp-sub")
            assert sub.policy.qos == sub.usable_qos == ("normal", "spot", "urgent")
    finally:
        sacctmgr("delete", *below)


def test_shares_of_many_accounts_change_nothing_else(
    broker: SocketBroker, sacctmgr: Sacctmgr
) -> None:
    """Many go by `sacctmgr load`, which could do much more than set shares."""
    names = [f"many-{n}" for n in range(5)]
    limits = ("QosLevel=normal,spot", "DefaultQOS=spot", "GrpTRES=cpu=5", "MaxJobs=3", "GrpJobs=0")
    facts = ("Description=some words: 5", "Organization=lab", "cluster=dev")
    sacctmgr("add", "account", ",".join(names[:4]), *facts, *limits, "GrpSubmitJobs=7")
    sacctmgr("add", "account", names[4], f"parent={names[0]}", *facts, "Fairshare=parent")
    sacctmgr("add", "user", "nlp-1", f"account={names[0]}", "cluster=dev", "Fairshare=6")
    sacctmgr("add", "coordinator", f"account={names[0]}", "names=nlp-lead")
    try:
        before, gate = broker.accounts(), broker.group_limits()
        people = broker.associations(), _user_shares(broker)
        now = {one.policy.name: one.policy.shares for one in before}
        wanted = {name: 30 + at for at, name in enumerate((*names, "nlp"))} | {names[1]: None}
        got = broker.set_shares(
            p.SetShares(
                tuple(p.Shares(name, now[name]) for name in wanted),
                tuple(p.Shares(name, shares) for name, shares in wanted.items()),
            )
        )
        assert {one.account: one.shares for one in got} == wanted
        assert broker.accounts() == tuple(
            replace(one, policy=replace(one.policy, shares=(now | wanted)[one.policy.name]))
            for one in before
        )
        assert broker.group_limits() == gate
        assert (broker.associations(), _user_shares(broker)) == people
        back = tuple(p.Shares(name, now[name]) for name in wanted)
        assert broker.set_shares(p.SetShares(got, back)) == back
        assert broker.accounts() == before
    finally:
        sacctmgr("delete", "account", "where", f"name={names[4]}")
        sacctmgr("delete", "account", "where", f"name={','.join(names[:4])}")


def _user_shares(broker: SocketBroker) -> dict[tuple[str, str | None], int | None]:
    return {(x.account, x.user): x.raw_shares for x in broker.fair_shares() if x.user}


def test_without_rights_slurm_says_so_and_nothing_is_done(
    cluster: Instance, broker: SocketBroker
) -> None:
    before = broker.qos()
    done = cluster.run(
        ["sacctmgr", "-i", "modify", "qos", "where", "name=spot", "set", "Priority=9"], user="nlp-1"
    )
    assert "permission denied" in (done.stdout + done.stderr)
    assert broker.qos() == before
