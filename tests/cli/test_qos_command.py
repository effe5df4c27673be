"""`sluice qos` as somebody types it, over a real socket to a made-up Slurm."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.core.qos import Qos
from gateway.services import policy_drift, poll
from gateway.store.uow import make_begin, make_engine
from gateway.testing.devbroker import application_of
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.serving import served


def run(*words: str, **more: object) -> Result:
    return CliRunner().invoke(main, ("qos", *words), **more)


def told(*words: str, code: int = 0):
    """The command's one JSON value."""
    done = run(*words, "--json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


@pytest.fixture
def begin(home: Path):
    assert CliRunner().invoke(main, ("db", "upgrade")).exit_code == 0
    engine = make_engine(f"sqlite:///{home / 'sluice.db'}")
    yield make_begin(engine)
    engine.dispose()


@pytest.fixture
def broker(begin, home, tmp_path):
    """A Slurm that was polled once, and listens where the settings say."""
    fake = FakeBroker()
    now = datetime.now(UTC)
    poll.poll_policy(begin=begin, broker=fake, now=now)
    policy_drift.look(begin=begin, read=begin, now=now)
    (home / "run").mkdir(exist_ok=True)
    with served(application_of(fake, tmp_path), home / "run/broker.sock"):
        yield fake


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "policy.toml"

    def write(text: str) -> str:
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


SPOT = '[qos.spot]\ndescription = "spot"\npriority = 11\nusage_factor = "0.82"\n'
MORE = 'preempt_mode = ["requeue"]\nmax_wall = "2-00:00:00"\ngrp_tres = {"gres/gpu" = 8}\n'


def test_the_list_has_limits_groups_and_what_is_retired(broker):
    found = {one["name"]: one for one in told("list")}
    assert (found["spot"]["priority"], found["spot"]["usage_factor"]) == (10, "0.82")
    assert (found["urgent"]["groups"], found["urgent"]["retired"]) == (2, False)
    assert found["urgent"]["max_tres_per_user"] == {"gres/gpu": 8}
    assert "urgent" in run("list").output


def test_one_qos_and_one_group_are_shown(broker):
    assert told("show", "urgent")["groups"] == ["nlp", "vision"]
    assert told("show", "group:biolab")["grp_tres"] == {"gres/gpu": 16}
    assert "max_tres_per_user" in run("show", "urgent").output
    assert run("show", "gpu_hgih").exit_code == 1
    assert run("show", "account:nlp").exit_code == 2


def test_what_is_exported_changes_nothing(broker, tmp_path):
    path = tmp_path / "all.toml"
    assert run("export", "--groups", "-o", str(path)).exit_code == 0
    assert told("diff", str(path)) == []
    assert told("apply", str(path), "--yes") == []
    assert path.read_text() == run("export", "--groups").output
    assert not [call for call in broker.calls if call.startswith("set-")]


def test_a_file_is_compared_applied_and_read_back(broker, file):
    path = file(SPOT + MORE)
    [item] = told("diff", path, code=1)
    assert item["object"] == "qos:spot"
    assert item["changes"] == [
        {"field": "priority", "before": 10, "after": 11},
        {"field": "grp_tres", "before": {}, "after": {"gres/gpu": 8}},
        {"field": "max_wall", "before": None, "after": "2-00:00:00"},
    ]
    assert 'max_wall: none -> "2-00:00:00"' in run("diff", path).output
    done = told("apply", path, "--yes", "--reason", "deadline week")
    assert (done["state"], done["reason"], done["source"]) == ("applied", "deadline week", "file")
    assert broker.policy.qos["spot"].max_wall_minutes == 2880
    assert broker.policy.qos["normal"].priority == 100  # not named
    assert told("diff", path) == []


def test_it_asks_and_a_no_changes_nothing(broker, file):
    path = file(SPOT + MORE)
    assert run("apply", path, input="n\n").exit_code == 1
    looked = run("apply", path, "--dry-run")
    assert looked.exit_code == 0
    assert "What it does to the jobs there now:" in looked.output
    assert run("apply", path, "--json").exit_code == 2
    assert broker.policy.qos["spot"].priority == 10
    done = run("apply", path, input="y\n")
    assert done.exit_code == 0
    assert "applied" in done.output
    assert broker.policy.qos["spot"].priority == 11


def test_a_new_qos_and_the_group_that_uses_it_come_in_one_change(broker, file):
    more = '[groups.nlp]\nqos = ["night", "normal", "spot", "urgent"]\ndefault_qos = "normal"\n'
    done = told("apply", file("[qos.night]\npriority = 5\n" + more), "--yes")
    assert [one["object"] for one in done["items"]] == ["qos:night", "group:nlp"]
    assert done["state"] == "applied"
    assert "night" in broker.policy.accounts["nlp"].policy.qos


def test_history_and_undo(broker, file):
    run("apply", file(SPOT + MORE), "--yes")
    newest, first = told("history", "spot")
    assert (newest["version"], newest["source"]) == (2, "file")
    assert (first["version"], first["source"]) == (1, "found")
    assert "max_wall" in run("history", "spot").output
    assert told("undo", "spot", "1", "--yes")["state"] == "applied"
    assert broker.policy.qos["spot"].priority == 10
    assert run("undo", "spot", "1", "--yes").exit_code == 1
    assert run("undo", "spot", "9", "--yes").exit_code == 1
    assert run("undo", "spot", "9" * 30, "--yes").exit_code == 2  # no number of a version
    assert run("history", "gpu_hgih").exit_code == 1


def test_what_slurm_has_by_now_is_not_overwritten(broker, file):
    broker.policy.qos["spot"] = replace(broker.policy.qos["spot"], priority=7)
    done = told("apply", file(SPOT + MORE), "--yes", code=1)
    assert (done["state"], done["items"][0]["code"]) == ("refused", "policy_changed_meanwhile")
    assert broker.policy.qos["spot"].priority == 7
    assert "something else" in run("apply", file(SPOT + MORE), "--yes").output


def test_without_a_broker_the_worker_is_left_to_it(begin, broker, file, home, monkeypatch):
    monkeypatch.setenv("SLUICE_BROKER_SOCKET", str(home / "nobody.sock"))
    done = run("apply", file(SPOT + MORE), "--yes")
    assert done.exit_code == 0
    assert "The worker applies it" in done.output
    assert broker.policy.qos["spot"].priority == 10


def test_with_second_approval_it_waits_for_an_administrator(broker, file, monkeypatch):
    monkeypatch.setenv("SLUICE_POLICY_SECOND_APPROVAL", "true")
    assert told("apply", file(SPOT + MORE), "--yes")["state"] == "proposed"
    assert broker.policy.qos["spot"].priority == 10


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[qos.a]\n[qos.a]", "line 2"),
        ("[qos.a]\nmax_jobs = 1", "qos.a.max_jobs: there is no such key"),
        ('[qos.a]\npriority = "high"', "qos.a.priority: this has to be a whole number"),
        ("[qos.Normal]", "qos.Normal: Small letters"),
        ("[qos.spot]\npreempts = ['gpu_hgih']", "qos:spot preempts: There is no"),
        ("[groups.gpu_hgih]", "group:gpu_hgih"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_with_the_place(broker, file, text, says):
    done = run("apply", file(text), "--yes")
    assert done.exit_code == 1
    assert says in done.output
    assert not [call for call in broker.calls if call.startswith("set-")]


def test_a_qos_that_the_portal_has_not_seen_is_not_made_over(broker, file):
    broker.policy.qos["late"] = Qos(name="late", priority=3)
    done = told("apply", file("[qos.late]\npriority = 9\n"), "--yes", code=1)
    assert done["items"][0]["code"] == "qos_exists"
    assert broker.policy.qos["late"].priority == 3
