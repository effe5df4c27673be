"""Pages and API of notebooks: the short form, how far one is, more time, guests, the end."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.nginx_conf import Front
from gateway.services.environments import load_environments
from gateway.testing.apps_site import open_app, row_of, write_ready, write_state
from gateway.testing.snapshot_samples import fields, keep
from gateway.web.frontdoor import HEADER, word

FORM = {"app": "notebook", "form_key": "k1", "group": "nlp", "kind": "a100|a100", "cards": "1",
        "hours": "8", "environment": "none"}  # fmt: skip


@pytest.fixture
def proxied(site: Any) -> dict[str, str]:
    """The header by which the portal knows nginx."""
    return {HEADER: word(site.app.extensions["sluice"].settings.home)}


def test_a_notebook_is_started_by_the_short_form_and_shown_until_it_is_ready(
    site: Any, proxied: dict[str, str]
) -> None:
    browser = site.signed_in()
    page = browser.get("/notebooks", headers=proxied).text
    assert "a100 – " in page
    answer = browser.post("/notebooks", FORM, headers=proxied)
    assert answer.status_code == 303
    place = answer.headers["Location"]
    (job,) = site.broker.jobs.values()
    assert (job.request.gpus_per_node, job.request.gpu_type) == (1, "a100")
    assert job.time_limit_minutes == 480
    assert browser.post("/notebooks", FORM, headers=proxied).headers["Location"] == place  # once
    submission_id = int(place.rsplit("/", 1)[1])
    asked = f"{place}/state?stage=starting&open=1"
    assert "HX-Redirect" not in browser.get(asked.replace("starting", "queued")).headers
    site.broker.advance(2)
    write_ready(site, job.job_id, port=4000)
    state = browser.get(asked, headers=proxied)  # before the queue was read again
    assert state.headers["HX-Redirect"] == f"/apps/{job.job_id}/"
    assert "Ready" in browser.get(place, headers=proxied).text
    assert "4000" not in browser.get(place, headers=proxied).text
    assert row_of(site, submission_id).door is not None


def test_without_nginx_the_page_says_what_it_takes(site: Any) -> None:
    browser = site.signed_in()
    page = browser.get("/notebooks").text
    assert "nginx" in page
    assert 'name="cards"' not in page


def test_what_cannot_work_is_said_at_its_field_and_nothing_is_sent(
    site: Any, proxied: dict[str, str]
) -> None:
    browser = site.signed_in()
    for wrong in ({"cards": "99"}, {"hours": "x"}, {"kind": "h100|h100"}, {"group": "vision"},
                  {"environment": "gone"}, {"hours": "99999"}, {"cards": "-1"}):  # fmt: skip
        answer = browser.post("/notebooks", FORM | wrong, headers=proxied)
        assert answer.status_code == 422, wrong
        assert 'class="problem"' in answer.text or "note bad" in answer.text
    assert not site.broker.jobs


def test_like_last_time_is_one_click_and_ones_own(site: Any, proxied: dict[str, str]) -> None:
    browser = site.signed_in()
    first = browser.post("/notebooks", FORM, headers=proxied).headers["Location"].rsplit("/", 1)[1]
    page = browser.get("/notebooks", headers=proxied).text
    assert f'value="{first}"' in page
    again = browser.post("/notebooks", {"again": first, "form_key": "k2"}, headers=proxied)
    assert again.status_code == 303
    one, two = site.broker.jobs.values()
    assert one.time_limit_minutes == two.time_limit_minutes
    other = site.signed_in("nlp-2")
    assert other.post("/notebooks", {"again": first}, headers=proxied).status_code == 404


def test_the_form_begins_with_what_one_took_last_else_with_what_brings_the_program(
    site: Any, proxied: dict[str, str], tmp_path: Path
) -> None:
    entry = '[[environment]]\nname = "{0}"\nkind = "module"\nmodules = ["{0}"]\n'
    entry += 'title = {{en = "{0}", zh_Hans = "{0}"}}\n{1}\n'
    facts = 'facts = {kit = ["jupyter"]}'
    file = tmp_path / "listed.toml"
    file.write_text(entry.format("plain", "") + entry.format("lab", facts))
    have = site.app.extensions["sluice"]
    site.app.extensions["sluice"] = replace(have, environments=load_environments(file))
    browser = site.signed_in()

    def chosen() -> str:
        page = browser.get("/notebooks", headers=proxied).text
        found = re.search(r'<option value="([^"]*)" selected>', page.split('name="environment"')[1])
        assert found is not None
        return found[1]

    assert chosen() == "lab"
    sent = browser.post("/notebooks", FORM | {"environment": "plain"}, headers=proxied)
    assert sent.status_code == 303
    assert chosen() == "plain"


def test_strangers_see_no_page_of_it_and_guests_no_acts(site: Any) -> None:
    app = open_app(site, port=4000)
    place = f"/notebooks/{app.submission_id}"
    stranger = site.signed_in("nlp-2")
    for path in (place, f"{place}/state"):
        assert stranger.get(path).status_code == 404
    site.signed_in().post(f"{place}/share", {"login": "nlp-2"})
    assert stranger.get(place).status_code == 200
    for act in ("stop", "keep", "save", "share", "unshare", "extend"):
        sent = {"login": "vision-1", "minutes": "600"}
        assert stranger.post(f"{place}/{act}", sent).status_code == 404, act
    assert site.broker.jobs[app.slurm_id].state == "RUNNING"


@pytest.mark.parametrize("login", ["nobody-here", "nlp-1", "", "<b>"])
def test_only_somebody_else_who_is_there_can_be_named(site: Any, login: str) -> None:
    app = open_app(site, port=4000)
    answer = site.signed_in().post(f"/notebooks/{app.submission_id}/share", {"login": login})
    assert answer.status_code == 422


def test_a_running_one_gets_more_time_within_the_sites_rule(site: Any) -> None:
    app = open_app(site, port=4000)
    browser, place = site.signed_in(), f"/notebooks/{app.submission_id}"
    page = browser.get(place).text
    assert 'name="minutes" value="540"' in page
    assert browser.post(f"{place}/extend", {"minutes": "540"}).status_code == 303
    assert site.broker.jobs[app.slurm_id].time_limit_minutes == 540
    site.look()
    for minutes in ("540", "100", "999999", "-1", "x", ""):
        assert browser.post(f"{place}/extend", {"minutes": minutes}).status_code == 422, minutes
    assert site.broker.jobs[app.slurm_id].time_limit_minutes == 540


def test_a_warning_is_shown_with_a_button_and_a_failed_start_with_its_last_lines(site: Any) -> None:
    app = open_app(site, port=4000)
    browser, place = site.signed_in(), f"/notebooks/{app.submission_id}"
    stops = site.broker.now.timestamp() + 540
    write_state(site, app.slurm_id, phase="warned", why="idle", stops_at=stops)
    page = browser.get(place).text
    assert "9 min" in page
    assert "I am here" in page
    write_state(site, app.slurm_id, phase="failed", text="no module <b>jupyterlab</b>")
    page = browser.get(place).text
    assert "no module &lt;b&gt;jupyterlab" in page
    # Nobody listens at its port: that is said, and nothing breaks.
    answer = browser.post(f"{place}/keep")
    assert answer.status_code == 303


def test_what_was_saved_in_it_is_read_and_its_page_is_one_click_away(site: Any) -> None:
    app = open_app(site, port=4000)
    [digest] = keep(site.broker.files, "nlp-1", [fields("nlp-1")])
    browser, place = site.signed_in(), f"/notebooks/{app.submission_id}"
    write_state(site, app.slurm_id, phase="ready", saved="e" * 64)
    assert "Look at it" not in browser.get(place).text
    site.broker.advance(10)
    write_state(site, app.slurm_id, phase="ready", saved=digest)
    assert f'href="/library/snapshots/{digest[:12]}"' in browser.get(f"{place}/state").text
    assert browser.get(f"/library/snapshots/{digest[:12]}").status_code == 200


def test_the_job_of_one_leads_to_it_for_its_owner_alone(site: Any, proxied: dict[str, str]) -> None:
    app = open_app(site, port=4000)
    owner, place = site.signed_in(), f"/apps-away/{app.slurm_id}"
    job_page = f"/jobs/{row_of(site, app.submission_id).job_id}"
    for path in ("/jobs", job_page):
        assert f'href="{place}"' in owner.get(path).text, path
    assert owner.get(place, headers=proxied).headers["Location"] == f"/apps/{app.slurm_id}/"
    own_page = f"/notebooks/{app.submission_id}"
    assert owner.get(place).headers["Location"] == own_page  # without nginx nothing opens
    leader = site.signed_in("nlp-lead")
    assert leader.get(job_page).status_code == 200
    assert place not in leader.get(job_page).text + leader.get("/jobs?who=group").text
    owner.post(f"{own_page}/stop")
    site.look()
    assert place not in owner.get(job_page).text + owner.get("/jobs").text


def test_a_node_that_died_is_said_in_words(site: Any, proxied: dict[str, str]) -> None:
    app = open_app(site, port=4000)
    owner, place = site.signed_in(), f"/notebooks/{app.submission_id}"
    assert "not answer Slurm" not in owner.get(place, headers=proxied).text
    (node,) = site.broker.jobs[app.slurm_id].nodes
    site.broker.node_states[node] = "DOWN*+NOT_RESPONDING"
    site.look()
    page = owner.get(f"{place}/state", headers=proxied).text
    assert f"Its node {node} does not answer Slurm" in page
    site.broker.finish(app.slurm_id, "NODE_FAIL")
    site.look()
    page = owner.get(f"{place}?stay=1", headers=proxied).text
    assert "Lost: a node failed under it" in page
    assert f'href="/apps/{app.slurm_id}/"' not in page
    gone = owner.get(f"/apps-down/{app.slurm_id}", headers=proxied)
    assert gone.status_code == 503
    assert "job has ended" in gone.text


def test_it_is_stopped_and_then_it_is_a_job_that_has_ended(site: Any) -> None:
    app = open_app(site, port=4000)
    browser, place = site.signed_in(), f"/notebooks/{app.submission_id}"
    assert browser.post(f"{place}/stop").status_code == 303
    site.look()
    assert browser.get(place).headers["Location"].startswith("/jobs/")
    assert browser.get(f"/apps-down/{app.slurm_id}").status_code == 503


def test_the_api_does_the_same_and_never_tells_the_key(site: Any, proxied: dict[str, str]) -> None:
    client = site.app.test_client()
    answer = client.post(
        "/api/v1/sessions", json={"login": "nlp-1", "password": "a password for tests"}
    )
    bearer = {"Authorization": f"Bearer {answer.json['token']}"} | proxied
    body = {"application": "notebook", "group": "nlp", "partition": "a100", "gpu_type": "a100",
            "cards": 1, "hours": "2"}  # fmt: skip
    made = client.post("/api/v1/notebooks", json=body, headers=bearer)
    assert made.status_code == 201, made.json
    place, slurm_id = f"/api/v1/notebooks/{made.json['id']}", made.json["slurm_id"]
    site.broker.advance(2)
    write_ready(site, slurm_id, port=4000)
    found = client.get(place, headers=bearer)
    assert (found.json["state"], found.json["url"]) == ("ready", f"/apps/{slurm_id}/")
    assert "AAAA" not in found.text + client.get("/api/v1/notebooks", headers=bearer).text
    site.look()
    assert client.post(f"{place}/extend", json={"minutes": 180}, headers=bearer).status_code == 204
    assert client.post(f"{place}/share", json={"login": "nlp-2"}, headers=bearer).status_code == 204
    assert client.get(place, headers=bearer).json["guests"] == ["nlp-2"]
    assert client.post(f"{place}/stop", headers=bearer).status_code == 204
    for wrong in ({"application": "ddp"}, {"application": "notebook", "odd": 1},
                  {"application": "notebook", "values": {"odd": "1"}}, {}):  # fmt: skip
        assert client.post("/api/v1/notebooks", json=wrong, headers=bearer).status_code in {
            400,
            404,
        }


def test_values_are_compared_before_they_stand_in_a_configuration() -> None:
    with pytest.raises(ValueError, match="another way"):
        Front("443; include /etc/shadow", "127.0.0.1:1", "0" * 64, "/v", 1)
