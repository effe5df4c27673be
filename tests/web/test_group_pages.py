"""A group's pages for each kind of person; what leaders do there, once and repeated."""

import csv
import io
import re
from datetime import datetime, timedelta

import pytest
from werkzeug.test import TestResponse

from gateway.services import credit, prices, settle
from gateway.store import credit as caps
from gateway.testing import builders as b
from gateway.testing import money
from gateway.web.money_forms import new_key
from tests.web.conftest import Browser, Site

MILLION = 1_000_000


@pytest.fixture(autouse=True)
def credit_and_people(site: Site) -> None:
    """nlp has 1,000, a package is sold, one run of two cards for an hour cost 2."""
    b.add_person(site.begin, "watcher", role="operator")
    for login in ("vision-lead", "lonely"):
        b.add_person(site.begin, login)
    b.add_associations(
        site.begin,
        b.association("nlp-1"),
        b.association("nlp-2"),
        b.association("nlp-lead", is_coordinator=True),
        b.association("vision-1", "vision"),
        b.association("vision-lead", "vision", is_coordinator=True),
    )
    money.one_credit_an_hour(site.begin)
    for group in ("nlp", "vision"):
        credit.top_up(group, 1000 * MILLION, begin=site.begin, now=_now(site), key=group)


def _now(site: Site) -> datetime:
    return site.broker.now


def _charged(site: Site, **values: object) -> int:
    end = _now(site)
    job = b.add_job(site.begin, user="nlp-1", state="COMPLETED", end_time=end, **values)
    start = end - timedelta(hours=1)
    b.add_run(site.begin, job, start_time=start, end_time=end, to_settle=True)
    settle.settle(begin=site.begin, now=end)
    return job


def _offer(site: Site, per_hour: str = "0.9") -> int:
    return prices.add_offer("weekly", "a100", per_hour, begin=site.begin, now=_now(site))


@pytest.mark.parametrize(
    ("login", "page", "manage"),
    [
        ("nlp-1", 200, 404),
        ("nlp-lead", 200, 200),
        ("vision-lead", 404, 404),
        ("boss", 200, 200),
        ("watcher", 200, 404),
        ("lonely", 404, 404),
    ],
)
def test_who_sees_and_who_steers(site: Site, login: str, page: int, manage: int) -> None:
    browser = site.signed_in(login)
    for part in ("", "/statement", "/statement.csv", "/statement/print", "/budgets"):
        assert browser.get(f"/group/nlp{part}").status_code == page, part
    for part in ("/manage", "/package"):
        assert browser.get(f"/group/nlp{part}").status_code == manage, part
    assert ("/group/nlp/manage" in browser.get("/group/nlp").text) is (manage == 200)
    assert browser.get("/group/no-such-group").status_code == 404


@pytest.mark.parametrize("login", ["nlp-1", "vision-lead", "watcher", "lonely"])
def test_nobody_else_acts(site: Site, login: str) -> None:
    browser = site.signed_in(login)
    for part in (
        "cap",
        "code",
        "lend",
        "loans/1",
        "rules",
        "package",
        "budgets",
        "budgets/1/line",
        "budgets/1/threshold",
        "budgets/1/approve",
    ):
        assert browser.post(f"/group/nlp/{part}", {}).status_code == 404, part
    assert money.balance(site.begin, "nlp") == 1000 * MILLION


def test_a_person_of_one_group_goes_straight_to_it(site: Site) -> None:
    assert site.signed_in("nlp-1").get("/group").location == "/group/nlp"
    assert "You are in no group yet" in site.signed_in("lonely").get("/group").text
    assert site.signed_in("boss").get("/group").location == "/admin/credit"


def test_the_page_says_what_is_left_and_what_it_went_on(site: Site) -> None:
    _charged(site)
    page = site.signed_in("nlp-1").get("/group/nlp").text
    assert "CN¥998.00" in page
    assert "Open: new jobs are accepted." in page
    assert re.search(r'<a class="clip" href="[^"]*user=nlp-1">nlp-1</a>', page)
    assert 'role="img"' in page
    assert "it lasts for more than three years" in page
    assert "An estimate" in page


def test_a_group_without_credit_says_how_it_begins(site: Site) -> None:
    page = site.signed_in("vision-lead").get("/group/vision").text
    assert "Nothing was spent in the last 14 days" in page
    assert "No job was charged" in page


def test_my_own_spend_stands_against_my_cap(site: Site) -> None:
    _charged(site)
    with site.begin() as session:
        caps.set_cap(session, "nlp", "nlp-1", 10 * MILLION)
    page = site.signed_in("nlp-1").get("/me/credit").text
    assert "CN¥2.00" in page
    assert "CN¥10.00" in page


