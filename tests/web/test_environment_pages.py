"""Environments in pages and the form: published, checked, warned about, retired."""

import json
from typing import Any

import pytest

from gateway.core.env_facts import Facts
from gateway.services import site_jobs
from gateway.services.site_kinds import KINDS
from gateway.store import environments as store
from gateway.testing import builders as b

PAGE = "/library/environments"
TYPED = {
    "group": "nlp",
    "name": "torch-x",
    "title_en": "Torch of ours",
    "kind": "venv",
    "path": "/opt/envs/torch-x",
    "versions": "torch 2.2.1\nflash_attn 2.5",
    "archs": "flash_attn sm_90",
}
RESULT: dict[str, Any] = {
    "version": 1,
    "found": {"versions": {"torch": "2.3.0", "deepspeed": "0.19"}, "archs": {}, "kit": []},
    "driver": "470.10",
    "capability": "8.0",
    "base": "",
    "steps": [
        {"name": "import torch", "ok": True, "seconds": 1.5, "text": ""},
        {"name": "cards", "ok": False, "seconds": 1, "text": "exit code 1: <b>no kernel</b>"},
    ],
    "seconds": 2.5,
}


def end_check(site: Any, result: dict[str, Any]) -> None:
    job_id = max(site.broker.jobs)
    user = site.broker.jobs[job_id].request.user
    site.broker.files.write(f"/home/{user}/.sluice/site/{job_id}.json", user, json.dumps(result))
    site.broker.finish(job_id, "COMPLETED")
    site.portal.work()
    site_jobs.collect(
        begin=site.begin, read=site.begin, broker=site.broker, kinds=KINDS, now=site.portal.now
    )


def form(site: Any, filled: Any, template: str) -> str:
    """The form's fields as they are shown for these choices."""
    typed = filled(template=template, environment="torch-x", gpu_type="a100")
    text: str = site.signed_in("nlp-1").post("/submit/choices", typed).text
    return text


def test_a_leader_publishes_for_the_group_and_only_that_group_sees_it(site: Any) -> None:
    leader = site.signed_in("nlp-lead")
    made = leader.post(f"{PAGE}/new", TYPED)
    assert made.status_code == 303, made.text

    assert "Torch of ours" in leader.get(f"{PAGE}/torch-x").text
    assert "torch-x" in site.signed_in("nlp-1").get("/submit").text
    stranger = site.signed_in("vision-1")
    assert stranger.get(f"{PAGE}/torch-x").status_code == 404
    assert "torch-x" not in stranger.get("/submit").text


@pytest.mark.parametrize(
    "wrong",
    [
        {"path": "/opt/$(id)"},
        {"path": "relative"},
        {"path": "/a\nb"},
        {"kind": "none"},
        {"kind": "magic"},
        {"name": "own"},
        {"name": "Up per"},
        {"title_en": "a\x07b"},
        {"kind": "module", "path": "", "modules": "-rf"},
        {"kind": "apptainer", "path": "", "image": "/i.sif", "binds": "/a:/b,/c"},
        {"versions": "torch;rm 1"},
        {"archs": "torch sm_1000000"},
        {"min_driver": "new"},
        {"image": "/also.sif"},
        {"group": ""},
        {"group": "vision"},
    ],
)
def test_what_is_not_allowed_is_told_and_nothing_is_kept(site: Any, wrong: dict[str, str]) -> None:
    leader = site.signed_in("nlp-lead")
    answer = leader.post(f"{PAGE}/new", TYPED | wrong)
    assert answer.status_code == 422
    with site.begin() as session:
        assert store.rows(session) == []


def test_members_publish_nothing(site: Any) -> None:
    member = site.signed_in("nlp-1")
    assert member.get(f"{PAGE}/new").status_code == 404
    assert member.post(f"{PAGE}/new", TYPED).status_code == 404
    assert "Publish one" not in member.get(PAGE).text


def test_a_name_is_taken_for_ever_and_a_retired_one_stays_readable(site: Any) -> None:
    leader = site.signed_in("nlp-lead")
    leader.post(f"{PAGE}/new", TYPED)
    assert leader.post(f"{PAGE}/torch-x/retire").status_code == 303

    assert "was retired" in leader.get(f"{PAGE}/torch-x").text
    assert "torch-x" not in leader.get("/submit").text
    again = leader.post(f"{PAGE}/new", TYPED)
    assert (again.status_code, "is taken" in again.text) == (422, True)
    assert leader.post(f"{PAGE}/torch-x/edit", TYPED | {"path": "/opt/b"}).status_code == 303
    assert "torch-x" in leader.get("/submit").text
    assert "/opt/b" in leader.get(f"{PAGE}/torch-x").text


def test_an_exported_file_comes_back_and_a_hostile_one_does_not(site: Any) -> None:
    leader = site.signed_in("nlp-lead")
    leader.post(f"{PAGE}/new", TYPED)
    whole = json.loads(leader.get(f"{PAGE}/torch-x/export.json").text)
    whole["environment"]["name"] = "copy"

    def send(text: str) -> Any:
        import io

        data = {"group": "nlp", "file": (io.BytesIO(text.encode()), "e.json")}
        return leader.post(f"{PAGE}/import", data, content_type="multipart/form-data")

    assert send(json.dumps(whole)).status_code == 303
    assert "flash_attn" in leader.get(f"{PAGE}/copy").text
    whole["environment"]["name"] = "bad"
    whole["environment"]["path"] = "/x'; rm -rf /"
    for text in (json.dumps(whole), "{", "[]", "[" * 30_000, json.dumps({"format": 1})):
        assert send(text).status_code == 422


