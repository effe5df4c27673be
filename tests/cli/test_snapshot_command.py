"""`sluice snapshot`: every verb, with a person's real store behind the socket of a broker."""

import json

import pytest

from gateway.core.access import Role
from gateway.services import poll
from gateway.testing import builders as b
from gateway.testing.devbroker import application_of
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.serving import served
from gateway.testing.snapshot_samples import fields, keep
from tests.cli.test_money_commands import begin, run, told

__all__ = ["begin"]

BY = ("--by", "nlp-1")


@pytest.fixture
def slurm(begin, home, tmp_path, monkeypatch):
    broker, path = FakeBroker(), tmp_path / "b.sock"
    poll.poll_cluster(begin=begin, broker=broker, now=broker.now)
    poll.poll_policy(begin=begin, broker=broker, now=broker.now)
    for login in ("nlp-1", "nlp-2", "vision-1"):
        b.add_person(begin, login)
    b.add_person(begin, "root-1", role=Role.ADMINISTRATOR)
    monkeypatch.setenv("SLUICE_BROKER_SOCKET", str(path))
    with served(application_of(broker, tmp_path), path):
        yield broker


@pytest.fixture
def two(slurm):
    """The ids of an older and a newer one of nlp-1."""
    new = fields("nlp-1", note="with apex", at=1_780_000_600)
    new["lock"] = new["lock"] | {"pip": ["torch==2.14.0", "einops==0.8.1", "apex==1"]}
    return keep(slurm.files, "nlp-1", [fields("nlp-1", note="first"), new])


def names(login, *words):
    return [one["name"] for one in told("snapshot", "list", *words, "--by", login)]


def test_the_list_reads_the_store_and_is_searched(two):
    assert names("nlp-1") == ["with apex", "first"]
    assert names("nlp-1", "apex") == ["with apex"]
    assert names("nlp-1", "nothing") == []
    assert names("nlp-2") == []
    assert "with apex" in run("snapshot", "list", *BY).output


def test_a_store_that_cannot_be_read_is_told_and_what_was_known_stays(two, slurm):
    names("nlp-1")
    slurm.files.owners["/home/nlp-1/.sluice/snapshots/index.jsonl"] = "root"
    done = run("snapshot", "list", *BY)
    assert "could not be read" in done.stderr
    assert "with apex" in done.stdout


def test_one_is_shown_whole_by_the_beginning_of_its_id(two):
    names("nlp-1")
    one = told("snapshot", "show", two[1][:8], *BY)
    assert (one["id"], one["note"], one["base"]) == (two[1], "with apex", "torch-2.13")
    assert "apex==1" in one["packages"]
    for login, name in (("vision-1", two[1]), ("nlp-1", "0" * 12), ("nlp-1", "../etc")):
        refused = run("snapshot", "show", name, "--by", login)
        assert refused.exit_code != 0
        assert "Traceback" not in refused.output


def test_shared_with_the_group_asked_for_the_site_and_taken_back(two):
    names("nlp-1")
    name = two[0][:12]
    assert told("snapshot", "share", name, "--group", "nlp", *BY)["shared"] == "group"
    assert names("nlp-2") == ["first"]
    assert names("vision-1") == []
    assert told("snapshot", "share", name, "--site", *BY)["shared"] == "asked"
    assert run("snapshot", "agree", name, *BY).exit_code != 0
    told("snapshot", "agree", name, "--by", "root-1")
    assert names("vision-1") == ["first"]
    assert told("snapshot", "unshare", name, *BY)["shared"] == "none"
    assert names("vision-1") == []
    assert run("snapshot", "share", name, *BY).exit_code == 2
    assert run("snapshot", "share", name, "--group", "vision", *BY).exit_code != 0


def test_two_are_compared(two):
    names("nlp-1")
    found = told("snapshot", "diff", two[0], two[1], *BY)
    assert found["changed"] == [["torch", "2.13.0", "2.14.0"]]
    assert found["added"] == ["apex==1"]


def test_renamed_and_deleted_by_its_owner_alone(two):
    names("nlp-1")
    told_of = run("snapshot", "rename", two[0], "名字 <b>", *BY)
    assert told_of.exit_code == 0
    assert names("nlp-1") == ["with apex", "名字 <b>"]
    for verb in (("rename", two[0], "x"), ("delete", two[0])):
        assert run("snapshot", *verb, "--by", "vision-1").exit_code != 0
    assert run("snapshot", "rename", two[0], "two\nlines", *BY).exit_code != 0
    assert run("snapshot", "delete", two[0], *BY).exit_code == 0
    assert names("nlp-1") == ["with apex"]


def test_help_names_every_verb():
    text = run("snapshot", "--help").output
    for verb in ("list", "show", "share", "unshare", "agree", "rename", "delete", "diff"):
        assert f"  {verb} " in text
        assert json.dumps(verb) not in run("snapshot", verb, "--help").output
