"""sacctmgr's ways with limits: what is sent, what is never sent, and what is believed."""

from dataclasses import dataclass, field

import pytest

from gateway.broker.commands import Commands, Output
from gateway.broker.limits import Limits
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.wire.messages import GroupLimits, SetGroupLimits

BEFORE = (
    "nlp||||10|cpu=500,gres/gpu=60\n"
    "nlp|nlp-1|a100||10|\n"
    "nlp|nlp-1|debug|3|10|gres/gpu=9\n"
    "vision|||7||\n"
)
YES = Output(0, b"", "")
CLOSED = BEFORE.replace("nlp||||10|cpu=500,gres/gpu=60", "nlp|||0|10|cpu=500,gres/gpu=0")


@dataclass
class Scripted:
    """`shows` are what each reading prints, the last one again and again."""

    shows: list[str]
    modify: Output = YES
    modify_error: Exception | None = None
    sent: list[list[str]] = field(default_factory=list)

    def run(self, argv, *, acts=False):
        if "show" in argv:
            assert not acts
            text = self.shows.pop(0) if len(self.shows) > 1 else self.shows[0]
            return Output(0, text.encode(), "")
        assert acts
        self.sent.append(list(argv))
        if self.modify_error:
            raise self.modify_error
        return self.modify


def test_accounts_and_users_are_told_apart():
    found = Limits(Scripted([BEFORE]), "dev").read().limits
    assert found[0] == GroupLimits("nlp", None, None, None, 10, 60, "cpu=500,gres/gpu=60")
    assert found[2] == GroupLimits("nlp", "nlp-1", "debug", 3, 10, 9, "gres/gpu=9")
    assert [one.user for one in found] == [None, "nlp-1", "nlp-1", None]


def test_only_what_differs_is_sent_and_the_cluster_is_always_named():
    commands = Scripted([BEFORE, CLOSED])
    got = Limits(commands, "dev").write(SetGroupLimits("nlp", None, 0, 0))
    words = ["account", "where", "name=nlp", "cluster=dev", "set"]
    assert commands.sent == [
        [
            "sacctmgr",
            "--immediate",
            "modify",
            *words,
            "GrpSubmitJobs=0",
            "GrpTRESRunMins=gres/gpu=0",
        ]
    ]
    assert (got.grp_submit_jobs, got.grp_run_minutes_text) == (0, "cpu=500,gres/gpu=0")


def test_no_limit_is_sent_as_minus_one():
    commands = Scripted([BEFORE])
    Limits(commands, "dev").write(SetGroupLimits("vision", None, None, None))
    assert commands.sent[0][-1] == "GrpSubmitJobs=-1"
    Limits(commands, "dev").write(SetGroupLimits("nlp", None, None, None))
    assert commands.sent[1][-1] == "GrpTRESRunMins=gres/gpu=-1"


def test_what_is_so_already_is_not_sent():
    commands = Scripted([BEFORE])
    got = Limits(commands, "dev").write(SetGroupLimits("nlp", None, None, 60))
    assert (commands.sent, got.grp_gpu_run_minutes) == ([], 60)


def test_of_a_users_partitions_the_one_that_did_not_follow_is_told():
    after = BEFORE.replace("a100||10|", "a100|0|10|")
    commands = Scripted([BEFORE, after])
    got = Limits(commands, "dev").write(SetGroupLimits("nlp", "nlp-1", 0, None))
    assert commands.sent[0][4:8] == ["where", "name=nlp-1", "account=nlp", "cluster=dev"]
    assert (got.partition, got.grp_submit_jobs) == ("debug", 3)


def test_a_yes_that_changed_nothing_shows_in_the_answer():
    """Older sacctmgr ends with 0 when nothing matched."""
    got = Limits(Scripted([BEFORE]), "dev").write(SetGroupLimits("nlp", None, 0, 60))
    assert got.grp_submit_jobs is None


@pytest.mark.parametrize(
    ("stdout", "stderr", "code"),
    [
        (b" Error with request: Access/permission denied", "", "limits_not_permitted"),
        (b"", "sacctmgr: error: Your user doesn't have privilege to", "limits_not_permitted"),
        (b"", "slurmdb_format_tres_str: no TRES known by type gres/gpu", "gpus_not_tracked"),
        (b" Modified account associations...\n  Nothing modified\n", "", "no_such_association"),
    ],
)
def test_a_no_of_sacctmgr_has_a_code(stdout, stderr, code):
    commands = Scripted([BEFORE], modify=Output(1, stdout, stderr))
    with pytest.raises(BrokerRefused) as caught:
        Limits(commands, "dev").write(SetGroupLimits("nlp", None, 0, 0))
    assert caught.value.code == code


@pytest.mark.parametrize(
    "commands",
    [
        Scripted([BEFORE], modify=Output(1, b"", "slurmdbd: connection lost")),
        Scripted([BEFORE], modify_error=BrokerSilent("sacctmgr did not answer")),
        Scripted([BEFORE, "three|columns|only\n"]),
    ],
    ids=["lost", "slow", "unread"],
)
def test_from_the_write_on_an_unknown_end_is_unknown(commands):
    with pytest.raises(BrokerSilent):
        Limits(commands, "dev").write(SetGroupLimits("nlp", None, 0, 0))


def test_before_the_write_a_failed_look_means_nothing_happened():
    commands = Scripted(["three|columns|only\n"])
    with pytest.raises(BrokerUnreachable):
        Limits(commands, "dev").write(SetGroupLimits("nlp", None, 0, 0))
    assert commands.sent == []


@pytest.mark.parametrize("cluster", ["", "dev,other"])
def test_without_a_cluster_of_its_own_nothing_is_sent(cluster):
    commands = Scripted([BEFORE])
    with pytest.raises(BrokerRefused) as caught:
        Limits(commands, cluster).write(SetGroupLimits("nlp", None, 0, 0))
    assert (caught.value.code, commands.sent) == ("bad_cluster", [])


def test_an_act_that_takes_too_long_may_have_been_done():
    with pytest.raises(BrokerSilent):
        Commands(timeout_seconds=0.1).run(["sleep", "10"], acts=True)
    with pytest.raises(BrokerUnreachable):
        Commands(timeout_seconds=5).run(["no-such-program"], acts=True)


def test_a_qos_that_overrides_groups_is_named():
    qos = "normal||\nspot|100|\nurgent||gres/gpu=9\nlow||cpu=9\n"
    assert Limits(Scripted([qos]), "dev").overriding_qos() == ("spot", "urgent")
