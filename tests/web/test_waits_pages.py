"""Pages of waits over a history: figures, filters, tables, CSV, the API, and who sees what."""

import csv
import io
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.services import keep_history
from gateway.testing import builders as b
from tests.web.conftest import Browser, Site
from tests.web.test_api import Caller

HOUR = 3600
PAGES = ("", "/by/partition", "/distribution", "/over-time", "/week")
CSVS = (
    "/overview.csv",
    "/by/group.csv",
    "/distribution.csv",
    "/curves.csv",
    "/over-time.csv",
    "/week.csv",
)


class Past:
    """Jobs of the last days, and the history made of them."""

    def __init__(self, site: Site, home: Path) -> None:
        self._site, self._folder = site, home / "history"

    def ran(self, *, wait: int, run: int = HOUR, days: float = 5, **facts: Any) -> None:
        """One that started after `wait` seconds, `days` ago."""
        submit = self._site.broker.now - timedelta(days=days)
        start = submit + timedelta(seconds=wait)
        end = start + timedelta(seconds=run)
        times = {"submit_time": submit, "start_time": start, "end_time": end}
        job = b.add_job(self._site.begin, state="COMPLETED", **times, **facts)
        b.add_run(
            self._site.begin, job, start_time=start, end_time=end, elapsed_seconds=run
        )  # fmt: skip

    def left(self, *, after: int, days: float = 5, **facts: Any) -> None:
        """One that was cancelled before it started."""
        submit = self._site.broker.now - timedelta(days=days)
        end = submit + timedelta(seconds=after)
        b.add_job(
            self._site.begin, state="CANCELLED", submit_time=submit, end_time=end, **facts
        )  # fmt: skip

    def waits(self, **facts: Any) -> None:
        submit = self._site.broker.now - timedelta(hours=7)
        b.add_job(self._site.begin, state="PENDING", submit_time=submit, **facts)

    def keep(self) -> None:
        begin = self._site.begin
        keep_history.rebuild(self._folder, begin=begin, read=begin, now=self._site.broker.now)


@pytest.fixture
def past(site: Site, tmp_path: Path) -> Past:
    return Past(site, tmp_path)


