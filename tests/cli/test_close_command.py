"""`sluice ledger close` and `elsewhere`, as somebody types them."""

from datetime import UTC, datetime, timedelta

from gateway.testing.money import change_run, one_credit_an_hour
from tests.cli.test_money_commands import begin, ran, run, told

__all__ = ["begin"]
NOW = datetime.now(UTC)
LAST_MONTH = NOW.replace(day=1) - timedelta(days=3)
MONTH = LAST_MONTH.strftime("%Y-%m")


def ended(begin, **values):
    end = LAST_MONTH
    ran(begin, start_time=end - timedelta(hours=1), end_time=end, **values)


def test_a_month_is_closed_once_and_then_shown(begin):
    one_credit_an_hour(begin, "a100")
    ended(begin)
    found = told("ledger", "close", MONTH)
    assert (found["total"]["charged"], found["differences"]) == ("2.00", [])
    assert found["groups"][0]["group"] == "nlp"
    assert told("ledger", "close", MONTH)["closed_at"] == found["closed_at"]
    assert "agree on every run" in run("ledger", "close", MONTH, "--again").output


def test_differences_are_listed_and_fail(begin):
    one_credit_an_hour(begin, "a100")
    ended(begin)
    change_run(begin, 1, elapsed_seconds=60)
    done = run("ledger", "close", MONTH)
    assert done.exit_code == 1
    assert "not_settled" in done.output


def test_this_month_is_not_over(begin):
    tomorrow = datetime.now(UTC) + timedelta(days=1)  # never over, were it midnight meanwhile
    done = run("ledger", "close", tomorrow.strftime("%Y-%m"))
    assert (done.exit_code, "not over yet" in done.output) == (1, True)


def test_elsewhere_names_what_the_other_list_lacks(begin):
    one_credit_an_hour(begin, "a100")
    ended(begin)
    run("price", "set", "rtx4090", "1", "--list", "other")
    words = ("ledger", "elsewhere", "--list", "other", "--month", MONTH, "--group", "nlp")
    found = told(*words)
    assert (found["lacking"], found["here"], found["elsewhere"]) == (["a100"], "0.00", "0.00")
    assert "no price: a100" in run(*words).output
    run("price", "set", "a100", "3", "--list", "other")
    assert told(*words)["elsewhere"] == "6.00"
    assert "There are: other" in run(*words[:3], "gone", *words[4:]).output
