"""A job becomes a recipe, is found, cloned by a colleague, compared, exported and taken again."""

import io
import json
from dataclasses import asdict
from datetime import timedelta

import pytest

from gateway.core.ask import Ask
from gateway.services import recipe_reruns
from gateway.store import recipes
from gateway.store.models import Job, Submission
from gateway.testing import builders as b
from tests.web.conftest import Site

ASK = Ask(
    template="ddp",
    group="nlp",
    partition="a100",
    qos="normal",
    nodes="1",
    nproc_per_node="2",
    time_limit="60",
    name="tiny",
    working_directory="~",
    gpu_type="a100",
    values={"script": "train.py", "arguments": "--seed 7 --lr 0.1"},
)


def ended(site: Site, login: str = "nlp-1", ask: Ask = ASK, state: str = "COMPLETED") -> int:
    """A job of that person that ended; the job's id."""
    now = site.broker.now
    with site.begin() as session:
        person = session.query(b.t.Person).filter_by(login=login).one().id
    job = b.add_job(
        site.begin,
        user=login,
        state=state,
        token=f"t-{login}-{now.timestamp()}-{state}",
        start_time=now - timedelta(hours=1),
        end_time=now - timedelta(minutes=30),
        name="tiny",
    )
    b.add_run(
        site.begin, job, start_time=now - timedelta(hours=1), end_time=now - timedelta(minutes=30)
    )
    b.add_submission(site.begin, person, state="accepted", job_id=job, ask=asdict(ask))
    return job


def published(site: Site, **typed: str) -> int:
    job = ended(site)
    form = {"job": str(job), "title": "Tiny GPT 训练", "visibility": "group", "group": "nlp"}
    answer = site.signed_in().post("/library/recipes/new", form | typed)
    assert answer.status_code == 303, answer.text
    return int(answer.location.rsplit("/", 1)[1])


def test_the_jobs_page_leads_to_a_form_with_its_receipt(site: Site) -> None:
    job = ended(site)
    browser = site.signed_in()

    assert f"/library/recipes/new?job={job}" in browser.get(f"/jobs/{job}").text
    page = browser.get(f"/library/recipes/new?job={job}").text
    assert "2 × a100" in page
    assert "--seed 7" in page


@pytest.mark.parametrize("state", ["FAILED", "RUNNING"])
def test_only_what_ended_well_can_be_published(site: Site, state: str) -> None:
    job = ended(site, state=state)
    answer = site.signed_in().get(f"/library/recipes/new?job={job}")
    assert answer.status_code in {409, 422}


def test_anothers_job_cannot_be_published(site: Site) -> None:
    job = ended(site)
    assert site.signed_in("nlp-2").get(f"/library/recipes/new?job={job}").status_code == 404


@pytest.mark.parametrize("words", ["tiny", "TIN", "训练", "训", "ddp gpt", "a100"])
def test_a_colleague_finds_it_by_words_and_a_stranger_never(site: Site, words: str) -> None:
    made = published(site, tags="gpt, small")
    link = f"/library/recipes/{made}"

    assert link in site.signed_in("nlp-2").get("/library", query_string={"q": words}).text
    assert link not in site.signed_in("vision-1").get("/library").text
    assert site.signed_in("vision-1").get(link).status_code == 404


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"gpus": "2"}, True),
        ({"gpus": "1"}, False),
        ({"gpu_type": "a100"}, True),
        ({"gpu_type": "h100"}, False),
        ({"tag": "small"}, True),
        ({"tag": "other"}, False),
        ({"model": "gpt-2"}, True),
        ({"dataset": "pile"}, False),
        ({"q": "nothing"}, False),
        ({"q": '"; DROP TABLE recipe --'}, False),
        ({"q": "' OR * NEAR("}, False),
    ],
)
def test_filters(site: Site, filters: dict[str, str], found: bool) -> None:
    made = published(site, tags="small", model="GPT-2")
    page = site.signed_in().get("/library", query_string=filters, headers={"HX-Request": "true"})
    assert page.status_code == 200
    assert (f"/library/recipes/{made}" in page.text) is found
    assert "<html" not in page.text


def test_a_colleague_clones_it_and_sends_it(site: Site) -> None:
    made = published(site)
    browser = site.signed_in("nlp-2")

    form = browser.get(f"/submit?recipe={made}").text
    assert "--seed 7 --lr 0.1" in form
    assert f'name="recipe" value="{made}"' in form
    sent = browser.post("/submit", filled_from(made))
    assert sent.status_code == 303, sent.text
    page = browser.get(f"/library/recipes/{made}").text
    assert "on its way" in page


