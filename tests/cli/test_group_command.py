"""People of groups from the command line, over a socket with a pretended Slurm behind it."""

import pytest

from gateway.services import poll
from gateway.testing.contract_steps import Cast, request
from gateway.testing.devbroker import application_of
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.serving import served
from tests.cli.test_money_commands import begin, run, told

__all__ = ["begin"]


@pytest.fixture
def slurm(begin, home, tmp_path, monkeypatch):
    broker, path = FakeBroker(), tmp_path / "b.sock"
    poll.poll_policy(begin=begin, broker=broker, now=broker.now)
    monkeypatch.setenv("SLUICE_BROKER_SOCKET", str(path))
    with served(application_of(broker, tmp_path), path):
        yield broker


def test_people_are_added_listed_made_leaders_and_removed(slurm):
    assert told("group", "add", "nlp", "vision-1")["pending"] is False
    assert told("group", "lead", "nlp", "vision-1")["user"] == "vision-1"
    assert told("group", "default", "nlp", "vision-1")["code"] is None
    people = {one["user"]: one for one in told("group", "members", "nlp")["members"]}
    assert people["vision-1"]["role"] == "leader"
    assert people["vision-1"]["default_group"] == "nlp"
    assert run("group", "lead", "nlp", "vision-1", "--no").exit_code == 0
    assert "nlp-lead  leader" in run("group", "members", "nlp").output
    assert told("group", "remove", "nlp", "vision-1")["pending"] is False
    assert ("nlp", "vision-1") not in slurm.policy.members


def test_who_has_jobs_leaves_later_and_the_list_says_so(slurm):
    slurm.submit(request(Cast()))
    gone = told("group", "remove", "nlp", "nlp-1")
    assert (gone["pending"], gone["code"]) == (True, "member_has_jobs")
    people = {one["user"]: one for one in told("group", "members", "nlp")["members"]}
    assert people["nlp-1"]["wanted"] == "absent"
    assert "takes no new jobs of nlp-1" in run("group", "remove", "nlp", "nlp-1").output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "nlp", "nobody-here"), "There is no such Unix account on the cluster."),
        (("remove", "nlp", "vision-1"), "This person is not a member of the group."),
        (("add", "nosuch", "vision-1"), "There is no group nosuch."),
        (("members", "nosuch"), "Slurm knows no group 'nosuch'."),
    ],
)
def test_what_cannot_be_is_one_sentence(slurm, words, said):
    done = run("group", *words)
    assert done.exit_code == 1
    assert said in done.output
