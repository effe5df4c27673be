"""Environments from the command line, with a pretended Slurm behind the socket."""

import json

import pytest

from gateway.services import poll, site_jobs
from gateway.services.site_kinds import KINDS
from gateway.testing import builders as b
from gateway.testing.devbroker import application_of
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.serving import served
from tests.cli.test_money_commands import begin, run, told

__all__ = ["begin"]

LEADER = ("--by", "nlp-lead")


@pytest.fixture
def slurm(begin, home, tmp_path, monkeypatch):
    broker, path = FakeBroker(), tmp_path / "b.sock"
    poll.poll_cluster(begin=begin, broker=broker, now=broker.now)
    poll.poll_policy(begin=begin, broker=broker, now=broker.now)
    b.add_person(begin, "nlp-lead")
    monkeypatch.setenv("SLUICE_BROKER_SOCKET", str(path))
    with served(application_of(broker, tmp_path), path):
        yield broker


def create(*more):
    words = ("environment", "create", "torch-x", *LEADER, "--group", "nlp")
    return run(*words, "--kind", "venv", "--title", "Torch", "--path", "/opt/x", *more)


def test_an_environment_is_created_exported_imported_and_retired(slurm, tmp_path):
    assert create().exit_code == 0
    shown = told("environment", "show", "torch-x", *LEADER)
    assert (shown["path"], shown["group"], shown["source"]) == ("/opt/x", "nlp", "published")

    document = json.loads(run("environment", "export", "torch-x", *LEADER).output)
    document["environment"]["name"] = "copy"
    file = tmp_path / "copy.json"
    file.write_text(json.dumps(document))
    assert told("environment", "import", str(file), *LEADER, "--group", "nlp")["name"] == "copy"

    assert told("environment", "retire", "copy", *LEADER)["retired_at"]
    names = [one["name"] for one in told("environment", "list", *LEADER)["environments"]]
    assert names == ["torch-x"]


def test_what_is_wrong_is_one_sentence(slurm, tmp_path):
    assert (
        "only administrators"
        in run(
            "environment", "create", "e", *LEADER, "--kind", "venv", "--title", "T", "--path", "/x"
        ).output.lower()
    )
    assert "'/x;y' is not allowed" in create("--path", "/x;y").output
    (tmp_path / "bad.json").write_text("[" * 50_000)
    answer = run("environment", "import", str(tmp_path / "bad.json"), *LEADER)
    assert (answer.exit_code, "no file of an exported" in answer.output) == (1, True)
    assert run("environment", "show", "nothing", *LEADER).exit_code == 1


def test_a_check_is_sent_and_the_matrix_tells_it(slurm, begin):
    create()
    sent = told("environment", "check", "torch-x", "--gpu", "a100", *LEADER)
    states = {one["gpu_type"]: one["state"] for one in sent["checks"]}
    assert states["a100"] == "open"

    job_id = max(slurm.jobs)
    slurm.finish(job_id, "CANCELLED")
    poll.poll_queue(begin=begin, broker=slurm, cluster="cluster", now=slurm.now)
    slurm.advance(180)
    site_jobs.collect(begin=begin, read=begin, broker=slurm, kinds=KINDS, now=slurm.now)
    [line] = told("environment", "matrix", *LEADER)["environments"]
    assert {one["gpu_type"]: one["code"] for one in line["checks"]}["a100"] == "site_job_cancelled"
    assert "failed" in run("environment", "matrix", *LEADER).output
