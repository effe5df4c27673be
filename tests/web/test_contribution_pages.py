"""Pages of contribution: entered, computed, proposed, and what members read of it."""

import csv
import io
import re
from dataclasses import replace

import pytest

from gateway.core.policy_change import ChangeState
from gateway.services import policy_apply, policy_decide
from gateway.store import contribution as rows
from gateway.store.queries import policy_changes as changes
from gateway.testing import builders as b
from gateway.web.money_forms import new_key
from gateway.wire.policy import FairShare
from tests.web.conftest import Browser, Site

PAGES = (
    "/admin/contribution",
    "/admin/contribution/lines",
    "/admin/contribution/rules",
    "/admin/contribution/shares.csv",
)
ACTS = (
    "/admin/contribution/run",
    "/admin/contribution/automatic",
    "/admin/contribution/lines",
    "/admin/contribution/lines/1/end",
    "/admin/contribution/lines/1/correct",
    "/admin/contribution/rules/formula",
    "/admin/contribution/rules/kinds",
    "/admin/contribution/rules/kinds/money/remove",
)
KIND = {
    "key": "money",
    "name": "Money paid in",
    "unit": "CNY",
    "weight": "0.01",
    "half_life": "365",
    "counted": "once",
    "feed": "hand",
}
FORMULA = {
    "sets_shares": "true",
    "shape": "linear",
    "base": "100",
    "scale": "1",
    "cap": "",
    "least": "1",
    "most": "10000",
    "tiers": "",
    "left_alone": "",
}


@pytest.fixture
def boss(site: Site) -> Browser:
    return site.signed_in("boss")


def version(site: Site) -> str:
    with site.begin() as session:
        held = rows.version(session)
    return str(held.number if held else "")


def set_rules(site: Site, boss: Browser, **formula: str) -> None:
    answer = boss.post("/admin/contribution/rules/kinds", KIND | {"version": version(site)})
    assert answer.status_code == 303
    form = FORMULA | formula | {"version": version(site)}
    assert boss.post("/admin/contribution/rules/formula", form).status_code == 303


def bring(boss: Browser, amount: str = "5000", **more: str) -> int:
    form = {"group": "nlp", "kind": "money", "amount": amount, "key": new_key(), "note": "a gift"}
    return boss.post("/admin/contribution/lines", form | more).status_code


@pytest.mark.parametrize("path", PAGES)
def test_only_those_who_see_policy_see_them(site: Site, path: str) -> None:
    b.add_person(site.begin, "ops", role="operator")
    assert site.signed_in("boss").get(path).status_code == 200
    assert site.signed_in("ops").get(path).status_code == 200
    assert site.signed_in("nlp-lead").get(path).status_code == 404
    assert site.browser().get(path).status_code == 302


@pytest.mark.parametrize("path", ACTS)
def test_only_administrators_act(site: Site, path: str) -> None:
    b.add_person(site.begin, "ops", role="operator")
    for login in ("ops", "nlp-lead"):
        assert site.signed_in(login).post(path).status_code == 404


def test_from_rules_and_a_line_to_a_change_that_is_applied(site: Site, boss: Browser) -> None:
    assert "No rules yet" in boss.get("/admin/contribution").text
    set_rules(site, boss)
    assert bring(boss) == 303
    page = boss.get("/admin/contribution").text
    assert "3 groups would change" in page
    assert "nlp: 1 now, 150 by the rules" in page

    answer = boss.post("/admin/contribution/run", {"key": new_key()})
    found = re.fullmatch(r"/admin/changes/(\d+)", answer.location)
    assert found is not None
    assert boss.get(answer.location).status_code == 200
    assert {one.policy.shares for one in site.broker.accounts()} == {1}, "nothing is sent yet"

    viewer = b.viewer("boss")
    policy_decide.decide(
        int(found[1]), viewer=viewer, second_approval=False, begin=site.begin, now=site.broker.now
    )
    policy_apply.apply_due(begin=site.begin, broker=site.broker, now=site.broker.now)
    shares = {one.policy.name: one.policy.shares for one in site.broker.accounts()}
    assert shares == {"nlp": 150, "vision": 100, "biolab": 100}
    page = boss.get("/admin/contribution").text
    assert "Every group has what the rules give it" in page
    again = boss.post("/admin/contribution/run", {"key": new_key()}, follow_redirects=True)
    assert "nothing is to be written" in again.text


def test_a_press_twice_makes_one_change(site: Site, boss: Browser) -> None:
    set_rules(site, boss)
    key = new_key()
    first = boss.post("/admin/contribution/run", {"key": key}).location
    assert boss.post("/admin/contribution/run", {"key": key}).location == first
    with site.begin() as session:
        (change,) = changes.changes(session)
    assert change.state is ChangeState.PROPOSED


def test_a_formula_is_tried_before_it_is_set(site: Site, boss: Browser) -> None:
    set_rules(site, boss)
    bring(boss)
    before = version(site)
    page = boss.post(
        "/admin/contribution/rules/try", FORMULA | {"version": before, "scale": "3"}
    ).text
    assert "nlp: 1 now, 250 by the rules" in page
    assert "Nothing is set yet" in page
    assert version(site) == before


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"least": "5", "most": "4"}, "must not be above the largest"),
        ({"shape": "capped"}, "up to how many points"),
        ({"tiers": "gold"}, "One line"),
        ({"tiers": "50: nosuch"}, "no QoS “nosuch”"),
        ({"scale": "much"}, "Type an amount in figures"),
        ({"shape": "cubic"}, "Choose one of the list"),
    ],
)
def test_a_formula_that_cannot_be_is_told_at_its_field(
    site: Site, boss: Browser, changed: dict[str, str], said: str
) -> None:
    form = FORMULA | {"version": ""} | changed
    answer = boss.post("/admin/contribution/rules/formula", form)
    assert answer.status_code == 422
    assert said.lower() in answer.text.lower()
    assert version(site) == ""