@pytest.fixture
def lived(past: Past) -> Past:
    """Four people wait 1, 2, 3 and 10 h on 8 cards; one of a group of their own waits 20 h."""
    people = ("nlp-1", "nlp-2", "nlp-lead", "vision-1")
    for user, wait in zip(people, (1, 2, 3, 10), strict=True):
        past.ran(wait=wait * HOUR, user=user, group="nlp", gpus=8, run=HOUR // 2)
    past.ran(wait=20 * HOUR, user="biolab-1", group="biolab", gpus=1)
    past.ran(wait=5 * HOUR, user="nlp-1", group="nlp", gpus=8, days=40)
    past.left(after=1800, user="nlp-1", group="nlp", gpus=8)
    past.waits(user="nlp-2", group="nlp", gpus=8)
    past.keep()
    return past


@pytest.fixture
def boss(site: Site) -> Browser:
    return site.signed_in("boss")


def exact(page: str, name: str) -> str:
    """A figure of the table of exact values."""
    found = re.search(
        rf'<th scope="row">{re.escape(name)}</th><td class="number"><data value="([^"]*)"', page
    )
    return found[1] if found else ""


def table(browser: Browser, path: str) -> list[dict[str, str]]:
    answer = browser.get(f"/waits{path}")
    assert answer.mimetype == "text/csv"
    assert "attachment" in answer.headers["Content-Disposition"]
    return list(csv.DictReader(io.StringIO(answer.text)))


def names(browser: Browser, dimension: str, query: str = "") -> set[str]:
    return {row[dimension] for row in table(browser, f"/by/{dimension}.csv{query}")}


def test_the_first_line_says_wait_run_median_and_the_time_before(
    lived: Past, boss: Browser
) -> None:
    page = boss.get("/waits?gpu_class=5-8").text
    line = (
        "4 jobs on 5–8 cards waited 4 h to run 30 min (median wait 2 h 30 min) in the last 30 days."
    )
    assert line in page
    assert "Before: 5 h." in page


def test_figures_stand_beside_those_who_did_not_start(lived: Past, boss: Browser) -> None:
    page = boss.get("/waits?gpu_class=5-8").text
    assert "4 jobs · 1 never started · 1 waiting" in page
    assert exact(page, "wait.median_s") == "9000"
    assert exact(page, "wait.mean_s") == "14400"
    assert exact(page, "never_started") == "1"
    assert exact(page, "waiting") == "1"
    assert exact(page, "ratio_of_sums") == "8"
    assert exact(page, "gave_up.median_s") == "1800"


def test_the_median_of_all_is_longer_than_that_of_the_started(lived: Past, boss: Browser) -> None:
    """One left after half an hour and one waits since 7 h: the half that is known lies later."""
    page = boss.get("/waits?gpu_class=5-8").text
    assert float(exact(page, "censored.median_s")) > float(exact(page, "wait.median_s"))


def test_with_submit_the_deferral_counts_as_wait(past: Past, site: Site, boss: Browser) -> None:
    submit = site.broker.now - timedelta(days=2)
    eligible, start = submit + timedelta(hours=5), submit + timedelta(hours=6)
    times = {"submit_time": submit, "eligible_time": eligible, "start_time": start}
    ended = {"end_time": start + timedelta(hours=1)}
    job = b.add_job(site.begin, state="COMPLETED", user="nlp-1", **times, **ended)
    b.add_run(site.begin, job, start_time=start, **ended)
    past.keep()
    assert exact(boss.get("/waits").text, "wait.median_s") == str(HOUR)
    assert exact(boss.get("/waits").text, "deferral.median_s") == str(5 * HOUR)
    assert exact(boss.get("/waits?wait=submit").text, "wait.median_s") == str(6 * HOUR)


@pytest.mark.parametrize("page", PAGES)
def test_without_a_job_each_page_says_so(page: str, site: Site) -> None:
    answer = site.signed_in().get(f"/waits{page}")
    assert answer.status_code == 200
    assert "No job was submitted in this period" in answer.text
    assert "history yet" in answer.text


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("login", ["nlp-1", "boss"])
def test_each_page_stands_with_jobs_in_both_languages(
    page: str, login: str, lived: Past, site: Site
) -> None:
    browser = site.signed_in(login)
    assert browser.get(f"/waits{page}?period=all").status_code == 200
    browser.post("/language", {"language": "zh_Hans", "next": "/waits"})
    answer = browser.get(f"/waits{page}?period=all")
    assert answer.status_code == 200
    assert "排队等待" in answer.text


def test_a_dimension_that_is_none_is_no_page(site: Site) -> None:
    assert site.signed_in().get("/waits/by/colour").status_code == 404
    assert site.signed_in().get("/waits/by/user_id.csv").status_code == 404


def test_rows_come_in_the_order_asked_for(lived: Past, boss: Browser) -> None:
    rows = table(boss, "/by/group.csv?sort=wait_mean_s&dir=up")
    assert [row["group"] for row in rows] == ["nlp", "biolab"]
    assert [row["wait_mean_s"] for row in rows] == ["14400", "72000"]
    page = boss.get("/waits/by/group?sort=wait_mean_s").text
    assert 'aria-sort="descending"' in page


def test_a_rows_name_adds_its_filter_and_keeps_the_others(lived: Past, boss: Browser) -> None:
    page = boss.get("/waits/by/group?gpu_class=5-8&period=90").text
    assert 'href="/waits?gpu_class=5-8&amp;period=90&amp;group=nlp"' in page


def test_many_rows_are_turned_in_pages(past: Past, boss: Browser) -> None:
    for number in range(60):
        past.ran(wait=number, user="nlp-1", group=f"group-{number:03d}")
    past.keep()
    first = boss.get("/waits/by/group").text
    assert "1–50 of 60" in first
    second = boss.get("/waits/by/group?page=2").text
    assert "51–60 of 60" in second
    assert boss.get("/waits/by/group?page=99999").status_code == 200
    assert len(table(boss, "/by/group.csv")) == 60


def test_names_are_text_in_pages_and_no_formula_in_a_table(past: Past, boss: Browser) -> None:
    past.ran(wait=60, user="nlp-1", group='=HYPERLINK("x")<b>')
    past.keep()
    assert table(boss, "/by/group.csv")[0]["group"].startswith("'=")
    assert "<b>" not in boss.get("/waits/by/group").text.split("<main")[1].replace("<b></b>", "")


def test_a_group_of_one_person_is_hidden_from_strangers_and_so_is_what_would_tell_of_it(
    lived: Past, site: Site
) -> None:
    stranger = site.signed_in("vision-1")
    assert "biolab" in names(site.signed_in("boss"), "group")
    assert names(stranger, "group") == set()  # nlp less the sum would be the one of biolab
    page = stranger.get("/waits/by/group").text
    assert "biolab" not in page
    assert "fewer than 3 people" in page


def test_a_leader_sees_the_own_group_and_its_people(lived: Past, site: Site) -> None:
    leader = site.signed_in("nlp-lead")
    assert names(leader, "group") == {"nlp"}
    assert names(leader, "user") == {"nlp-1", "nlp-2", "nlp-lead", "vision-1"}
    assert names(leader, "user", "?group=biolab") == set()


def test_by_person_one_sees_oneself_alone(lived: Past, site: Site) -> None:
    assert names(site.signed_in("nlp-1"), "user") == {"nlp-1"}
    assert names(site.signed_in("nlp-1"), "user", "?user=nlp-2") == set()
    hidden = site.signed_in("nlp-1").get("/waits?user=nlp-2").text
    assert "Hidden: fewer than 3 people" in hidden
    assert (
        "Hidden: fewer than 3 people" not in site.signed_in("nlp-1").get("/waits?user=nlp-1").text
    )


def test_an_operator_sees_everything(lived: Past, site: Site) -> None:
    b.add_person(site.begin, "watch", role="operator")
    operator = site.signed_in("watch")
    assert names(operator, "group") == {"nlp", "biolab"}
    assert "biolab-1" in names(operator, "user")


@pytest.mark.parametrize("page", [*PAGES, *CSVS])
def test_what_is_hidden_is_on_no_page_and_in_no_file(page: str, lived: Past, site: Site) -> None:
    """Twenty hours are biolab's alone: 72,000 seconds."""
    text = site.signed_in("vision-1").get(f"/waits{page}?group=biolab").text
    assert "72000" not in text
    assert "20 h" not in text


@pytest.fixture
def call(site: Site) -> Callable[[str], Caller]:
    def enter(login: str) -> Caller:
        client = site.app.test_client()
        answer = client.post("/api/v1/sessions", json={"login": login, "password": b.PASSWORD})
        return Caller(client, answer.get_json()["token"])

    return enter


def test_the_api_tells_the_same(lived: Past, call: Callable[[str], Caller]) -> None:
    found = call("boss").get("/waits?gpu_class=5-8").get_json()
    assert found["figures"]["wait"]["median_s"] == 9000
    assert found["before"]["wait"]["median_s"] == 5 * HOUR
    assert "others" not in found["figures"]
    rows = call("boss").get("/waits/by/group").get_json()["rows"]
    assert {row["key"]: row["wait"]["n"] for row in rows} == {"nlp": 4, "biolab": 1}


def test_the_api_hides_the_same(lived: Past, call: Callable[[str], Caller]) -> None:
    stranger = call("vision-1")
    assert stranger.get("/waits?group=biolab").get_json()["figures"] is None
    answer = stranger.get("/waits/by/group").get_json()
    assert (answer["rows"], answer["hidden"]) == ([], 2)
    for path in ("distribution", "over-time", "week"):
        assert "72000" not in stranger.get(f"/waits/{path}?group=biolab").text


def test_the_api_refuses_what_it_cannot_read(call: Callable[[str], Caller]) -> None:
    assert call("nlp-1").get("/waits?period=soon").status_code == 400
    assert call("nlp-1").get("/waits/over-time?step=year").status_code == 400
    assert call("nlp-1").get("/waits/by/colour").status_code == 404


def test_hours_of_a_long_time_are_the_newest_on_the_page_and_all_in_the_file(
    past: Past, boss: Browser
) -> None:
    """The last one is long ago, as in an imported set."""
    for days in (300, 301, 500):
        past.ran(wait=HOUR, days=days)
    past.keep()
    page = boss.get("/waits/over-time?period=all&step=hour").text
    assert page.count('<th scope="row">') == 2
    assert "the CSV has all" in page
    assert len(table(boss, "/over-time.csv?period=all&step=hour")) == 3


def test_classes_of_time_limits_by_name_go_from_short_to_long(past: Past, boss: Browser) -> None:
    for minutes in (30, 600, 200, 4000):
        past.ran(wait=60, time_limit_minutes=minutes)
    past.keep()
    rows = table(boss, "/by/limit_class.csv?sort=name")
    assert [row["limit_class"] for row in rows] == ["≤1h", "≤4h", "≤12h", "≤3d"]


def test_an_hour_of_the_week_is_that_of_the_site(past: Past, boss: Browser, site: Site) -> None:
    past.ran(wait=120, user="nlp-1", group="nlp")
    past.keep()
    rows = [row for row in table(boss, "/week.csv") if row["jobs"] != "0"]
    submit = (site.broker.now - timedelta(days=5)).astimezone(
        site.app.extensions["sluice"].settings.timezone
    )
    assert [(row["day"], row["hour"], row["median_s"]) for row in rows] == [
        (str(submit.isoweekday()), str(submit.hour), "120")
    ]


def test_the_distribution_and_the_series_count_every_job(lived: Past, boss: Browser) -> None:
    bars = table(boss, "/distribution.csv")
    assert sum(int(row["waits"]) for row in bars) == 5
    series = table(boss, "/over-time.csv?step=day")
    assert sum(int(row["started"]) for row in series) == 5
    curves = table(boss, "/curves.csv")
    assert {row["curve"] for row in curves} == {"wait_started", "wait_all", "run"}
    last = [row for row in curves if row["curve"] == "wait_started"][-1]
    assert float(last["share"]) == 1.0


def test_hours_of_one_person_cannot_be_reckoned_from_the_sum(past: Past, site: Site) -> None:
    for user in ("nlp-1", "nlp-2", "nlp-lead"):
        past.ran(wait=HOUR, user=user, group="nlp", gpus=8)
    for hours in (1, 2, 3):
        past.ran(wait=HOUR, user="biolab-1", group="biolab", gpus=8, days=5 - hours / 24)
    past.keep()
    rows = table(site.signed_in("vision-1"), "/week.csv")
    assert not [row for row in rows if row["jobs"] not in {"", "0"}]


def test_who_is_in_the_hours_alone_hides_nobodys_wait(past: Past, site: Site) -> None:
    for user in ("nlp-1", "nlp-2", "nlp-lead"):
        past.ran(wait=0, run=72 * HOUR, user=user, group="nlp", gpus=8, days=31)
    past.ran(wait=20 * HOUR, user="biolab-1", group="biolab", gpus=8)
    past.keep()
    assert "Hidden: fewer than 3 people" in site.signed_in("vision-1").get("/waits").text
    assert names(site.signed_in("boss"), "group") == {"nlp", "biolab"}
