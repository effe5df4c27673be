"""The administrators' pages of money: who may, each act once and repeated, and the review."""

import csv
import io
import re
from datetime import datetime, timedelta

import pytest

from gateway.services import credit, prices, review, settle
from gateway.store import charges, notices
from gateway.store import models as t
from gateway.testing import builders as b
from gateway.testing import money
from gateway.web.money_forms import new_key
from tests.web.conftest import Browser, Site

MILLION = 1_000_000
PAGES = (
    "/admin/credit",
    "/admin/prices",
    "/admin/prices/elsewhere",
    "/admin/packages",
    "/admin/campaigns",
    "/admin/review",
    "/admin/months",
)
ACTS = (
    "/admin/credit",
    "/admin/prices",
    "/admin/prices/terms",
    "/admin/packages",
    "/admin/packages/1/end",
    "/admin/campaigns",
    "/admin/review/1",
    "/admin/review/rows/1",
    "/admin/charges/1/refund",
    "/admin/charges/1/undo",
    "/admin/months",
)
GIVE = {"to": "nlp", "amount": "10", "reason": "top_up", "note": "invoice 7"}


@pytest.fixture(autouse=True)
def priced(site: Site) -> None:
    b.add_person(site.begin, "watcher", role="operator")
    money.one_credit_an_hour(site.begin)
    credit.top_up("nlp", 1000 * MILLION, begin=site.begin, now=_now(site), key="start")


def _now(site: Site) -> datetime:
    return site.broker.now


def _run(site: Site, **values: object) -> int:
    """Settled: two cards for an hour unless told otherwise. The run's id."""
    end = _now(site)
    job = b.add_job(site.begin, user="nlp-1", state="COMPLETED", end_time=end, name="a-run")
    facts = {"start_time": end - timedelta(hours=1), "end_time": end, "to_settle": True}
    run = b.add_run(site.begin, job, **(facts | values))
    settle.settle(begin=site.begin, now=end)
    return run


def _runaway(site: Site) -> int:
    """Eight cards, a limit of 24 hours, no end; last seen two minutes before 27 hours."""
    start = _now(site) - timedelta(days=5)
    seen = start + timedelta(hours=26, minutes=58)
    job = b.add_job(
        site.begin,
        user="nlp-1",
        state="RUNNING",
        active=False,
        gpus=8,
        time_limit_minutes=24 * 60,
        start_time=start,
        seen_at=seen,
        left_queue_at=seen,
    )
    run = b.add_run(
        site.begin,
        job,
        state="RUNNING",
        start_time=start,
        end_time=None,
        elapsed_seconds=5 * 86400,
        seen_until=seen,
        alloc_tres="cpu=64,gres/gpu:a100=8,gres/gpu=8",
    )
    review.find_lost(begin=site.begin, now=_now(site))
    return money.charge_of(site.begin, run).id


def _press(browser: Browser, path: str, form: dict[str, str], *, times: int = 2) -> str:
    for _ in range(times):
        answer = browser.post(path, form)
        assert answer.status_code == 303, answer.text
    return browser.get(answer.location).text


@pytest.mark.parametrize(("login", "status"), [("nlp-lead", 404), ("watcher", 200), ("boss", 200)])
def test_who_sees_the_pages(site: Site, login: str, status: int) -> None:
    run = _run(site)
    browser = site.signed_in(login)
    for path in (*PAGES, f"/admin/charges/{money.charge_of(site.begin, run).id}"):
        assert browser.get(path).status_code == status, path


@pytest.mark.parametrize("login", ["nlp-1", "nlp-lead", "watcher"])
def test_only_an_administrator_acts(site: Site, login: str) -> None:
    browser = site.signed_in(login)
    for path in ACTS:
        assert browser.post(path, {}).status_code == 404, path
    for path in PAGES if login == "watcher" else ():
        assert '<form method="post" action="/admin' not in browser.get(path).text, path


