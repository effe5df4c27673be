"""The quote beside the form: exact amounts, who pays, what is likely, what would cost less."""

import html
import re
from collections.abc import Callable
from datetime import timedelta

import pytest

from gateway.core.credits import MILLION
from gateway.core.quoting import Shape
from gateway.services import account, budgets, credit, prices
from gateway.services import quote as quoting
from gateway.store import prices as rows
from gateway.testing import builders as b
from gateway.testing.money import set_price, set_terms
from gateway.web.views import quotebox
from tests.web.conftest import Browser, Site

Fill = Callable[..., dict[str, str]]


@pytest.fixture
def priced(site: Site) -> Site:
    """The prices and the balance that the golden amounts are made of."""
    set_price(site.begin, "rtx4090", "1.2")
    set_price(site.begin, "a100", "3.5")
    set_terms(site.begin, "spot", "0.82")
    credit.top_up("nlp", 1000 * MILLION, begin=site.begin, now=b.NOW)
    return site


def quote(browser: Browser, form: dict[str, str]) -> str:
    """The box's words, without its marks."""
    answer = browser.post("/submit/preview", form)
    assert answer.status_code == 200
    return words(answer.text)


def words(page: str) -> str:
    found = re.search(r'<section class="box quote".*?</section>', page, re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found[0])).split()) if found else ""


def package(site: Site, card_hours: int = 24) -> None:
    offer = prices.add_offer("week", "a100", "0.9", begin=site.begin, now=site.broker.now)
    credit.buy_package("nlp", offer, card_hours, key="p", begin=site.begin, now=site.broker.now)


def test_without_prices_there_is_no_box(site: Site, filled: Fill) -> None:
    page = site.signed_in().get("/submit").text
    assert words(page) == ""
    assert " left</option>" not in page
    assert quote(site.signed_in(), filled()) == ""


@pytest.mark.parametrize(
    ("changes", "line", "held"),
    [
        ({}, "8 × a100 × 12 h × CN¥3.50 an hour CN¥336.00", "CN¥336.00"),
        ({"qos": "spot"}, "× 0.82 in QoS spot CN¥275.52", "CN¥275.52"),
        (
            {"partition": "rtx4090", "nodes": "1", "nproc_per_node": "1", "time_limit": "1:00:00"},
            "1 × rtx4090 × 1 h × CN¥1.20 an hour CN¥1.20",
            "CN¥1.20",
        ),
    ],
)
def test_the_golden_amounts(
    priced: Site, filled: Fill, changes: dict[str, str], line: str, held: str
) -> None:
    said = quote(priced.signed_in(), filled(**changes))
    assert line in said
    assert f"comes back at the end {held}" in said


def test_a_package_pays_first_at_its_own_price(priced: Site, filled: Fill) -> None:
    """24 of the 96 card-hours at 0.9, 72 at 3.5: 21.60 and 252."""
    package(priced)
    said = quote(priced.signed_in(), filled())
    assert "Package a100 24.0 card-hours at CN¥0.90, until 2026-03-09 CN¥21.60" in said
    assert "Balance CN¥252.00" in said
    assert "comes back at the end CN¥273.60" in said
    assert said.index("Package a100") < said.index("Balance")
    assert "Left now CN¥1,000.00 Left with this job held CN¥726.40" in said


def test_the_quote_is_what_is_held(priced: Site, filled: Fill) -> None:
    package(priced)
    browser = priced.signed_in()
    browser.post("/submit", filled())
    assert "Left now CN¥726.40" in quote(browser, filled())


def test_the_likely_cost_tells_whose_history_it_is(priced: Site, filled: Fill) -> None:
    browser = priced.signed_in()
    assert "too few jobs of ddp have ended" in quote(browser, filled())
    start = b.NOW - timedelta(days=1)
    for minutes in (100, 110, 120, 130, 140, 150, 160):
        b.add_job(
            priced.begin,
            user="nlp-1",
            state="COMPLETED",
            start_time=start,
            end_time=start + timedelta(minutes=minutes),
        )
    said = quote(browser, filled())
    assert "An estimate: the median of your last 7 runs of ddp is 2 h 10 min" in said
    assert "≈ CN¥60.67" in said  # 8 cards x 7800 s x 3.5 / 3600
    assert "at most 6 hours" in said
    assert "median of your group's last 7 runs" in quote(priced.signed_in("nlp-2"), filled())