def test_the_form_warns_of_a_build_for_other_cards_and_of_what_is_lacking(
    site: Any, filled: Any
) -> None:
    site.signed_in("nlp-lead").post(f"{PAGE}/new", TYPED)
    text = form(site, filled, "deepspeed-zero3")
    assert "flash_attn of torch-x is built for sm_90, which does not run on a100 (sm_80)." in text
    assert "The template needs deepspeed, which torch-x lacks." in text


def test_nothing_is_said_where_nothing_is_known(site: Any, filled: Any) -> None:
    bare = TYPED | {"versions": "", "archs": ""}
    site.signed_in("nlp-lead").post(f"{PAGE}/new", bare)
    text = form(site, filled, "deepspeed-zero3")
    assert 'value="torch-x" selected' in text
    assert "What is known of it" not in text


def test_a_check_from_the_button_fails_on_the_page_and_in_the_form(site: Any, filled: Any) -> None:
    leader = site.signed_in("nlp-lead")
    leader.post(f"{PAGE}/new", TYPED)
    sent = leader.post(f"{PAGE}/torch-x/check", {"gpu_type": "a100", "key": "k1"})
    assert "on its way" in leader.get(sent.headers["Location"]).text
    assert "under way" in leader.get(PAGE).text
    end_check(site, RESULT)

    page = leader.get(f"{PAGE}/torch-x").text
    assert "&lt;b&gt;no kernel&lt;/b&gt;" in page
    assert "failed" in leader.get(PAGE).text
    shown = form(site, filled, "ddp")
    assert "The check on a100 failed" in shown

    leader.post(f"{PAGE}/torch-x/adopt", {"gpu_type": "a100", "key": "k2"})
    with site.begin() as session:
        assert store.facts(session)["torch-x"] == Facts({"torch": "2.3.0", "deepspeed": "0.19"})


def test_a_driver_that_is_too_old_is_told_where_a_check_has_seen_it(site: Any, filled: Any) -> None:
    leader = site.signed_in("nlp-lead")
    leader.post(f"{PAGE}/new", TYPED | {"archs": "", "min_driver": "535"})
    leader.post(f"{PAGE}/torch-x/check", {"gpu_type": "a100", "key": "k1"})
    end_check(site, RESULT | {"steps": RESULT["steps"][:1]})
    shown = form(site, filled, "ddp")
    assert "needs NVIDIA&#39;s driver 535 or newer; nodes with a100 have 470.10." in shown


def test_members_may_not_check_or_adopt(site: Any) -> None:
    site.signed_in("nlp-lead").post(f"{PAGE}/new", TYPED)
    member = site.signed_in("nlp-1")
    for act in ("check", "adopt", "retire"):
        answer = member.post(f"{PAGE}/torch-x/{act}", {"gpu_type": "a100", "key": "k"})
        assert "Only administrators do this" in member.get(answer.headers["Location"]).text
    assert site.broker.jobs == {}


def test_the_matrix_in_chinese_and_without_any(site: Any) -> None:
    person = site.signed_in("nlp-1")
    assert "No environments yet" in person.get(PAGE).text
    assert b.PASSWORD not in person.get(PAGE).text


def test_the_api_publishes_checks_changes_and_retires(site: Any) -> None:
    client = site.app.test_client()

    def call(method: str, path: str, body: Any = None, login: str = "nlp-lead") -> Any:
        sent = client.post("/api/v1/sessions", json={"login": login, "password": b.PASSWORD})
        headers = {"Authorization": f"Bearer {sent.get_json()['token']}"}
        return client.open(f"/api/v1/environments{path}", method=method, json=body, headers=headers)

    table = {
        "name": "torch-x",
        "kind": "venv",
        "path": "/opt/envs/torch-x",
        "title": {"en": "Torch", "zh_Hans": "Torch"},
        "facts": {"versions": {"torch": "2.3"}},
    }
    made = call("POST", "", {"group": "nlp", "environment": table})
    assert (made.status_code, made.get_json()["facts"]) == (201, table["facts"])
    assert call("POST", "", {"group": "nlp", "environment": {"name": 5}}).status_code == 422
    assert call("POST", "", {"environment": "x"}).status_code == 422
    sent = call("POST", "/torch-x/check", {"gpu_type": "a100"}).get_json()
    assert {one["state"] for one in sent["checks"] if one["gpu_type"] == "a100"} == {"open"}
    changed = call("PUT", "/torch-x", {"environment": table | {"path": "/opt/y"}})
    assert changed.get_json()["path"] == "/opt/y"
    assert [one["name"] for one in call("GET", "").get_json()["environments"]] == ["torch-x"]
    assert call("GET", "/torch-x", login="vision-1").status_code == 404
    assert call("POST", "/torch-x/retire", login="nlp-1").status_code == 422
    assert call("POST", "/torch-x/retire").get_json()["retired_at"]
    assert call("GET", "").get_json()["environments"] == []
