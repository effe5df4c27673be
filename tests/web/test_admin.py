"""The administrators' pages for three people, what they say needs somebody, and who is in."""

from datetime import timedelta

import pytest

from gateway.store import models as t
from gateway.testing import builders as b
from tests.web.conftest import Site

NEW = {
    "login": "new-1",
    "unix_user": "new-1",
    "display_name": "New Person",
    "role": "researcher",
    "password": "a long first sentence",
}


@pytest.fixture(autouse=True)
def operator(site: Site) -> None:
    b.add_person(site.begin, "watcher", role="operator")


@pytest.mark.parametrize(
    ("login", "health", "people"),
    [("nlp-lead", 404, 404), ("watcher", 200, 404), ("boss", 200, 200)],
)
def test_what_each_role_may_see(site: Site, login: str, health: int, people: int) -> None:
    browser = site.signed_in(login)
    assert browser.get("/admin").status_code == health
    assert browser.get("/admin/people").status_code == people
    assert ('href="/admin"' in browser.get("/jobs").text) is (health == 200)
    assert ('href="/admin/people"' in browser.get("/admin").text) is (people == 200)


@pytest.mark.parametrize("login", ["nlp-1", "watcher"])
def test_only_an_administrator_changes_people(site: Site, login: str) -> None:
    browser = site.signed_in(login)
    for path, form in (
        ("", NEW),
        ("/nlp-2/disable", {}),
        ("/nlp-1/role", {"role": "administrator"}),
    ):
        assert browser.post(f"/admin/people{path}", form).status_code == 404
    site.signed_in("nlp-2")
    assert site.signed_in("nlp-1").get("/admin/people").status_code == 404


def test_a_person_is_added_closed_and_opened_again(site: Site) -> None:
    boss = site.signed_in("boss")
    assert boss.post("/admin/people", NEW).status_code == 303
    sign_in = {"login": "new-1", "password": NEW["password"]}
    person = site.browser()
    assert person.post("/sign-in", sign_in).status_code == 303
    assert boss.post("/admin/people/new-1/disable").status_code == 303
    assert person.get("/jobs").status_code == 302
    assert person.post("/sign-in", sign_in).status_code == 422
    assert "closed" in boss.get("/admin/people").text
    boss.post("/admin/people/new-1/enable")
    assert person.post("/sign-in", sign_in).status_code == 303
    boss.post("/admin/people/new-1/role", {"role": "operator"})
    assert person.get("/admin").status_code == 200


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"login": "nlp-1"}, "This login is taken."),
        ({"unix_user": "root"}, "That cannot be the Unix account of a person."),
        ({"password": "short"}, "A password has at least"),
        ({"role": "king"}, "Choose one of the list."),
        ({"display_name": ""}, "Fill this in."),
    ],
)
def test_a_person_that_cannot_be_is_told_at_the_field(
    site: Site, change: dict[str, str], told: str
) -> None:
    answer = site.signed_in("boss").post("/admin/people", NEW | {"login": "typed"} | change)
    assert answer.status_code == 422
    assert told in answer.text
    assert f'value="{change.get("login", "typed")}"' in answer.text
    assert NEW["password"] not in answer.text


def test_the_last_administrator_stays(site: Site) -> None:
    boss = site.signed_in("boss")
    boss.post("/admin/people/boss/role", {"role": "researcher"})
    assert "last administrator" in boss.get("/admin/people").text
    assert boss.post("/admin/people/boss/explode").status_code == 404
    assert boss.post("/admin/people/nobody-here/disable").status_code == 404


def test_a_healthy_portal_needs_nobody(site: Site) -> None:
    with site.begin() as session:
        session.add(
            t.Lease(name="worker", holder="host:1", expires_at=site.broker.now + timedelta(20))
        )
    page = site.signed_in("watcher").get("/admin").text
    assert "Nothing needs you now." in page
    assert "host:1" in page


def test_what_needs_somebody_is_said_in_words(site: Site) -> None:
    site.broker.unreachable = True
    site.portal.submit()
    site.broker.now += timedelta(hours=1)
    site.look()
    with site.begin() as session:
        session.add(
            t.HeldRow(
                cluster="dev",
                fingerprint="f",
                raw='{"job_id": "<script>"}',
                reason="ValueError: not a number",
                first_seen_at=site.broker.now,
            )
        )
    page = site.signed_in("watcher").get("/admin").text
    for words in (
        "No worker leads",
        "Queue: not up to date.",
        "1 submission has waited for Slurm for minutes.",
        "1 row is held.",
        "ValueError: not a number",
        "&lt;script&gt;",
        "Slurm does not answer now.",
    ):
        assert words in page
    assert '<script>"' not in page
