"""The smoke job beside the form: one press, its verdict, and the long job after it."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any

from werkzeug.test import TestResponse

from gateway.core.credits import MILLION
from gateway.core.training.sums import CardMinute, dump
from gateway.services import credit, prices, smoke
from gateway.store import models as t
from gateway.store.training_models import TrainingEvent, TrainingMinute
from tests.web.conftest import Browser, Site

Fill = Callable[..., dict[str, str]]
TOLD = {
    "ok": True,
    "world": 2,
    "step_seconds": 0.42,
    "peak_bytes": 31_000_000_000,
    "save_seconds": 3.1,
    "save_bytes": 14_000_000_000,
    "loaded": True,
    "text": "2 ranks met",
}


def press(browser: Browser, form: dict[str, str]) -> TestResponse:
    answer = browser.post("/submit/smoke", form)
    assert answer.status_code == 303, answer.text
    return browser.get(answer.location)


def one(**changes: str) -> dict[str, str]:
    """One node with two cards: it fits on debug."""
    return {"nodes": "1", "nproc_per_node": "2", **changes}


def box(page: str) -> str:
    found = re.search(r'<section class="box smoke".*?</section>', page, re.DOTALL)
    assert found is not None
    return unescape(found[0])


def hidden(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None
    return unescape(found[1])


def tell(site: Site, facts: dict[str, Any]) -> None:
    """As the worker keeps the event of a run folder."""
    with site.begin() as session:
        job = session.query(t.Job).filter_by(purpose="smoke").one()
        session.add(
            TrainingEvent(job_id=job.id, at=1.0, restart=0, kind="smoke", step=None, facts=facts)
        )
        cards = dump([CardMinute(n, 1, 9.0, 9.0, 1, 80_000_000_000, 0, 0.0, 0) for n in (0, 1)])
        session.add(TrainingMinute(job_id=job.id, node="a100-1", at=0, last_at=1.0, cards=cards))


def end(site: Site, state: str = "COMPLETED", code: int = 0) -> None:
    (job,) = [job for job in site.broker.jobs.values() if job.request.name.endswith("-smoke")]
    site.broker.advance(5)
    site.broker.finish(job.job_id, state, code=code)
    site.look()


def test_one_press_runs_the_same_job_for_some_minutes(site: Site, filled: Fill) -> None:
    page = press(site.signed_in(), filled(**one())).text
    (job,) = site.broker.jobs.values()
    assert (job.request.partition, job.request.time_limit_minutes) == ("debug", 5)
    assert "SLUICE_SMOKE=1" in job.request.script
    assert "waits" in box(page) or "runs" in box(page)
    assert 'hx-trigger="every 3s"' in box(page)
    # The form is the one that it was, under its own key.
    assert hidden(page, "form_key") == "key-1"
    assert '<option value="a100" selected>' in page
    assert 'value="12:00:00"' in page


def test_two_presses_are_one_smoke_job_and_a_changed_form_is_another(
    site: Site, filled: Fill
) -> None:
    browser = site.signed_in()
    first = press(browser, filled(**one())).text
    press(browser, filled(**one()))
    press(browser, filled(**one(), smoke=hidden(first, "smoke")))
    assert len(site.broker.jobs) == 1
    press(browser, filled(**one(), **{"v-script": "other.py"}))
    assert len(site.broker.jobs) == 2


def test_what_does_not_fit_on_debug_is_not_made_smaller(site: Site, filled: Fill) -> None:
    press(site.signed_in(), filled())
    (job,) = site.broker.jobs.values()
    assert (job.request.partition, job.request.nodes, job.request.gpus_per_node) == ("a100", 2, 4)


def test_its_verdict_stands_on_the_form(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    page = press(browser, filled(**one())).text
    end(site)
    tell(site, TOLD)
    form = filled(**one(), smoke=hidden(page, "smoke"))
    said = box(browser.post("/submit/preview", form).text)
    assert "passed" in said
    for words in ("2 ranks", "0.42 s", "31.0 of 80 GB", "3.1 s, 14 GB", "yes", "#output"):
        assert words in said
    assert "hx-trigger" not in said
    assert "has changed since" not in said
    changed = browser.post("/submit/preview", form | {"nproc_per_node": "1"}).text
    assert "The form has changed since" in box(changed)
    later = browser.post("/submit/preview", form | {"time_limit": "2-0"}).text
    assert "has changed since" not in box(later)


def test_what_failed_is_told_as_text(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    page = press(browser, filled(**one())).text
    end(site, "FAILED", 70)
    failure = "1 ranks met instead of 2 <script>alert(1)</script>"
    tell(site, TOLD | {"ok": False, "world": 1, "text": failure})
    form = filled(**one(), smoke=hidden(page, "smoke"))
    answer = browser.post("/submit/smoke/state", form).text
    assert "1 ranks met instead of 2" in answer
    assert "<script>alert" not in answer
    assert "state-failed" in answer


def test_without_a_verdict_state_and_exit_code_stand_in(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    page = press(browser, filled(**one())).text
    end(site, "FAILED", 3)
    said = box(browser.post("/submit/preview", filled(**one(), smoke=hidden(page, "smoke"))).text)
    assert "failed" in said
    assert "Its exit code was 3." in said


def test_what_a_job_told_is_not_denied_before_it_was_read(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    page = press(browser, filled(**one())).text
    end(site)
    form = filled(**one(), smoke=hidden(page, "smoke"))
    assert "follows in a moment" in box(browser.post("/submit/preview", form).text)
    tell(site, TOLD | {"save_bytes": 21_400})
    assert "3.1 s, 21.4 kB" in box(browser.post("/submit/preview", form).text)


def test_the_long_job_is_sent_after_it_and_once(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    form = filled(**one(), then_long="true")
    page = press(browser, form).text
    press(browser, form)
    first, second = site.broker.jobs.values()
    assert second.request.after_ok == first.job_id
    assert second.request.time_limit_minutes == 720
    assert f"--dependency=afterok:{first.job_id}" in second.request.script
    assert f"The long job {second.job_id} starts when this one has passed." in box(page)
    # Submit is that job as well: nothing is sent a second time.
    answer = browser.post("/submit", filled(**one(), smoke=hidden(page, "smoke")))
    assert answer.location.startswith("/jobs/")
    assert len(site.broker.jobs) == 2


def test_until_slurm_has_the_smoke_job_the_long_one_says_what_it_waits_for(
    site: Site, filled: Fill
) -> None:
    browser = site.signed_in()
    site.broker.unreachable = True
    page = press(browser, filled(**one(), then_long="true")).text
    found = re.search(r'href="(/submissions/\d+)">The long job is sent when', page)
    assert found is not None
    for path in (found[1], f"{found[1]}/state", "/jobs"):
        assert "Waiting for its smoke job" in browser.get(path).text


def test_after_a_failure_the_form_can_be_sent_again(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    page = press(browser, filled(**one(), then_long="true")).text
    end(site, "FAILED", 1)
    options = {"begin": site.begin, "read": site.begin, "broker": site.broker}
    smoke.cancel_stranded(**options, now=site.broker.now)
    site.look()
    again = filled(**one(), smoke=hidden(page, "smoke"), then_long="true")
    assert "cancelled" in box(browser.post("/submit/preview", again).text).casefold()
    for _ in range(2):
        press(browser, again)
    assert len(site.broker.jobs) == 4
    newest = max(site.broker.jobs.values(), key=lambda job: job.job_id)
    assert newest.request.after_ok == newest.job_id - 1


def test_another_persons_smoke_job_is_none(site: Site, filled: Fill) -> None:
    page = press(site.signed_in(), filled(**one())).text
    number = hidden(page, "smoke")
    stranger = site.signed_in("nlp-2")
    assert stranger.get(f"/submit?smoke={number}").status_code == 404
    answer = stranger.post("/submit/preview", filled(**one(), smoke=number)).text
    assert 'class="box smoke"' not in answer
    assert stranger.post("/submit/smoke/state", filled(smoke=number)).text == ""
    for nonsense in ("x", "-1", "9" * 30, "²"):
        assert stranger.post("/submit/preview", filled(smoke=nonsense)).status_code == 200


def test_a_form_that_cannot_work_sends_nothing(site: Site, filled: Fill) -> None:
    answer = site.signed_in().post("/submit/smoke", filled(nodes="9"))
    assert answer.status_code == 422
    assert site.broker.jobs == {}


def test_what_it_holds_is_told(site: Site, filled: Fill) -> None:
    prices.set_price("a100", "3", begin=site.begin, now=site.broker.now)
    credit.top_up("nlp", 1000 * MILLION, begin=site.begin, now=site.broker.now)
    page = press(site.signed_in(), filled(**one())).text
    assert "CN¥0.50 are held for it, for at most 5 minutes" in box(page)


def test_the_list_and_its_page_say_what_it_is(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    press(browser, filled(**one()))
    assert "smoke job · ddp" in browser.get("/jobs").text
    job = browser.get("/jobs/1").text
    assert "Smoke job of train" in job


def test_the_box_asks_on_until_the_long_job_is_cancelled(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    page = press(browser, filled(**one(), then_long="true")).text
    end(site, "FAILED", 1)
    tell(site, TOLD | {"ok": False, "text": "no step was made"})
    form = filled(**one(), smoke=hidden(page, "smoke"))
    assert 'hx-trigger="every 3s"' in box(browser.post("/submit/preview", form).text)
    (long,) = [job for job in site.broker.jobs.values() if job.request.name == "train"]
    site.broker.cancel(long.job_id, user="nlp-1")
    site.broker.advance(5)
    site.look()
    said = box(browser.post("/submit/preview", form).text)
    assert "hx-trigger" not in said
    assert "starts when this one has passed" not in said
    assert "not eligible yet" not in browser.get("/jobs").text


def test_earlier_forms_are_those_of_jobs_not_of_smoke_jobs(site: Site, filled: Fill) -> None:
    browser = site.signed_in()
    press(browser, filled(**one()))
    assert "Or begin from an earlier one" not in browser.get("/submit").text