def test_credit_is_given_once_however_often_it_is_pressed(site: Site) -> None:
    boss = site.signed_in("boss")
    assert "moved by CN¥10.00" in _press(boss, "/admin/credit", GIVE | {"key": new_key()})
    back = GIVE | {"key": new_key(), "amount": "-4.5"}
    assert "moved by -CN¥4.50" in _press(boss, "/admin/credit", back)
    until = (_now(site) + timedelta(days=9)).date().isoformat()
    grant = GIVE | {"key": new_key(), "reason": "project", "expires": until, "carry_over": "50"}
    assert "has a grant of CN¥10.00" in _press(boss, "/admin/credit", grant)
    assert money.balance(site.begin, "nlp") == 1015_500_000
    assert "invoice 7" in boss.get("/group/nlp/statement").text
    assert "Grant: Project" in boss.get("/group/nlp").text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"to": "nobodys"}, "Slurm knows no such group."),
        ({"amount": "ten"}, "Type an amount in figures"),
        ({"amount": "9" * 99}, "At most"),
        ({"amount": "0", "reason": "trial"}, "Type more than zero."),
        ({"amount": "-1", "reason": "trial"}, "Type more than zero."),
        ({"reason": "bribe"}, "Choose one of the list."),
        ({"reason": "trial", "expires": "2001-01-01"}, "Choose a day to come."),
        ({"reason": "trial", "expires": "soon"}, "Choose a day."),
        ({"reason": "trial", "carry_over": "101"}, "From 0 to 100 percent."),
        ({"expires": "2999-01-01"}, "A top-up never lapses"),
        ({"key": ""}, "Fill this in."),
    ],
)
def test_credit_that_cannot_be_given(site: Site, change: dict[str, str], told: str) -> None:
    answer = site.signed_in("boss").post("/admin/credit", GIVE | {"key": "k"} | change)
    assert answer.status_code == 422
    if "key" not in change:
        assert told in answer.text
        assert 'value="invoice 7"' in answer.text
    assert money.balance(site.begin, "nlp") == 1000 * MILLION


def test_the_list_is_searched_and_sorted(site: Site) -> None:
    boss = site.signed_in("boss")
    found = boss.get("/admin/credit?q=NL").text
    assert ">nlp<" in found
    assert ">vision<" not in found
    first = boss.get("/admin/credit?sort=available&dir=turned").text
    assert first.index(">nlp<") < first.index(">vision<")
    assert 'aria-sort="descending"' in first
    assert "No group fits" in boss.get("/admin/credit?q=zzz").text
    assert boss.get("/admin/credit?sort=nonsense&from=-1").status_code == 200


def test_a_price_begins_and_the_old_one_stays(site: Site) -> None:
    boss = site.signed_in("boss")
    later = (_now(site) + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M")
    form = {"resource": "a100", "price": "3.3", "list_name": "site", "starts": later}
    page = _press(boss, "/admin/prices", form, times=1)
    assert "to come" in page
    assert "CN¥3.30" in page
    again = boss.post("/admin/prices", form)
    assert again.status_code == 422
    assert "There is a row for a100 from that moment already." in again.text
    assert 'value="3.3"' in again.text


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"resource": "a 100"}, "Letters, digits"),
        ({"price": "-1"}, "cannot be below zero"),
        ({"price": "x"}, "Type an amount in figures"),
        ({"starts": "2001-01-01T00:00"}, "what was charged by then stays as it is"),
        ({"starts": "noon"}, "Type a date and a time."),
    ],
)
def test_a_price_that_cannot_be(site: Site, change: dict[str, str], told: str) -> None:
    form = {"resource": "h100", "price": "9", "list_name": "site", "starts": ""} | change
    answer = site.signed_in("boss").post("/admin/prices", form)
    assert answer.status_code == 422
    assert told in answer.text


