"""A training run on the job's page, for its owner, a colleague and a stranger; and in the API."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from gateway.core.training.lines import DONE_ALREADY
from gateway.services import training
from gateway.store import models as t
from gateway.testing import builders as b
from gateway.testing.training import RunFolder, add_portal_job, run_folder
from gateway.testing.training_samples import PLACE, TrainingSample, fill_training
from tests.web.conftest import Site

HOSTILE = "<script>alert(1)</script>"


def read(site: Site) -> None:
    """The worker's turns, until it has caught up."""
    for _ in range(20):
        now = site.broker.now
        begin = site.begin
        report = training.follow(
            begin=begin, read=begin, broker=site.broker, now=now, budget_seconds=60.0
        )
        if not report.jobs:
            return
        site.broker.now += timedelta(seconds=training.SLOWEST_SECONDS)


@pytest.fixture
def sample(site: Site) -> TrainingSample:
    made = fill_training(site.begin, site.broker.files, now=site.broker.now, user="nlp-1")
    read(site)
    return made


@pytest.fixture
def job(site: Site) -> tuple[int, RunFolder]:
    """One that has only begun."""
    made = add_portal_job(site.begin, "nlp-1", start_time=site.broker.now)
    return made, run_folder(site.begin, site.broker.files, made)


def test_a_colleague_sees_no_job_of_the_run_that_went_to_another_group(
    site: Site, sample: TrainingSample
) -> None:
    with site.begin() as session:
        session.execute(update(t.Job).where(t.Job.id == sample.second).values(group="vision"))
    colleague, owner = site.signed_in("nlp-lead"), site.signed_in()
    assert colleague.get(f"/jobs/{sample.second}").status_code == 404
    link = f'href="/jobs/{sample.second}"'
    path = f"/jobs/{sample.first}"
    assert link in owner.get(path).text
    page = colleague.get(path).text
    assert "gpt-small" in page
    assert link not in page


def test_the_page_shows_one_run_over_its_jobs(site: Site, sample: TrainingSample) -> None:
    page = site.signed_in().get(f"/jobs/{sample.second}").text
    assert "gpt-small" in page
    assert f'href="/jobs/{sample.first}"' in page
    for word in ("Waited in all", "Steps lost", "Goodput", "a restart takes this one", "MFU ="):
        assert word in page, word
    assert page.count('class="tick"') > 1
    assert page.count('<figure class="chart"') == 6
    for key in ("loss", "step", "tokens", "mfu", "use", "memory"):
        assert f'id="chart-{key}"' in page
        assert f'id="table-{key}"' in page


def test_a_run_of_many_jobs_is_looked_at_less_often(site: Site, sample: TrainingSample) -> None:
    """Each look adds up all of its jobs."""
    path = f"/jobs/{sample.second}"
    every = re.compile(r'hx-get="/jobs/\d+/training" hx-trigger="every (\d+)s"')
    assert every.findall(site.signed_in().get(path).text) == ["10"]
    for days in range(1, 7):
        at = site.broker.now - timedelta(days=20 + days)
        add_portal_job(site.begin, "nlp-1", run="gpt-small", submit_time=at, start_time=at)
    assert every.findall(site.signed_in().get(path).text) == ["60"]


def test_the_live_update_is_the_same_as_on_the_page(site: Site, sample: TrainingSample) -> None:
    browser = site.signed_in()
    page = browser.get(f"/jobs/{sample.second}").text
    fragment = browser.get(f"/jobs/{sample.second}/training").text
    assert fragment.strip() in page


def test_the_first_job_tells_of_its_stall_and_of_what_was_lost(
    site: Site, sample: TrainingSample
) -> None:
    page = site.signed_in().get(f"/jobs/{sample.first}").text
    assert "A stall was seen: no step is made, the GPUs do nothing." in page
    assert "Nothing was done: that is the group&#39;s rule." in page
    assert "PREEMPTED" in page
    assert "TIMEOUT" in page


def test_a_stall_that_nothing_followed_stands_at_the_head_of_the_page(
    site: Site, job: tuple[int, RunFolder]
) -> None:
    job_id, folder = job
    folder.event(site.broker.now, "ready", world=2, step=0)
    folder.event(site.broker.now, "stall", signs=["log"], rule="hold", text="silent")
    read(site)
    head = site.signed_in().get(f"/jobs/{job_id}/state").text
    assert "the log is silent" in head
    assert "stopped and held" in head
    folder.metric(site.broker.now, 1)
    read(site)
    assert "the log is silent" not in site.signed_in().get(f"/jobs/{job_id}/state").text


def test_what_the_files_say_in_words_is_for_their_owner_alone(
    site: Site, sample: TrainingSample
) -> None:
    path = f"/jobs/{sample.second}"
    assert PLACE in site.signed_in("nlp-1").get(path).text
    colleague = site.signed_in("nlp-2").get(path)
    assert colleague.status_code == 200
    assert "Goodput" in colleague.text
    assert PLACE not in colleague.text
    assert "/sluice-runs/" not in colleague.text