def test_what_is_missing_is_said_with_what_would_help(priced: Site, filled: Fill) -> None:
    credit.top_up("nlp", -676 * MILLION, begin=priced.begin, now=b.NOW)
    browser = priced.signed_in()
    said = quote(browser, filled())
    assert "Not enough: CN¥12.00 missing. A shorter time limit" in said
    answer = browser.post("/submit", filled())
    assert answer.status_code == 422
    assert "could cost up to CN¥336.00, the group has CN¥324.00, so CN¥12.00 is missing" in (
        answer.text
    )
    assert priced.broker.jobs == {}


def test_a_members_cap_is_said_before_and_after(priced: Site, filled: Fill) -> None:
    account.set_cap("nlp", "nlp-1", 300 * MILLION, begin=priced.begin)
    browser = priced.signed_in()
    assert "Above your own limit of this month by CN¥36.00" in quote(browser, filled())
    answer = browser.post("/submit", filled())
    assert "your own limit of this month has CN¥300.00 left" in answer.text
    assert "Above your own" not in quote(priced.signed_in("nlp-2"), filled())


def test_a_budget_that_would_stop_the_job_says_so_before(priced: Site, filled: Fill) -> None:
    day = timedelta(days=1)
    budgets.add(
        "nlp",
        "spring",
        300 * MILLION,
        starts=b.NOW - day,
        ends=b.NOW + day,
        begin=priced.begin,
        now=b.NOW,
    )
    browser = priced.signed_in()
    said = quote(browser, filled())
    answer = browser.post("/submit", filled())
    assert answer.status_code == 422
    told = "The budget “spring” takes no new jobs at 100 percent. This job may cost CN¥336.00"
    assert told in said
    assert told in answer.text


def test_cards_without_a_price_are_said_with_whom_to_ask(site: Site, filled: Fill) -> None:
    set_price(site.begin, "rtx4090", "1.2")
    browser = site.signed_in()
    said = quote(browser, filled())
    assert "Nobody has set a price for a100 yet" in said
    assert "Ask an administrator" in said
    answer = browser.post("/submit", filled())
    assert answer.status_code == 422
    assert "a100 has no price yet" in answer.text


def test_a_form_that_cannot_be_read_yet_says_so(priced: Site, filled: Fill) -> None:
    said = quote(priced.signed_in(), filled(time_limit="soon"))
    assert said == "Quote The price stands here as soon as cards and time limit can be read."


def test_a_cheaper_shape_is_one_press(priced: Site, filled: Fill) -> None:
    browser = priced.signed_in()
    said = quote(browser, filled())
    assert "spot" not in said  # it has a box of its own
    assert "rtx4090 cards CN¥115.20 saves CN¥220.80" in said
    answer = browser.post("/submit", filled() | {"set": "partition=rtx4090&gpu_type=rtx4090"})
    assert answer.status_code == 200
    assert '<option value="rtx4090" selected>' in answer.text
    assert "comes back at the end CN¥115.20" in words(answer.text)
    assert priced.broker.jobs == {}


def test_a_planted_field_is_not_set(priced: Site, filled: Fill) -> None:
    answer = priced.signed_in().post("/submit/choices", filled() | {"set": "form_key=x&v-script=y"})
    assert 'value="train.py"' in answer.text


def test_the_groups_of_the_form_say_what_they_have_left(priced: Site) -> None:
    page = priced.signed_in().get("/submit").text
    assert ">nlp – CN¥1,000.00 left</option>" in page
    assert ">vision – CN¥0.00 left</option>" in priced.signed_in("vision-1").get("/submit").text


def test_an_array_is_quoted_by_the_task_and_in_all(priced: Site) -> None:
    shape = Shape(kinds=("a100",), gpus=8, cpus=32, qos="normal", minutes=60, tasks=3)
    with priced.begin() as session:
        found = quoting.quote_in(
            session,
            shape,
            group="nlp",
            user="nlp-1",
            template=None,
            price_list=rows.load(session),
            now=b.NOW,
        )
    assert isinstance(found, quoting.Quote)
    assert (found.task.total, found.held) == (28 * MILLION, 84 * MILLION)
    with priced.app.test_request_context("/submit"):
        said = quotebox.item_words(found.worst.items[0], 3)
    assert said == "3 × 8 × a100 × 1 h × CN¥3.50 an hour"
