"""Snapshots in pages, forms and the API: read from stores, shared, agreed to, warned about."""

import json
from typing import Any

import pytest

from gateway.core.environments import EnvironmentKind
from gateway.errors import Busy
from gateway.services import snapshots
from gateway.store import snapshots as store
from gateway.testing import builders as b
from gateway.testing.snapshot_samples import BASE, fields, keep

PAGE = "/library/snapshots"
STORE = "/home/nlp-1/.sluice/snapshots"


def saved(site: Any, user: str = "nlp-1", **changes: Any) -> str:
    (digest,) = keep(site.broker.files, user, [fields(user, **changes)])
    return digest


def later(site: Any) -> None:
    site.broker.now += snapshots.PAUSE * 2


def test_what_the_store_has_is_on_the_page_and_in_the_form(site: Any) -> None:
    digest = saved(site, note="my flash build")
    mine = site.signed_in("nlp-1")
    page = mine.get(PAGE).text
    assert "my flash build" in page
    assert "flash_attn, einops" in page
    assert f"snapshot:{digest[:12]}" in mine.get("/submit").text
    one = mine.get(f"{PAGE}/{digest[:12]}").text
    assert "flash_attn==2.8.3" in one
    assert "21" in one


def test_a_busy_database_hides_nothing_that_was_known(site: Any, monkeypatch: Any) -> None:
    saved(site, note="my flash build")
    mine = site.signed_in("nlp-1")
    mine.get(PAGE)
    later(site)

    def locked(*_: Any, **__: Any) -> None:
        raise Busy("database is locked")

    monkeypatch.setattr(store, "look", locked)
    page = mine.get(PAGE)
    assert page.status_code == 200
    assert "my flash build" in page.text
    assert "busy" in page.text


def test_nobody_else_knows_of_it_before_it_is_shared(site: Any) -> None:
    digest = saved(site)
    site.signed_in("nlp-1").get(PAGE)
    for other in ("nlp-2", "vision-1", "boss"):
        browser = site.signed_in(other)
        assert browser.get(f"{PAGE}/{digest[:12]}").status_code == 404
        assert digest[:12] not in browser.get("/submit").text
        for act, given in (("share", {"to": "site"}), ("delete", {}), ("name", {"title": "x"})):
            assert browser.post(f"{PAGE}/{digest[:12]}/{act}", given).status_code == 404


def test_shared_with_a_group_its_people_choose_it_and_others_cannot(site: Any, filled: Any) -> None:
    digest = saved(site)
    mine = site.signed_in("nlp-1")
    mine.get(PAGE)
    assert mine.post(f"{PAGE}/{digest[:12]}/share", {"to": "nlp"}).status_code == 303
    name = f"snapshot:{digest[:12]}"
    colleague, stranger = site.signed_in("nlp-2"), site.signed_in("vision-1")
    assert name in colleague.get("/submit").text
    script = colleague.post("/submit/preview", filled(environment=name)).text
    assert f"{STORE}/documents/{digest}.json" in script
    done = colleague.post("/submit", filled(environment=name))
    assert done.status_code == 303, done.text
    assert f"{digest}.json" in max(site.broker.jobs.items())[1].request.script
    assert name not in stranger.get("/submit").text
    refused = stranger.post("/submit", filled(environment=name, group="vision"))
    assert refused.status_code == 422
    mine.post(f"{PAGE}/{digest[:12]}/share", {"to": ""})
    assert name not in site.signed_in("nlp-2").get("/submit").text


def test_the_sites_word_is_an_administrators(site: Any) -> None:
    digest = saved(site)
    mine, boss = site.signed_in("nlp-1"), site.signed_in("boss")
    mine.get(PAGE)
    mine.post(f"{PAGE}/{digest[:12]}/share", {"to": "site"})
    assert digest[:12] not in site.signed_in("vision-1").get("/submit").text
    assert mine.post(f"{PAGE}/{digest[:12]}/agree", {"yes": "1"}).status_code in (403, 404)
    assert "To agree to" in boss.get(PAGE).text
    assert digest[:12] not in boss.get("/submit").text, "nobody runs it unseen"
    assert boss.post(f"{PAGE}/{digest[:12]}/agree", {"yes": "1"}).status_code == 303
    assert digest[:12] in site.signed_in("vision-1").get("/submit").text
    boss.post(f"{PAGE}/{digest[:12]}/agree", {"yes": "0"})
    assert digest[:12] not in site.signed_in("vision-1").get("/submit").text


