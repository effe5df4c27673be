"""The catalogue of datasets on pages: who sees what, from a draft to withdrawn, and in the form."""

import re
from collections.abc import Callable

import pytest

from gateway.store import datasets, events
from gateway.testing.dataset_samples import add_dataset, add_folder, add_version, manifest_of
from tests.web.conftest import Site

Fill = Callable[..., dict[str, str]]
ENTRY = {"title": "Words", "licence": "CC0-1.0", "visibility": "everyone", "group": "nlp"}


def person(site: Site, login: str) -> int:
    from gateway.store import people

    with site.begin() as session:
        found = people.by_login(session, login)
    assert found is not None
    return found.id


def made(site: Site, name: str = "words", **values: str) -> None:
    answer = site.signed_in("nlp-1").post("/library/datasets/new", {**ENTRY, "name": name} | values)
    assert answer.status_code == 303, answer.text


def publish(site: Site, *, by: str, name: str = "words", number: int = 1) -> object:
    return site.signed_in(by).post(f"/library/datasets/{name}/{number}/publish", {})


def test_a_draft_is_asked_for_by_its_owner_and_published_by_the_leader(site: Site) -> None:
    made(site)
    add_folder(site.broker, "/datasets/words")
    owner, leader = site.signed_in("nlp-1"), site.signed_in("nlp-lead")
    owner.post("/library/datasets/words/versions", {"path": "/datasets/words"})

    asked = owner.post("/library/datasets/words/1/publish", {}, follow_redirects=True)
    assert "Version 1 waits for who may publish it." in asked.text
    assert "words@1" not in owner.get("/submit").text

    done = leader.post("/library/datasets/words/1/publish", {}, follow_redirects=True)
    assert "Version 1 is published" in done.text
    assert "3.0 kB" in done.text
    assert 'value="words@1"' in owner.get("/submit").text


def test_another_group_sees_no_draft_and_may_not_publish(site: Site) -> None:
    made(site, visibility="groups")
    assert site.signed_in("vision-1").get("/library/datasets/words").status_code == 404
    assert "datasets/words" not in site.signed_in("vision-1").get("/library/datasets").text


def test_a_manifest_that_is_none_is_refused_at_its_field(site: Site) -> None:
    made(site)
    add_folder(site.broker, "/datasets/words", "no manifest\n")
    leader = site.signed_in("nlp-lead")
    leader.post("/library/datasets/words/versions", {"path": "/datasets/words"})
    answer = leader.post("/library/datasets/words/1/publish", {})
    assert answer.status_code == 422
    assert "Line 1 is none of a manifest" in answer.text


@pytest.mark.parametrize("path", ["/datasets/../etc", "datasets", "/a:b", "/a b", "<script>"])
def test_a_path_that_a_form_could_not_hold_is_refused(site: Site, path: str) -> None:
    made(site)
    answer = site.signed_in("nlp-1").post("/library/datasets/words/versions", {"path": path})
    assert answer.status_code == 422
    assert "Type an absolute path" in answer.text


def test_a_job_gets_the_folder_and_what_it_used_is_kept(site: Site, filled: Fill) -> None:
    owner = person(site, "nlp-1")
    dataset = add_dataset(site.begin, owner, created_at=site.broker.now)
    add_version(
        site.begin, dataset, owner, created_at=site.broker.now, published_at=site.broker.now
    )
    add_folder(site.broker, f"/datasets/{dataset}")
    browser = site.signed_in()
    answer = browser.post("/submit", filled(**{"pick-datasets": "licences@1"}))
    assert answer.status_code == 303
    assert f"DATASETS=(/datasets/{dataset})" in next(iter(site.broker.jobs.values())).request.script
    shown = browser.get("/library/datasets/licences").text
    assert "1 job" in shown


