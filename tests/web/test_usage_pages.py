"""The pages of use, the CSVs and the API: what a member, a leader, an administrator see."""

import csv
import html
import io
import re
from datetime import timedelta

import pytest

from gateway.history import sets
from gateway.services import keep_history
from gateway.services.import_set import Given, import_set
from gateway.store.wait_models import WaitReason
from gateway.testing import builders as b
from gateway.testing.portal import CLUSTER

PAGES = ("", "/limits", "/failures", "/cards", "/larger")
PARTS = ("use", "ledger", "limits", "bins", "failures", "cards", "larger")


@pytest.fixture
def ran(site):
    """Puts runs of an hour on two cards into the history: of a user in a group, and more."""

    def put(*runs):
        for user, group, more in runs:
            now = site.broker.now
            facts = {"start_time": now - timedelta(hours=2), "end_time": now - timedelta(hours=1)}
            job = b.add_job(
                site.begin, user=user, group=group, cluster=CLUSTER, active=False,
                state="COMPLETED", submit_time=now - timedelta(hours=3),
                time_limit_minutes=2880,
            )  # fmt: skip
            b.add_run(site.begin, job, **(facts | more))
        folder = site.app.extensions["sluice"].settings.home / "history"
        keep_history.keep(folder, begin=site.begin, read=site.begin, now=site.broker.now)

    return put


def rows(answer):
    assert answer.status_code == 200, answer.text
    return list(csv.DictReader(io.StringIO(answer.text)))


def said(answer):
    assert answer.status_code == 200, answer.text
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.text)).split())


def api(site, login, query=""):
    client = site.app.test_client()
    given = client.post("/api/v1/sessions", json={"login": login, "password": b.PASSWORD})
    bearer = {"Authorization": f"Bearer {given.json['token']}"}
    return client.get(f"/api/v1/usage{query}", headers=bearer)


def test_empty_pages_say_what_will_be_there(site):
    browser = site.signed_in("nlp-1")
    assert "No run held cards in this period" in said(browser.get("/waits/usage"))
    assert "For leaders and administrators" in said(browser.get("/waits/usage/larger"))
    assert "No job waited for a limit" in said(site.signed_in("boss").get("/waits/usage/larger"))
    for page in PAGES:
        assert browser.get(f"/waits/usage{page}").status_code == 200
    for part in PARTS:
        assert browser.get(f"/waits/usage/{part}.csv").status_code == 200
    assert browser.get("/waits/usage/people.csv").status_code == 404


def test_use_by_group_adds_up_and_leads_closer(site, ran):
    ran(*((f"n{n}", "nlp", {"gpus": 8}) for n in range(4)), ("vision-1", "vision", {}))
    boss = site.signed_in("boss")
    page = boss.get("/waits/usage")
    assert "34.0 5 runs" in said(page)
    assert "group=nlp" in page.text
    found = {row["group"]: row for row in rows(boss.get("/waits/usage/use.csv"))}
    assert found["nlp"]["gpu_hours"] == "32"
    assert found["vision"]["gpu_hours"] == "2"
    crossed = rows(boss.get("/waits/usage/use.csv?by=month&and=group"))
    assert [(row["month"], row["group"], row["runs"]) for row in crossed] == [
        (f"{site.broker.now:%Y-%m}", "nlp", "4"),
        (f"{site.broker.now:%Y-%m}", "vision", "1"),
    ]
    assert "GPU-hours by month and group" in said(boss.get("/waits/usage?by=month&and=group"))