def test_terms_of_a_qos(site: Site) -> None:
    boss = site.signed_in("boss")
    form = {"qos": "spot", "factor": "0.82", "preempted": "free", "terms_starts": ""}
    page = _press(boss, "/admin/prices/terms", form, times=1)
    assert "0.82" in page
    assert "are free" in page
    bad = boss.post("/admin/prices/terms", form | {"factor": "101"})
    assert bad.status_code == 422
    assert "From 0 to 100." in bad.text


def test_what_it_would_have_cost_at_another_list(site: Site) -> None:
    _run(site)
    boss = site.signed_in("boss")
    assert "No second list yet" in boss.get("/admin/prices/elsewhere").text
    prices.set_price(
        "a100", "8.4", list_name="cloud", starts=money.LONG_AGO, begin=site.begin, now=_now(site)
    )
    page = boss.get("/admin/prices/elsewhere").text
    assert "CN¥2.00" in page
    assert "CN¥16.80" in page
    assert boss.get("/admin/prices/elsewhere?month=never").status_code == 200
    assert boss.get("/admin/prices/elsewhere?list=gone").status_code == 200


def test_a_package_is_offered_and_ended(site: Site) -> None:
    boss = site.signed_in("boss")
    form = {"name": "weekly", "resource": "rtx4090", "price": "0.9", "days": "7"}
    assert "weekly is sold from now on" in _press(boss, "/admin/packages", form, times=1)
    taken = boss.post("/admin/packages", form)
    assert taken.status_code == 422
    assert "This name is taken." in taken.text
    assert "Sold no more" in _press(boss, "/admin/packages/1/end", {})


def test_a_campaign(site: Site) -> None:
    boss = site.signed_in("boss")
    form = {"code": "SPRING", "amount": "50", "days": "30", "stock": "2", "ends": ""}
    assert "Groups can redeem SPRING now" in _press(boss, "/admin/campaigns", form, times=1)
    credit.redeem("nlp", "SPRING", begin=site.begin, now=_now(site))
    assert "1 of 2" in boss.get("/admin/campaigns").text
    assert boss.post("/admin/campaigns", form).status_code == 422


def test_a_runaway_is_shown_by_the_clock_and_by_its_limit(site: Site) -> None:
    charge_id = _runaway(site)
    boss = site.signed_in("boss")
    assert "1 run waits for your decision." in boss.get("/admin").text
    page = boss.get("/admin/review").text
    for words in ("27.0 h", "24.0 h", "CN¥192.00", "no end", "gres/gpu:a100=8", "runawayjobs"):
        assert words in page, words
    case = boss.get(f"/admin/review/{charge_id}").text
    assert re.search(r'name="span"[^>]*value="24"', case)
    assert re.search(r'name="cards-a100"[^>]*value="8"', case)


def test_a_decision_is_charged_once(site: Site) -> None:
    charge_id = _runaway(site)
    boss = site.signed_in("boss")
    form = {"span": "24:00:00", "cards-a100": "8", "note": "its node was rebooted"}
    page = _press(boss, f"/admin/review/{charge_id}", form)
    assert "decided, charged in a few seconds" in page
    settle.settle(begin=site.begin, now=_now(site))
    settle.settle(begin=site.begin, now=_now(site))
    assert money.balance(site.begin, "nlp") == (1000 - 192) * MILLION
    assert "Nothing waits for a decision" in boss.get("/admin/review").text
    assert "its node was rebooted" in boss.get(f"/admin/charges/{charge_id}").text
    assert boss.get(f"/admin/review/{charge_id}").status_code == 404


