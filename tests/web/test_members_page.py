"""The people of a group as leaders, members and strangers meet them, without JavaScript."""

import re

import pytest

from gateway.core.credits import MILLION
from gateway.services import credit, members
from gateway.testing import builders as b
from gateway.testing import money
from gateway.testing.contract_steps import Cast, request
from tests.web.conftest import Site

PAGE = "/group/nlp/members"


@pytest.fixture(autouse=True)
def people(site: Site) -> None:
    b.add_person(site.begin, "watcher", role="operator")
    b.add_person(site.begin, "ada", unix_user="vision-lead", display_name="Ada <b>Lovely</b>")


def row_of(page: str, user: str) -> str:
    rows = re.findall(r"<tr>.*?</tr>", page, re.DOTALL)
    return next((row for row in rows if f">{user}</a>" in row), "")


def works(site: Site, user: str = "nlp-1", **more: object) -> int:
    return site.broker.submit(request(Cast(user=user), **more)).job_id


def place(site: Site, user: str, group: str = "nlp") -> object:
    return site.broker.policy.members.get((group, user))


@pytest.mark.parametrize(
    ("login", "sees", "steers"),
    [
        ("nlp-1", 200, False),
        ("nlp-lead", 200, True),
        ("boss", 200, True),
        ("watcher", 200, False),
        ("vision-1", 404, False),
    ],
)
def test_who_sees_it_and_who_acts(site: Site, login: str, sees: int, steers: bool) -> None:
    browser = site.signed_in(login)
    page = browser.get(PAGE)
    assert page.status_code == sees
    assert ("/members/nlp-2/remove" in page.text) is steers
    assert browser.get(f"{PAGE}/nlp-2/remove").status_code == (200 if steers else 404)
    if not steers:
        for part in ("", "/nlp-2/remove", "/nlp-2/lead", "/nlp-2/keep", "/nlp-2/follow"):
            assert browser.post(PAGE + part, {"who": "vision-1"}).status_code == 404, part
        assert place(site, "vision-1") is None
        assert place(site, "nlp-2")


def test_each_row_says_role_default_jobs_and_money(site: Site) -> None:
    money.one_credit_an_hour(site.begin)
    credit.top_up("nlp", 100 * MILLION, begin=site.begin, now=site.broker.now)
    ended = works(site, gpus_per_node=4, time_limit_minutes=600)
    site.portal.work()
    site.broker.advance(3600)
    site.broker.finish(ended)
    works(site, nodes=4, gpus_per_node=8, time_limit_minutes=600)
    site.broker.advance(1)
    works(site, nodes=4, gpus_per_node=8, time_limit_minutes=600)
    site.portal.work()
    page = site.signed_in("nlp-2").get(PAGE).text
    assert "Leader" in row_of(page, "nlp-lead")
    mine = row_of(page, "nlp-1")
    assert "this one" in mine
    assert re.findall(r'<td class="number"[^>]*>(\d+)</td>', mine) == ["1", "1"]
    assert "CN¥3.96" in mine  # 4 cards for 3564 seconds
    assert page.index(">nlp-lead</a>") < page.index(">nlp-1</a>")


def test_a_leader_adds_by_login_and_sees_them_at_once(site: Site) -> None:
    leader = site.signed_in("nlp-lead")
    answer = leader.post(PAGE, {"who": "ada"})
    assert (answer.status_code, answer.location) == (303, PAGE)
    page = leader.get(PAGE).text
    assert "vision-lead is in nlp now." in page
    assert row_of(page, "vision-lead")
    assert "Ada &lt;b&gt;Lovely&lt;/b&gt;" in page
    assert place(site, "vision-lead")


@pytest.mark.parametrize("who", ["nobody-here", "root", "a'--", "<script>alert(1)</script>"])
def test_whom_there_is_not_is_told_at_the_field(site: Site, who: str) -> None:
    answer = site.signed_in("nlp-lead").post(PAGE, {"who": who})
    assert answer.status_code == 422
    assert "There is no such Unix account on the cluster." in answer.text
    assert "<script>alert(1)" not in answer.text


