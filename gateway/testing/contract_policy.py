"""Promises about QoS, groups' policy and shares: a write changes what differs and nothing else, is
refused as a whole or done, and answers with what Slurm has."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from gateway.brokerclient.port import Broker
from gateway.core.qos import GroupPolicy, Qos, tres
from gateway.testing.contract_steps import ContractSite, Steps, refused
from gateway.wire import policy as p

GIB = 1024  # in MiB


def fresh_name() -> str:
    """Of a QoS: no verb removes one, so each test has its own."""
    return f"c{uuid.uuid4().hex[:10]}"


def qos_now(broker: Broker, name: str) -> Qos:
    (found,) = [one for one in broker.qos() if one.name == name]
    return found


def made(broker: Broker, wanted: Qos) -> Qos:
    got = broker.set_qos(p.SetQos(None, wanted))
    assert got == qos_now(broker, wanted.name)
    return got


def changed(broker: Broker, before: Qos, **values: object) -> Qos:
    """Written; the answer is what was asked, and what is read."""
    wanted = replace(before, **values)  # type: ignore[arg-type]
    got = broker.set_qos(p.SetQos(before, wanted))
    assert got == wanted == qos_now(broker, before.name)
    return got


def account_now(broker: Broker, name: str) -> p.Account:
    (found,) = [one for one in broker.accounts() if one.policy.name == name]
    return found


def group_changed(broker: Broker, before: GroupPolicy, **values: object) -> GroupPolicy:
    wanted = replace(before, **values)  # type: ignore[arg-type]
    got = broker.set_group_policy(p.SetGroupPolicy(before, wanted))
    assert got == account_now(broker, before.name)
    assert got.policy == wanted
    return got.policy


@contextmanager
def kept(broker: Broker, *names: str) -> Iterator[tuple[GroupPolicy, ...]]:
    """What these accounts have now, which they have again after the block."""
    before = tuple(account_now(broker, name).policy for name in names)
    try:
        yield before
    finally:
        for one in before:
            broker.set_group_policy(p.SetGroupPolicy(account_now(broker, one.name).policy, one))
        assert tuple(account_now(broker, name).policy for name in names) == before


class QosContract(Steps):
    """QoS, made and changed."""

    def test_a_new_qos_is_what_was_asked_and_is_made_once(self, site: ContractSite) -> None:
        name = fresh_name()
        wanted = Qos(
            name=name,
            description="for deadlines, two  words",
            priority=7,
            flags=("DenyOnLimit", "NoDecay"),
            usage_factor_millionths=820_000,
            preempts=("spot",),
            preempt_mode=("requeue",),
            grace_seconds=90,
            grp_tres=tres({"cpu": 0, "mem": 1500}),
            max_wall_minutes=90,
        )
        assert made(site.broker, wanted) == wanted
        with refused("qos_exists"):
            site.broker.set_qos(p.SetQos(None, Qos(name=name)))
        assert qos_now(site.broker, name) == wanted

    def test_a_write_changes_what_differs_and_can_be_taken_back(self, site: ContractSite) -> None:
        first = made(site.broker, Qos(name=fresh_name(), grp_tres=tres({"cpu": 4, "mem": 512_001})))
        one = changed(site.broker, first, grp_tres=tres({"mem": 512_001}), max_jobs_per_user=0)
        two = changed(site.broker, one, grp_tres=tres({"mem": 500 * GIB}), flags=("NoReserve",))
        changed(site.broker, two, **{key: getattr(first, key) for key in ("grp_tres", "flags")})
        last = qos_now(site.broker, first.name)
        assert changed(site.broker, last, max_jobs_per_user=None) == first

    def test_a_list_is_whole_and_may_become_empty(self, site: ContractSite) -> None:
        low = made(site.broker, Qos(name=fresh_name()))
        high = made(site.broker, Qos(name=fresh_name(), preempts=("spot",)))
        both = tuple(sorted(("spot", low.name)))
        high = changed(site.broker, high, preempts=both)
        high = changed(site.broker, high, preempts=(low.name,))
        assert changed(site.broker, high, preempts=()).preempts == ()

    def test_what_somebody_else_changed_is_not_overwritten(self, site: ContractSite) -> None:
        mine = made(site.broker, Qos(name=fresh_name(), priority=1))
        theirs = changed(site.broker, mine, priority=2)
        with refused("policy_changed_meanwhile"):
            site.broker.set_qos(p.SetQos(mine, replace(mine, grp_jobs=5)))
        assert qos_now(site.broker, mine.name) == theirs

    def test_a_no_changes_nothing_at_all(self, site: ContractSite) -> None:
        low = made(site.broker, Qos(name=fresh_name()))
        high = made(site.broker, Qos(name=fresh_name(), preempts=(low.name,)))
        before = site.broker.qos()
        gone = Qos(name="gpu_hgih")
        for code, expected, wanted in (
            ("no_such_qos", gone, replace(gone, priority=1)),
            ("policy_bad_name", Qos(name=""), Qos(name="", priority=1)),
            ("policy_bad_name", None, Qos(name="a'--")),
            ("policy_bad_name", None, Qos(name="a,b")),
            ("policy_bad_name", None, Qos(name=low.name.upper())),
            ("policy_bad_name", low, replace(low, name=high.name)),
            ("policy_bad_name", low, replace(low, preempts=("+spot",))),
            ("no_such_qos", low, replace(low, priority=9, preempts=("nosuch",))),
            ("policy_preempts_itself", low, replace(low, preempts=(low.name,))),
            ("policy_preemption_loop", low, replace(low, priority=9, preempts=(high.name,))),
            ("policy_unknown_tres", low, replace(low, priority=9, grp_tres=tres({"gres/x": 1}))),
            ("policy_bad_number", low, replace(low, priority=-1)),
            ("policy_bad_text", low, replace(low, description='"')),
        ):
            with refused(code):
                site.broker.set_qos(p.SetQos(expected, wanted))
        assert site.broker.qos() == before

    def test_a_description_comes_back_as_slurm_keeps_it(self, site: ContractSite) -> None:
        got = made(site.broker, Qos(name=fresh_name(), description=" For A, b = c; 中文 100% "))
        assert got.description == "for a, b = c; 中文 100%"


class GroupPolicyContract(Steps):
    """Accounts: their QoS, limits and shares."""

    def test_accounts_tell_their_policy_and_coordinators(self, site: ContractSite) -> None:
        found = {one.policy.name: one for one in site.broker.accounts()}
        assert "root" not in found
        mine = found[site.cast.account]
        every = ("normal", "spot", "urgent")
        assert mine.policy == GroupPolicy(name=site.cast.account, qos=every, default_qos="normal")
        assert (mine.parent, mine.usable_qos) == (None, every)
        assert mine.coordinators == ("nlp-lead",)
        assert found[site.cast.other_account].policy.grp_tres == tres({"gres/gpu": 16})

    def test_limits_are_set_and_go_again(self, site: ContractSite) -> None:
        with kept(site.broker, site.cast.account) as (first,):
            whole = group_changed(
                site.broker,
                first,
                shares=7,
                grp_tres=tres({"cpu": 64, "gres/gpu": 16, "mem": 1500}),
                grp_tres_minutes=tres({"gres/gpu": 60_000}),
                grp_jobs=50,
                grp_wall_minutes=100_000,
                max_jobs=5,
                max_submit_jobs=9,
                max_tres_per_job=tres({"gres/gpu": 8}),
                max_tres_minutes_per_job=tres({"gres/gpu": 9000}),
                max_wall_minutes=90,
            )
            part = group_changed(site.broker, whole, shares=None, grp_tres=tres({"cpu": 64}))
            assert part.max_jobs == 5
            fields = ("shares", "grp_tres_minutes", "grp_jobs", "grp_wall_minutes", "max_jobs")
            part = group_changed(site.broker, part, **{key: getattr(first, key) for key in fields})

    def test_a_qos_that_goes_is_no_longer_the_members_either(self, site: ContractSite) -> None:
        with kept(site.broker, site.cast.account) as (first,):
            less = group_changed(site.broker, first, qos=("normal", "spot"))
            assert self._qos_of_the_user(site) == ("normal", "spot")
            # Without a list of its own it has that of the account above.
            group_changed(site.broker, less, qos=(), default_qos=None)
            assert account_now(site.broker, first.name).usable_qos == ("normal",)
            assert self._qos_of_the_user(site) == ("normal",)
        assert self._qos_of_the_user(site) == first.qos

    def test_a_no_changes_no_group(self, site: ContractSite) -> None:
        broker, before = site.broker, site.broker.accounts()
        mine = account_now(broker, site.cast.account).policy
        root, gone = GroupPolicy(name="root"), GroupPolicy(name="nlp_gruop")
        for code, expected, wanted in (
            ("no_such_account", gone, replace(gone, shares=3)),
            ("root_account_refused", root, replace(root, shares=3)),
            ("policy_bad_name", mine, replace(mine, name="")),
            ("policy_bad_name", mine, replace(mine, name=site.cast.other_account)),
            ("policy_changed_meanwhile", replace(mine, shares=8), replace(mine, shares=9)),
            ("policy_default_not_listed", mine, replace(mine, qos=("spot",))),
            ("policy_default_not_listed", mine, replace(mine, qos=(), default_qos="urgent")),
            ("no_such_qos", mine, replace(mine, shares=9, qos=(*mine.qos, "nosuch"))),
            ("policy_unknown_tres", mine, replace(mine, shares=9, grp_tres=tres({"gres/x": 1}))),
            ("policy_bad_number", mine, replace(mine, max_jobs=-1)),
        ):
            with refused(code):
                broker.set_group_policy(p.SetGroupPolicy(expected, wanted))
        assert broker.accounts() == before

    def _qos_of_the_user(self, site: ContractSite) -> tuple[str, ...]:
        cast = site.cast
        found = site.broker.associations()
        return next(
            tuple(sorted(one.qos))
            for one in found
            if (one.user, one.account) == (cast.user, cast.account)
        )


class SharesContract(Steps):
    """Fair-share shares of many accounts in one call."""

    def test_shares_of_several_accounts_are_set_and_read_back(self, site: ContractSite) -> None:
        names = (site.cast.account, site.cast.other_account)
        with kept(site.broker, *names) as before:
            now = tuple(p.Shares(one.name, one.shares) for one in before)
            wanted = (p.Shares(names[0], 120), p.Shares(names[1], None))
            assert site.broker.set_shares(p.SetShares(now, wanted)) == wanted
            found = [account_now(site.broker, name).policy for name in names]
            expected = (replace(before[0], shares=120), replace(before[1], shares=None))
            assert tuple(found) == expected
            # 0 is a number of shares like others; the second stays.
            last = (p.Shares(names[0], 0), wanted[1])
            assert site.broker.set_shares(p.SetShares(wanted, last)) == last

    def test_shares_that_do_not_fit_are_refused_as_a_whole(self, site: ContractSite) -> None:
        one, two = (p.Shares(n, 1) for n in (site.cast.account, site.cast.other_account))
        before = site.broker.accounts()
        for code, expected, wanted in (
            ("policy_changed_meanwhile", (one, replace(two, shares=5)), (one, two)),
            ("no_such_account", (one, p.Shares("nosuch", 1)), (one, p.Shares("nosuch", 2))),
            ("policy_bad_name", (one, two), (two, one)),
            ("policy_refused", (one, one), (one, one)),
            ("policy_refused", (), ()),
            ("root_account_refused", (p.Shares("root", 1),), (p.Shares("root", 2),)),
        ):
            with refused(code):
                site.broker.set_shares(p.SetShares(expected, wanted))
        assert site.broker.accounts() == before


class PolicyContract(QosContract, GroupPolicyContract, SharesContract):
    """All of it."""
