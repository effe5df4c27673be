"""Volumes in the browser: who sees and does what, what is never shown as zero, hostile names."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.services import volume_entries as entries
from gateway.services import volume_read
from gateway.services.volume_entries import Wish
from gateway.store import volume_work as work
from gateway.store import volumes as store
from gateway.testing import builders as b
from tests.web.conftest import Site
from tests.web.test_api import _caller as api_caller

TB, GB = 2**40, 2**30


@pytest.fixture
def home(site: Site) -> int:
    """A volume of nlp of a TB, half full, priced at 0.03."""
    b.add_associations(
        site.begin,
        b.association("nlp-1"),
        b.association("nlp-lead", is_coordinator=True),
        b.association("vision-1", "vision"),
    )
    look(site)
    given = {"viewer": None, "begin": site.begin, "now": site.broker.now}
    wish = Wish("volumes", "nlp-home", "nlp", TB)
    made = entries.create(wish, broker=site.broker, **given)
    entries.set_price("0.03", **given)
    use(site, 512 * GB)
    return made.id


def look(site: Site) -> None:
    from zoneinfo import ZoneInfo

    volume_read.look(
        begin=site.begin, broker=site.broker, now=site.broker.now, zone=ZoneInfo("UTC")
    )


def use(site: Site, used: int | None, **values: object) -> None:
    site.broker.volume_state.change("nlp-home", used_bytes=used, **values)
    look(site)


def limit(site: Site) -> int | None:
    return site.broker.volume_state.rows["volumes", "nlp-home"].limit_bytes


@pytest.mark.parametrize(
    ("login", "group", "one", "admin"),
    [
        ("nlp-1", 200, 200, 404),
        ("nlp-lead", 200, 200, 404),
        ("vision-1", 404, 404, 404),
        ("boss", 200, 200, 200),
    ],
)
def test_who_sees_what(site, home, login, group, one, admin):
    browser = site.signed_in(login)
    assert browser.get("/group/nlp/volumes").status_code == group
    assert browser.get(f"/volumes/{home}").status_code == one
    assert browser.get(f"/volumes/{home}/days.csv").status_code == one
    assert browser.get("/admin/volumes").status_code == admin


def test_a_members_page_has_the_figures(site, home):
    browser = site.signed_in()
    page = browser.get("/group/nlp/volumes").text
    for shown in ("nlp-home", "512 GB", "1 TB", "50 %", "30.72"):
        assert shown in page
    csv = browser.get(f"/volumes/{home}/days.csv").text.splitlines()
    assert csv[0] == "day,used_bytes,limit_bytes"
    assert csv[1].endswith(f",{512 * GB},{TB}")


def test_a_request_from_preview_to_read_back(site, home):
    member, leader, boss = (site.signed_in(name) for name in ("nlp-1", "nlp-lead", "boss"))
    asked = {"size": "3 TB", "text": "corpus <b>"}
    shown = member.post(f"/volumes/{home}/request", {**asked, "preview": "1"}).text
    assert "+2 TB: " in shown
    assert "61.44" in shown
    with site.begin() as session:
        assert work.requests(session) == []
    assert member.post(f"/volumes/{home}/request", asked).status_code == 303
    with site.begin() as session:
        (one,) = work.requests(session)
    page = leader.get("/group/nlp/volumes").text
    assert "corpus &lt;b&gt;" in page
    assert "administrator must" in page
    leader.post(f"/volume-requests/{one.id}/agree")
    assert limit(site) == TB
    boss.post("/admin/volumes/cap", {"cap_group": "nlp", "cap_size": "4 TB"})
    leader.post(f"/volume-requests/{one.id}/agree", {"answer": "fine"})
    assert limit(site) == 3 * TB
    assert "1 TB → 3 TB" in member.get(f"/volumes/{home}").text


def test_strangers_cannot_answer(site, home):
    site.signed_in().post(f"/volumes/{home}/request", {"size": "3 TB"})
    with site.begin() as session:
        (one,) = work.requests(session)
    stranger, member = site.signed_in("vision-1"), site.signed_in("nlp-1")
    assert stranger.post(f"/volume-requests/{one.id}/agree").status_code == 404
    assert stranger.post(f"/volumes/{home}/request", {"size": "3 TB"}).status_code == 404
    assert member.post(f"/volume-requests/{one.id}/agree").status_code == 404
    assert member.post(f"/volumes/{home}/limit", {"size": "9 TB"}).status_code == 404
    assert limit(site) == TB


def test_below_use_is_asked_first(site, home):
    boss = site.signed_in("boss")
    first = boss.post(f"/volumes/{home}/limit", {"size": "100 GB"})
    assert first.status_code == 422
    assert "nobody could write" in first.text
    assert limit(site) == TB
    assert (
        boss.post(f"/volumes/{home}/limit", {"size": "100 GB", "below_use": "y"}).status_code == 303
    )
    assert limit(site) == 100 * GB


@pytest.mark.parametrize("size", ["", "lots", "-1 TB", "<script>"])
def test_nonsense_is_told_at_its_field(site, home, size):
    answer = site.signed_in().post(f"/volumes/{home}/request", {"size": size})
    assert answer.status_code == 422
    assert "<script>" not in answer.text.replace("<script src", "").replace("<script defer", "")


def test_what_is_not_known_is_no_zero(site, home):
    use(site, None, problem="volume_quota_stale")
    page = site.signed_in().get(f"/volumes/{home}").text
    assert "rescan" in page
    assert "<dt>Used</dt><dd>–</dd>" in page
    areas = site.broker.volume_state.areas
    areas["volumes"] = replace(
        areas["volumes"], problem="volume_area_gone", total_bytes=None, free_bytes=None
    )
    look(site)
    admin = site.signed_in("boss").get("/admin/volumes").text
    assert "not mounted" in admin
    assert "100 TB" not in admin
    assert "0 MB" not in admin


def test_an_administrator_makes_and_takes_in(site, home):
    from gateway.wire import volumes as vol

    site.broker.make_volume(vol.MakeVolume("volumes", "old", "vision", 7 * GB))
    boss = site.signed_in("boss")
    boss.post("/admin/volumes/read")
    assert "volumes/old" in boss.get("/admin/volumes").text
    taken = boss.post(
        "/admin/volumes/take-in", {"area": "volumes", "name": "old", "group": "vision"}
    )
    assert taken.status_code == 303
    made = boss.post(
        "/admin/volumes/make",
        {"area": "volumes", "name": "fresh", "group": "nlp", "size": "2 TB", "owner": ""},
    )
    assert made.status_code == 303
    bad = boss.post("/admin/volumes/make", {"area": "volumes", "name": "../x", "group": "nlp"})
    assert bad.status_code == 422
    with site.begin() as session:
        names = [one.name for one in store.listed(session)]
    assert names == ["fresh", "nlp-home", "old"]


def test_the_form_offers_the_groups_volumes_and_warns(site, home):
    site.look()
    browser = site.signed_in()
    page = browser.get("/submit").text
    assert '<option value="/volumes/nlp-home">nlp-home, 512 GB free</option>' in page
    use(site, 1000 * GB)
    typed = {"group": "nlp", "working_directory": "/volumes/nlp-home/exp"}
    assert "97 % full" in browser.post("/submit/choices", typed).text.replace("&nbsp;", " ")


def test_a_job_that_failed_in_a_full_volume_is_told_what_to_do(site, home):
    now = site.broker.now
    given = {"user": "nlp-1", "group": "nlp", "working_directory": "/volumes/nlp-home/exp"}
    ended = given | {"state": "FAILED", "end_time": now - timedelta(minutes=5), "exit_code": 1}
    job = b.add_job(site.begin, **ended)
    old = b.add_job(site.begin, **ended | {"end_time": now - timedelta(days=3)})
    other = b.add_job(site.begin, **ended | {"working_directory": "/home/nlp-1"})
    running = b.add_job(site.begin, **given, state="RUNNING", start_time=now)
    browser = site.signed_in()

    def page(job_id: int) -> str:
        return browser.get(f"/jobs/{job_id}").text.replace("&nbsp;", " ")

    assert "512 GB of 1 TB" in page(job)
    assert "ask for more room" not in page(job)
    use(site, 1000 * GB)
    assert "It failed, and its volume is 97 % full" in page(job)
    assert f'href="/volumes/{home}">Ask for more' in page(job)
    assert "the job fails when it can write no more" in page(running)
    assert "ask for more room" not in page(old)
    assert 'id="volume"' not in page(other)


def test_the_api_says_and_does_the_same(site, home):
    member, boss = api_caller(site, "nlp-1"), api_caller(site, "boss")
    (one,) = member.get("/volumes").get_json()["volumes"]
    assert (one["name"], one["used_bytes"], one["a_month_millionths"]) == (
        "nlp-home", 512 * GB, 30_720_000,
    )  # fmt: skip
    asked = member.post(f"/volumes/{home}/request", {"size": "2 TB", "text": "x"})
    assert asked.status_code == 201
    number = asked.get_json()["id"]
    assert member.post(f"/volume-requests/{number}/agree", {"text": ""}).status_code == 404
    done = boss.post(f"/volume-requests/{number}/agree", {"text": "ok"}).get_json()
    assert (done["state"], done["after_bytes"]) == ("applied", 2 * TB)
    low = {"size": "1 GB", "text": "", "below_use": ""}
    refused = boss.post(f"/volumes/{home}/limit", low)
    assert (refused.status_code, limit(site)) == (422, 2 * TB)
    assert boss.post(f"/volumes/{home}/limit", low | {"below_use": "yes"}).status_code == 200
    assert limit(site) == GB
    assert api_caller(site, "vision-1").get(f"/volumes/{home}").status_code == 404


def test_the_api_refuses_and_withdraws(site, home):
    member, lead = api_caller(site, "nlp-1"), api_caller(site, "nlp-lead")

    def asked() -> int:
        sent = member.post(f"/volumes/{home}/request", {"size": "2 TB", "text": ""})
        return int(sent.get_json()["id"])

    first = asked()
    again = member.post(f"/volumes/{home}/request", {"size": "3 TB", "text": ""})
    assert (again.status_code, again.get_json()["code"]) == (422, "volume_request_open")
    assert lead.post(f"/volume-requests/{first}/withdraw", {"text": ""}).status_code == 404
    gone = member.post(f"/volume-requests/{first}/withdraw", {"text": ""}).get_json()
    assert gone["state"] == "withdrawn"
    second = asked()
    assert lead.post(f"/volume-requests/{second}/refuse", {"text": ""}).status_code == 422
    done = lead.post(f"/volume-requests/{second}/refuse", {"text": "no room"}).get_json()
    assert (done["state"], done["answer"], done["decider"]) == ("refused", "no room", "nlp-lead")
    assert lead.post(f"/volume-requests/{second}/agree", {"text": ""}).status_code == 422
    assert lead.post(f"/volume-requests/{second}/burn", {"text": ""}).status_code == 404
    assert limit(site) == TB
    for size in ("", "lots", "1 GB", "9999999 PB"):
        sent = member.post(f"/volumes/{home}/request", {"size": size, "text": ""})
        assert sent.status_code == 422, size


def test_the_library_shows_the_volumes_of_ones_groups(site, home):
    assert "nlp-home" in site.signed_in().get("/library/volumes").text
    assert "nlp-home" not in site.signed_in("vision-1").get("/library/volumes").text
    browser = site.signed_in()
    browser.post(f"/volumes/{home}/request", {"size": "2 TB", "text": "corpus"})
    assert "1 TB → 2 TB" in browser.get("/library/volumes").text.replace("\xa0", " ")
    assert "corpus" not in site.signed_in("vision-1").get("/library/volumes").text
    assert "corpus" in site.signed_in("boss").get("/library/volumes").text


def test_a_long_run_of_days_is_drawn_with_gaps(site, home):
    at = site.broker.now
    with site.begin() as session:
        for n in range(1, 60):
            day = (at - timedelta(days=n)).date()
            known = None if n == 20 else (512 - n) * GB
            store.put_day(session, home, day, used=known, limit=TB)
    page = site.signed_in().get(f"/volumes/{home}").text
    assert page.count("polyline") >= 2
    assert "about" in page
    assert '<polyline class="line-ahead"' in page