def test_a_job_tells_what_it_reads_and_that_it_has_changed(site: Site, filled: Fill) -> None:
    test_a_job_gets_the_folder_and_what_it_used_is_kept(site, filled)
    site.broker.advance(1)
    site.look()
    [job] = site.portal.jobs()
    page = f"/jobs/{job.id}"
    mine = site.signed_in()
    box = mine.get(page).text
    assert '<a href="/library/datasets/licences">licences@1</a>' in box
    assert "may have changed under it" not in box
    with site.begin() as session:
        found = {"health": "damaged", "checked_at": site.broker.now, "state": "withdrawn"}
        datasets.change_version(session, 1, **found)
        told = {"about": "licences@1"}
        events.add(session, "dataset_damaged", at=site.broker.now, job_id=job.id, detail=told)
    box = mine.get(page).text
    assert "Files of licences@1 were found to differ from what was published." in box
    assert "differ from what was published: licences@1" in box  # in its history
    assert "withdrawn" in box


def test_a_job_that_named_none_has_no_such_box(site: Site, filled: Fill) -> None:
    site.signed_in().post("/submit", filled())
    site.look()
    [job] = site.portal.jobs()
    assert 'id="datasets"' not in site.signed_in().get(f"/jobs/{job.id}").text


def test_one_that_is_not_for_this_person_is_refused_as_if_it_were_not_there(
    site: Site, filled: Fill
) -> None:
    owner = person(site, "vision-1")
    dataset = add_dataset(site.begin, owner, visibility="groups", created_at=site.broker.now)
    add_version(
        site.begin, dataset, owner, created_at=site.broker.now, published_at=site.broker.now
    )
    browser = site.signed_in()
    assert "licences" not in browser.get("/submit").text
    answer = browser.post("/submit", filled(**{"v-datasets": "licences"}))
    assert answer.status_code == 422
    assert "There is no dataset licences for you." in answer.text
    assert site.broker.jobs == {}


@pytest.mark.parametrize(
    ("folder", "text"),
    [("/home/nlp-1", "you can write to this folder"), ("/home/nlp-1/none", "no such folder")],
)
def test_a_folder_that_will_not_do_is_told_before_anything_is_held(
    site: Site, filled: Fill, folder: str, text: str
) -> None:
    answer = site.signed_in().post("/submit", filled(**{"v-datasets": folder}))
    assert answer.status_code == 422
    assert text in answer.text
    assert site.broker.jobs == {}


def test_access_is_asked_for_and_granted(site: Site) -> None:
    owner = person(site, "vision-1")
    dataset = add_dataset(site.begin, owner, visibility="listed", created_at=site.broker.now)
    add_version(
        site.begin, dataset, owner, created_at=site.broker.now, published_at=site.broker.now
    )
    mine, theirs = site.signed_in("nlp-1"), site.signed_in("vision-1")
    assert f"/datasets/{dataset}" not in mine.get("/library/datasets/licences").text
    mine.post("/library/datasets/licences/access", {"group": "nlp", "text": "To learn."})
    assert "To learn." in theirs.get("/library/datasets/requests").text
    number = re.search(r"datasets/requests/(\d+)", theirs.get("/library/datasets/requests").text)
    assert number is not None
    theirs.post(f"/library/datasets/requests/{number[1]}", {"granted": "yes"})
    assert 'value="licences@1"' in mine.get("/submit").text


def test_withdrawn_it_is_offered_no_more_and_stays_on_record(site: Site, filled: Fill) -> None:
    test_a_job_gets_the_folder_and_what_it_used_is_kept(site, filled)
    boss = site.signed_in("boss")
    boss.post("/library/datasets/licences/1/withdraw", {"why": "A right was missing."})
    assert "licences@1" not in site.signed_in().get("/submit").text
    shown = site.signed_in().get("/library/datasets/licences").text
    assert "A right was missing." in shown
    assert "1 job" in shown


def test_a_text_of_a_person_is_no_html(site: Site) -> None:
    made(site, title="<script>alert(1)</script>", description="{{ 7 * 7 }}<b>x</b>")
    shown = site.signed_in("nlp-1").get("/library/datasets/words").text
    assert "<script>alert" not in shown
    assert "{{ 7 * 7 }}&lt;b&gt;" in shown


def test_the_manifest_of_the_samples_is_one() -> None:
    assert manifest_of().count("\n") == 3