def test_the_statement_as_csv_is_exact(site: Site) -> None:
    _charged(site, name="=HYPERLINK(1)")
    answer = site.signed_in("nlp-1").get("/group/nlp/statement.csv")
    assert answer.mimetype == "text/csv"
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert rows[0][:5] == ["id", "time_utc", "kind", "amount", "balance"]
    assert [row[2] for row in rows[1:]] == ["opening", "top_up", "charge", "closing"]
    assert [row[3] for row in rows[1:]] == ["", "1000.00", "-2.00", ""]
    assert [row[4] for row in rows[1:]] == ["0.00", "1000.00", "998.00", "998.00"]
    assert rows[3][7] == "'=HYPERLINK(1)"


def test_a_statement_of_one_kind_keeps_its_balances(site: Site) -> None:
    _charged(site)
    browser = site.signed_in("nlp-1")
    rows = browser.get("/group/nlp/statement.csv?kind=charge").text.splitlines()
    assert len(rows) == 2
    assert "-2.00,998.00" in rows[1]
    assert "No line of this kind" in browser.get("/group/nlp/statement?kind=refund").text
    assert browser.get("/group/nlp/statement?month=nonsense&kind=x&after=y").status_code == 200
    assert "Nothing happened" in browser.get("/group/nlp/statement?month=2001-02").text


def test_a_long_statement_has_pages(site: Site) -> None:
    for number in range(150):
        credit.top_up("nlp", MILLION, begin=site.begin, now=_now(site), key=f"n{number}")
    browser = site.signed_in("nlp-1")
    first = browser.get("/group/nlp/statement").text
    more = re.search(r'href="([^"]*after=[^"]*)"', first)
    assert more is not None
    second = browser.get(more[1].replace("&amp;", "&")).text
    sums = 2  # of each page
    assert first.count("Top-up<") + second.count("Top-up<") == 151 + sums
    assert "Balance so far" in second


def _press(browser: Browser, path: str, form: dict[str, str], *, times: int = 2) -> TestResponse:
    """Twice with the same form: a double click does it once."""
    for _ in range(times):
        answer = browser.post(path, form)
        assert answer.status_code == 303, answer.text
    return browser.get(answer.location)


def test_a_cap_is_set_and_taken_away(site: Site) -> None:
    lead = site.signed_in("nlp-lead")
    page = _press(lead, "/group/nlp/cap", {"cap_user": "nlp-1", "cap_amount": "12.5"})
    assert "CN¥12.50 a month" in page.text
    page = _press(lead, "/group/nlp/cap", {"cap_user": "nlp-1", "cap_amount": ""})
    assert "has no cap any more" in page.text


@pytest.mark.parametrize(
    ("part", "form", "told"),
    [
        ("cap", {"cap_user": "vision-1", "cap_amount": "1"}, "Nobody of this name"),
        ("cap", {"cap_user": "nlp-1", "cap_amount": "-1"}, "Type more than zero."),
        ("cap", {"cap_user": "nlp-1", "cap_amount": "twelve"}, "Type an amount in figures"),
        ("cap", {"cap_user": "nlp-1", "cap_amount": "0.0000001"}, "at most six decimals"),
        ("code", {"code": "NOTHING"}, "There is no such code"),
        ("lend", {"lend_to": "nlp", "lend_amount": "1"}, "Choose another group"),
        ("lend", {"lend_to": "nobodys", "lend_amount": "1"}, "no such group"),
        ("lend", {"lend_to": "vision", "lend_amount": "0"}, "Type more than zero."),
        ("lend", {"lend_to": "vision", "lend_amount": "1000.01"}, "CN¥1,000.00 is free"),
        (
            "lend",
            {"lend_to": "vision", "lend_amount": "1", "lend_due": "2001-01-01"},
            "day to come",
        ),
        ("rules", {"at_zero": "hold", "overdraft": "-1", "warning_minutes": "5"}, "more than zero"),
        ("rules", {"at_zero": "never", "overdraft": "1", "warning_minutes": "5"}, "Choose one"),
        ("rules", {"at_zero": "hold", "overdraft": "1", "warning_minutes": "99999"}, "10080"),
    ],
)
def test_what_cannot_be_is_told_with_what_was_typed(
    site: Site, part: str, form: dict[str, str], told: str
) -> None:
    answer = site.signed_in("nlp-lead").post(f"/group/nlp/{part}", form | {"key": "k"})
    assert answer.status_code == 422
    assert told in answer.text
    for name, typed in form.items():
        if name not in {"at_zero", "cap_user"}:
            assert f'value="{typed}"' in answer.text, name
    assert money.balance(site.begin, "nlp") == 1000 * MILLION


