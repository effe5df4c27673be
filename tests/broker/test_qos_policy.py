"""sacctmgr's ways with QoS: what is sent, what is never sent, and what is believed."""

from dataclasses import dataclass, field, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.broker import policy_words
from gateway.broker.commands import Output
from gateway.broker.qos import QosPolicy
from gateway.broker.slots import Slots
from gateway.core.qos import FIELDS, Change, Qos, tres
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.wire.policy import SetQos

COLUMNS = (*FIELDS[1:], FIELDS[0])
YES = Output(0, b"", "")
SPOT = Qos(
    name="spot",
    description="a|b | c",
    priority=10,
    usage_factor_millionths=820_000,
    preempts=("low", "test"),
    preempt_mode=("requeue",),
    grace_seconds=60,
    grp_tres=tres({"cpu": 4, "mem": 1500}),
    max_tres_per_user=tres({"gres/gpu": 4}),
    max_submit_per_user=3,
    flags=("DenyOnLimit",),
)


def line(name="spot", **columns):
    """As sacctmgr prints it; what is not named is empty."""
    texts = {
        "priority": "10",
        "usage_factor_millionths": "0.820000",
        "preempts": "low,test",
        "preempt_mode": "requeue",
        "grace_seconds": "00:01:00",
        "grp_tres": "cpu=4,mem=1500M",
        "max_tres_per_user": "gres/gpu=4",
        "max_submit_per_user": "3",
        "flags": "DenyOnLimit",
        "description": "a|b | c",
        **columns,
    }
    return "|".join([name, *(texts.get(one.key, "") for one in COLUMNS)]) + "\n"


def plain(name):
    return f"{name}|0||1.000000||||cluster||00:00:00" + "|" * 24 + "\n"


@dataclass
class Scripted:
    """`shows` are what each reading prints, the last one again and again."""

    shows: list[str]
    write: Output = YES
    write_error: Exception | None = None
    sent: list[list[str]] = field(default_factory=list)

    def run(self, argv, *, acts=False):
        if "show" in argv:
            assert not acts
            text = self.shows.pop(0) if len(self.shows) > 1 else self.shows[0]
            return Output(0, text.encode(), "")
        assert acts
        self.sent.append(list(argv))
        if self.write_error:
            raise self.write_error
        return self.write


@pytest.fixture
def policy(tmp_path):
    def make(*shows, **values):
        alone = Slots(tmp_path / "alone", count=1, patience_seconds=1)
        return QosPolicy(Scripted(list(shows), **values), alone)

    return make


OTHERS = line("low") + line("test")


def test_every_column_is_read_and_a_separator_in_a_description_shifts_nothing(policy):
    assert policy(line()).read().qos == (SPOT,)


@pytest.mark.parametrize("text", ["spot|10\n", "spot\n", line(grp_tres="mem=1X")])
def test_what_cannot_be_read_is_an_error_and_never_left_out(policy, text):
    with pytest.raises(BrokerUnreachable):
        policy(text).read()


def test_only_what_differs_is_sent_in_one_call(policy):
    after = line(grp_tres="mem=1501M", priority="20", preempts="", flags="", description="a b, c")
    broker = policy(line() + OTHERS, after + OTHERS)
    wanted = replace(
        SPOT,
        description="A b, C ",
        priority=20,
        preempts=(),
        flags=(),
        grp_tres=tres({"mem": 1501}),
    )
    got = broker.write(SetQos(SPOT, wanted))
    words = ["modify", "qos", "where", "name=spot", "set", "Description=a b, c", "Priority=20"]
    assert broker.commands.sent == [
        ["sacctmgr", "--immediate", *words, "Flags=-1", "Preempt=", "GrpTRES=cpu=-1,mem=1501"]
    ]
    assert got == replace(wanted, description="a b, c")


def test_what_is_so_already_is_not_sent(policy):
    broker = policy(line() + OTHERS)
    assert broker.write(SetQos(SPOT, SPOT)) == SPOT
    assert broker.commands.sent == []


def test_a_new_one_is_added_with_its_fields_and_never_described_by_its_name(policy):
    wanted = Qos(name="new", grace_seconds=90, preempt_exempt_seconds=90, max_wall_minutes=0)
    shown = plain("new")
    broker = policy(line(), line() + shown)
    assert broker.write(SetQos(None, wanted)) == Qos(name="new")
    words = ["Description=", "PreemptExemptTime=0:01:30", "GraceTime=90", "MaxWall=0"]
    assert broker.commands.sent == [
        ["sacctmgr", "--immediate", "add", "qos", "name=new", *words],
    ]


