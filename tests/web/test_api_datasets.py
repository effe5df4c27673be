"""Datasets in the API: the pages' own rules, errors that programs can use."""

from typing import Any

import pytest

from gateway.testing.dataset_samples import add_dataset, add_folder, add_version
from tests.web.conftest import Site
from tests.web.test_api import ASK, Caller, _caller

ENTRY = {"name": "words", "title": "Words", "licence": "CC0-1.0", "group": "nlp"}


def made(site: Site, **changes: str) -> Caller:
    """An entry of nlp with a draft, by nlp-1."""
    add_folder(site.broker, "/datasets/words")
    owner = _caller(site, "nlp-1")
    assert owner.post("/datasets", ENTRY | changes).status_code == 201
    answer = owner.post("/datasets/words/versions", {"path": "/datasets/words"})
    assert answer.get_json() == {"name": "words", "version": 1, "state": "draft"}
    return owner


def test_asked_for_published_used_and_withdrawn(site: Site) -> None:
    owner, leader = made(site), _caller(site, "nlp-lead")
    assert owner.post("/datasets/words/versions/1/publish").get_json()["state"] == "requested"
    assert leader.post("/datasets/words/versions/1/publish").get_json()["state"] == "published"
    [version] = owner.get("/datasets/words").get_json()["versions"]
    assert (version["bytes"], version["files"], version["path"]) == (3000, 3, "/datasets/words")

    values = {"script": "train.py", "datasets": "words@1"}
    answer = owner.post("/submissions", ASK | {"values": values}, Idempotency_Key="key-1")
    assert answer.status_code == 201, answer.get_json()
    [job] = site.broker.jobs.values()
    assert "DATASETS=(/datasets/words)" in job.request.script

    gone = leader.post("/datasets/words/versions/1/withdraw", {"why": "A right was missing."})
    assert gone.status_code == 204
    answer = owner.post("/submissions", ASK | {"values": values}, Idempotency_Key="key-2")
    assert answer.status_code == 422
    assert len(site.broker.jobs) == 1


def test_who_may_not_see_it_is_told_that_there_is_none(site: Site) -> None:
    made(site, visibility="groups")
    stranger = _caller(site, "vision-1")
    assert stranger.get("/datasets/words").status_code == 404
    assert stranger.get("/datasets").get_json()["datasets"] == []
    assert stranger.post("/datasets/words/versions/1/publish").status_code == 404
    assert stranger.post("/datasets/words/access", {"text": "Please."}).status_code == 404
    assert _caller(site, "nlp-2").get("/datasets/words").status_code == 200


def test_where_it_lies_is_told_to_who_may_use_it(site: Site) -> None:
    owner = 1
    dataset = add_dataset(site.begin, owner, visibility="listed", created_at=site.broker.now)
    now = site.broker.now
    add_version(site.begin, dataset, owner, created_at=now, published_at=now)
    [version] = _caller(site, "vision-1").get("/datasets/licences").get_json()["versions"]
    assert f"/datasets/{dataset}" not in str(version)
    [version] = _caller(site, "nlp-1").get("/datasets/licences").get_json()["versions"]
    assert version["path"] == f"/datasets/{dataset}"


def test_access_is_asked_for(site: Site) -> None:
    made(site, visibility="listed")
    asked = _caller(site, "vision-1").post("/datasets/words/access", {"text": "To learn."})
    assert asked.status_code == 201
    assert asked.get_json()["request"] == 1


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/datasets", [], 400),
        ("/datasets", ENTRY | {"owner": "me"}, 400),
        ("/datasets", ENTRY | {"title": 5}, 400),
        ("/datasets", ENTRY | {"name": "Wörter"}, 422),
        ("/datasets", ENTRY | {"name": "../x"}, 422),
        ("/datasets", ENTRY | {"group": "vision"}, 422),
        ("/datasets", ENTRY | {"visibility": "all"}, 422),
        ("/datasets", ENTRY, 422),  # the name is taken
        ("/datasets/words/versions", {"path": "/etc/../root"}, 422),
        ("/datasets/words/versions", {}, 422),
        ("/datasets/words/versions", {"path": "/d", "parent": "none@1"}, 422),
        ("/datasets/words/versions/9/publish", None, 404),
        ("/datasets/words/versions/1/withdraw", {"why": "x"}, 422),
        ("/datasets/none/versions", {"path": "/d"}, 404),
    ],
)
def test_bad_input_changes_nothing(site: Site, path: str, body: Any, status: int) -> None:
    owner = made(site)
    before = owner.get("/datasets/words").get_json()
    answer = owner.post(path, body)
    assert answer.status_code == status, answer.get_json()
    assert answer.get_json()["code"]
    assert owner.get("/datasets/words").get_json() == before
    assert len(owner.get("/datasets").get_json()["datasets"]) == 1
