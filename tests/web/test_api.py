"""The JSON API: tokens and nothing else, the form's own rules, errors that programs can use."""

from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from gateway.testing import builders as b
from tests.web.conftest import Site

ASK: dict[str, Any] = {
    "template": "ddp",
    "group": "nlp",
    "partition": "a100",
    "qos": "normal",
    "nodes": 2,
    "nproc_per_node": 4,
    "time_limit": "12:00:00",
    "name": "train",
    "working_directory": "~",
    "values": {"script": "train.py"},
}


class Caller:
    def __init__(self, client: FlaskClient, token: str) -> None:
        self._client, self._headers = client, {"Authorization": f"Bearer {token}"}

    def get(self, path: str) -> TestResponse:
        return self._client.get(f"/api/v1{path}", headers=self._headers)

    def post(self, path: str, body: object = None, **headers: str) -> TestResponse:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._client.post(f"/api/v1{path}", json=body, headers=self._headers | sent)

    def delete(self, path: str) -> TestResponse:
        return self._client.delete(f"/api/v1{path}", headers=self._headers)


@pytest.fixture
def caller(site: Site) -> Caller:
    return _caller(site, "nlp-1")


def _caller(site: Site, login: str) -> Caller:
    client = site.app.test_client()
    answer = client.post("/api/v1/sessions", json={"login": login, "password": b.PASSWORD})
    assert answer.status_code == 201
    return Caller(client, answer.get_json()["token"])


def test_without_a_token_nothing_is_told(site: Site) -> None:
    answer = site.app.test_client().get("/api/v1/jobs")
    assert answer.status_code == 401
    assert answer.get_json()["code"] == "not_signed_in"


def test_a_cookie_is_not_enough(site: Site) -> None:
    assert site.signed_in().get("/api/v1/jobs").status_code == 401


def test_a_wrong_password_is_a_code_and_a_sentence_in_the_callers_language(site: Site) -> None:
    answer = site.app.test_client().post(
        "/api/v1/sessions",
        json={"login": "nlp-1", "password": "no"},
        headers={"Accept-Language": "zh"},
    )
    assert answer.status_code == 422
    assert answer.get_json() == {
        "code": "bad_credentials",
        "message": "名称或密码不正确。",
        "fields": {},
    }


def test_a_job_is_submitted_followed_and_cancelled(site: Site, caller: Caller) -> None:
    answer = caller.post("/submissions", ASK, Idempotency_Key="one")
    assert answer.status_code == 201
    sent = answer.get_json()
    assert sent["state"] == "accepted"
    assert caller.get(f"/submissions/{sent['id']}").get_json()["job_id"] == sent["job_id"]
    site.broker.advance(1)
    site.look()
    job = caller.get(f"/jobs/{sent['job_id']}").get_json()
    assert (job["state"], job["gpus"], job["runs"]) == ("RUNNING", 8, [])
    assert "a100-1" in caller.get(f"/jobs/{sent['job_id']}/output?offset=0").get_json()["text"]
    assert [one["id"] for one in caller.get("/jobs").get_json()["jobs"]] == [sent["job_id"]]
    assert caller.post(f"/jobs/{sent['job_id']}/cancel").status_code == 204
    assert site.broker.jobs[1].state == "CANCELLED"


def test_a_repeat_with_the_same_key_is_one_job(site: Site, caller: Caller) -> None:
    first, second = (caller.post("/submissions", ASK, Idempotency_Key="k") for _ in range(2))
    assert first.get_json()["id"] == second.get_json()["id"]
    assert len(site.broker.jobs) == 1


def test_problems_stand_at_their_fields_with_what_works(caller: Caller) -> None:
    answer = caller.post("/submissions", ASK | {"nodes": 9})
    assert answer.status_code == 422
    problem = answer.get_json()["fields"]["nodes"]
    assert (problem["code"], problem["nearest"]) == ("nodes_above_partition", "4")


@pytest.mark.parametrize("body", [None, [], {"qos": 1.5}, ASK | {"typo": "x"}, ASK | {"values": 3}])
def test_a_body_that_is_not_understood_is_refused(caller: Caller, body: object) -> None:
    answer = caller.post("/submissions", body)
    assert answer.status_code == 400
    assert answer.get_json()["code"] == "bad_request"


@pytest.mark.parametrize(
    ("change", "at"),
    [
        ({"typo": "x", "nodes": 1.5}, {"typo", "nodes"}),
        ({"values": 3}, {"values"}),
        ({"values": {"script": ["a"]}}, {"values.script"}),
        ({"values": {"script": "a.py", "scirpt": "b.py"}}, {"values.scirpt"}),
        ({"name": "\ud800"}, {"name"}),
    ],
)
def test_a_wrong_field_is_named(caller: Caller, change: dict[str, Any], at: set[str]) -> None:
    answer = caller.post("/submissions", ASK | change)
    assert answer.status_code == 400
    assert set(answer.get_json()["fields"]) == at
    assert all(answer.get_json()["fields"].values())


def test_a_field_that_is_missing_is_named_too(site: Site) -> None:
    answer = site.app.test_client().post("/api/v1/sessions", json={"login": "nlp-1"})
    assert set(answer.get_json()["fields"]) == {"password"}


def test_the_offer_names_groups_and_templates(caller: Caller) -> None:
    found = caller.get("/offer").get_json()
    assert [group["name"] for group in found["groups"]] == ["nlp"]
    assert {template["name"] for template in found["templates"]} >= {"ddp", "command"}


def test_a_stranger_gets_404_and_a_colleague_no_files(site: Site, caller: Caller) -> None:
    job = caller.post("/submissions", ASK).get_json()["job_id"]
    stranger, colleague = _caller(site, "vision-1"), _caller(site, "nlp-2")
    assert stranger.get(f"/jobs/{job}").status_code == 404
    assert stranger.post(f"/jobs/{job}/cancel").status_code == 404
    assert colleague.get(f"/jobs/{job}").status_code == 200
    assert colleague.get(f"/jobs/{job}/output").get_json()["code"] == "not_owner_of_files"
    assert colleague.post(f"/jobs/{job}/cancel").get_json()["code"] == "not_yours_to_act"


def test_an_ended_token_is_worth_nothing(caller: Caller) -> None:
    assert caller.delete("/sessions").status_code == 204
    assert caller.get("/jobs").status_code == 401


def test_a_time_limit_is_changed_as_one_types_it(site: Site, caller: Caller) -> None:
    job = caller.post("/submissions", ASK).get_json()["job_id"]
    assert caller.post(f"/jobs/{job}/time-limit", {"time_limit": "2:00:00"}).status_code == 204
    assert site.broker.jobs[1].time_limit_minutes == 120
    answer = caller.post(f"/jobs/{job}/time-limit", {"time_limit": "soon"})
    assert answer.get_json()["fields"] == {"time_limit": answer.get_json()["message"]}


def test_an_unknown_address_is_json_too(caller: Caller) -> None:
    assert caller.get("/nothing").get_json()["code"] == "not_found"
