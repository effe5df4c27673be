"""The spot page: the record, the adviser, CSV; and what a job's page says that spot saved."""

import csv
import html
import io
import re
from datetime import UTC, timedelta

import pytest

from gateway.core.credits import MILLION
from gateway.services import credit, prices, settle, spot
from gateway.testing import builders as b
from gateway.testing.money import LONG_AGO, set_price
from gateway.testing.spot_samples import fill_spot
from tests.web.conftest import Browser, Site

HOUR = timedelta(hours=1)


@pytest.fixture
def recorded(site: Site) -> Site:
    fill(site)
    return site


def fill(site: Site, **values: object) -> None:
    now = site.broker.now
    fill_spot(site.begin, now=now, cluster="old", **({"runs": 600} | values))
    spot.refresh(begin=site.begin, read=site.begin, now=now, zone=UTC)


def priced(site: Site, rule: str = "pay") -> None:
    now = site.broker.now
    set_price(site.begin, "a100", "3.5")
    prices.set_terms(
        "spot", "0.82", preempted=rule, starts=LONG_AGO, begin=site.begin, now=now, backdated=True
    )


def page(browser: Browser, query: str = "") -> str:
    answer = browser.get(f"/spot{query}")
    assert answer.status_code == 200
    return words(answer.text)


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def test_everybody_sees_the_record(recorded: Site) -> None:
    for login in ("nlp-1", "vision-1"):
        text = recorded.signed_in(login).get("/spot").text
        said = words(text)
        assert re.search(r"a100 300 9 [\d,]+ \d+ about every [\d.]+ h [\d.]+ to [\d.]+ h", said)
        assert text.count('<td class="heat-') == 2 * 24
        assert "half within" in said
        assert text.count("<polyline") == 2
        assert "spot-1" not in said  # nobody's name


def test_strangers_see_nothing(recorded: Site) -> None:
    for path in ("/spot", "/spot/hours.csv", "/spot/survival.csv"):
        assert recorded.browser().get(path).status_code in {302, 303, 401}


def test_few_people_are_hidden(site: Site) -> None:
    fill(site, people=("one", "two", "three", "four"))
    browser = site.signed_in()
    assert "of fewer than 5 people on each type of GPU" in page(browser)
    assert "about every" not in page(browser)
    assert len(browser.get("/spot/hours.csv").text.splitlines()) == 1


def test_an_empty_site_says_what_will_be_there(site: Site) -> None:
    assert "Nothing is summed up yet" in page(site.signed_in())
    spot.refresh(begin=site.begin, read=site.begin, now=site.broker.now, zone=UTC)
    assert "No run of a QoS that others may preempt is known" in page(site.signed_in())


def test_the_csv_has_the_whole_of_it(recorded: Site) -> None:
    browser = recorded.signed_in()
    hours = list(csv.DictReader(io.StringIO(browser.get("/spot/hours.csv").text)))
    assert len(hours) == 3 * 24
    of_type = [row for row in hours if row["gpu_type"] == "a100"]
    assert sum(float(row["job_hours"]) for row in of_type) > 100
    curve = list(csv.DictReader(io.StringIO(browser.get("/spot/survival.csv").text)))
    shares = [float(row["share_not_preempted"]) for row in curve if row["gpu_type"] == "a100"]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1


def test_the_adviser_says_what_is_behind_it(recorded: Site) -> None:
    priced(recorded)
    said = page(recorded.signed_in(), "?hours=12&cards=8&gpu_type=a100")
    assert re.search(r"Spot saves about CN¥[\d.]+ and is done about \d+ min later", said)
    assert re.search(r"by this site's record of \d+ preemptions in 300 runs on a100", said)
    assert re.search(r"the mean of \d+ requeues here", said)
    assert "were they given back, spot would cost about" in said


def test_the_rule_of_the_site_decides_the_cost(recorded: Site) -> None:
    priced(recorded, "free")
    said = page(recorded.signed_in(), "?hours=12&cards=8&gpu_type=a100")
    assert "without that rule spot would cost about" in said


def test_it_says_when_spot_costs_more(recorded: Site) -> None:
    priced(recorded)
    query = "?hours=12&cards=8&gpu_type=a100&between_hours=1&interval_minutes=120"
    said = page(recorded.signed_in(), query)
    assert "Spot costs about" in said
    assert "as you said" in said
    assert "is far from the best interval" in said


def test_it_says_when_it_would_never_end(site: Site) -> None:
    said = page(site.signed_in(), "?hours=50&between_hours=0.1&interval_minutes=3000")
    assert "With this interval it would practically never be done in spot." in said


def test_without_history_the_assumption_is_said(site: Site) -> None:
    said = page(site.signed_in(), "?hours=12")
    assert "Preempted every 6 h on nodes: an assumption." in said
    assert "15 min, an assumption" in said


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("hours=", "hours"),
        ("hours=soon", "hours"),
        ("hours=-3", "hours"),
        ("cards=1.5", "cards"),
        ("interval_minutes=0", "interval_minutes"),
        ("save_minutes=0", "save_minutes"),
        ("wait_minutes=1e99", "wait_minutes"),
        ("between_hours=<b>", "between_hours"),
    ],
)
def test_a_field_that_cannot_be_says_so(site: Site, query: str, field: str) -> None:
    text = site.signed_in().get(f"/spot?{query}").text
    note = re.search(rf'id="note-{field}"><span class="problem"', text)
    assert note is not None
    assert "The answer stands here as soon as every field can be read." in words(text)
    assert "<b>" not in text.partition('id="f-between_hours"')[2].partition(">")[0]


def test_while_somebody_types_only_the_answer_is_sent(recorded: Site) -> None:
    answer = recorded.signed_in().get("/spot?hours=9", headers={"HX-Request": "true"})
    assert "<html" not in answer.text
    assert "What it comes to" in answer.text
    assert "hx-swap-oob" in answer.text


def preempted_job(site: Site) -> int:
    now, cards = site.broker.now, "cpu=4,gres/gpu=2,gres/gpu:a100=2"
    job = b.add_job(site.begin, state="COMPLETED", qos="spot", user="nlp-1", restarts=1)
    start = now - 8 * HOUR
    b.add_run(
        site.begin, job, state="PREEMPTED", submit_time=start, start_time=start,
        end_time=start + 2 * HOUR, elapsed_seconds=7200, to_settle=True, alloc_tres=cards,
    )  # fmt: skip
    b.add_run(
        site.begin, job, submit_time=start + 2 * HOUR, start_time=start + 3 * HOUR,
        end_time=start + 6 * HOUR, elapsed_seconds=10_800, restarts=1, to_settle=True,
        alloc_tres=cards,
    )  # fmt: skip
    return job


def test_a_jobs_page_says_what_spot_saved(site: Site) -> None:
    priced(site, "free")
    credit.top_up("nlp", 100 * MILLION, begin=site.begin, now=site.broker.now)
    job = preempted_job(site)
    assert "What spot really saved" not in site.signed_in().get(f"/jobs/{job}").text
    settle.settle(begin=site.begin, now=site.broker.now)
    said = words(site.signed_in().get(f"/jobs/{job}").text)
    assert "Spot saved at most CN¥17.78 against normal, and was done at least 1 h later." in said
    assert "Charged in spot CN¥17.22" in said
    assert "Preempted 1 time in 2 runs; it waited 1 h to run again." in said
    assert "nobody measured" in said
    assert "PREEMPTED" in said
    live = site.signed_in().get(f"/jobs/{job}/state").text
    assert "What spot really saved" in live