def test_it_is_not_shared_with_groups_of_others_or_where_nobody_could_read_it(site: Any) -> None:
    (digest,) = keep(site.broker.files, "nlp-1", [fields("nlp-1")], reachable=False)
    mine = site.signed_in("nlp-1")
    mine.get(PAGE)
    mine.post(f"{PAGE}/{digest[:12]}/share", {"to": "nlp"})
    assert "chmod o+x" in mine.get(f"{PAGE}/{digest[:12]}").text
    other = saved(site, "nlp-1", note="second")
    later(site)
    mine.get(PAGE)
    mine.post(f"{PAGE}/{other[:12]}/share", {"to": "vision"})
    assert "not in the group vision" in mine.get(f"{PAGE}/{other[:12]}").text


@pytest.mark.parametrize(
    "change",
    [
        {"user": "nlp-2"},
        {"format": 2},
        {"layers": []},
        {"layers": [{"sha256": "../../etc", "bytes": 1, "content": 1, "files": 1}]},
        {"layers": [{"sha256": "a" * 64, "bytes": -1, "content": 1, "files": 1}]},
        {"layers": [{"sha256": "a" * 64, "bytes": True, "content": 1, "files": 1}]},
        {"base": BASE | {"path": "relative"}},
        {"base": BASE | {"path": 7}},
        {"note": "two\nlines"},
        {"note": "x" * 501},
        {"added": ["x"] * 20_001},
        {"added": "x"},
        {"added": [["x"]]},
        {"at": 10**12},
        {"at": "now"},
        {"lock": None},
    ],
)
def test_a_document_that_is_none_or_anothers_is_passed_over(
    site: Any, change: dict[str, Any]
) -> None:
    keep(site.broker.files, "nlp-1", [fields("nlp-1") | change])
    page = site.signed_in("nlp-1").get(PAGE).text
    assert "none that can be used" in page
    assert "No snapshots yet" in page


def test_a_document_under_another_name_is_none(site: Any) -> None:
    files, digest = site.broker.files, saved(site)
    whole = files.contents[f"{STORE}/documents/{digest}.json"].decode()
    files.write(f"{STORE}/documents/{digest}.json", "nlp-1", whole.replace("2.8.3", "9.9.9"))
    assert "No snapshots yet" in site.signed_in("nlp-1").get(PAGE).text


def test_an_index_of_anything_does_no_harm(site: Any) -> None:
    digest = saved(site)
    lines = ["", "[]", "7", '{"id": 7}', '{"id": "../x"}', "{" * 5000, json.dumps({"id": digest})]
    site.broker.files.write(f"{STORE}/index.jsonl", "nlp-1", "\n".join(lines))
    assert digest[:12] in site.signed_in("nlp-1").get(PAGE).text


def test_hostile_words_are_text(site: Any) -> None:
    saved(site, note="<script>alert(1)</script>", added=["<b>x</b>==1"])
    page = site.signed_in("nlp-1").get(PAGE).text
    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page


def test_a_broker_that_is_away_leaves_what_was_known(site: Any) -> None:
    digest = saved(site)
    mine = site.signed_in("nlp-1")
    mine.get(PAGE)
    later(site)
    site.broker.unreachable = True
    page = mine.get(PAGE).text
    assert digest[:12] in page
    assert "could not be read now" in page


def test_deleted_ones_are_offered_to_nobody_and_told_to_the_next_job(
    site: Any, filled: Any
) -> None:
    first, second = keep(
        site.broker.files, "nlp-1", [fields("nlp-1"), fields("nlp-1", note="other")]
    )
    mine = site.signed_in("nlp-1")
    mine.get(PAGE)
    mine.post(f"{PAGE}/{first[:12]}/delete")
    later(site)
    assert first[:12] not in mine.get(PAGE).text
    assert mine.get(f"{PAGE}/{first[:12]}").status_code == 404
    mine.post("/submit", filled(environment=f"snapshot:{second[:12]}"))
    script = max(site.broker.jobs.items())[1].request.script
    assert f"SLUICE_SNAPSHOT_DROP={first}" in script