@pytest.mark.parametrize("path", ["", "/training", "/training.csv"])
def test_a_stranger_is_told_nothing(site: Site, sample: TrainingSample, path: str) -> None:
    answer = site.signed_in("vision-1").get(f"/jobs/{sample.second}{path}")
    assert answer.status_code == 404


def test_hostile_texts_are_text(site: Site, job: tuple[int, RunFolder]) -> None:
    job_id, folder = job
    now = site.broker.now
    folder.event(now, "ready", world=1, step=0)
    for kind in ("save_failed", "uploaded", "upload_failed", "stall", "stop_requested", "end"):
        facts = dict.fromkeys(("error", "place", "text", "reason", "action", "rule"), HOSTILE)
        folder.event(now, kind, step=5, signs=[HOSTILE], **facts)
    folder.event(now, "saved", step=5, path=HOSTILE, seconds=1, bytes=1)
    folder.look(now, HOSTILE, 5.0)
    read(site)
    for who in ("nlp-1", "nlp-2"):
        page = site.signed_in(who).get(f"/jobs/{job_id}")
        assert page.status_code == 200
        assert HOSTILE not in page.text
    assert "&lt;script&gt;" in site.signed_in().get(f"/jobs/{job_id}").text


def test_numbers_beyond_belief_do_not_break_the_page(
    site: Site, job: tuple[int, RunFolder]
) -> None:
    job_id, folder = job
    now = site.broker.now
    folder.event(now, "model", params=1e30, flops_per_token=1e-300)
    for n in range(40):
        at = now + timedelta(seconds=n)
        folder.metric(at, n * 2**47, loss=(-1) ** n * 1e30, tokens=2**40, seconds=1e29)
        folder.event(at, "saved", step=2**53 - n, seconds=1e30, bytes=2**53)
    site.broker.now += timedelta(minutes=2)
    read(site)
    browser = site.signed_in()
    assert browser.get(f"/jobs/{job_id}").status_code == 200
    assert browser.get(f"/jobs/{job_id}/training.csv").status_code == 200


def test_a_job_that_tells_nothing_says_how_it_could(site: Site, job: tuple[int, RunFolder]) -> None:
    read(site)
    page = site.signed_in().get(f"/jobs/{job[0]}").text
    assert "sluice_train" in page
    assert 'id="whole-run"' not in page


def test_a_job_of_a_run_that_was_done_says_so_and_names_the_job_that_did_it(site: Site) -> None:
    now = site.broker.now
    first, again = (
        add_portal_job(site.begin, "nlp-1", run="night", submit_time=at, start_time=at)
        for at in (now - timedelta(hours=2), now)
    )
    folder = run_folder(site.begin, site.broker.files, first, "night")
    folder.event(now - timedelta(hours=1), "saved", step=9, path="/d/step-000000009", bytes=5)
    folder.event(now - timedelta(hours=1), "done", step=9)
    late = run_folder(site.begin, site.broker.files, again, "night")
    late.event(site.broker.now, "end", code=0, action="exit", reason=DONE_ALREADY, step=9)
    read(site)
    page = site.signed_in().get(f"/jobs/{again}").text
    note = page.split('id="done-already">')[1].split("</p>")[0]
    assert "This run was done already: nothing was trained" in note
    assert f'href="/jobs/{first}"' in note
    assert "The script ended with code" not in page
    assert "Five lines" not in page
    assert "a restart takes this one" not in page
    assert 'id="done-already"' not in site.signed_in().get(f"/jobs/{first}").text


def test_a_page_that_is_open_when_the_job_begins_to_tell_shows_it(
    site: Site, job: tuple[int, RunFolder]
) -> None:
    job_id, folder = job
    browser = site.signed_in()
    page = browser.get(f"/jobs/{job_id}").text
    assert f'hx-get="/jobs/{job_id}/training"' in page
    assert "sluice_train" not in page  # nobody has looked yet
    folder.event(site.broker.now, "ready", world=1, step=0)
    read(site)
    assert 'id="whole-run"' in browser.get(f"/jobs/{job_id}/training").text


def test_a_job_from_elsewhere_has_no_word_of_training(site: Site) -> None:
    plain = b.add_job(site.begin, user="nlp-1", token=None, state="RUNNING", start_time=b.NOW)
    read(site)
    assert "sluice_train" not in site.signed_in().get(f"/jobs/{plain}").text


def test_all_of_the_metrics_as_csv(site: Site, sample: TrainingSample) -> None:
    answer = site.signed_in().get(f"/jobs/{sample.second}/training.csv")
    head, *lines = answer.text.splitlines()
    assert answer.mimetype == "text/csv"
    assert head.startswith("time,restart,step,loss,step_seconds,tokens_per_second,mfu,gpu_percent")
    rows = [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]
    assert max(int(row["step"]) for row in rows if row["step"]) == sample.step
    assert {row["gpu_percent"] != "" for row in rows} == {True, False}


