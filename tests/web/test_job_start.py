"""A waiting job's page: when it will probably start, and what was said before."""

import html
import re
from datetime import timedelta

import pytest

from gateway.core.forecast import Forecast, ForecastSource, NoForecast
from gateway.services import forecast_keep
from gateway.store.models import Job
from gateway.testing import builders as b
from tests.web.conftest import Site

HOUR = timedelta(hours=1)


class Says:
    version: str | None = "rule"

    def __init__(self, answer):
        self.answer = answer

    def forecast(self, asks):
        return [self.answer] * len(asks)


TWO_HOURS = Says(Forecast(7200, 21600, ForecastSource.HISTORY, 812))


@pytest.fixture
def job(site: Site) -> int:
    now = site.broker.now
    return b.add_job(
        site.begin, user="nlp-1", state="PENDING", active=True, reason="Priority",
        submit_time=now, last_submit_time=now, eligible_time=now, start_time=None,
        end_time=None, estimated_start=now + 5 * HOUR,
    )  # fmt: skip


def renew(site, says, later=timedelta(0)):
    now = site.broker.now + later
    forecast_keep.renew(forecaster=says, begin=site.begin, read=site.begin, now=now)


def page(site, job, part=""):
    text = site.signed_in().get(f"/jobs/{job}{part}").text
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


@pytest.mark.parametrize("part", ["", "/state"])
def test_ours_and_slurms_plan_stand_side_by_side(site, job, part):
    renew(site, TWO_HOURS)
    said = page(site, job, part)
    assert "Probably starts in 2 h" in said
    assert "nine of ten such jobs by" in said
    assert "An estimate by 812 starts in a100" in said
    assert "Estimate by Slurm: starts about" in said


def test_a_time_that_has_passed_is_not_called_probable(site, job):
    renew(site, TWO_HOURS)
    site.broker.now += 3 * HOUR  # and the worker made no newer one
    said = page(site, job)
    assert "Half of such jobs had started by" in said
    assert "Probably starts in" not in said


def test_where_there_is_no_number_the_reason_stands(site, job):
    renew(site, Says(NoForecast.TOO_THIN))
    said = page(site, job)
    assert "too few jobs have started in a100" in said
    assert "Probably starts" not in said


def test_what_was_forecast_stays_beside_what_came(site, job):
    renew(site, TWO_HOURS)
    with site.begin() as session:
        row = session.get_one(Job, job)
        row.state, row.start_time = "RUNNING", site.broker.now + 3 * HOUR
    said = page(site, job)
    assert "started 1 h later" in said
    assert "started 2 h sooner" in said  # than Slurm had planned
    assert "Probably starts" not in said


def test_the_api_has_them_too(site, job):
    renew(site, TWO_HOURS)
    client = site.app.test_client()
    login = {"login": "nlp-1", "password": b.PASSWORD}
    token = client.post("/api/v1/sessions", json=login).json["token"]
    found = client.get(f"/api/v1/jobs/{job}/forecast", headers={"Authorization": f"Bearer {token}"})
    assert found.json["p50_at"] == (site.broker.now + 2 * HOUR).isoformat()
    assert {one["source"] for one in found.json["kept"]} == {"history", "slurm"}
