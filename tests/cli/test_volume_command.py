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
from gateway.wire import volumes as vol

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


def test_a_folder_that_is_there_is_taken_in_and_retired(call, fake):
    fake.volume_state.rows["volumes", "old"] = vol.Volume(
        "volumes", "old", "/volumes/old", "nlp", TB // 4, TB
    )
    assert [one["name"] for one in call("list", "--look")["other_folders"]] == ["old"]
    taken = call("create", "volumes", "old", "nlp", "--existing")
    assert (taken["state"], taken["path"]) == ("there", "/volumes/old")
    shown = call("show", "volumes/old")
    assert (shown["used_bytes"], shown["limit_bytes"]) == (TB // 4, TB)
    assert call("retire", "old") == {"name": "old", "state": "retired"}
    call("show", "old", "--by", "member", fails=True)
    # Nothing is deleted, and what was a volume is not offered as a folder again.
    assert ("volumes", "old") in fake.volume_state.rows
    assert call("list", "--look")["other_folders"] == []


def test_a_refusal_needs_a_reason_and_the_right(call, fake):
    call("create", "volumes", "data", "nlp", "--limit", "1TB")
    asked = str(call("request", "data", "3TB", "--by", "member")["request"])
    call("approve", asked, "--refuse", fails=True)
    call("approve", asked, "--by", "member", fails=True)
    call("approve", asked, "--by", "lead", fails=True)  # beyond the group's cap, which is nothing
    done = call("approve", asked, "--refuse", "--why", "the disk is full", "--by", "lead")
    assert done == {"request": int(asked), "state": "refused"}
    (kept,) = call("show", "data")["requests"]
    assert (kept["state"], kept["answer"], kept["decider"]) == (
        "refused",
        "the disk is full",
        "lead",
    )
    assert fake.volume_state.rows["volumes", "data"].limit_bytes == TB


def test_prices_and_caps_are_listed(call):
    call("list", "--look")
    call("price", "0.03")
    call("price", "0.01", "--area", "archive")
    found = call("prices")["prices"]
    assert {(one["area"], one["per_gb_month_millionths"]) for one in found} == {
        (None, 30_000),
        ("archive", 10_000),
    }
    assert call("cap", "nlp", "3TB")["most_bytes"] == 3 * TB
    call("price", "-1", fails=True)
    call("price", "0.1", "--area", "nosuch", fails=True)
    call("cap", "nosuch", "1TB", fails=True)


def test_people_read_it_too(call, fake):
    call("create", "volumes", "data", "nlp", "--limit", "1TB")
    fake.volume_state.change("data", used_bytes=TB // 2)
    call("list", "--look")

    def text(*words: str) -> str:
        done = CliRunner().invoke(main, ["volume", *words])
        assert done.exit_code == 0, done.output
        return done.output

    assert "volumes/data" in text("list")
    assert "512 GB of 1 TB" in text("show", "data")
    day, used, limit = text("usage", "data", "--csv").splitlines()[1].split(",")
    assert (len(day), int(used), int(limit)) == (10, TB // 2, TB)
    assert "512 GB  of 1 TB" in text("usage", "data")