def test_one_whose_files_are_gone_is_gone(site: Any) -> None:
    digest = saved(site)
    mine = site.signed_in("nlp-1")
    mine.get(PAGE)
    site.broker.files.write(f"{STORE}/index.jsonl", "nlp-1", "")
    later(site)
    assert digest[:12] not in mine.get(PAGE).text


def test_search_finds_packages_and_names(site: Any) -> None:
    keep(
        site.broker.files,
        "nlp-1",
        [fields("nlp-1", note="tokens"), fields("nlp-1", note="other", added=["apex_100%==1"])],
    )
    mine = site.signed_in("nlp-1")
    mine.get(PAGE)
    assert "tokens" in mine.get(f"{PAGE}?q=FLASH_attn").text
    assert "Nothing is found" in mine.get(f"{PAGE}?q=flash_attn+other").text
    assert "tokens" not in mine.get(f"{PAGE}?q=%25").text


def test_a_base_that_changed_says_which_snapshots_it_affects(site: Any) -> None:
    digest = saved(site)
    mine = site.signed_in("nlp-1")
    mine.get(PAGE)
    assert "is not offered any more" in mine.get(f"{PAGE}/{digest[:12]}").text
    with site.begin() as session:
        snapshots.note_base(session, BASE["name"], "b" * 64, now=site.broker.now)
        assert snapshots.affected(session) == []
        assert snapshots.note_base(session, BASE["name"], "d" * 64, now=site.broker.now)
    page = mine.get(PAGE).text
    assert "torch-2.13 has changed: 1 snapshot of 1 person lie above what it was." in page


def test_the_form_warns_of_a_base_that_is_gone(site: Any, filled: Any) -> None:
    digest = saved(site)
    mine = site.signed_in("nlp-1")
    mine.get(PAGE)
    form = filled(environment=f"snapshot:{digest[:12]}")
    assert "is not offered any more" in mine.post("/submit/choices", form).text


def test_two_are_compared(site: Any) -> None:
    new = fields("nlp-1", note="new")
    new["lock"] = new["lock"] | {"pip": ["torch==2.14.0", "einops==0.8.1", "apex==1"]}
    old, other = keep(site.broker.files, "nlp-1", [fields("nlp-1"), new])
    mine = site.signed_in("nlp-1")
    mine.get(PAGE)
    page = mine.get(f"{PAGE}/{other[:12]}?with={old[:12]}").text
    assert "2.14.0" in page
    assert "apex" in page


def test_the_api_says_the_same(site: Any) -> None:
    digest = saved(site)
    client = site.app.test_client()
    token = client.post("/api/v1/sessions", json={"login": "nlp-1", "password": b.PASSWORD}).json[
        "token"
    ]
    head = {"Authorization": f"Bearer {token}"}
    (one,) = client.get("/api/v1/snapshots", headers=head).json["snapshots"]
    assert one["id"] == digest
    assert one["base_doubts"] == ["snapshot_base_gone"]
    whole = client.get(f"/api/v1/snapshots/{digest}", headers=head).json
    assert whole["packages"][0] == "torch==2.13.0"
    shared = client.post(f"/api/v1/snapshots/{digest}/share", headers=head, json={"to": "nlp"})
    assert shared.json["group"] == "nlp"
    same = client.get(f"/api/v1/snapshots/{digest}/diff/{digest}", headers=head).json
    assert same == {"added": [], "removed": [], "changed": []}
    assert client.delete(f"/api/v1/snapshots/{digest}", headers=head).status_code == 204
    assert client.get(f"/api/v1/snapshots/{digest}", headers=head).status_code == 404


def test_what_is_offered_is_a_snapshot_with_the_facts_of_its_base(site: Any) -> None:
    saved(site)
    site.signed_in("nlp-1").get(PAGE)
    viewer = b.viewer("nlp-1", groups=("nlp",))
    with site.begin() as session:
        from dataclasses import replace

        from gateway.store import people

        person = people.by_login(session, "nlp-1")
        assert person is not None
        (one,) = snapshots.as_environments(replace(viewer, person_id=person.id), session, ())
        assert store.count(session, person.id) == (1, 21_000_000)
    assert one.kind is EnvironmentKind.SNAPSHOT
