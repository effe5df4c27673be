"""The commands of money as somebody types them: tables, JSON, and what is refused in words."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.services import settle
from gateway.store.uow import Begin, make_begin, make_engine
from gateway.testing import builders as b

HOUR = timedelta(hours=1)


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def told(*words: str):
    """The command's one JSON value."""
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def begin(home: Path):
    assert run("db", "upgrade").exit_code == 0
    engine = make_engine(f"sqlite:///{home / 'sluice.db'}")
    yield make_begin(engine)
    engine.dispose()


def ran(begin: Begin, *, gpus: int = 2, name: str = "train", **values: object) -> None:
    """A job of one hour that has just been charged."""
    end = datetime.now(UTC)
    job = b.add_job(begin, state="COMPLETED", gpus=gpus, name=name)
    tres = f"gres/gpu={gpus},gres/gpu:a100={gpus}"
    times = {"start_time": end - HOUR, "end_time": end, "alloc_tres": tres, "to_settle": True}
    b.add_run(begin, job, **(times | values))
    settle.settle(begin=begin, now=end)


def priced(*more: str) -> None:
    day = (datetime.now(UTC) - timedelta(days=9)).strftime("%Y-%m-%d")
    assert run("price", "set", "a100", "1", "--starts", day, "--backdated").exit_code == 0


def month() -> str:
    return datetime.now(UTC).strftime("%Y-%m")


def test_a_price_is_set_and_listed_by_what_is_in_force(begin):
    run("price", "set", "rtx4090", "1")
    set_ = told("price", "set", "rtx4090", "1.2")
    run("price", "set", "rtx4090", "2", "--starts", "2100-01-01")
    run("price", "terms", "spot", "0.82", "--preempted", "free")
    run("price", "offer", "week", "rtx4090", "0.9")
    found = told("price", "list")
    assert (set_["per_hour"], set_["per_hour_millionths"]) == ("1.20", 1_200_000)
    prices = {word: [p["per_hour"] for p in rows] for word, rows in found["prices"].items()}
    assert prices == {"in_force": ["1.20"], "history": ["1.00"], "to_come": ["2.00"]}
    assert found["qos"]["in_force"][0]["factor"] == "0.82"
    assert (found["offers"][0]["name"], found["offers"][0]["days"]) == ("week", 7)
    assert "rtx4090" in run("price", "list").output


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("price", "set", "rtx4090", "much"), 1, "figures"),
        (("price", "set", "rtx4090", "1.0000001"), 1, "six decimals"),
        (("price", "set", "rtx4090", "-1"), 1, "below zero"),
        (("price", "set", "rtx4090", "1", "--starts", "2020-01-01"), 1, "now or later"),
        (("price", "set", "rtx4090", "1", "--starts", "soon"), 2, "no date"),
        (("price", "set", "a b", "1"), 1, "resource: "),
        (("price", "terms", "spot", "1", "--preempted", "half"), 2, "half"),
        (("price", "quote", "--gpu", "h200", "--gpus", "1", "--hours", "8"), 1, "no price"),
        (("price", "quote", "--gpu", "h200", "--gpus", "1", "--hours", "0"), 2, "more than 0"),
        (("grant", "add", "nlp", "0", "--reason", "trial"), 1, "more than zero"),
        (("grant", "add", "nlp", "1", "--reason", "trial", "--days", "0"), 2, "range"),
        (("ledger", "statement", "--group", "nlp", "--month", "2026-13"), 2, "no month"),
    ],
)
def test_what_cannot_be_is_said_in_words(begin, words, code, says):
    done = run(*words)
    assert done.exit_code == code
    assert says in done.output
    assert "Traceback" not in done.output


