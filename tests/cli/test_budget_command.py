from tests.cli.test_money_commands import begin, run, told

__all__ = ["begin"]
PLAN = (
    "budget",
    "add",
    "nlp",
    "spring",
    "100000",
    "--starts",
    "2026-01-01",
    "--ends",
    "2036-01-01",
)


def test_a_budget_is_planned_filled_and_shown(begin):
    """The published example, printed right: 93,300 spent and 6,700 left."""
    budget = str(told(*PLAN)["id"])
    for category, amount in (("card_hours", "85000"), ("data_work", "8000"), ("storage", "300")):
        told("budget", "line", budget, category, amount, "--note", "by invoice")
    found = told("budget", "show", budget)
    assert (found["spent"], found["left"], found["percent"]) == ("93300.00", "6700.00", 93)
    assert found["categories"]["card_hours"]["amount_millionths"] == 85_000_000_000
    assert [(t["percent"], t["action"]) for t in found["thresholds"]] == [
        (50, "notify"),
        (80, "notify"),
        (95, "approve"),
        (100, "stop"),
    ]
    shown = run("budget", "show", budget).output
    assert "93300.00" in shown
    assert "it runs dry about" in shown
    assert told("budget", "line", budget, "storage", "-300", "--note", "wrong")["left"] == "7000.00"
    assert told("budget", "approve", budget, "98")["approved_until"] == 98
    [listed] = told("budget", "show", "--group", "nlp")
    assert listed["name"] == "spring"
    assert "spring" in run("budget", "show").output


def test_a_budget_with_its_own_thresholds(begin):
    found = told(*PLAN, "--threshold", "90:stop", "--threshold", "70:notify")
    assert [(t["percent"], t["action"]) for t in found["thresholds"]] == [
        (70, "notify"),
        (90, "stop"),
    ]
    assert "Nothing was spent" in run("budget", "show", str(found["id"])).output


def test_thresholds_are_changed_and_taken_away(begin):
    budget = str(told(*PLAN)["id"])
    told("budget", "threshold", budget, "95:stop", "60:notify")
    found = told("budget", "threshold", budget, "50:notify", "--remove")
    assert [(t["percent"], t["action"]) for t in found["thresholds"]] == [
        (60, "notify"),
        (80, "notify"),
        (95, "stop"),
        (100, "stop"),
    ]


def test_what_is_wrong_is_said(begin):
    assert run(*PLAN, "--threshold", "many:stop").exit_code == 2
    done = run("budget", "show", "7")
    assert (done.exit_code, done.output) == (1, "Error: There is no budget 7.\n")
    done = run("budget", "add", "nlp", "x", "1", "--starts", "2026-01-02", "--ends", "2026-01-01")
    assert (done.exit_code, "after the start" in done.output) == (1, True)