def test_a_first_kind_leaves_the_shares_to_be_set(site: Site, boss: Browser) -> None:
    boss.post("/admin/contribution/rules/kinds", KIND | {"version": version(site)})
    page = boss.get("/admin/contribution/rules").text
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert "Nothing follows from the points yet" in page
    tick = re.search(r'<input[^>]*name="sets_shares"[^>]*>', page)
    assert tick is not None
    assert "checked" in tick[0]
    set_rules(site, boss)
    assert "Nothing follows from the points yet" not in boss.get("/admin/contribution/rules").text


def test_rules_that_somebody_changed_meanwhile_are_not_overwritten(
    site: Site, boss: Browser
) -> None:
    set_rules(site, boss)
    answer = boss.post("/admin/contribution/rules/formula", FORMULA | {"version": "1"})
    assert answer.status_code == 422
    assert "Somebody has changed the rules meanwhile" in answer.text


def test_lines_are_ended_corrected_and_taken_back(site: Site, boss: Browser) -> None:
    set_rules(site, boss)
    bring(boss)
    assert boss.get("/admin/contribution/lines/1").status_code == 200
    assert boss.post("/admin/contribution/lines/1/end", {"on": "2030-01-01"}).status_code == 303
    answer = boss.post("/admin/contribution/lines/1/end", {"on": "2031-01-01"})
    assert answer.status_code == 422
    assert "Somebody has corrected this line" in answer.text
    form = {"amount": "0", "day": "2026-03-02", "ended_on": "", "note": "wrong"}
    assert boss.post("/admin/contribution/lines/2/correct", form).status_code == 303
    with site.begin() as session:
        assert rows.entries(session) == []
    page = boss.get("/admin/contribution/lines?group=nlp").text
    assert page.count("corrected") >= 2
    assert "taken back" in page
    assert boss.get("/admin/contribution/lines/9").status_code == 404


def test_what_is_typed_is_text_and_never_a_tag(site: Site, boss: Browser) -> None:
    set_rules(site, boss)
    bring(boss, note="<script>alert(1)</script>")
    for path in ("/admin/contribution/lines", "/admin/contribution/lines/1", "/group/nlp/shares"):
        page = boss.get(path).text
        assert "<script>alert" not in page
        assert "&lt;script&gt;" in page


def test_all_groups_as_csv(site: Site, boss: Browser) -> None:
    set_rules(site, boss)
    bring(boss)
    found = list(csv.DictReader(io.StringIO(boss.get("/admin/contribution/shares.csv").text)))
    assert {row["group"]: row["shares_new"] for row in found} == {
        "biolab": "100",
        "nlp": "150",
        "vision": "100",
    }


def test_the_night_is_switched(site: Site, boss: Browser) -> None:
    set_rules(site, boss)
    form = {"version": version(site), "automatic": "true"}
    page = boss.post("/admin/contribution/automatic", form, follow_redirects=True)
    assert "applied by itself" in page.text
    with site.begin() as session:
        held = rows.version(session)
    assert held is not None
    assert held.rules.automatic
    assert held.by == "boss"


def share(group: str, norm: float, used: float, level: float | None) -> FairShare:
    return FairShare(group, None, None, 1, norm, int(used * 1000), used, None, level)


def test_members_read_their_shares_and_other_groups_without_names(
    site: Site, boss: Browser
) -> None:
    set_rules(site, boss)
    bring(boss)
    site.broker.policy.fair_share = (
        share("nlp", 0.2, 0.31, 0.65),
        share("vision", 0.5, 0.69, 0.72),
        share("biolab", 0.3, 0.0, None),
    )
    site.look()
    page = site.signed_in("nlp-1").get("/group/nlp/shares")
    assert page.status_code == 200
    assert "You have used 31 % of the cluster lately and are entitled to 20 %" in page.text
    assert "your jobs stand behind" in page.text
    assert "3 of 3" in page.text
    assert "a gift" in page.text
    assert "Money paid in" in page.text
    assert "Place 3 of 3" in page.text
    assert "counted, not named" in page.text
    assert "vision" not in page.text
    assert "biolab" not in page.text
    assert site.signed_in("vision-1").get("/group/nlp/shares").status_code == 404
    assert "biolab" in boss.get("/group/nlp/shares").text


def test_without_fair_shares_or_rules_the_page_says_so(site: Site) -> None:
    page = site.signed_in("nlp-1").get("/group/nlp/shares").text
    assert "Slurm has not told the portal any fair shares yet" in page
    assert "an administrator sets them" in page


def test_a_group_that_shares_with_the_one_above_has_no_number(site: Site, boss: Browser) -> None:
    set_rules(site, boss)
    there = site.broker.policy.accounts["nlp"]
    site.broker.policy.accounts["nlp"] = replace(there, policy=replace(there.policy, shares=None))
    site.broker.advance(60)
    site.look()
    page = site.signed_in("nlp-1").get("/group/nlp/shares").text
    assert "shares with the account above" in page
    assert boss.get("/admin/contribution").status_code == 200
