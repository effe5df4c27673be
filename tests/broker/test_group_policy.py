"""sacctmgr's ways with accounts: their policy and their shares."""

from dataclasses import dataclass, field, replace

import pytest

from gateway.broker.commands import Output
from gateway.broker.groups import Groups
from gateway.broker.slots import Slots
from gateway.core.qos import GroupPolicy, tres
from gateway.errors import BrokerRefused, BrokerSilent
from gateway.wire.policy import MOST_SHARES, Account, SetGroupPolicy, SetShares, Shares


def row(name, above, qos="", default="", shares="1", grp_tres="", max_jobs=""):
    return "|".join([name, above, qos, default, shares, grp_tres, "", "", "", max_jobs, *[""] * 4])


OWN = "\n".join(
    [
        row("root", "", "normal"),
        row("nlp", "root", "normal,spot", "normal", "5", "cpu=7,gres/gpu=16", "4"),
        row("sub", "nlp", shares="parent"),
        row("delta", "nlp", "extra"),
    ]
)
USABLE = "root|normal\nnlp|normal,spot\nsub|normal,spot\ndelta|extra,normal,spot\n"
FACTS = "root||root|default\nnlp|lead-1|dev|language | text\nsub||dev|\ndelta||dev|x\n"
NLP = GroupPolicy(
    name="nlp",
    qos=("normal", "spot"),
    default_qos="normal",
    shares=5,
    grp_tres=tres({"cpu": 7, "gres/gpu": 16}),
    max_jobs=4,
)
YES = Output(0, b"", "")


@dataclass
class Scripted:
    """`owns` are what each reading of the accounts prints, the last one again and again."""

    owns: list[str]
    writes: dict[str, Output] = field(default_factory=dict)  # by `name=…`
    sent: list[list[str]] = field(default_factory=list)
    stdin: str = ""

    def run(self, argv, *, stdin="", acts=False):
        if "show" not in argv:
            assert acts
            self.stdin = stdin
            self.sent.append(list(argv))
            return next((out for name, out in self.writes.items() if name in argv), YES)
        if "accounts" in argv:
            return Output(0, FACTS.encode(), "")
        assert "cluster=dev" in argv
        if "WOPLimits" not in argv:
            return Output(0, USABLE.encode(), "")
        text = self.owns.pop(0) if len(self.owns) > 1 else self.owns[0]
        return Output(0, text.encode(), "")


@pytest.fixture
def groups(tmp_path):
    def make(*owns, cluster="dev", **writes):
        alone = Slots(tmp_path / "alone", count=1, patience_seconds=1)
        return Groups(Scripted(list(owns), **writes), cluster, alone)

    return make


def test_an_account_is_what_it_says_itself_and_may_use_what_it_inherits(groups):
    nlp, sub, delta = groups(OWN).read().accounts
    facts = ("language | text", "dev", ("lead-1",), ("normal", "spot"))
    assert nlp == Account(NLP, None, *facts)
    assert (sub.policy, sub.parent) == (GroupPolicy(name="sub", shares=None), "nlp")
    assert (sub.usable_qos, sub.coordinators) == (("normal", "spot"), ())
    # sacctmgr prints an addition to the list above like a list.
    assert delta.policy.qos == ("extra", "normal", "spot")


def test_only_what_differs_is_sent_and_the_cluster_is_always_named(groups):
    broker = groups(OWN, OWN.replace("|cpu=7,gres/gpu=16|", "|gres/gpu=8|"))
    wanted = replace(
        NLP, qos=(), default_qos=None, shares=None, grp_tres=tres({"gres/gpu": 8}), max_jobs=None
    )
    got = broker.write(SetGroupPolicy(NLP, wanted))
    where = ["modify", "account", "where", "name=nlp", "cluster=dev", "set"]
    words = ["QosLevel=", "DefaultQOS=-1", "Fairshare=parent", "GrpTRES=cpu=-1,gres/gpu=8"]
    assert broker.commands.sent == [["sacctmgr", "--immediate", *where, *words, "MaxJobs=-1"]]
    assert got.policy == replace(NLP, grp_tres=tres({"gres/gpu": 8}))  # what Slurm has, not asked


@pytest.mark.parametrize(
    ("code", "expected", "wanted"),
    [
        ("policy_changed_meanwhile", replace(NLP, shares=6), replace(NLP, shares=7)),
        ("no_such_account", GroupPolicy(name="nlp2"), GroupPolicy(name="nlp2")),
        ("root_account_refused", GroupPolicy(name="root"), GroupPolicy(name="root", shares=2)),
        ("policy_default_not_listed", NLP, replace(NLP, default_qos="urgent")),
        ("policy_bad_name", NLP, replace(NLP, qos=("normal", "-spot"))),
        ("policy_bad_number", NLP, replace(NLP, shares=2**31 - 1)),  # Slurm's `parent`
        ("policy_bad_name", NLP, replace(NLP, name="vision")),
    ],
)
def test_what_must_not_be_sent_is_refused_before(groups, code, expected, wanted):
    broker = groups(OWN)
    with pytest.raises(BrokerRefused) as caught:
        broker.write(SetGroupPolicy(expected, wanted))
    assert (caught.value.code, broker.commands.sent) == (code, [])


