"""The forecast record: the page, its filters, who sees what, CSV."""

import csv
import html
import io
import re
from datetime import datetime, timedelta

import pytest
from sqlalchemy import select

from gateway.store.forecast_models import StartForecast
from gateway.store.models import Job
from gateway.testing.forecast_samples import fill_forecasts
from tests.web.conftest import Browser, Site

PAGE = "/waits/forecast"


def _long_wait(job_id: int, made_at: datetime) -> StartForecast:
    """Eight days were forecast, and came."""
    at = made_at + timedelta(days=8)
    return StartForecast(
        job_id=job_id, made_at=made_at, moment="submit", source="history", p50_at=at, p90_at=at,
        partition="a100", group="nlp", gpus=8, jobs=300, started_at=at,
    )  # fmt: skip


@pytest.fixture
def recorded(site: Site) -> Site:
    fill_forecasts(site.begin, now=site.broker.now, cluster="old")
    return site


def page(browser: Browser, query: str = "") -> str:
    answer = browser.get(f"{PAGE}{query}")
    assert answer.status_code == 200
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.text)).split())


def scores(browser: Browser, query: str = "") -> dict[tuple[str, str, str], dict[str, str]]:
    answer = browser.get(f"{PAGE}/scores.csv{query}")
    assert answer.status_code == 200
    rows = csv.DictReader(io.StringIO(answer.text))
    return {(row["by"], row["key"], row["source"]): row for row in rows}


def test_everybody_sees_how_good_forecasts_have_been(recorded: Site) -> None:
    browser = recorded.signed_in("vision-1")
    said, whole = page(browser), scores(browser)["all", "", "history"]
    share = round(100 * int(whole["p90_started_by"]) / int(whole["p90_judged"]))
    assert 85 <= share <= 95
    assert f"{share} % before their p90 (90 %)" in said
    assert "Slurm's plan:" in said
    assert "waits-1" not in said  # nobody's name
    assert browser.get(PAGE).text.count('<g class="bin of-') > 8


def test_parts_are_of_the_whole(recorded: Site) -> None:
    found = scores(recorded.signed_in("nlp-1"))
    for source in ("history", "slurm"):
        whole = int(found["all", "", source]["forecasts"])
        for by in ("gpu_class", "partition"):
            parts = [
                int(row["forecasts"])
                for key, row in found.items()
                if key[0] == by and key[2] == source
            ]
            assert len(parts) > 1
            assert sum(parts) == whole


def test_filters_combine(recorded: Site) -> None:
    browser = recorded.signed_in("nlp-1")
    found = scores(browser, "?partition=debug&gpu_class=5-8")
    assert {key[1] for key in found if key[0] == "partition"} == {"debug"}
    assert {key[1] for key in found if key[0] == "gpu_class"} == {"5-8"}
    assert "No forecasts here yet" in page(browser, "?partition=nowhere")
    assert "No forecasts here yet" in page(browser, "?moment=waiting")
    assert "was left out" in page(browser, "?gpu_class=many")


def test_figures_of_few_people_are_hidden_from_strangers(site: Site) -> None:
    fill_forecasts(site.begin, now=site.broker.now, cluster="old", people=("waits-1", "waits-2"))
    stranger, operator = site.signed_in("vision-1"), site.signed_in("boss")
    assert "Figures of fewer than 3 people are hidden" in page(stranger)
    assert scores(stranger) == {}
    assert scores(operator)["all", "", "history"]["forecasts"] == "600"
    assert stranger.get(f"{PAGE}/bins.csv").text.count("\n") == 1
    assert operator.get(f"{PAGE}/bins.csv").text.count("\n") > 8


def test_a_stranger_learns_no_groups_name(recorded: Site) -> None:
    shown = {
        login: recorded.signed_in(login).get(PAGE).text for login in ("nlp-1", "vision-1", "boss")
    }
    assert [login for login, text in shown.items() if 'value="nlp"' in text] == ["nlp-1", "boss"]


def test_a_class_of_forecasts_of_few_people_takes_another_with_it(site: Site) -> None:
    """The sum of all less the classes that are seen would be theirs."""
    fill_forecasts(site.begin, now=site.broker.now, cluster="old", jobs=300)
    with site.begin() as session:
        made_at = site.broker.now - timedelta(days=9)
        few = session.scalars(select(Job).where(Job.user == "waits-1")).first()
        assert few is not None
        session.add(_long_wait(few.id, made_at))
    stranger, boss = site.signed_in("vision-1"), site.signed_in("boss")
    bins = {
        who: page.get(f"{PAGE}/bins.csv").text.splitlines()
        for who, page in (("stranger", stranger), ("boss", boss))
    }
    assert (
        len([line for line in bins["boss"] if line.startswith("history")])
        - len([line for line in bins["stranger"] if line.startswith("history")])
        == 2
    )


def test_too_few_are_no_percentage(site: Site) -> None:
    fill_forecasts(site.begin, now=site.broker.now, cluster="old", jobs=20)
    assert "too few to say" in page(site.signed_in("nlp-1"))


def test_no_other_file_is_there(site: Site) -> None:
    assert site.signed_in("nlp-1").get(f"{PAGE}/people.csv").status_code == 404


def test_both_charts_can_be_saved_as_pictures(recorded: Site) -> None:
    text = recorded.signed_in("boss").get(PAGE).text
    assert "picture.js" in text
    for key in ("history", "slurm"):
        assert f'data-png="chart-{key}"' in text