def filled_from(recipe: int, **changes: str) -> dict[str, str]:
    form = {
        "form_key": "clone-1",
        "recipe": str(recipe),
        "shown_template": "ddp",
        "template": "ddp",
        "group": "nlp",
        "partition": "a100",
        "qos": "normal",
        "nodes": "1",
        "nproc_per_node": "2",
        "gpu_type": "a100",
        "time_limit": "60",
        "name": "tiny",
        "working_directory": "~",
        "environment": "none",
        "v-script": "train.py",
        "v-arguments": "--seed 7 --lr 0.1",
    }
    return form | changes


def test_a_rerun_that_ended_is_compared_and_one_with_changes_does_not_count(site: Site) -> None:
    made = published(site)
    browser = site.signed_in("nlp-2")
    browser.post("/submit", filled_from(made, check="1"))
    browser.post("/submit", filled_from(made, form_key="2", **{"v-arguments": "--seed 8"}))
    with site.begin() as session:
        for job in session.query(Job).filter(Job.user == "nlp-2"):
            job.active, job.state = False, "COMPLETED"
            job.end_time = site.broker.now - timedelta(hours=1)
            b.history.mark(session, [job.id])

    judge = lambda: recipe_reruns.judge_ended(  # noqa: E731
        begin=site.begin, read=site.begin, cards={}, now=site.broker.now
    )
    assert (judge(), judge()) == (2, 0)
    page = browser.get(f"/library/recipes/{made}").text
    assert page.count("with changes: does not count") == 1


def test_a_file_goes_out_and_comes_back_as_from_elsewhere(site: Site) -> None:
    made = published(site)
    text = site.signed_in().get(f"/library/recipes/{made}/export.json").data
    stranger = site.signed_in("vision-1")

    answer = stranger.post("/library/recipes/import", {"file": (io.BytesIO(text), "r.json")})
    page = stranger.get(answer.location).text
    assert "measured elsewhere" in page
    again = stranger.post("/library/recipes/import", {"file": (io.BytesIO(text), "r.json")})
    assert again.location == answer.location


def test_a_changed_file_is_refused_in_words(site: Site) -> None:
    made = published(site)
    whole = json.loads(site.signed_in().get(f"/library/recipes/{made}/export.json").data)
    whole["recipe"]["title"] = "<script>alert(1)</script>"
    file = (io.BytesIO(json.dumps(whole).encode()), "r.json")

    page = site.signed_in("vision-1").post(
        "/library/recipes/import", {"file": file}, follow_redirects=True
    )
    assert "its fingerprint is another" in page.text


def test_html_in_its_words_stays_text(site: Site) -> None:
    made = published(site, title="<script>alert(1)</script>", summary="<b>x</b>")
    page = site.signed_in().get(f"/library/recipes/{made}").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page


def test_compare_and_retract(site: Site) -> None:
    made, other = published(site), published(site, title="Another")
    browser = site.signed_in()

    assert browser.get(f"/library/recipes/compare?left={made}&right={other}").status_code == 200
    assert site.signed_in("nlp-2").post(f"/library/recipes/{made}/retract").status_code == 404
    browser.post(f"/library/recipes/{made}/retract")
    assert site.signed_in("nlp-2").get(f"/library/recipes/{made}").status_code == 404
    assert f'/library/recipes/{made}"' not in browser.get("/library").text


def test_the_submission_remembers_its_template(site: Site) -> None:
    made = published(site)
    browser = site.signed_in()
    browser.post("/submit", filled_from(made))
    with site.begin() as session:
        newest = session.query(Submission).order_by(Submission.id.desc()).first()
        assert newest is not None
        parts = recipes.parts(session, newest.id)
    assert parts is not None
    assert len(parts[0]) == 64


def test_the_api_says_the_same_and_sends_once_for_a_key(site: Site) -> None:
    made = published(site)
    client = site.app.test_client()
    body = {"login": "nlp-2", "password": b.PASSWORD}
    token = client.post("/api/v1/sessions", json=body).get_json()["token"]
    headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "once"}

    found = client.get("/api/v1/recipes?q=tiny", headers=headers).get_json()
    assert [one["id"] for one in found["recipes"]] == [made]
    ask = client.get(f"/api/v1/recipes/{made}/clone", headers=headers).get_json()["ask"]
    assert ask["values"]["arguments"] == "--seed 7 --lr 0.1"
    sent = [client.post(f"/api/v1/recipes/{made}/rerun", json={}, headers=headers) for _ in "12"]
    assert {one.status_code for one in sent} == {201}, sent[0].text
    assert len({one.get_json()["id"] for one in sent}) == 1
    shown = client.get(f"/api/v1/recipes/{made}", headers=headers).get_json()
    assert [(run["kind"], run["changed"]) for run in shown["runs"]] == [("rerun", False)]
    file = client.get(f"/api/v1/recipes/{made}/export", headers=headers).data
    taken = client.post(
        "/api/v1/recipes/import", data=file, headers=headers, content_type="application/json"
    )
    assert taken.get_json()["id"] == made
    assert client.delete(f"/api/v1/recipes/{made}", headers=headers).status_code == 404