def test_strangers_learn_nothing_of_few_people(site, ran):
    ran(*((f"n{n}", "nlp", {}) for n in range(4)), ("vision-1", "vision", {}))
    member = site.signed_in("nlp-2")
    page = member.get("/waits/usage")
    assert "group=vision" not in page.text
    assert rows(member.get("/waits/usage/use.csv")) == []  # one row would tell of the other
    own = rows(site.signed_in("vision-1").get("/waits/usage/use.csv"))
    assert {row["group"] for row in own} == {"vision", "nlp"}
    people = rows(member.get("/waits/usage/use.csv?by=user"))
    assert people == []
    asked = member.get("/waits/usage?user=vision-1")
    assert "Hidden: fewer than 3 people" in said(asked)
    everyone = {
        row["user"] for row in rows(site.signed_in("boss").get("/waits/usage/use.csv?by=user"))
    }
    assert everyone == {"n0", "n1", "n2", "n3", "vision-1"}


def test_where_rows_are_hidden_nobody_says_that_there_is_nothing(site, ran):
    ran(*((f"n{n}", "nlp", {}) for n in range(4)), ("vision-1", "vision", {}))
    page = said(site.signed_in("nlp-2").get("/waits/usage"))
    assert "rows are hidden" in page
    assert "Nothing in this period" not in page


def test_people_whom_a_set_does_not_know_are_not_nobody(site, tmp_path):
    file = tmp_path / "site.csv"
    file.write_text(
        "id,submit,start,end,gpus\n1,2021-05-01T10:00:00,2021-05-01T11:00:00,2021-05-01T13:00:00,4\n"
    )
    home = site.app.extensions["sluice"].settings.home
    import_set(
        Given(str(file), "csv", "elsewhere", "UTC", site.broker.now),
        imports=home / sets.FOLDER,
        keep=len,
    )
    page = said(site.signed_in("boss").get("/waits/usage?period=all"))
    assert re.search(r"8\.0 1 run People [^0-9]*not known", page)


def test_where_nobody_looked_no_limit_is_called_useless(site, ran):
    ran(*((f"n{n}", "nlp", {}) for n in range(12)))
    page = said(site.signed_in("boss").get("/waits/usage/larger"))
    assert "What jobs of this period waited for is not known" in page
    assert "A larger limit would have served nobody" not in page


def test_much_advice_is_folded(site, ran):
    ran(*((f"n{n}", f"group-{n}", {}) for n in range(8) for _ in range(20)))
    page = site.signed_in("boss").get("/waits/usage/limits")
    assert page.text.count("A limit of 2 h fits") == 8
    assert "3 more" in said(page)


def test_leaders_see_their_members(site, ran):
    ran(("nlp-1", "nlp", {}), ("nlp-2", "nlp", {}), ("vision-1", "vision", {}))
    leader = rows(site.signed_in("nlp-lead").get("/waits/usage/use.csv?by=user"))
    assert {row["user"] for row in leader} == {"nlp-1", "nlp-2"}


def test_advice_on_limits_is_from_ones_own_numbers(site, ran):
    ran(*(("nlp-1", "nlp", {}) for _ in range(20)))
    advised = said(site.signed_in("nlp-1").get("/waits/usage/limits"))
    assert "My runs: 90 % of the completed runs ended within 1 h" in advised
    assert "A limit of 2 h fits into gaps" in advised
    assert "A limit of" not in said(site.signed_in("vision-1").get("/waits/usage/limits"))
    (row,) = rows(site.signed_in("boss").get("/waits/usage/limits.csv"))
    assert (row["reserved_gpu_hours"], row["used_gpu_hours"]) == ("1920", "40")
    assert row["advised_limit_s"] == "7200"


def test_failures_are_those_that_did_not_complete(site, ran):
    ran(
        ("nlp-1", "nlp", {"state": "NODE_FAIL"}),
        ("nlp-1", "nlp", {"state": "TIMEOUT"}),
        ("nlp-1", "nlp", {}),
        ("nlp-1", "nlp", {"state": "RUNNING", "end_time": None}),
    )
    boss = site.signed_in("boss")
    found = rows(boss.get("/waits/usage/failures.csv"))
    assert {row["state"] for row in found} == {"NODE_FAIL", "TIMEOUT"}
    by_type = rows(boss.get("/waits/usage/failures.csv?by=gpu_type"))
    assert {(row["gpu_type"], row["state"]) for row in by_type} == {
        ("a100", "NODE_FAIL"),
        ("a100", "TIMEOUT"),
    }
    assert "2.0 h, 20.0 % of all" in said(boss.get("/waits/usage/failures"))