def test_a_run_is_waived(site: Site) -> None:
    charge_id = _runaway(site)
    boss = site.signed_in("boss")
    _press(boss, f"/admin/review/{charge_id}", {"waive": "true", "note": "our own fault"})
    settle.settle(begin=site.begin, now=_now(site))
    assert money.balance(site.begin, "nlp") == 1000 * MILLION
    with site.begin() as session:
        found = charges.get(session, charge_id)
    assert found is not None
    assert found.state == "waived"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"note": " "}, "Say why in a few words"),
        ({"span": "a day"}, "Type the time as hours"),
        ({"span": ""}, "Type the time as hours"),
        ({"cards-a100": "0"}, "how many cards"),
        ({"cards-a100": "-8"}, "Type a whole number."),
        ({"cards-a100": "9999999"}, "Type a whole number."),
    ],
)
def test_a_decision_that_cannot_be(site: Site, change: dict[str, str], told: str) -> None:
    charge_id = _runaway(site)
    form = {"span": "24", "cards-a100": "8", "note": "reboot"} | change
    answer = site.signed_in("boss").post(f"/admin/review/{charge_id}", form)
    assert answer.status_code == 422
    assert told in answer.text
    assert f'value="{form["cards-a100"]}"' in answer.text


def test_a_row_that_was_dealt_with_leaves_the_list(site: Site) -> None:
    row = t.HeldRow(
        cluster="dev", fingerprint="f", raw='{"x": 1}', reason="odd", first_seen_at=_now(site)
    )
    with site.begin() as session:
        session.add(row)
    boss = site.signed_in("boss")
    assert "1 row is held." in boss.get("/admin").text
    assert "Dealt with" in boss.get("/admin/review").text
    assert "No row is held." in _press(boss, "/admin/review/rows/1", {}, times=1)
    assert boss.post("/admin/review/rows/1").status_code == 404


def test_a_refund_is_given_once_and_undone_once(site: Site) -> None:
    charge = money.charge_of(site.begin, _run(site)).id
    boss = site.signed_in("boss")
    path = f"/admin/charges/{charge}"
    assert "Give back CN¥2.00" in boss.get(path).text
    bare = boss.post(f"{path}/refund", {"note": ""})
    assert bare.status_code == 422
    assert "Say why in a few words" in bare.text
    _press(boss, f"{path}/refund", {"note": "bad node"}, times=1)
    assert money.balance(site.begin, "nlp") == 1000 * MILLION
    again = boss.post(f"{path}/refund", {"note": "bad node"})
    assert again.status_code == 422
    assert "has been refunded before" in again.text
    _press(boss, f"{path}/undo", {}, times=1)
    assert money.balance(site.begin, "nlp") == 998 * MILLION
    assert "has been undone before" in boss.post(f"{path}/undo").text
    assert boss.get("/admin/charges/999").status_code == 404


def test_a_month_is_closed_and_its_differences_are_csv(site: Site) -> None:
    run = _run(site)
    boss = site.signed_in("boss")
    month = _now(site).strftime("%Y-%m")
    early = boss.post("/admin/months", {"month": month})
    assert early.status_code == 422
    money.change_run(site.begin, run, elapsed_seconds=1800, gpus=2)
    site.broker.now += timedelta(days=40)
    boss = site.signed_in("boss")  # the session has ended meanwhile
    assert "not closed" in boss.get("/admin").text
    page = _press(boss, "/admin/months", {"month": month}, times=1)
    assert "1 difference" in page
    assert boss.post("/admin/months", {"month": month}).status_code == 422
    rows = list(csv.reader(io.StringIO(boss.get(f"/admin/months/{month}.csv").text)))
    assert len(rows) == 2
    assert rows[1][4:6] == ["nlp", "nlp-1"]
    _press(boss, "/admin/months", {"month": month, "again": "true"}, times=1)
    assert boss.get("/admin/months/1999-01").status_code == 404


def test_what_slurm_does_not_do_is_on_the_work_list(site: Site) -> None:
    with site.begin() as session:
        facts = {"code": "slurm_unreachable"}
        notices.tell(session, "gate_unread", kind="gate_unread", facts=facts, now=_now(site))
    assert "Nobody knows which limits Slurm enforces" in site.signed_in("boss").get("/admin").text
