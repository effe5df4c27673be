"""`sluice notebook`, every verb, as programs read it, over the socket of a broker."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.core.apps import ready_path
from gateway.store.schema import upgrade
from gateway.store.uow import make_begin, make_engine
from gateway.testing import builders as b
from gateway.testing.devbroker import application_of
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.portal import CLUSTER, Portal
from gateway.testing.serving import served

KEY = "A" * 43
START = ("start", "--group", "nlp", "--partition", "a100", "--gpu-type", "a100", "--cards", "1")


@pytest.fixture
def fake():
    return FakeBroker(now=datetime.now(UTC))


class Call:
    """`sluice notebook … --by LOGIN --json`: the value, or the failure's text."""

    def __init__(self, portal: Portal) -> None:
        self._portal = portal

    def __call__(self, *words: str, by: str = "nlp-1", fails: bool = False):
        done = CliRunner().invoke(main, ["notebook", *words, "--by", by, "--json"])
        assert (done.exit_code != 0) is fails, done.output
        return done.output if fails else json.loads(done.output)

    def text(self, *words: str) -> str:
        done = CliRunner().invoke(main, ["notebook", *words, "--by", "nlp-1"])
        assert done.exit_code == 0, done.output
        return done.output

    def look(self, seconds: float = 2) -> None:
        self._portal.broker.advance(seconds)
        self._portal.poll_policy()
        self._portal.poll()


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeBroker):
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    monkeypatch.setenv("SLUICE_CLUSTER_NAME", CLUSTER)
    monkeypatch.setenv("SLUICE_BROKER_SOCKET", str(tmp_path / "b.sock"))
    engine = make_engine(f"sqlite:///{tmp_path / 'sluice.db'}")
    upgrade(engine)
    begin = make_begin(engine)
    for login in ("nlp-1", "nlp-2"):
        b.add_person(begin, login)
    found = Call(Portal(begin, fake, b.viewer("nlp-1", groups=("nlp",))))
    found.look(0)
    with served(application_of(fake, tmp_path), tmp_path / "b.sock"):
        yield found
    engine.dispose()


def started(call: Call, fake: FakeBroker) -> int:
    """One that is ready, by `start`; its number."""
    made = call(*START, "--hours", "2", "--key", "one")
    call.look()
    (job,) = fake.jobs.values()
    facts = {"address": "127.0.0.1", "port": 4000, "key": KEY, "pid": 7, "at": fake.now.timestamp()}
    fake.files.write(ready_path("/home/nlp-1", job.job_id), "nlp-1", json.dumps(facts))
    return int(made["id"])


def test_it_is_started_once_listed_shown_and_opened(call, fake):
    number = started(call, fake)
    assert call(*START, "--hours", "2", "--key", "one")["id"] == number
    (job,) = fake.jobs.values()
    assert (job.request.gpus_per_node, job.time_limit_minutes) == (1, 120)
    shown = call("show", str(number))
    assert (shown["state"], shown["url"]) == ("ready", f"/apps/{job.job_id}/")
    assert call("open", str(number))["url"].endswith(f"/apps/{job.job_id}/")
    listed = call("list")
    assert [one["id"] for one in listed["own"]] == [number]
    assert KEY not in json.dumps([shown, listed])
    table = call.text("list").splitlines()
    assert re.search(rf"{number}\s+notebook\s+nlp-1\s+ready\s+1\s", table[1])
    assert "state: ready" in call.text("show", str(number))


def test_whom_one_names_sees_it_until_taken_back(call, fake):
    number = str(started(call, fake))
    call("show", number, by="nlp-2", fails=True)
    assert call("share", number, "nlp-2")["guests"] == ["nlp-2"]
    assert [one["owner"] for one in call("list", by="nlp-2")["shared"]] == ["nlp-1"]
    call("share", number, "nobody", fails=True)
    call("stop", number, by="nlp-2", fails=True)
    # Its door (nobody listens there) cannot close what is open: that is said, and it is taken back.
    assert "node" in call("unshare", number, "nlp-2", fails=True)
    assert call("show", number)["guests"] == []
    assert call("unshare", number, "nlp-2")["guests"] == []


def test_more_time_and_the_end(call, fake):
    number = str(started(call, fake))
    call.look()
    call("show", number)
    call("extend", number, "--hours", "1")
    (job,) = fake.jobs.values()
    assert job.time_limit_minutes == 180
    call("extend", number, "--hours", "99999", fails=True)
    call("extend", number, "--hours", "-1", fails=True)
    call("stop", number)
    call.look()
    assert job.state == "CANCELLED"
    assert call("show", number)["state"] == "over"
    assert "over" in call("open", number, fails=True)
    assert call("list") == {"own": [], "shared": []}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("start", "ddp"), "application"),
        ((*START, "--hours", "x"), "hours"),
        ((*START[:-1], "99"), "At most 8"),
        ((*START, "--set", "odd=1"), "odd"),
        (("show", "77"), "77"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_sent(call, fake, words, told):
    assert told in call(*words, fails=True)
    assert not fake.jobs
