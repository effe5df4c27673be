"""What Slurm's commands print of people, priorities and reservations, and what is sent to them."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from gateway.broker.commands import Output
from gateway.broker.members import Members
from gateway.broker.priority import Priority
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.wire import policy as p

NLP = "|nlp||\nnlp-1|nlp||\nnlp-lead|nlp||\n"
PLACES = "|nlp||\nnlp-1|nlp|a100|\nnlp-1|nlp|debug|\nroot|nlp||\n"


@dataclass
class Scripted:
    """`shown` is what each kind of `show` prints; a write takes effect by `after`."""

    shown: dict[str, str]
    after: dict[str, str] = field(default_factory=dict)
    writes: list[Output] = field(default_factory=list)
    sent: list[list[str]] = field(default_factory=list)

    def run(self, argv, *, acts=False):
        words = [word for word in argv[1:] if not word.startswith("--")]
        if words[0] == "show":
            assert not acts
            return Output(0, self.shown.get(words[1], "").encode(), "")
        assert acts
        self.sent.append(words)
        done = self.writes.pop(0) if self.writes else Output(0, b"", "")
        if done.status == 0:
            self.shown |= self.after
        return done


def members(commands):
    return Members(commands, "dev", lambda name: None)


def slurm(associations=NLP, *, default="nlp-1|nlp\n", leads="nlp|nlp-lead\n", **more):
    shown = {"associations": associations, "users": default, "accounts": leads}
    return Scripted(shown, **more)


def test_one_association_for_all_partitions_where_the_others_have_one():
    commands = slurm(after={"associations": NLP + "ada|nlp||\n"})
    made = members(commands).add(p.MemberRequest("nlp", "ada"))
    assert commands.sent == [["add", "user", "name=ada", "account=nlp", "cluster=dev"]]
    assert made == p.Membership("nlp", "ada", ("",), False, False, closed=False)


def test_one_for_each_partition_that_the_others_have():
    after = PLACES + "ada|nlp|a100|\nada|nlp|debug|\n"
    commands = slurm(PLACES, after={"associations": after})
    made = members(commands).add(p.MemberRequest("nlp", "ada"))
    assert commands.sent[0][-1] == "partition=a100,debug"
    assert made.partitions == ("a100", "debug")


def test_only_those_that_are_missing_are_added():
    commands = slurm(PLACES + "ada|nlp|a100|\n")
    members(commands).add(p.MemberRequest("nlp", "ada"))
    assert commands.sent[0][-1] == "partition=debug"


@pytest.mark.parametrize("there", ["ada|nlp||\n", "ada|nlp|a100|\nada|nlp|debug|\n"])
def test_who_is_there_already_is_not_sent(there):
    commands = slurm(PLACES + there)
    assert members(commands).add(p.MemberRequest("nlp", "ada")).partitions
    assert commands.sent == []


def test_an_account_without_people_gets_one_for_all():
    commands = slurm("|nlp||\nroot|nlp|debug|\n")
    members(commands).add(p.MemberRequest("nlp", "ada"))
    assert commands.sent[0][-1] == "cluster=dev"


@pytest.mark.parametrize("keeps", [True, False])
def test_capital_letters_only_where_slurm_keeps_them(keeps):
    commands = slurm()
    word = "PreserveCaseUser" if keeps else "(null)"
    commands.shown["configuration"] = f"SLURMDBD\nParameters             = {word}\n"
    asked = p.MemberRequest("nlp", "Ada")
    if keeps:
        members(commands).add(asked)
        assert commands.sent[0][2] == "name=Ada"
        return
    with pytest.raises(BrokerRefused) as refused:
        members(commands).add(asked)
    assert (refused.value.code, commands.sent) == ("member_letter_case", [])


def test_whom_the_machine_does_not_know_is_not_sent():
    def nobody(name):
        raise BrokerRefused(name, code="unknown_user")

    commands = slurm()
    with pytest.raises(BrokerRefused) as refused:
        Members(commands, "dev", nobody).add(p.MemberRequest("nlp", "ada"))
    assert (refused.value.code, commands.sent) == ("unknown_user", [])


def test_each_write_names_the_cluster_and_only_what_differs():
    commands = slurm()
    asked = p.SetMember("nlp", "nlp-1", is_coordinator=True, is_default=True, closed=True)
    members(commands).set(asked)
    who = ["name=nlp-1", "account=nlp", "cluster=dev"]
    assert commands.sent == [
        ["modify", "user", "where", *who, "set", "MaxSubmitJobs=0"],
        ["add", "coordinator", "account=nlp", "names=nlp-1"],
    ]
    commands.sent.clear()
    members(commands).set(p.SetMember("nlp", "nlp-1", is_coordinator=False, closed=False))
    assert commands.sent == []


def test_closed_is_what_each_association_says_itself():
    half = "|nlp||0\nnlp-1|nlp|a100|0\nnlp-1|nlp|debug|\n"
    asked = p.SetMember("nlp", "nlp-1", closed=False)
    assert not members(slurm(half)).set(asked).closed
    commands = slurm(half.replace("debug|\n", "debug|0\n"), after={"associations": half})
    assert not members(commands).set(asked).closed
    assert commands.sent[0][-1] == "MaxSubmitJobs=-1"


def test_a_leader_who_leaves_leads_no_more_and_one_who_left_before_too():
    commands = slurm()
    members(commands).remove(p.MemberRequest("nlp", "nlp-lead"))
    assert [words[:2] for words in commands.sent] == [["remove", "user"], ["remove", "coordinator"]]
    stale = slurm("|nlp||\n")
    members(stale).remove(p.MemberRequest("nlp", "nlp-lead"))
    assert [words[:2] for words in stale.sent] == [["remove", "coordinator"]]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("Error with request: Job(s) active, cancel job(s) before remove", "member_has_jobs"),
        (
            "Error with request: You can not remove the default account of a user",
            "member_default_account",
        ),
        ("Nothing deleted", "no_such_association"),
        ("sacctmgr: error: Your user doesn't have privilege to", "policy_not_permitted"),
    ],
)
def test_a_no_of_slurm_has_a_code_and_the_leader_stays_one(said, code):
    commands = slurm(writes=[Output(1, said.encode(), "")])
    with pytest.raises(BrokerRefused) as refused:
        members(commands).remove(p.MemberRequest("nlp", "nlp-lead"))
    assert refused.value.code == code
    assert len(commands.sent) == 1


def test_what_nobody_can_read_is_unknown_and_so_is_a_no_half_way():
    asked = p.MemberRequest("nlp", "nlp-lead")
    with pytest.raises(BrokerSilent):
        members(slurm(writes=[Output(1, b"Problem getting it", "")])).remove(asked)
    no = Output(1, b"Nothing deleted", "")
    with pytest.raises(BrokerSilent):
        members(slurm(writes=[Output(0, b"", ""), no])).remove(asked)


@dataclass
class Printing:
    """What sshare, sprio, its weights and scontrol print."""

    shares: str = ""
    factors: str = ""
    weights: str = ""
    json: str = ""
    status: int = 0
    stderr: str = ""

    def run(self, argv):
        text = {"sshare": self.shares, "scontrol": self.json}.get(argv[0], self.factors)
        text = self.weights if "--weights" in argv else text
        return Output(self.status, text.encode(), self.stderr)


def test_shares_of_accounts_and_their_people():
    found = Priority(
        Printing(
            "root||||0.000000|900|1.000000||\n"
            " root|root||1|0.25|0|0.0|1.0|inf\n"
            " nlp|||1|0.250000|600|0.666667||0.375000\n"
            "  nlp|nlp-1|a100|parent|0.333333|600|1.000000|0.500000|inf\n"
        )
    ).fair_shares()
    nlp, mine = found.entries
    assert nlp == p.FairShare("nlp", None, None, 1, 0.25, 600, 0.666667, None, 0.375)
    assert mine == p.FairShare("nlp", "nlp-1", "a100", None, 0.333333, 600, 1.0, 0.5, None)


def test_factors_of_each_partition_and_the_weights():
    row = ["12", "nlp-1", "nlp", "a100", "normal", "13383", "0", "-5", "1", "833", "15", "20"]
    one = "\x1f".join([*row, "10000", "-50", "cpu=16,gres/gpu=2500"])
    two = one.replace("a100", "rtx4090").replace("cpu=16,gres/gpu=2500", "(null)")
    weights = "\x1f".join(["1000", "10", "10000", "100", "20", "100000", "(null)"])
    found = Priority(Printing(factors=f"{one}\n{two}\n", weights=weights)).priorities()
    assert found.weights == p.PriorityWeights(1000, 10, 10000, 100, 20, 100000, "")
    first, second = found.jobs
    assert (first.job_id, first.priority, first.nice) == (12, 13383, -50)
    assert (first.of_partition, first.of_qos, first.tres) == (20, 10000, "cpu=16,gres/gpu=2500")
    assert (second.partition, second.tres) == ("rtx4090", "")


def test_nobody_who_waits_is_an_answer():
    assert Priority(Printing(weights="")).priorities().jobs == ()


def test_a_site_without_factors_has_none():
    said = "You are not running a supported priority plugin\n(priority/basic)."
    basic = Priority(Printing(status=1, stderr=said))
    assert basic.priorities() == p.Priorities(p.PriorityWeights(0, 0, 0, 0, 0, 0, ""), ())
    assert basic.fair_shares().entries == ()


@pytest.mark.parametrize(
    ("verb", "printed"),
    [
        ("fair_shares", {"shares": "nlp|||1\n"}),
        ("fair_shares", {"shares": " nlp|||1|0.250000|lots|0.666667||0.375000\n"}),
        ("priorities", {"factors": "12\x1fnlp-1\n"}),
        ("priorities", {"factors": "\x1f".join("x" * 15) + "\n"}),
        ("reservations", {"json": "slurm_load_reservations error: Unable to contact"}),
        ("reservations", {"json": '{"reservations": [{"name": "x"}]}'}),
        ("priorities", {"status": 1, "stderr": "Unable to contact slurm controller"}),
    ],
)
def test_what_cannot_be_read_is_an_error_and_no_empty_list(verb, printed):
    priority = Priority(Printing(**printed))
    with pytest.raises(BrokerUnreachable):
        getattr(priority, verb)()


def test_reservations_name_each_node():
    one = {
        "name": "maint",
        "start_time": {"set": True, "infinite": False, "number": 1_796_076_773},
        "end_time": {"set": True, "infinite": False, "number": 1_796_083_973},
        "node_list": "a100-[1-2],rtx4090-1",
        "partition": "",
        "flags": ["MAINT", "IGNORE_JOBS"],
        "users": "root,ada",
        "accounts": "",
    }
    found = Priority(Printing(json=json.dumps({"reservations": [one]}))).reservations()
    assert found.reservations == (
        p.Reservation(
            name="maint",
            start=datetime(2026, 11, 30, 22, 12, 53, tzinfo=UTC),
            end=datetime(2026, 12, 1, 0, 12, 53, tzinfo=UTC),
            nodes=("a100-1", "a100-2", "rtx4090-1"),
            partition=None,
            flags=("MAINT", "IGNORE_JOBS"),
            users=("root", "ada"),
            accounts=(),
        ),
    )
    broken = json.dumps({"reservations": [one | {"node_list": "a100-[x]"}]})
    with pytest.raises(BrokerUnreachable):
        Priority(Printing(json=broken)).reservations()
