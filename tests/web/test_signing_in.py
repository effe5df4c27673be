"""Signing in: cookies, open redirects, the throttle, and sessions that end."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Never

import pytest

from gateway.config import load_settings
from gateway.testing import builders as b
from gateway.testing.fakebroker import FakeBroker
from gateway.web.app import create_app
from tests.web.conftest import Site


def test_a_stranger_is_sent_to_sign_in_and_back(site: Site) -> None:
    answer = site.browser().get("/jobs?state=running")
    assert answer.status_code == 302
    assert answer.location == "/sign-in?next=/jobs?state%3Drunning"


def test_the_cookie_is_for_this_site_and_out_of_reach_of_scripts(site: Site) -> None:
    browser = site.browser()
    answer = browser.post("/sign-in", {"login": "nlp-1", "password": b.PASSWORD})
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie


def test_a_wrong_password_is_told_and_the_name_stays(site: Site) -> None:
    answer = site.browser().post("/sign-in", {"login": "nlp-1", "password": "wrong"})
    assert answer.status_code == 422
    assert "The name or the password is wrong." in answer.text
    assert 'value="nlp-1"' in answer.text
    assert "wrong" not in re.findall(r'value="([^"]*)"', answer.text)


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "/\t/evil.example",
        "javascript:alert(1)",
        "evil.example",
    ],
)
def test_signing_in_leads_nowhere_else(site: Site, target: str) -> None:
    form = {"login": "nlp-1", "password": b.PASSWORD, "next": target}
    assert site.browser().post("/sign-in", form).location == "/jobs"


def test_too_many_attempts_are_slowed_down_and_said_so(site: Site) -> None:
    browser = site.browser()
    for _ in range(10):
        browser.post("/sign-in", {"login": "nlp-1", "password": "wrong"})
    answer = browser.post("/sign-in", {"login": "nlp-1", "password": b.PASSWORD})
    assert answer.status_code == 429
    assert "Too many attempts" in answer.text


def test_an_ended_session_is_out_at_once(site: Site) -> None:
    first, second = site.signed_in(), site.signed_in()
    ids = re.findall(r"/sessions/(\d+)/end", second.get("/sessions").text)
    assert len(ids) == 1
    assert second.post(f"/sessions/{ids[0]}/end").status_code == 303
    assert first.get("/jobs").status_code == 302
    assert second.get("/jobs").status_code == 200


NEW = "a new and longer sentence"


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_person_changes_their_own_password(site: Site, elsewhere: bool) -> None:
    other, browser = site.signed_in(), site.signed_in()
    form = {"old": b.PASSWORD, "new": NEW, "again": NEW}
    form |= {"elsewhere": "true"} if elsewhere else {}
    assert browser.post("/password", form).status_code == 303
    assert browser.get("/jobs").status_code == 200
    assert other.get("/jobs").status_code == (302 if elsewhere else 200)
    sign_in = {"login": "nlp-1", "password": NEW}
    assert site.browser().post("/sign-in", sign_in).status_code == 303
    assert site.browser().post("/sign-in", {**sign_in, "password": b.PASSWORD}).status_code == 422


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"old": "guessed", "new": NEW, "again": NEW}, "That is not your password now."),
        ({"old": b.PASSWORD, "new": NEW, "again": "other"}, "The two are not the same."),
        ({"old": b.PASSWORD, "new": "short", "again": "short"}, "A password has at least"),
        ({"old": "", "new": NEW, "again": NEW}, "Fill this in."),
    ],
)
def test_a_password_is_not_changed_without_the_old_one_or_by_a_slip(
    site: Site, form: dict[str, str], told: str
) -> None:
    answer = site.signed_in().post("/password", form)
    assert answer.status_code == 422
    assert told in answer.text
    assert NEW not in answer.text
    site.signed_in()  # by the old one still


def test_guessing_the_old_password_is_slowed_down(site: Site) -> None:
    browser, form = site.signed_in(), {"old": "guessed", "new": NEW, "again": NEW}
    for _ in range(10):
        browser.post("/password", form)
    assert "Too many attempts" in browser.post("/password", form | {"old": b.PASSWORD}).text


def test_nobody_ends_anothers_session(site: Site) -> None:
    mine, other = site.signed_in("nlp-1"), site.signed_in("nlp-2")
    site.signed_in("nlp-2")
    ids = re.findall(r"/sessions/(\d+)/end", other.get("/sessions").text)
    assert mine.post(f"/sessions/{ids[0]}/end").status_code == 404


def test_signing_out_ends_the_session_itself(site: Site) -> None:
    browser = site.signed_in()
    cookie = browser.client.get_cookie("sluice")
    assert cookie is not None
    browser.post("/sign-out")
    browser.client.set_cookie("sluice", cookie.value)
    assert browser.get("/jobs").status_code == 302


def test_a_form_outlives_the_session(site: Site, filled: Callable[..., dict[str, str]]) -> None:
    browser = site.signed_in()
    token = browser.token()
    form = filled(name="my-long-typed-name") | {"csrf_token": token}
    ids = re.findall(r"/sessions/(\d+)/end", site.signed_in().get("/sessions").text)
    other = site.signed_in()
    for number in ids:
        other.post(f"/sessions/{number}/end")
    answer = browser.client.post("/submit", data=form)
    assert answer.status_code == 401
    assert "what you had typed is kept" in answer.text
    kept = re.search(r'name="kept" value="([^"]*)"', answer.text)
    assert kept is not None
    sent = {"login": "nlp-1", "password": b.PASSWORD, "kept": _unescaped(kept[1])}
    again = browser.post("/sign-in", sent)
    assert again.status_code == 200
    assert 'value="my-long-typed-name"' in again.text
    assert "csrf_token" not in _unescaped(kept[1])


def test_a_form_with_a_lost_token_is_shown_again_as_typed(
    site: Site, filled: Callable[..., dict[str, str]]
) -> None:
    answer = site.signed_in().client.post("/submit", data=filled(name="typed-by-hand"))
    assert answer.status_code == 400
    assert "Nothing was sent" in answer.text
    assert 'value="typed-by-hand"' in answer.text
    assert site.broker.calls.count("submit") == 0


def test_a_fragment_asked_for_without_a_session_leaves_the_page_alone(site: Site) -> None:
    answer = site.browser().get("/jobs", headers={"HX-Request": "true"})
    assert answer.status_code == 401
    assert answer.headers["HX-Retarget"] == "#notice"


def test_a_language_is_chosen_before_and_after_signing_in(site: Site) -> None:
    browser = site.browser()
    assert "登录" in browser.get("/sign-in", headers={"Accept-Language": "zh-CN"}).text
    browser.post("/language", {"language": "zh_Hans", "next": "/sign-in"})
    assert 'lang="zh-Hans"' in browser.get("/sign-in").text
    member = site.signed_in()
    member.post("/settings", {"language": "zh_Hans", "timezone": "Asia/Shanghai"})
    page = member.get("/jobs").text
    assert "还没有作业" in page
    refused = member.post("/settings", {"language": "xx", "timezone": "Not/AZone"})
    assert refused.status_code == 422
    assert refused.text.count("请从列表中选择。") == 2
    member.post("/settings", {"language": "", "timezone": ""})
    assert "No jobs yet" in member.get("/jobs").text


def test_a_language_sends_nobody_elsewhere(site: Site) -> None:
    answer = site.browser().post("/language", {"language": "en", "next": "//evil.example"})
    assert answer.location == "/"


def _unescaped(text: str) -> str:
    plain = text.replace("&#34;", '"').replace("&amp;", "&").replace("&#39;", "'")
    json.loads(plain)
    return plain


def test_behind_tls_the_cookie_is_secure_and_the_proxy_names_the_person(tmp_path: Path) -> None:
    settings = load_settings({"SLUICE_HOME": str(tmp_path), "SLUICE_BEHIND_TLS": "true"})
    app = create_app(settings, begin=_no_database, broker=FakeBroker())
    headers = {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https"}
    answer = app.test_client().get("/sign-in", headers=headers)
    assert "Secure" in answer.headers["Set-Cookie"]


def test_the_secret_key_is_made_once_and_is_nobody_elses(tmp_path: Path) -> None:
    settings = load_settings({"SLUICE_HOME": str(tmp_path)})
    first, second = (
        create_app(settings, begin=_no_database, broker=FakeBroker()) for _ in range(2)
    )
    assert first.secret_key == second.secret_key
    assert (tmp_path / "secret_key").stat().st_mode & 0o777 == 0o600


def test_every_answer_carries_the_strict_policy(site: Site) -> None:
    for path in ("/sign-in", "/nothing", "/healthz", "/static/sluice.css"):
        with site.browser().get(path) as answer:
            policy = answer.headers["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy


def _no_database() -> Never:
    raise AssertionError("nothing here reads the database")