def test_a_package_shows_its_total_and_is_bought_once(site: Site) -> None:
    offer = _offer(site)
    lead = site.signed_in("nlp-lead")
    page = lead.get(f"/group/nlp/package?offer={offer}&card_hours=100")
    assert "Buy for CN¥90.00" in page.text
    assert money.balance(site.begin, "nlp") == 1000 * MILLION
    key = re.search(r'name="key" value="([^"]+)"', page.text)
    assert key is not None
    form = {"key": key[1], "offer": str(offer), "card_hours": "100"}
    page = _press(lead, "/group/nlp/package", form)
    assert "Bought: 100 card-hours" in page.text
    kinds = [kind for kind, _ in money.entries_of(site.begin, "nlp")]
    assert kinds == ["top_up", "package", "package"]
    assert "100.0 card-hours of a100 left" in page.text


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"offer": "99", "card_hours": "1"}, "not sold any more"),
        ({"offer": "1", "card_hours": "0"}, "Type more than zero."),
        ({"offer": "1", "card_hours": "1.5"}, "Type a whole number."),
        ({"offer": "1", "card_hours": "9999"}, "is free"),
    ],
)
def test_a_package_that_cannot_be_bought(site: Site, form: dict[str, str], told: str) -> None:
    _offer(site)
    answer = site.signed_in("nlp-lead").post("/group/nlp/package", form | {"key": new_key()})
    assert answer.status_code == 422
    assert told in answer.text


def test_a_code_gives_its_grant_once(site: Site) -> None:
    credit.add_campaign("SPRING", 50 * MILLION, days=30, stock=1, begin=site.begin, now=_now(site))
    lead = site.signed_in("nlp-lead")
    assert "is redeemed" in _press(lead, "/group/nlp/code", {"code": "SPRING"}, times=1).text
    again = lead.post("/group/nlp/code", {"code": "SPRING"})
    assert again.status_code == 422
    assert "has redeemed the code before" in again.text
    assert money.balance(site.begin, "nlp") == 1050 * MILLION


def test_a_loan_is_given_once_and_returned_once(site: Site) -> None:
    lead = site.signed_in("nlp-lead")
    form = {"key": new_key(), "lend_to": "vision", "lend_amount": "100", "lend_due": ""}
    assert "CN¥100.00 more now" in _press(lead, "/group/nlp/lend", form).text
    assert money.balance(site.begin, "vision") == 1100 * MILLION
    other = site.signed_in("vision-lead")
    back = {"key": new_key(), "return_amount": "40"}
    assert lead.post("/group/nlp/loans/1", back).status_code == 404, "the lender cannot take"
    assert "went back to nlp" in _press(other, "/group/vision/loans/1", back).text
    assert money.balance(site.begin, "vision") == 1060 * MILLION
    more = other.post("/group/vision/loans/1", {"key": new_key(), "return_amount": "61"})
    assert more.status_code == 422
    assert "Only CN¥60.00 is still owed" in more.text


def test_another_persons_key_does_nothing_for_me(site: Site) -> None:
    form = {"key": "same", "lend_to": "vision", "lend_amount": "10", "lend_due": ""}
    _press(site.signed_in("nlp-lead"), "/group/nlp/lend", form)
    form["lend_to"] = "nlp"
    _press(site.signed_in("vision-lead"), "/group/vision/lend", form)
    assert money.balance(site.begin, "nlp") == 1000 * MILLION


def test_the_rule_at_zero_is_kept(site: Site) -> None:
    lead = site.signed_in("nlp-lead")
    form = {"at_zero": "finish", "overdraft": "20", "warning_minutes": "45"}
    page = _press(lead, "/group/nlp/rules", form).text
    assert re.search(r'value="finish" checked', page)
    assert 'value="20.00"' in page
    assert 'value="45"' in page


def test_a_budget_is_planned_entered_and_approved(site: Site) -> None:
    _charged(site)
    lead = site.signed_in("nlp-lead")
    today = _now(site).date()
    form = {
        "name": "Year two",
        "amount": "100",
        "first": (today - timedelta(days=3)).isoformat(),
        "last": (today + timedelta(days=3)).isoformat(),
    }
    page = _press(lead, "/group/nlp/budgets", form, times=1).text
    assert "Year two" in page
    assert "2 % of CN¥100.00" in page
    line = {"category": "storage", "amount": "10", "note": "disks"}
    assert "12 % of" in _press(lead, "/group/nlp/budgets/1/line", line, times=1).text
    mark = {"percent": "70", "action": "stop"}
    assert "70 %" in _press(lead, "/group/nlp/budgets/1/threshold", mark).text
    assert "up to 120 %" in _press(lead, "/group/nlp/budgets/1/approve", {"until": "120"}).text
    bad = lead.post(
        "/group/nlp/budgets/1/line", {"category": "storage", "amount": "0", "note": "x"}
    )
    assert bad.status_code == 422
    assert "Type another amount than zero." in bad.text
    backwards = lead.post(
        "/group/nlp/budgets", form | {"last": form["first"], "first": form["last"]}
    )
    assert backwards.status_code == 422
    other = site.signed_in("vision-lead")
    assert other.post("/group/vision/budgets/1/approve", {"until": "1"}).status_code == 404
    assert "Add a budget" not in site.signed_in("nlp-1").get("/group/nlp/budgets").text
