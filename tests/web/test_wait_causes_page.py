"""Where our wait went: the page, its CSV, the API, and who sees what."""

import csv
import io
from datetime import timedelta

import pytest

from gateway.core.wait_causes import Cause
from gateway.core.wait_conclusion import Conclusion
from gateway.services import keep_history
from gateway.store import wait_reasons
from gateway.store.models import Job
from gateway.testing import builders as b
from gateway.testing.portal import CLUSTER
from gateway.web.wait_cause_texts import _LARGEST, _SENTENCES, CAUSE_MEANINGS, CAUSE_WORDS
from tests.web.test_api import _caller

HOUR = 3600
PEOPLE = ("nlp-1", "nlp-2", "nlp-lead", "vision-1")


@pytest.fixture
def lived(site, tmp_path):
    """Twelve jobs of nlp wait 1 h for the group's limit and 3 h in a full partition; twelve of
    biolab's one person wait for the group's limit alone."""

    def waited(user, group, *told):
        submit = site.broker.now - timedelta(days=5)
        start, end = submit + timedelta(hours=4), submit + timedelta(hours=5)
        times = {"submit_time": submit, "start_time": start, "end_time": end}
        job = b.add_job(site.begin, state="COMPLETED", user=user, group=group, gpus=8, **times)
        b.add_run(site.begin, job, start_time=start, end_time=end, elapsed_seconds=HOUR)
        with site.begin() as session:
            owner = session.get(Job, job).slurm_id
            at = int(submit.timestamp())
            looks = [wait_reasons.Look(owner, submit, at, at + after, why) for after, why in told]
            wait_reasons.put(session, CLUSTER, looks)

    for n in range(12):
        waited(PEOPLE[n % 4], "nlp", (10, "AssocGrpGRES"), (HOUR, "Priority"))
        waited("biolab-1", "biolab", (10, "AssocGrpGRES"))
    for user in ("vision-2", "vision-3"):  # hidden with biolab, so that no sum tells of it
        waited(user, "vision", (10, "Resources"))
    keep_history.rebuild(
        tmp_path / "history", begin=site.begin, read=site.begin, now=site.broker.now
    )


def test_a_persons_own_group_comes_first_with_its_sentence(site, lived):
    page = site.signed_in("nlp-1").get("/waits/causes").text
    assert "in part: 25 % of the wait was limits, 75 % a full partition." in page
    assert "biolab" not in page  # one other person alone


def test_an_administrator_sees_each_group(site, lived):
    page = site.signed_in("boss").get("/waits/causes").text
    assert "A larger limit of the group would have helped: it was 100 % of the wait." in page
    assert "biolab" in page
    assert "Too few jobs to say: fewer than 10." in page


def test_the_csv_sums_to_the_wait_to_the_second(site, lived):
    rows = list(
        csv.DictReader(io.StringIO(site.signed_in("boss").get("/waits/causes/causes.csv").text))
    )
    assert {row["group"]: row["jobs"] for row in rows} == {
        "nlp": "12",
        "biolab": "12",
        "vision": "2",
    }
    for row in rows:
        parts = [int(row[f"{cause.value}_s"]) for cause in Cause]
        assert sum(parts) == int(row["wait_s"]) == int(row["jobs"]) * 4 * HOUR
    nlp = next(row for row in rows if row["group"] == "nlp")
    assert (nlp["group_limit_s"], nlp["priority_s"]) == (str(12 * HOUR), str(36 * HOUR))


@pytest.mark.parametrize("by", ["partition", "gpu_class", "gpu_type", "qos", "nonsense"])
def test_by_other_dimensions(site, lived, by):
    page = site.signed_in("boss").get(f"/waits/causes?by={by}")
    assert page.status_code == 200
    assert "Limit of the group" in page.text


def test_a_long_table_leaves_the_rest_to_the_csv(site, tmp_path):
    submit = site.broker.now - timedelta(days=5)
    start = submit + timedelta(hours=4)
    for n in range(53):
        facts = {"group": f"g{n:02d}", "submit_time": submit, "start_time": start}
        job = b.add_job(site.begin, state="COMPLETED", **facts, end_time=start)
        b.add_run(site.begin, job, start_time=start, end_time=start, elapsed_seconds=0)
    keep_history.rebuild(
        tmp_path / "history", begin=site.begin, read=site.begin, now=site.broker.now
    )
    page = site.signed_in("boss").get("/waits/causes").text
    assert "3 more in the CSV." in page
    assert "Submit to start" not in page  # the parts are those of both


def test_nothing_to_show(site):
    page = site.signed_in("nlp-1").get("/waits/causes")
    assert page.status_code == 200


def test_every_cause_and_conclusion_has_its_words():
    assert set(CAUSE_WORDS) == set(CAUSE_MEANINGS) == set(Cause)
    said = set(Conclusion) - {Conclusion.MIXED}
    assert set(_SENTENCES) == said
    parts = said - {Conclusion.TOO_FEW, Conclusion.NO_WAIT}
    assert set(_LARGEST) == parts - {Conclusion.FULL_AND_LIMITS}  # which is more than half


def test_a_jobs_page_says_where_its_wait_went(site):
    submit = site.broker.now - timedelta(hours=2)
    job = b.add_job(
        site.begin, user="nlp-1", submit_time=submit, eligible_time=submit, reason="Resources"
    )
    browser = site.signed_in("nlp-1")
    assert "Where its wait went" not in browser.get(f"/jobs/{job}").text
    at = int(submit.timestamp())
    with site.begin() as session:
        owner = session.get(Job, job).slurm_id
        looks = [
            wait_reasons.Look(owner, submit, at, at + 10, "QOSMaxGRESPerUser"),
            wait_reasons.Look(owner, submit, at, at + 1800, "Resources"),
        ]
        wait_reasons.put(session, CLUSTER, looks)
    page = browser.get(f"/jobs/{job}").text
    assert "Nothing free 1 h 30 min (75 %)" in page
    assert "Limit per person 30 min (25 %)" in page
    assert "(75 %)" in browser.get(f"/jobs/{job}/state").text


def test_the_api_has_seconds_by_cause(site, lived):
    boss = _caller(site, "boss")
    found = boss.get("/waits/causes?by=group").get_json()
    (nlp,) = [row for row in found["rows"] if row["key"] == "nlp"]
    assert nlp["seconds"]["priority"] == 36 * HOUR
    assert sum(found["causes"]["seconds"].values()) == 26 * 4 * HOUR
    assert found["hidden"] == 0
    assert "others" not in nlp
    assert boss.get("/waits/causes?by=user").status_code == 400
    seen = _caller(site, "nlp-1").get("/waits/causes?by=group").get_json()
    assert ([row["key"] for row in seen["rows"]], seen["hidden"]) == (["nlp"], 2)
