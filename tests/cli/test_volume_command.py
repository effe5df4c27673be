"""`sluice volume` from making to charging, over the real socket, as programs read it."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli import main
from gateway.store.schema import upgrade
from gateway.store.uow import make_begin, make_engine
from gateway.testing import builders as b
from gateway.testing.devbroker import application_of
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.serving import served

TB = 2**40


@pytest.fixture
def fake():
    return FakeBroker()


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeBroker):
    """Run `sluice volume …`; the value of --json, or the failure's text."""
    monkeypatch.setenv("SLUICE_HOME", str(tmp_path))
    monkeypatch.setenv("SLUICE_BROKER_SOCKET", str(tmp_path / "b.sock"))
    engine = make_engine(f"sqlite:///{tmp_path / 'sluice.db'}")
    upgrade(engine)
    begin = make_begin(engine)
    for name in ("member", "lead"):
        b.add_person(begin, name)
    b.add_associations(
        begin, b.association("member", "nlp"), b.association("lead", "nlp", is_coordinator=True)
    )

    def run(*words: str, fails: bool = False):
        done = CliRunner().invoke(main, ["volume", *words, "--json"])
        assert (done.exit_code != 0) is fails, done.output
        return done.output if fails else json.loads(done.output)

    with served(application_of(fake, tmp_path), tmp_path / "b.sock"):
        yield run
    engine.dispose()


def test_from_making_to_a_larger_limit(call, fake):
    made = call("create", "volumes", "data", "nlp", "--limit", "1TB")
    assert (made["state"], made["path"]) == ("there", "/volumes/data")
    call("price", "0.03")
    call("cap", "nlp", "3TB")
    asked = call("request", "data", "3TB", "--why", "corpus", "--by", "member")
    done = call("approve", str(asked["request"]), "--by", "lead")
    assert (done["state"], done["before_bytes"], done["after_bytes"]) == ("applied", TB, 3 * TB)
    assert fake.volume_state.rows["volumes", "data"].limit_bytes == 3 * TB
    shown = call("show", "data", "--by", "member")
    assert (shown["limit_bytes"], shown["a_month_millionths"]) == (3 * TB, 92_160_000)
    assert [one["by"] for one in shown["requests"]] == ["member"]


def test_what_is_listed_is_what_the_file_systems_have(call, fake):
    call("create", "volumes", "data", "nlp", "--limit", "1TB")
    fake.volume_state.change("data", used_bytes=TB // 2)
    found = call("list", "--look")
    assert [(one["name"], one["percent"]) for one in found["volumes"]] == [("data", 50)]
    assert {one["name"]: one["problem"] for one in found["areas"]} == {
        "archive": None,
        "volumes": None,
    }
    assert call("usage", "data")["days"][-1]["used_bytes"] == TB // 2


def test_what_is_not_meant_is_refused(call, fake):
    call("create", "volumes", "data", "nlp", "--limit", "1TB")
    fake.volume_state.change("data", used_bytes=TB // 2)
    call("list", "--look")
    call("limit", "data", "100GB", fails=True)
    assert fake.volume_state.rows["volumes", "data"].limit_bytes == TB
    low = call("limit", "data", "100GB", "--below-use")
    assert low["after_bytes"] == 100 * 2**30
    call("limit", "nosuch", "1TB", fails=True)
    call("limit", "data", "lots", fails=True)
    call("approve", "999", fails=True)
    call("show", "data", "--by", "nobody", fails=True)


def test_a_broker_that_is_away_is_said(call, fake):
    fake.unreachable = True
    call("create", "volumes", "data", "nlp", fails=True)