@pytest.fixture
def api(site: Site) -> Callable[[str, int], Any]:
    def ask(login: str, job_id: int) -> Any:
        client = site.app.test_client()
        body = {"login": login, "password": b.PASSWORD}
        token = client.post("/api/v1/sessions", json=body).get_json()["token"]
        headers = {"Authorization": f"Bearer {token}"}
        return client.get(f"/api/v1/jobs/{job_id}/training", headers=headers)

    return ask


def test_the_api_tells_the_same_facts(
    site: Site, sample: TrainingSample, api: Callable[[str, int], Any]
) -> None:
    found = api("nlp-1", sample.second).get_json()
    assert found["run"] == "gpt-small"
    assert found["jobs"] == [sample.first, sample.second]
    assert found["step"] == sample.step
    assert len(found["stretches"]) == 3
    assert found["steps_lost"] == sum(one["steps_lost_before"] or 0 for one in found["stretches"])
    assert found["steps_lost"] > 0
    for part in (
        found["goodput"],
        found["own_goodput"],
        *(s["goodput"] for s in found["stretches"]),
    ):
        assert part["total"] == sum(n for use, n in part.items() if use != "total")
    hours = sum(one["ran_seconds"] for one in found["stretches"]) * 16
    assert found["goodput"]["total"] == hours
    assert found["goodput"]["stalled"] > 0
    assert found["goodput"]["repeated"] > 0
    assert found["resumes_from"] == max(c["step"] for c in found["checkpoints"] if c["on_cluster"])
    assert PLACE in json.dumps(found)


def test_the_api_keeps_the_files_words_for_their_owner(
    site: Site, sample: TrainingSample, api: Callable[[str, int], Any]
) -> None:
    found = api("nlp-2", sample.second).get_json()
    assert PLACE not in json.dumps(found)
    assert "/sluice-runs/" not in json.dumps(found)
    assert api("vision-1", sample.second).status_code == 404


def test_a_leader_sets_the_rule_and_every_member_sees_it(site: Site) -> None:
    leader, member = site.signed_in("nlp-lead"), site.signed_in("nlp-1")
    assert "Tell, and do nothing" in member.get("/group/nlp").text
    answer = leader.post("/group/nlp/on-stall", {"on_stall": "requeue"})
    assert answer.status_code == 303
    page = member.get("/group/nlp").text
    assert "Stop it and let it go on" in page
    assert "Nlp-lead" in page
    chosen = re.search(r'value="requeue"( checked)?', leader.get("/group/nlp/manage").text)
    assert chosen is not None
    assert chosen[1]


@pytest.mark.parametrize(("who", "value", "status"), [
    ("nlp-1", "hold", 404),
    ("vision-1", "hold", 404),
    ("nlp-lead", "explode", 422),
    ("nlp-lead", "", 422),
])  # fmt: skip
def test_others_and_other_rules_are_refused(site: Site, who: str, value: str, status: int) -> None:
    answer = site.signed_in(who).post("/group/nlp/on-stall", {"on_stall": value})
    assert answer.status_code == status
    assert "Tell, and do nothing" in site.signed_in("nlp-1").get("/group/nlp").text


def test_the_cap_on_restarts_comes_from_the_form(site: Site, sample: TrainingSample) -> None:
    with site.begin() as session:
        values = {"values": {"max_restarts": "7"}}
        session.execute(
            update(t.Submission).where(t.Submission.job_id == sample.second).values(ask=values)
        )
    assert "may go back 7 times" in site.signed_in().get(f"/jobs/{sample.second}").text


def test_a_run_that_is_done_says_nothing_of_a_restart(
    site: Site, job: tuple[int, RunFolder]
) -> None:
    job_id, folder = job
    at = site.broker.now
    folder.event(at, "ready", world=1, step=0)
    folder.event(at, "saved", step=5, path="/data/step-000000005", bytes=21_400, seconds=0.1)
    read(site)
    page = site.signed_in().get(f"/jobs/{job_id}").text
    assert "The script is ready, at step 0" in page
    assert "a restart takes this one" in page
    folder.event(site.broker.now, "done", step=9)
    read(site)
    page = site.signed_in().get(f"/jobs/{job_id}").text
    assert "21.4 kB" in page
    assert "a restart takes this one" not in page


def test_a_code_of_the_templates_is_told_in_words(site: Site) -> None:
    ended = {"state": "FAILED", "active": False, "reason": "NonZeroExitCode", "exit_code": 75}
    ended |= {"start_time": site.broker.now, "end_time": site.broker.now}
    made = add_portal_job(site.begin, "nlp-1", **ended)
    page = site.signed_in().get(f"/jobs/{made}").text
    assert "its restarts are spent: submit again with the same run name" in page
    own = add_portal_job(site.begin, "nlp-1", **ended | {"exit_code": 3})
    assert "The end of the output says more." in site.signed_in().get(f"/jobs/{own}").text