@pytest.mark.parametrize(
    ("code", "expected", "wanted"),
    [
        ("no_such_qos", Qos(name="gpu_hgih"), Qos(name="gpu_hgih", priority=1)),
        ("qos_exists", None, Qos(name="spot")),
        ("policy_changed_meanwhile", replace(SPOT, priority=11), replace(SPOT, priority=12)),
        ("no_such_qos", SPOT, replace(SPOT, preempts=("low", "nosuch"))),
        ("policy_bad_name", SPOT, replace(SPOT, name="low")),
        ("policy_bad_name", replace(SPOT, name=""), replace(SPOT, name="")),
        ("policy_bad_name", None, Qos(name="a'--")),
        ("policy_bad_name", None, Qos(name="T1")),
        ("policy_bad_name", SPOT, replace(SPOT, preempts=("+low",))),
        ("policy_bad_text", SPOT, replace(SPOT, description="a'--")),
        ("policy_bad_number", SPOT, replace(SPOT, limit_factor_millionths=0)),
        ("policy_bad_memory", SPOT, replace(SPOT, grp_tres=tres({"mem": 1_049_088}))),
        ("policy_two_modes", SPOT, replace(SPOT, preempt_mode=("gang", "within"))),
        ("policy_preempts_itself", SPOT, replace(SPOT, preempts=("spot",))),
    ],
)
def test_what_must_not_be_sent_is_refused_before(policy, code, expected, wanted):
    broker = policy(line() + OTHERS)
    with pytest.raises(BrokerRefused) as caught:
        broker.write(SetQos(expected, wanted))
    assert (caught.value.code, broker.commands.sent) == (code, [])


@pytest.mark.parametrize(
    ("printed", "code"),
    [
        ("sacctmgr: error: QOS Preemption loop detected", "policy_preemption_loop"),
        ("error: You gave a bad qos 'x'. Valid QOS's are a,b", "no_such_qos"),
        ("slurmdb_format_tres_str: no TRES known by type gres/x", "policy_unknown_tres"),
        ("Your user doesn't have privilege to perform this action", "policy_not_permitted"),
        (" Error with request: Access/permission denied", "policy_not_permitted"),
        (" Unknown option: MinPrioThres=3", "policy_refused"),
        ("  Nothing modified", "no_such_qos"),
    ],
)
def test_a_no_of_sacctmgr_has_a_code(policy, printed, code):
    broker = policy(line() + OTHERS, write=Output(1, b"", printed))
    with pytest.raises(BrokerRefused) as caught:
        broker.write(SetQos(SPOT, replace(SPOT, priority=1)))
    assert caught.value.code == code


def test_one_that_came_between_the_look_and_the_write_is_not_taken_for_ours(policy):
    broker = policy(line(), write=Output(1, b" Nothing new added.\n", ""))
    with pytest.raises(BrokerRefused) as caught:
        broker.write(SetQos(None, Qos(name="new")))
    assert caught.value.code == "qos_exists"


@pytest.mark.parametrize(
    ("shows", "values"),
    [
        ([line() + OTHERS], {"write": Output(1, b"", "slurmdbd: connection lost")}),
        ([line() + OTHERS], {"write_error": BrokerSilent("did not answer")}),
        ([line() + OTHERS, "three|columns|only\n"], {}),
        ([line() + OTHERS, OTHERS], {}),
    ],
    ids=["lost", "slow", "unread", "gone"],
)
def test_from_the_write_on_an_unknown_end_is_unknown(policy, shows, values):
    with pytest.raises(BrokerSilent):
        policy(*shows, **values).write(SetQos(SPOT, replace(SPOT, priority=1)))


def test_while_another_writes_nothing_is_sent(policy, tmp_path):
    broker = policy(line() + OTHERS)
    slow = Slots(tmp_path / "alone", count=1, patience_seconds=0)
    with slow.taken(), pytest.raises(BrokerUnreachable):
        QosPolicy(broker.commands, slow).write(SetQos(SPOT, replace(SPOT, priority=1)))
    assert broker.commands.sent == []


@given(st.integers(0, 10**12))
def test_factors_go_there_and_back_exactly(millionths):
    (factor,) = [one for one in FIELDS if one.key == "usage_factor_millionths"]
    (word,) = policy_words.words([Change(factor, None, millionths)])
    assert policy_words.parse(factor.kind, word.partition("=")[2]) == millionths


def test_the_table_has_every_field():
    assert {one.key for one in FIELDS} == {one.name for one in fields(Qos)} - {"name"}
