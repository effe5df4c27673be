"""Results on pages, as CSV and in the API say the same; jobs side by side; logs beside a run."""

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from gateway.services import job_logs, training
from gateway.testing import builders as b
from gateway.testing.result_samples import fill_results
from gateway.testing.training import add_portal_job
from tests.web.conftest import Site

HOSTILE = "<script>alert(1)</script>"


def read(site: Site) -> None:
    for _ in range(3):
        training.follow(
            begin=site.begin, read=site.begin, broker=site.broker, now=site.broker.now,
            budget_seconds=60.0,
        )  # fmt: skip
        site.broker.now += timedelta(seconds=training.SLOWEST_SECONDS)


@pytest.fixture
def runs(site: Site) -> list[int]:
    made = fill_results(site.begin, site.broker.files, now=site.broker.now)
    read(site)
    return made


@pytest.fixture
def api(site: Site) -> Callable[[str], Any]:
    body = {"login": "nlp-1", "password": b.PASSWORD}
    token = site.app.test_client().post("/api/v1/sessions", json=body).get_json()["token"]

    def get(path: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        return site.app.test_client().get(f"/api/v1{path}", headers=headers)

    return get


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_page_csv_and_api_say_the_same(site: Site, runs: list[int], api: Any) -> None:
    found = api(f"/jobs/{runs[0]}/results?curves=1").get_json()
    results = {one["name"]: one for one in found["results"]}
    assert set(results) == {"val/loss", "accuracy", "grad_norm"}
    loss = results["val/loss"]
    assert (loss["count"], loss["step"], loss["best"]) == (21, 200, loss["lowest"])
    assert results["grad_norm"]["not_finite"] == 1
    page = site.signed_in().get(f"/jobs/{runs[0]}").text
    assert f"<b>{loss['last']:.5g}</b>" in page
    assert f"★ {loss['lowest']:.5g}" in page
    rows = rows_of(site.signed_in().get(f"/jobs/{runs[0]}/results.csv?metric=val/loss").text)
    steps = [row for row in rows if row["axis"] == "step"]
    cells = found["curves"]["val/loss"]["by_step"]["cells"]
    assert [float(row["mean"]) for row in steps] == [cell["mean"] for cell in cells]
    assert float(steps[-1]["last"]) == loss["last"]
    assert {row["metric"] for row in rows} == {"val/loss"}


def test_a_curve_over_orders_of_magnitude_is_logarithmic_unless_it_is_asked_otherwise(
    site: Site, runs: list[int]
) -> None:
    browser = site.signed_in()
    assert "Logarithmic scale." in browser.get(f"/jobs/{runs[0]}/results").text
    assert "Logarithmic scale." not in browser.get(f"/jobs/{runs[0]}/results?scale=linear").text
    by_time = browser.get(f"/jobs/{runs[0]}/results?by=time&scale=%3Cb%3E").text
    assert "Time on nodes" in by_time
    assert "<polyline" in by_time


def test_names_and_folders_of_people_are_never_html(site: Site) -> None:
    path = "/home/nlp-1/x.out"
    job = add_portal_job(site.begin, "nlp-1", output=path, name=HOSTILE)
    site.broker.files.write(path, "nlp-1", f"::metric {HOSTILE}=1\n::metric fine=1.7e308\n")
    site.broker.files.append(path, "nlp-1", "::metric fine=-1.7e308\n")
    hostile = f"/home/nlp-1/logs/{HOSTILE.replace('/', '')}"
    site.broker.files.write(f"{hostile}/events.out.tfevents.1.a", "nlp-1", "")
    site.broker.files.write("/home/nlp-1/logs/events.out.tfevents.1.a", "nlp-1", "")
    read(site)
    browser = site.signed_in()
    for url in (f"/jobs/{job}", f"/jobs/compare?job={job}", f"/jobs/{job}/logs"):
        answer = browser.get(url)
        assert answer.status_code == 200
        assert HOSTILE not in answer.text
        assert "nan" not in answer.text.lower().split("points=")[-1][:500]
    assert "fine" in browser.get(f"/jobs/{job}").text


def test_who_may_not_see_a_job_gets_nothing_of_it(site: Site, runs: list[int]) -> None:
    stranger, colleague = site.signed_in("vision-1"), site.signed_in("nlp-2")
    for path in ("results", "results.csv", "logs"):
        assert stranger.get(f"/jobs/{runs[0]}/{path}").status_code == 404
    assert stranger.get(f"/jobs/compare?job={runs[0]}").status_code == 404
    assert stranger.get(f"/jobs/compare.csv?job={runs[0]}").status_code == 404
    assert colleague.get(f"/jobs/{runs[0]}/results").status_code == 200
    assert colleague.get(f"/jobs/{runs[0]}/logs").status_code == 404  # files are their owner's
    assert "its owner alone" in colleague.get(f"/jobs/compare?job={runs[0]}&job={runs[1]}").text


def test_jobs_side_by_side(site: Site, runs: list[int], api: Any) -> None:
    query = "&".join(f"job={one}" for one in runs)
    page = site.signed_in().get(f"/jobs/compare?{query}").text
    facts = api(f"/compare?{query}").get_json()
    last = [
        next(r["last"] for r in one["results"] if r["name"] == "val/loss") for one in facts["jobs"]
    ]
    assert f'<b class="wins">★ {min(last):.5g}</b>' in page
    assert page.count("<polyline") == 3
    assert facts["differing"]["gpus"] == ["1", "2", "4"]
    assert "sweep-lr-0.001" in page
    rows = rows_of(site.signed_in().get(f"/jobs/compare.csv?{query}").text)
    told = [float(row["last"]) for row in rows if row["name"] == "val/loss"]
    assert told == last
    for axis in ("time", "cost", "nonsense"):
        url = f"/jobs/compare?{query}&by={axis}&metric=grad_norm&scale=log"
        assert site.signed_in().get(url).text.count("<polyline") >= 3


def test_no_more_than_eight_and_nonsense_is_passed_over(site: Site, runs: list[int]) -> None:
    many = [add_portal_job(site.begin, "nlp-1") for _ in range(10)]
    browser = site.signed_in()
    page = browser.get("/jobs/compare?" + "&".join(f"job={one}" for one in many)).text
    assert "At most eight jobs: 2 are left out." in page
    assert "No job is chosen." in browser.get("/jobs/compare?job=x&job=-1").text
    assert browser.get(f"/jobs/compare?job={runs[0]},{runs[0]}").status_code == 200
    assert browser.get("/jobs/compare?job=99999").status_code == 404


def test_the_list_offers_boxes_that_need_no_script(site: Site, runs: list[int]) -> None:
    page = site.signed_in().get("/jobs").text
    assert f'form="compare" name="job" value="{runs[0]}"' in page
    assert '<form id="compare"' in page


def test_logs_are_found_and_offered(site: Site, runs: list[int]) -> None:
    page = site.signed_in().get(f"/jobs/{runs[0]}/logs").text
    assert "/home/nlp-1/runs/sweep" in page
    assert "app=tensorboard" in page
    assert "v-folder=/home/nlp-1/runs/sweep" in page.replace("%2F", "/")
    assert "abababab" in page
    assert "val_loss" in page
    assert "0.25" in page


def test_hostile_folders_of_logs_are_bounded_and_never_html(site: Site, runs: list[int]) -> None:
    home, files = "/home/nlp-1", site.broker.files
    run = f"{home}/mlruns/0/{'cd' * 16}/metrics"
    for name, text in {
        f"{home}/mlruns/{HOSTILE}/x/metrics/loss": "1700000000000 0.5 1\n",
        f"{home}/mlruns/..%2f/{'ef' * 16}/metrics/loss": "1700000000000 0.5 1\n",
        f"{home}/mlruns/0/two\nlines/metrics/loss": "1700000000000 0.5 1\n",
        f"{run}/endless": "1700000000000 inf 1\n1" + "0" * 400 + " 1 1\n",
        f"{run}/{HOSTILE.replace('/', '')}": "1700000000000 0.5 1\n",
        f"{run}/half": "1700000000000 0.75",
        f"{run}/good": "rubbish\n1700000000000 0.625 3\n",
        f"{home}/logs/{HOSTILE.replace('/', '')}/events.out.tfevents.1.a": "x",
    }.items():
        files.write(name, "nlp-1", text)
    files.links[f"{home}/runs/away"] = "/home/nlp-2/runs"
    for number in range(300):
        files.write(f"{home}/logs/{number}/events.out.tfevents.1.a", "nlp-1", "x")
        files.write(f"{home}/mlruns/{number}/{number:032x}/metrics/m", "nlp-1", "1 2 3\n")
    browser, before = site.signed_in(), len(site.broker.calls)
    page = browser.get(f"/jobs/{runs[0]}/logs")
    assert page.status_code == 200
    assert HOSTILE not in page.text
    assert "inf" not in page.text.split("<main", 1)[1].split("</main", 1)[0].lower().split()
    assert "nlp-2" not in page.text.split("<main", 1)[1]
    assert len(site.broker.calls) - before <= job_logs.MOST_LISTS + job_logs.MOST_READS
