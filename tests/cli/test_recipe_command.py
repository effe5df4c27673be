"""`sluice recipe`: every verb, with a pretended Slurm behind the socket."""

import json
from dataclasses import asdict
from datetime import timedelta

import pytest

from gateway.services import poll
from gateway.testing import builders as b
from gateway.testing.devbroker import application_of
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.serving import served
from tests.cli.test_money_commands import begin, run, told
from tests.web.test_recipe_pages import ASK

__all__ = ["begin"]

BY, OTHER = ("--by", "nlp-1"), ("--by", "nlp-2")


@pytest.fixture
def slurm(begin, home, tmp_path, monkeypatch):
    broker, path = FakeBroker(), tmp_path / "b.sock"
    poll.poll_cluster(begin=begin, broker=broker, now=broker.now)
    poll.poll_policy(begin=begin, broker=broker, now=broker.now)
    monkeypatch.setenv("SLUICE_BROKER_SOCKET", str(path))
    with served(application_of(broker, tmp_path), path):
        yield broker


@pytest.fixture
def job(begin, slurm):
    """The portal's number of a job of nlp-1 that ended well."""
    people = {login: b.add_person(begin, login) for login in ("nlp-1", "nlp-2", "vision-1")}
    times = {
        "start_time": slurm.now - timedelta(hours=1),
        "end_time": slurm.now - timedelta(minutes=30),
    }
    made = b.add_job(
        begin, user="nlp-1", state="COMPLETED", token="t", name="tiny",
        working_directory="/home/nlp-1", **times,
    )  # fmt: skip
    b.add_run(begin, made, **times)
    ask = asdict(ASK)
    b.add_submission(begin, people["nlp-1"], state="accepted", job_id=made, ask=ask)
    slurm.files.write("/home/nlp-1/train.py", "nlp-1", "print(1)\n")
    return made


@pytest.fixture
def made(job):
    words = ("--title", "Tiny GPT", "--tags", "gpt", "--visibility", "group", "--group", "nlp")
    return told("recipe", "publish", str(job), *words, "--code", *BY)


def titles(*words):
    return [one["title"] for one in told("recipe", *words)["recipes"]]


def test_published_found_and_shown(made):
    number = str(made["id"])
    assert made["recipe"]["code"]["captured"]
    assert titles("list", *OTHER) == ["Tiny GPT"]
    assert titles("search", "tin", "gpt", *OTHER) == ["Tiny GPT"]
    assert titles("search", "bert", *OTHER) == []
    assert titles("list", "--by", "vision-1") == []
    assert told("recipe", "show", number, *OTHER)["template"] == "ddp"
    assert run("recipe", "show", number, "--by", "vision-1").exit_code != 0
    assert "Tiny GPT" in run("recipe", "list", *BY).output


def test_its_code_is_listed_and_put_into_a_folder_once(made, slurm):
    number = str(made["id"])
    assert told("recipe", "code", number, *OTHER)["files"] == {"train.py": "print(1)\n"}
    laid = told("recipe", "code", number, "--to", "~/tiny", *OTHER)
    assert laid == {"folder": "/home/nlp-2/tiny"}
    assert slurm.files.contents["/home/nlp-2/tiny/train.py"] == b"print(1)\n"
    again = run("recipe", "code", number, "--to", "~/tiny", *OTHER)
    assert again.exit_code != 0
    assert "nothing was changed" in again.output
    assert run("recipe", "code", number, "--by", "vision-1").exit_code != 0


def test_cloned_changed_sent_and_run_again(made, slurm):
    number = str(made["id"])
    found = told("recipe", "clone", number, "--set", "time_limit=30", *OTHER)
    assert (found["ask"]["time_limit"], found["ask"]["template"]) == ("30", "ddp")
    assert slurm.jobs == {}
    values = ("--set", "working_directory=/home/nlp-2", "--submit", "--key", "k-1")
    sent = told("recipe", "clone", number, *values, *OTHER)
    assert told("recipe", "clone", number, *values, *OTHER)["submission"] == sent["submission"]
    [one] = slurm.jobs.values()
    assert one.request.user == "nlp-2"
    wrong = run("recipe", "clone", number, "--set", "nodes=x", "--submit", *OTHER)
    assert wrong.exit_code != 0
    assert "nodes" in wrong.output
    told("recipe", "rerun", number, "--set", "working_directory=/home/nlp-2", *OTHER)
    assert len(slurm.jobs) == 2


def test_out_as_a_file_and_in_again(made, tmp_path):
    number, file = str(made["id"]), tmp_path / "recipe.json"
    assert run("recipe", "export", number, "--output", str(file), *BY).exit_code == 0
    assert json.loads(file.read_text())["files"] == {"train.py": "print(1)\n"}
    taken = told("recipe", "import", str(file), "--by", "vision-1")
    assert (taken["elsewhere"], taken["visibility"]) == (True, "me")
    same = told("recipe", "compare", number, str(made["id"]), *BY)
    assert same["differences"] == []
    file.write_text("{}")
    refused = run("recipe", "import", str(file), *BY)
    assert refused.exit_code != 0
    assert "Traceback" not in refused.output


def test_taken_back_by_its_owner_alone(made):
    number = str(made["id"])
    assert run("recipe", "retract", number, *OTHER).exit_code != 0
    assert run("recipe", "retract", number, *BY).exit_code == 0
    assert titles("list", *OTHER) == []