def test_cards_are_counted_from_the_nodes(site, ran):
    ran(("nlp-1", "nlp", {"gpus": 8}))
    page = site.signed_in("vision-1").get("/waits/usage/cards")
    assert "a100:" in said(page)
    assert 'class="wait-line line-main"' in page.text
    days = rows(site.signed_in("vision-1").get("/waits/usage/cards.csv"))
    today = [row for row in days if row["gpu_type"] == "a100"][-1]
    assert today["counted"] == "1"
    assert sum(float(r["gpu_hours"] or 0) for r in days if r["gpu_type"] == "a100") == 8
    assert rows(site.signed_in("vision-1").get("/waits/usage/cards.csv?group=nlp")) == days


def test_leaders_see_how_long_their_group_waited_for_limits(site, ran):
    submit = site.broker.now - timedelta(hours=3)
    job = b.add_job(
        site.begin, user="nlp-1", group="nlp", cluster=CLUSTER, active=False, state="COMPLETED",
        submit_time=submit,
    )  # fmt: skip
    with site.begin() as session:
        at = int(submit.timestamp())
        session.add(WaitReason(job_id=job, submit=at, since=at, reason="AssocGrpGRES"))
        session.add(WaitReason(job_id=job, submit=at, since=at + 1800, reason="Resources"))
    b.add_run(site.begin, job, start_time=submit + timedelta(hours=1), end_time=site.broker.now)
    ran()
    (row,) = rows(site.signed_in("nlp-lead").get("/waits/usage/larger.csv"))
    assert (row["group"], row["limit_hours"], row["share_percent"]) == ("nlp", "0.5", "50")
    assert (row["group_limit_hours"], row["jobs_limited"], row["jobs"]) == ("0.5", "1", "1")
    boss = site.signed_in("boss").get("/waits/usage/larger")
    assert "/policy/groups/nlp/edit" in boss.text
    assert "% allocated" in said(boss)
    leader = site.signed_in("nlp-lead").get("/waits/usage/larger")
    assert "/policy/groups/nlp" not in leader.text
    assert "For leaders and administrators" in said(
        site.signed_in("vision-1").get("/waits/usage/larger")
    )


def test_the_api_has_the_same_figures(site, ran):
    ran(*((f"n{n}", "nlp", {"gpus": 8}) for n in range(4)))
    found = api(site, "vision-1", "?by=group&by=state").json
    assert found["by"] == ["group", "state"]
    (row,) = found["rows"]
    assert (row["group"], row["state"], row["gpu_hours"], row["people"]) == (
        "nlp", "COMPLETED", 32.0, 4,
    )  # fmt: skip
    assert row["charged"] is None
    assert found["total"]["gpu_seconds"] == 32 * 3600
    assert api(site, "vision-1", "?by=nonsense").status_code == 400
    assert api(site, "vision-1", "?by=group&by=user&by=qos").status_code == 400
    assert api(site, "vision-1", "?period=xx").status_code == 400
    assert site.app.test_client().get("/api/v1/usage").status_code == 401


def test_names_from_outside_are_text(site, ran):
    hostile = "<b>x</b>"
    ran(("nlp-1", "nlp", {"group": hostile}), ("=1+1", "nlp", {}))
    boss = site.signed_in("boss")
    page = boss.get("/waits/usage").text
    assert hostile not in page
    assert "&lt;b&gt;x" in page
    assert "'=1+1" in boss.get("/waits/usage/use.csv?by=user").text
    assert boss.get("/waits/usage?by=<script>&and='&group=%00&from=2026-99-99").status_code == 200
