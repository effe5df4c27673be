"""Requests that nobody honest sends: each gets a plain answer, none is a fault of ours."""

import json

import pytest

from gateway.testing import builders as b
from gateway.web.views import outputs
from tests.web.conftest import Site
from tests.web.test_api import ASK, Caller, caller

__all__ = ["caller"]


@pytest.mark.parametrize("number", [2**31, 10**20, 10**400])
def test_a_number_that_no_id_can_be_is_no_address(site: Site, caller: Caller, number: int) -> None:
    browser = site.signed_in()
    for place in ("jobs/{}", "jobs/{}/cancel", "submissions/{}/state", "submit?from={}"):
        path = f"/{place.format(number)}"
        assert browser.get(path).status_code == 404
    assert browser.post(f"/sessions/{number}/end").status_code == 404
    assert caller.get(f"/jobs/{number}/output").status_code == 404
    assert caller.get(f"/submissions/{number}").get_json()["code"] == "not_found"


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-12:00", "9999-12-31", "0001-01-01"]
)
def test_the_ends_of_the_calendar_are_as_if_they_were_not_there(site: Site, text: str) -> None:
    browser = site.signed_in()
    for name in ("since", "until"):
        assert browser.get(f"/jobs?{name}={text}").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        '{"login": "\\ud800", "password": "x"}',
        '{"login": "nlp-1", "password": "\\udfff"}',
        '{"login": ' + "[" * 5000 + "]" * 5000 + "}",
        "[" * 100_000,
    ],
)
def test_json_that_is_no_text_is_a_bad_request(site: Site, body: str) -> None:
    client = site.app.test_client()
    answer = client.post("/api/v1/sessions", data=body, content_type="application/json")
    assert (answer.status_code, answer.get_json()["code"]) == (400, "bad_request")


def test_half_a_character_reaches_no_submission(site: Site, caller: Caller) -> None:
    for half in (ASK | {"name": "\ud800"}, ASK | {"values": {"script": "\udc00.py"}}):
        assert "\\ud" in json.dumps(half)
        assert caller.post("/submissions", half).status_code == 400
    assert not site.broker.queue().jobs


def test_a_value_that_the_template_does_not_know_is_refused(site: Site, caller: Caller) -> None:
    answer = caller.post("/submissions", ASK | {"values": {"script": "a.py", "argumnets": "-x"}})
    assert (answer.status_code, answer.get_json()["code"]) == (400, "bad_request")
    assert not site.broker.queue().jobs


def test_the_whole_output_comes_in_pieces(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a server sends it: the pieces are made after the request is over."""
    monkeypatch.setattr(outputs.output, "MAX_BYTES", 8)
    job = b.add_job(site.begin, user="nlp-1", state="RUNNING", output="/home/nlp-1/x.out")
    site.broker.files.append("/home/nlp-1/x.out", "nlp-1", "one line and another\n")
    answer = site.signed_in().get(f"/jobs/{job}/output.txt", buffered=False)
    assert answer.text == "one line and another\n"
    assert "attachment" in answer.headers["Content-Disposition"]
