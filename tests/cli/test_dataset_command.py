"""`sluice dataset`: every verb with --json, with a pretended Slurm behind the socket."""

import hashlib

import pytest

from gateway.services import poll
from gateway.testing import builders as b
from gateway.testing.dataset_samples import add_folder, manifest_of
from gateway.testing.devbroker import application_of
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.serving import served
from tests.cli.test_money_commands import begin, run, told

__all__ = ["begin"]

BY = ("--by", "nlp-1")
SHA256 = hashlib.sha256(manifest_of().encode()).hexdigest()


@pytest.fixture
def slurm(begin, home, tmp_path, monkeypatch):
    broker, path = FakeBroker(), tmp_path / "b.sock"
    poll.poll_cluster(begin=begin, broker=broker, now=broker.now)
    poll.poll_policy(begin=begin, broker=broker, now=broker.now)
    for login in ("nlp-1", "nlp-2", "vision-1"):
        b.add_person(begin, login)
    monkeypatch.setenv("SLUICE_BROKER_SOCKET", str(path))
    with served(application_of(broker, tmp_path), path):
        yield broker


@pytest.fixture
def words(slurm, tmp_path):
    """A published version of three files; the file of its manifest on this host."""
    add_folder(slurm, "/datasets/words")
    file = tmp_path / "words.manifest"
    file.write_text(manifest_of())
    facts = ("--title", "Words", "--licence", "CC0-1.0", "--visibility", "listed")
    assert told("dataset", "create", "words", *BY, *facts) == {"name": "words"}
    made = told("dataset", "version", "words", "/datasets/words", *BY, "--note", "first")
    assert made == {"name": "words", "version": 1, "state": "draft"}
    made = told("dataset", "publish", "words", "1", "--manifest", str(file))
    assert made["state"] == "published"
    return file


def shown(name="words"):
    return told("dataset", "show", name)


def test_from_a_manifest_to_withdrawn(words):
    told_of = told("dataset", "manifest", str(words))
    assert told_of == {"sha256": SHA256, "bytes": 3000, "files": 3}
    [version] = shown()["versions"]
    facts = {name: version[name] for name in ("state", "bytes", "files", "manifest", "note")}
    assert facts == {
        "state": "published",
        "bytes": 3000,
        "files": 3,
        "manifest": SHA256,
        "note": "first",
    }
    told("dataset", "withdraw", "words", "1", "--why", "A right was missing.")
    [version] = shown()["versions"]
    assert (version["state"], version["withdrawn_why"]) == ("withdrawn", "A right was missing.")
    assert run("dataset", "withdraw", "words", "1", "--why", "again").exit_code != 0


def test_the_list_is_searched(words):
    [one] = told("dataset", "list")["datasets"]
    assert (one["name"], one["licence"], one["newest"]["version"]) == ("words", "CC0-1.0", 1)
    assert told("dataset", "list", "--search", "cc0 words")["datasets"] == [one]
    assert told("dataset", "list", "--search", "pictures")["datasets"] == []
    assert "3.0 kB" in run("dataset", "list").output


def test_a_cleaned_subset_tells_what_it_was_made_from(words, slurm):
    add_folder(slurm, "/datasets/clean")
    lineage = ("--parent", "words@1", "--made-by", "recipe 12")
    told("dataset", "version", "words", "/datasets/clean", *BY, *lineage)
    versions = {one["version"]: one for one in shown()["versions"]}
    assert (versions[2]["parent"], versions[2]["made_by"]) == ("words@1", "recipe 12")
    assert versions[1]["children"] == ["words@2"]
    unknown = run("dataset", "version", "words", "/datasets/clean", *BY, "--parent", "none@1")
    assert unknown.exit_code != 0
    assert len(shown()["versions"]) == 2


def test_readers_are_named_and_taken_back(words):
    told("dataset", "share", "words", "group:vision")
    assert shown()["readers"] == ["group:vision"]
    told("dataset", "share", "words", "group:vision", "--no")
    assert shown()["readers"] == []
    assert run("dataset", "share", "words", "everybody").exit_code != 0


def test_requests_are_kept_and_answered_once(words):
    asked = told("dataset", "request", "--by", "vision-1", "--name", "words", "--text", "To learn.")
    new = told("dataset", "request", "--by", "vision-1", "--text", "Pictures of boats.")
    found = {one["id"]: one for one in told("dataset", "request")["requests"]}
    assert found[asked["request"]]["dataset"] == "words"
    assert (found[new["request"]]["kind"], found[new["request"]]["dataset"]) == ("new", None)
    number = str(asked["request"])
    assert told("dataset", "approve", number)["state"] == "granted"
    assert shown()["readers"] == ["person:vision-1"]
    assert run("dataset", "approve", number).exit_code != 0
    refused = told("dataset", "approve", str(new["request"]), "--refuse", "--answer", "Too large.")
    assert refused["state"] == "refused"
    assert told("dataset", "request")["requests"] == []


def test_a_verification_is_sent_as_who_asks_and_not_twice(words, slurm):
    assert told("dataset", "verify", "words", "1", *BY)["site_job"] == 1
    [job] = slurm.jobs.values()
    assert job.request.user == "nlp-1"
    assert f"SHA256={SHA256}" in job.request.script or f"--sha256 {SHA256}" in job.request.script
    assert job.request.gpus_per_node == 0
    assert run("dataset", "verify", "words", "1", *BY).exit_code != 0
    assert run("dataset", "verify", "words", "1", "--by", "vision-1").exit_code != 0


def test_usage_is_by_version(words):
    assert told("dataset", "usage", "words") == {"usage": []}
    assert run("dataset", "usage", "none").exit_code != 0


@pytest.mark.parametrize(
    "text",
    ["", "none\n", f"{'0' * 64} 5 ../out\n", f"{'0' * 64} 5 b\n{'0' * 64} 5 a\n", "\r\n"],
)
def test_a_file_that_is_no_manifest_is_refused(slurm, tmp_path, text):
    file = tmp_path / "bad"
    file.write_text(text)
    done = run("dataset", "manifest", str(file))
    assert done.exit_code != 0
    assert "Traceback" not in done.output
    file.write_bytes(b"\xff\xfe")
    assert "no UTF-8" in run("dataset", "manifest", str(file)).output
