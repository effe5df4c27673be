"""`sluice spot` as somebody types it."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gateway.cli import main
from gateway.store.schema import upgrade
from gateway.store.uow import make_begin, make_engine
from gateway.testing.money import set_price, set_terms
from gateway.testing.spot_samples import fill_spot


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ("spot", *words))


def told(*words: str):
    done = run(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def filled(home: Path) -> None:
    """A bare $SLUICE_HOME: runs are known, Slurm was never asked."""
    home.mkdir()
    engine = make_engine(f"sqlite:///{home / 'sluice.db'}")
    upgrade(engine)
    begin = make_begin(engine)
    fill_spot(begin, now=datetime.now(UTC), cluster="c", runs=400)
    set_price(begin, "a100", "3.5")
    set_terms(begin, "spot", "0.82", "free")
    engine.dispose()


@pytest.mark.usefixtures("filled")
def test_the_record_without_slurm():
    found = told("record")
    assert [one["gpu_type"] for one in found["records"]] == [None, "a100", "rtx4090"]
    whole, a100, _ = found["records"]
    assert whole["runs"] == 400
    assert a100["people"] == 9
    assert len(a100["hours_of_day"]) == 24
    assert sum(one.get("preemptions", 0) for one in a100["hours_of_day"]) == a100["preemptions"]
    every = 1 / a100["per_hour"]["value"]
    assert 1 / a100["per_hour"]["high"] < every < 1 / a100["per_hour"]["low"]
    assert a100["hours_to_preemption"]["p25"] < a100["hours_to_preemption"]["p50"]
    assert [one["gpu_type"] for one in told("record", "--gpu", "a100")["records"]] == ["a100"]
    assert told("record", "--qos", "normal")["records"] == []


@pytest.mark.usefixtures("filled")
def test_the_record_as_a_table():
    done = run("record")
    assert done.exit_code == 0, done.output
    assert "a100" in done.stdout
    assert "Runs that began" in done.stdout


@pytest.mark.usefixtures("filled")
def test_advice_by_the_record_and_the_price_list():
    found = told("advise", "--hours", "12", "--gpu", "a100", "--cards", "8")
    assert found["between_preemptions"]["origin"] == "site"
    assert found["between_preemptions"]["runs"] == 200
    assert found["spot"]["finish_p50_hours"] < found["spot"]["finish_p90_hours"]
    assert found["cost"]["gives_preempted_runs_back"] is True
    assert found["cost"]["spot_by_rule_millionths"] == found["cost"]["spot_given_back_millionths"]
    assert isinstance(found["cost"]["normal_millionths"], int)
    lines = run("advise", "--hours", "12", "--gpu", "a100").stdout
    assert "preempted runs are given back" in lines


@pytest.mark.usefixtures("home")
def test_advice_without_any_portal():
    found = told("advise", "--hours", "12", "--price", "3.5", "--spot-off", "18", "--cards", "8")
    assert found["between_preemptions"]["origin"] == "assumed"
    assert found["cost"]["normal"] > found["cost"]["spot"]
    assert "an assumption" in run("advise", "--hours", "12").stdout
    assert "No price" in run("advise", "--hours", "12").stdout
    assert "as you said" in run("advise", "--hours", "12", "--between", "3").stdout
    never = run("advise", "--hours", "50", "--between", "0.1", "--interval", "3000").stdout
    assert "practically never done" in never


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("--hours", "0"), "--hours"),
        (("--hours", "12", "--interval", "0"), "--interval"),
        (("--hours", "12", "--cards", "1.5"), "--cards"),
        (("--hours", "12", "--between", "-1"), "--between"),
        (("--hours", "12", "--price", "1", "--spot-off", "100"), "--spot-off"),
    ],
)
def test_what_cannot_be_is_refused_with_its_option(words: tuple[str, ...], option: str):
    done = run("advise", *words)
    assert done.exit_code == 1
    assert f"Error: {option}: " in done.output


@pytest.mark.usefixtures("home")
def test_without_a_database_there_is_no_record():
    done = run("record")
    assert done.exit_code == 1
    assert "sluice db upgrade" in done.output


@pytest.mark.usefixtures("home")
def test_a_discount_is_of_a_price():
    assert run("advise", "--hours", "1", "--spot-off", "18").exit_code == 2