def test_without_a_cluster_of_its_own_nothing_is_sent(groups):
    broker = groups(OWN, cluster="")
    shares = (Shares("nlp", 5),)
    for act in (
        lambda: broker.write(SetGroupPolicy(NLP, replace(NLP, shares=6))),
        lambda: broker.write_shares(SetShares(shares, (Shares("nlp", 6),))),
    ):
        with pytest.raises(BrokerRefused) as caught:
            act()
        assert caught.value.code == "bad_cluster"
    assert broker.commands.sent == []


def shares(**wanted):
    now = {"nlp": 5, "sub": None, "delta": 1}
    expected = tuple(Shares(name, now.get(name, 1)) for name in wanted)
    return SetShares(expected, tuple(Shares(name, one) for name, one in wanted.items()))


def test_one_write_for_each_account_that_differs_and_none_for_the_others(groups):
    broker = groups(OWN, OWN.replace("normal|5|", "normal|9|").replace("|||parent|", "|||3|"))
    got = broker.write_shares(shares(nlp=9, delta=1, sub=3))
    assert [(one[5], one[-1]) for one in broker.commands.sent] == [
        ("name=nlp", "Fairshare=9"),
        ("name=sub", "Fairshare=3"),
    ]
    assert got.shares == (Shares("nlp", 9), Shares("delta", 1), Shares("sub", 3))


def test_an_account_that_is_refused_stays_and_the_others_are_written(groups):
    no = Output(1, b" Modified account associations...\n  Nothing modified\n", "")
    broker = groups(OWN, OWN.replace("|||parent|", "|||3|"), writes={"name=nlp": no})
    got = broker.write_shares(shares(nlp=9, sub=3))
    assert got.shares == (Shares("nlp", 5), Shares("sub", 3))
    broker = groups(OWN, writes={"name=nlp": no, "name=sub": no})
    with pytest.raises(BrokerRefused) as caught:
        broker.write_shares(shares(nlp=9, sub=3))
    assert caught.value.code == "no_such_account"


def many(*, above="root"):
    """Seven accounts below root, and `sub` below nlp."""
    names = [f"g{n}" for n in range(7)]
    return "\n".join([OWN, *(row(name, above) for name in names)]), dict.fromkeys(names, 4)


def test_many_accounts_are_told_in_one_call_each_below_its_own_parent(groups):
    own, wanted = many()
    after = own.replace("root|||1|", "root|||4|").replace("|||parent|", "|||4|")
    broker = groups(own, after)
    got = broker.write_shares(shares(**wanted, sub=4, delta=1))
    assert broker.commands.sent == [["sacctmgr", "--immediate", "load", "file=/dev/stdin"]]
    lines = broker.commands.stdin.splitlines()
    assert lines[:2] == ["Cluster - 'dev'", "Parent - 'nlp'"]
    assert lines[2:4] == ["Account - 'sub':Fairshare=4", "Parent - 'root'"]
    assert lines[4:] == [f"Account - 'g{n}':Fairshare=4" for n in range(7)]
    assert {one.account: one.shares for one in got.shares} == wanted | {"sub": 4, "delta": 1}


def test_many_are_refused_as_a_whole_or_unknown(groups):
    own, wanted = many()
    load = {"file=/dev/stdin": Output(1, b" Nothing modified\n", "")}
    with pytest.raises(BrokerRefused):
        groups(own, writes=load).write_shares(shares(**wanted))
    load = {"file=/dev/stdin": Output(1, b"", "slurmdbd: connection lost")}
    with pytest.raises(BrokerSilent):
        groups(own, writes=load).write_shares(shares(**wanted))


def test_a_name_that_load_would_read_as_more_is_not_sent(groups):
    own, wanted = many(above="it's")
    broker = groups(own)
    with pytest.raises(BrokerRefused) as caught:
        broker.write_shares(shares(**wanted))
    assert (caught.value.code, broker.commands.sent) == ("policy_bad_name", [])


def test_a_write_without_a_clear_answer_leaves_all_of_it_unknown(groups):
    broker = groups(OWN, writes={"name=nlp": Output(1, b"", "slurmdbd: connection lost")})
    with pytest.raises(BrokerSilent):
        broker.write_shares(shares(nlp=9, sub=3))


@pytest.mark.parametrize(
    ("code", "asked"),
    [
        ("policy_changed_meanwhile", SetShares((Shares("nlp", 4),), (Shares("nlp", 5),))),
        ("policy_bad_name", SetShares((Shares("nlp", 5),), (Shares("sub", 5),))),
        ("policy_refused", SetShares((), ())),
        ("policy_refused", SetShares((Shares("nlp", 5),) * 2, (Shares("nlp", 6),) * 2)),
        ("policy_refused", shares(**{f"g{n}": 2 for n in range(MOST_SHARES + 1)})),
        ("no_such_account", shares(nlp2=2)),
        ("root_account_refused", shares(root=2)),
        ("policy_bad_number", shares(nlp=-1)),
    ],
)
def test_shares_that_must_not_be_sent_are_refused_before(groups, code, asked):
    broker = groups(OWN)
    with pytest.raises(BrokerRefused) as caught:
        broker.write_shares(asked)
    assert (caught.value.code, broker.commands.sent) == (code, [])
