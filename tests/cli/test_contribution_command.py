"""`sluice contribution`: the book, the rules and runs, for people and for programs."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main, run_contribution
from gateway.config import load_settings
from gateway.services import poll
from gateway.store.schema import upgrade
from gateway.store.uow import Begin, make_begin, make_engine
from gateway.testing.fakebroker import FakeBroker

FIRST = ("kind", "money", "--unit", "CNY", "--weight", "0.01")


@pytest.fixture
def begin(home: Path) -> Begin:
    home.mkdir()
    engine = make_engine(load_settings().database_url)
    upgrade(engine)
    return make_begin(engine)


@pytest.fixture
def broker(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> FakeBroker:
    """What the command finds in the place of the socket."""
    made = FakeBroker(now=datetime.now(UTC) - timedelta(seconds=1))
    poll.poll_policy(begin=begin, broker=made, now=made.now)
    monkeypatch.setattr(run_contribution, "SocketBroker", lambda *_, **__: made)
    return made


def sluice(*words: str) -> Result:
    return CliRunner().invoke(main, ["contribution", *words])


def told(*words: str) -> Any:
    done = sluice(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_from_a_kind_and_a_line_to_shares_in_slurm(broker: FakeBroker) -> None:
    assert told("formula") is None
    assert told(*FIRST)["version"] == 1
    assert told("formula", "--base", "100", "--shape", "linear")["rules"]["formula"]["base"] == 100
    line = told("add", "nlp", "money", "5000", "--note", "a gift")["line"]
    found = told("preview", "--changes")
    assert (found["groups"], found["differing"]) == (3, 3)
    (nlp,) = [one for one in found["results"] if one["group"] == "nlp"]
    assert (nlp["shares_now"], nlp["shares_new"], nlp["points"]) == (1, 150, "50.00")

    done = told("run", "--key", "first")
    assert (done["differing"], done["state"]) == (3, "applied")
    assert broker.policy.accounts["nlp"].policy.shares == 150
    again = told("run")
    assert (again["differing"], again["change"]) == (0, None)
    assert [one["differing"] for one in told("runs")] == [0, 3]

    told("end", str(line))
    (row,) = told("list")
    assert (row["line"], row["left"]) == (line + 1, "0.00")
    history = told("list", "--history")
    assert [one["replaced"] for one in history] == [False, True]
    told("correct", str(line + 1), "--amount", "0")
    assert told("list") == []


def test_a_run_that_is_only_proposed_writes_nothing(broker: FakeBroker) -> None:
    told(*FIRST)
    told("formula", "--base", "7")
    assert told("run", "--propose")["state"] == "proposed"
    assert broker.policy.accounts["nlp"].policy.shares == 1


def test_for_people_it_prints_tables_and_sentences(broker: FakeBroker) -> None:
    assert "No rules yet" in sluice("formula").output
    assert "Shares are not set." in sluice(*FIRST, "--half-life", "90").output
    said = sluice("formula", "--shape", "capped", "--cap", "30", "--scale", "2", "--automatic")
    assert "Shares = 100 + 2.00 x points up to 30.00" in said.output
    assert "The night's change is applied." in said.output
    assert "brought 5000.00 of money" in sluice("add", "nlp", "money", "5000").output
    assert "+159" in sluice("preview").output
    assert "3 of 3 groups differ; applied." in sluice("run").output
    assert "Nothing differs for 3 groups" in sluice("run").output
    assert "applied" in sluice("runs").output
    assert "nlp" in sluice("list", "--group", "nlp").output
    said = sluice(
        "formula", "--no-shares", "--tier", "40:urgent", "--leave", "vision", "--proposed"
    )
    assert "From 40.00 points on: QoS urgent." in said.output
    assert "Left alone: vision." in said.output
    assert "-urgent" not in sluice("preview", "--changes").output
    said = sluice("formula", "--no-tiers", "--leave-none")
    assert "urgent" not in said.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "nosuch", "money", "5"), "no such group"),
        (("add", "nlp", "gold", "5"), "no such kind"),
        (("add", "nlp", "money", "much"), "amount in figures"),
        (("add", "nlp", "money", "5", "--day", "soon"), "is no day"),
        (("end", "99"), "no contribution line 99"),
        (("correct", "99"), "no contribution line 99"),
        (("formula", "--tier", "gold"), "is not like 50:gold"),
        (("formula", "--tier", "5:nosuch"), "no QoS"),
        (("formula", "--least", "9", "--most", "3"), "smallest"),
        (("kind", "Money"), "short name"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    broker: FakeBroker, words: tuple[str, ...], said: str
) -> None:
    told(*FIRST)
    done = sluice(*words)
    assert done.exit_code in {1, 2}
    assert said.lower() in done.output.lower()


def test_a_kind_with_lines_cannot_be_removed(broker: FakeBroker) -> None:
    told(*FIRST)
    told("kind", "node", "--counted", "per_day", "--from", "hand")
    assert [one["key"] for one in told("kind", "node", "--remove")["rules"]["kinds"]] == ["money"]
    told("add", "nlp", "money", "5", "--key", "k")
    told("add", "nlp", "money", "5", "--key", "k")
    assert len(told("list")) == 1
    assert sluice("kind", "money", "--remove").exit_code == 1
