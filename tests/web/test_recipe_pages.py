"""A job becomes a recipe, is found, cloned by a colleague, compared, exported and taken again."""

import io
import json
import re
from dataclasses import asdict
from datetime import timedelta

import pytest

from gateway.core.ask import Ask
from gateway.services import recipe_reruns
from gateway.store import recipes
from gateway.store.models import Job, Submission
from gateway.testing import builders as b
from tests.web.conftest import Site
from tests.web.test_api import _caller

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
        working_directory=f"/home/{login}",
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


def test_code_is_looked_at_published_and_put_into_a_colleagues_folder(site: Site) -> None:
    job, files = ended(site), site.broker.files
    for name, text in {
        "train.py": "print('<b>')\n",
        "lib/data.py": "",
        ".env": "TOKEN=1",
        "api_token.txt": "x",
        "key.txt": "-----BEGIN RSA PRIVATE KEY-----",
        "model.pt": "x",
        "__pycache__/train.pyc": "x",
    }.items():
        files.write(f"/home/nlp-1/{name}", "nlp-1", text)
    files.links["/home/nlp-1/out.py"] = "/etc/shadow"
    browser = site.signed_in()
    form = {"job": str(job), "title": "Tiny", "visibility": "site", "code": "1"}
    seen = browser.post("/library/recipes/new", form)
    assert seen.status_code == 200
    assert "print(&#39;&lt;b&gt;&#39;)" in seen.text
    assert "RSA PRIVATE" not in seen.text
    assert "6 stay behind" in seen.text
    assert _caller(site, "nlp-1").get("/recipes").get_json()["recipes"] == []
    digest = re.findall(r'name="seen" value="(\w+)"', seen.text)[0]

    files.write("/home/nlp-1/train.py", "nlp-1", "print('other')\n")
    again = browser.post("/library/recipes/new", form | {"seen": digest})
    assert again.status_code == 200  # what has changed meanwhile is looked at, too
    digest = re.findall(r'name="seen" value="(\w+)"', again.text)[0]
    made = browser.post("/library/recipes/new", form | {"seen": digest})
    assert made.status_code == 303
    place = made.location

    other = site.signed_in("vision-1")
    page = other.get(place).text
    assert "print(&#39;other&#39;)" in page
    assert "api_token" not in page
    laid = other.post(f"{place}/code", {"folder": "~/recipes/one"})
    assert files.contents["/home/vision-1/recipes/one/train.py"] == b"print('other')\n"
    assert files.contents["/home/vision-1/recipes/one/lib/data.py"] == b""
    filled = other.get(laid.location).text
    assert 'value="/home/vision-1/recipes/one"' in filled
    files.write("/home/vision-1/recipes/one/train.py", "vision-1", "mine")
    refused = other.post(f"{place}/code", {"folder": "~/recipes/one"}, follow_redirects=True)
    assert "nothing was changed" in refused.text
    assert files.contents["/home/vision-1/recipes/one/train.py"] == b"mine"
    for folder in ("/home/nlp-1/x", "/etc/x", "x", "~", ""):
        answer = other.post(f"{place}/code", {"folder": folder}, follow_redirects=True)
        assert "note bad" in answer.text, folder


def test_code_of_a_recipe_that_is_not_shared_is_not_there(site: Site) -> None:
    site.broker.files.write("/home/nlp-1/train.py", "nlp-1", "print(1)\n")
    owner, other = _caller(site, "nlp-1"), _caller(site, "vision-1")
    body = {"title": "Tiny", "visibility": "me", "code": True}
    made = owner.post(f"/jobs/{ended(site)}/recipe", body)
    assert made.status_code == 201, made.text
    path = f"/recipes/{made.get_json()['id']}"
    assert owner.get(f"{path}/code").get_json() == {"files": {"train.py": "print(1)\n"}}
    assert other.get(f"{path}/code").status_code == 404
    assert other.post(f"{path}/code", {"folder": "~/x"}).status_code == 404
    laid = owner.post(f"{path}/code", {"folder": "~/x"})
    assert laid.get_json() == {"folder": "/home/nlp-1/x"}
    exported = json.loads(owner.get(f"{path}/export").data)
    brought = other.post("/recipes/import", exported)
    assert brought.status_code == 201, brought.text
    taken = other.get(f"/recipes/{brought.get_json()['id']}/code").get_json()
    assert taken == {"files": {"train.py": "print(1)\n"}}


def test_a_folder_that_is_too_large_publishes_nothing(site: Site) -> None:
    for number in range(101):
        site.broker.files.write(f"/home/nlp-1/{number}.py", "nlp-1", "")
    browser = site.signed_in()
    form = {"job": str(ended(site)), "title": "Tiny", "visibility": "site", "code": "1"}
    answer = browser.post("/library/recipes/new", form)
    assert answer.status_code == 422
    assert "at most 100 files" in answer.text
    assert _caller(site, "nlp-1").get("/recipes").get_json()["recipes"] == []