def test_to_remove_says_first_what_will_happen(site: Site) -> None:
    works(site, nodes=4, gpus_per_node=8)
    site.broker.advance(1)
    works(site, nodes=4, gpus_per_node=8, name="long-wait")
    site.look()
    page = site.signed_in("nlp-lead").get(f"{PAGE}/nlp-1/remove").text
    assert "1 job of theirs runs on, and the group pays for it." in page
    assert "1 job waits" in page
    assert "long-wait" in page
    assert "It is their default group" in page
    assert "They lead the group" not in page


def test_who_has_jobs_leaves_later_and_can_be_kept(site: Site) -> None:
    works(site)
    site.broker.advance(1)
    site.look()
    leader = site.signed_in("nlp-lead")
    leader.post(f"{PAGE}/nlp-1/remove", {})
    page = leader.get(PAGE).text
    assert "nlp takes no new jobs of nlp-1. They leave with their last job." in page
    assert "leaves with the last job; takes no new ones since" in row_of(page, "nlp-1")
    form = site.signed_in("nlp-1").get("/submit").text
    assert "nlp" in form
    leader.post(f"{PAGE}/nlp-1/keep", {})
    assert "leaves with" not in row_of(leader.get(PAGE).text, "nlp-1")
    assert not site.broker.policy.members[("nlp", "nlp-1")].closed


def test_waiting_jobs_are_cancelled_with_the_tick(site: Site) -> None:
    works(site, nodes=4, gpus_per_node=8)
    site.broker.advance(1)
    works(site, nodes=4, gpus_per_node=8)
    site.look()
    leader = site.signed_in("nlp-lead")
    leader.post(f"{PAGE}/nlp-1/remove", {"cancel_waiting": "true"})
    assert "1 job was cancelled." in leader.get(PAGE).text
    assert [job.state for job in site.broker.queue().jobs] == ["RUNNING", "CANCELLED"]


def test_who_has_none_is_gone_at_once(site: Site) -> None:
    leader = site.signed_in("nlp-lead")
    leader.post(f"{PAGE}/nlp-2/remove", {})
    page = leader.get(PAGE).text
    assert "nlp-2 is not in nlp any more." in page
    assert row_of(page, "nlp-2") == ""
    assert leader.get(f"{PAGE}/nlp-2/remove").status_code == 404


def test_leaders_are_made_and_unmade(site: Site) -> None:
    leader = site.signed_in("nlp-lead")
    leader.post(f"{PAGE}/nlp-1/lead", {})
    assert "Leader" in row_of(leader.get(PAGE).text, "nlp-1")
    leader.post(f"{PAGE}/nlp-1/follow", {})
    assert "Leader" not in row_of(leader.get(PAGE).text, "nlp-1")
    assert leader.post(f"{PAGE}/nlp-1/crown", {}).status_code == 404


def test_ones_default_is_ones_own_to_choose(site: Site) -> None:
    mine = site.signed_in("nlp-2")
    assert "/members/nlp-2/default" not in mine.get(PAGE).text
    assert "/members/nlp-2/default" in mine.get("/group/vision/members").text
    mine.post("/group/vision/members/nlp-2/default", {})
    assert place(site, "nlp-2", "vision").is_default  # type: ignore[attr-defined]
    assert "vision" in row_of(mine.get(PAGE).text, "nlp-2")
    for login in ("nlp-lead", "boss"):
        answer = site.signed_in(login).post(f"{PAGE}/nlp-2/default", {})
        assert answer.status_code == 404
    stranger = site.signed_in("vision-1").post(f"{PAGE}/vision-1/default", {})
    assert stranger.status_code == 404


def test_slurm_that_is_away_is_told_and_goes_on(site: Site) -> None:
    leader = site.signed_in("nlp-lead")
    site.broker.unreachable = True
    leader.post(PAGE, {"who": "ada"})
    page = leader.get(PAGE).text
    assert "Slurm does not answer now." in page
    assert "is being added" in row_of(page, "vision-lead")
    site.broker.unreachable = False
    members.carry_on(begin=site.begin, read=site.begin, broker=site.broker, now=site.broker.now)
    assert "is being added" not in row_of(leader.get(PAGE).text, "vision-lead")


def test_without_the_pages_token_nothing_is_done(site: Site) -> None:
    leader = site.signed_in("nlp-lead")
    leader.client.post(f"{PAGE}/nlp-2/remove", data={})
    leader.client.post(f"{PAGE}/nlp-1/lead", data={})
    assert place(site, "nlp-2")
    assert not site.broker.policy.members[("nlp", "nlp-1")].is_coordinator
