"""Metrics of jobs on a real cluster: printed by bash, reported by Python; page, CSV and API agree.

The last seconds of a job come with what is read after its end, as in the worker.
"""

import csv
import io
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.config import load_settings
from gateway.services import training
from gateway.store.uow import make_begin
from gateway.testing import builders as b
from gateway.testing.database import database
from gateway.testing.portal import CLUSTER, Portal, ask, portal
from gateway.web.app import create_app

pytestmark = pytest.mark.slurm

HOME = "/home/nlp-1"
COMMAND = ask(
    template="command",
    nodes="1",
    nproc_per_node="1",
    time_limit="10",
    name="told",
    working_directory=HOME,
)
BASH = """#!/bin/bash
for step in 1 2 3; do
  echo "::metric loss=0.$((5 - step)) step=$step"
done
printf '\\xff\\xfe binary\\n::metric <b>=1 loss=nan\\n::metric odd=1e400 bash=7\\n::metric cut=1'
"""
PYTHON = """#!/usr/bin/python3
from sluice_train import report
for step in range(5):
    report({"val/acc": step / 10}, step=step)
report(loss=float("inf"))
"""


@pytest.fixture
def site(tmp_path, broker, cluster_site):
    with database(tmp_path) as engine:
        made = portal(make_begin(engine), broker=broker, clock=lambda: datetime.now(UTC))
        settings = load_settings({"SLUICE_HOME": str(tmp_path), "SLUICE_CLUSTER_NAME": CLUSTER})
        made.app = create_app(
            settings, begin=made.begin, read=made.begin, broker=broker, clock=made.clock
        )
        made.hands = cluster_site
        yield made


def run(site: Portal, name: str, text: str):
    """Submitted, run and read to its end; the job."""
    path = f"{HOME}/{name}"
    site.hands.write(path, "nlp-1", text)
    site.hands.cluster.run(["chmod", "+x", path], user="nlp-1")
    values = {"command": path, "gpus_per_node": "0"}
    wanted = replace(COMMAND, name=name, values=COMMAND.values | values)
    sent = site.submit(wanted, key=name)
    end = time.monotonic() + 120
    while True:
        site.deliver_due()
        site.poll()
        found = site.submission(sent).job_id
        job = next((job for job in site.jobs() if job.id == found), None)
        if job is not None and not job.active:
            break
        assert time.monotonic() < end, job and (job.state, job.reason)
        time.sleep(0.5)
    assert job.state == "COMPLETED", job.state
    for minutes in (3, 6):
        training.follow(
            begin=site.begin, read=site.begin, broker=site.broker,
            now=site.now + timedelta(minutes=minutes), budget_seconds=60,
        )  # fmt: skip
    return job


@pytest.mark.timeout(300)
def test_bash_prints_and_python_reports_and_all_say_the_same(site: Portal) -> None:
    printed, reported = run(site, "printed.sh", BASH), run(site, "reported.py", PYTHON)
    client = site.app.test_client()
    body = {"login": "nlp-1", "password": b.PASSWORD}
    token = client.post("/api/v1/sessions", json=body).get_json()["token"]
    headers = {"Authorization": f"Bearer {token}"}

    def results(job):
        found = client.get(f"/api/v1/jobs/{job.id}/results", headers=headers).get_json()
        return {one["name"]: one for one in found["results"]}

    bash, python = results(printed), results(reported)
    assert (bash["loss"]["last"], bash["loss"]["step"], bash["loss"]["count"]) == (0.2, 3, 3)
    assert (bash["loss"]["not_finite"], bash["odd"]["not_finite"], bash["bash"]["last"]) == (
        1,
        1,
        7,
    )
    assert set(bash) == {"loss", "odd", "bash"}  # neither the name of HTML nor the line that is cut
    assert (python["val/acc"]["last"], python["val/acc"]["count"]) == (0.4, 5)
    assert python["loss"]["not_finite"] == 1

    browser = site.app.test_client()
    page = browser.get("/sign-in").text
    token = page.split('name="csrf_token" value="')[1].split('"')[0]
    browser.post("/sign-in", data=body | {"csrf_token": token})
    shown = browser.get(f"/jobs/{printed.id}/results").text
    assert "<b>0.2</b>" in shown
    assert "<b>=1" not in shown
    rows = csv.DictReader(io.StringIO(browser.get(f"/jobs/{printed.id}/results.csv").text))
    losses = [row for row in rows if (row["metric"], row["axis"]) == ("loss", "step")]
    assert [(row["step"], float(row["last"])) for row in losses] == [
        ("1", 0.4),
        ("2", 0.3),
        ("3", 0.2),
    ]
    side = browser.get(f"/jobs/compare?job={printed.id}&job={reported.id}").text
    assert "val/acc" in side