def test_a_quote_has_items_pots_and_the_other_list(begin):
    """The published example: 8 hours of one card at 1.2 are 9.6."""
    run("price", "set", "rtx4090", "1.2")
    run("price", "set", "rtx4090", "1.5", "--list", "elsewhere")
    run("grant", "add", "nlp", "4", "--reason", "trial", "--days", "30", "--force")
    run("grant", "top-up", "nlp", "10", "--force")
    ask = ("price", "quote", "--gpu", "rtx4090", "--gpus", "1", "--hours", "8")
    found = told(*ask, "--group", "nlp", "--list", "elsewhere")
    assert found["total"] == "9.60"
    assert [(one["resource"], one["amount"]) for one in found["items"]] == [("rtx4090", "9.60")]
    assert [(one["kind"], one["amount"]) for one in found["pots"]] == [
        ("grant", "4.00"),
        ("balance", "5.60"),
    ]
    assert (found["held"], found["after"], found["is_enough"]) == ("9.60", "4.40", True)
    assert found["elsewhere"]["total"] == "12.00"
    run("price", "terms", "spot", "0.82")
    spot = told(*ask, "--qos", "spot", "--list", "elsewhere", "--tasks", "2")
    assert (spot["total"], spot["elsewhere"]["total"]) == ("15.744", "24.00")
    assert "no price list" in run(*ask, "--list", "gone").output
    run("price", "set", "cpu", "0.1")
    with_cpus = told(*ask, "--cpus", "4", "--list", "elsewhere")
    assert (with_cpus["total"], with_cpus["elsewhere"]["total"]) == ("12.80", "12.00")
    assert "not enough" in run(*ask, "--group", "vision", "--force").output


def test_a_group_that_slurm_does_not_know_opens_no_account(begin):
    b.add_associations(begin)
    done = run("grant", "top-up", "npl", "5")
    assert done.exit_code == 1
    assert "'npl'. There are: nlp" in done.output
    assert told("ledger", "balance") == []
    assert run("grant", "top-up", "npl", "5", "--force").exit_code == 0
    assert [one["group"] for one in told("ledger", "balance")] == ["npl"]


def test_a_key_gives_a_grant_once(begin):
    ask = ("grant", "add", "nlp", "5", "--reason", "award", "--key", "2026", "--days", "9")
    assert told(*ask)["pot"] == told(*ask)["pot"]
    [pot] = told("grant", "list", "--group", "nlp")
    assert (pot["given"], pot["left_millionths"], pot["reason"]) == ("5.00", 5_000_000, "award")
    assert "award" in run("grant", "list").output


def test_a_statement_tells_each_line_and_adds_up(begin):
    priced()
    run("grant", "top-up", "nlp", "100")
    run("grant", "top-up", "nlp", "-20", "--note", "paid back")
    ran(begin, name="=HYPERLINK(1)")
    ran(begin, gpus=8, state="NODE_FAIL")
    words = ("ledger", "statement", "--group", "nlp", "--month", month())
    found = told(*words)
    assert (found["opening"], found["closing"]) == ("0.00", "78.00")
    kinds = [(one["kind"], one["amount"]) for one in found["entries"]]
    assert sorted(kinds) == [
        ("charge", "-2.00"),
        ("charge", "-8.00"),
        ("refund", "8.00"),
        ("top_up", "-20.00"),
        ("top_up", "100.00"),
    ]
    assert found["entries"][-1]["for"].endswith("node_fail, a100-1")
    assert found["members"][0]["spent"] == "2.00"
    table = run(*words).output
    assert "closing balance" in table
    rows = list(csv.DictReader(io.StringIO(run(*words, "--csv").output)))
    assert [row["balance"] for row in rows][-1] == "78.00"
    assert rows[2]["job_name"] == "'=HYPERLINK(1)"
    assert run(*words, "--csv", "--json").exit_code == 2


def test_a_balance_is_told_pot_by_pot(begin):
    priced()
    run("grant", "add", "nlp", "5", "--reason", "trial", "--days", "3", "--carry-over", "0.5")
    ran(begin, gpus=1)
    ran(begin, alloc_tres="gres/gpu=2", node_list="gone")
    found = told("ledger", "balance", "--group", "nlp")
    assert (found["available"], found["reviews"]) == ("4.00", 1)
    assert [(pot["kind"], pot["left"]) for pot in found["pots"]] == [
        ("grant", "4.00"),
        ("balance", "0.00"),
    ]
    assert "50 % carried over" in run("ledger", "balance", "--group", "nlp").output


def test_verify_says_what_does_not_hold_and_fails(begin):
    run("grant", "top-up", "nlp", "5")
    assert told("ledger", "verify")["holds"] is True
    from sqlalchemy import text

    with begin() as session:
        session.execute(text('update pot set "left" = 6'))
    done = run("ledger", "verify")
    assert done.exit_code == 1
    assert "pot 1: pot_is_not_its_entries" in done.output
