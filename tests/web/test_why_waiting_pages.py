"""The page, the API and the form on why a job waits, as people of different rights see it."""

from dataclasses import replace
from datetime import timedelta
from html import unescape
from re import sub

import pytest

from gateway.core.qos import tres
from gateway.services import poll
from gateway.testing import builders as b
from gateway.testing.fakebroker import FakeBroker
from gateway.wire import policy as p

HOUR = timedelta(hours=1)


def words(text):
    """What is read, without the marks."""
    return " ".join(unescape(sub(r"<[^>]+>", " ", text)).split())


def running(site, **values):
    now = site.broker.now
    facts = {
        "user": "nlp-1",
        "state": "RUNNING",
        "start_time": now - HOUR,
        "time_limit_minutes": 120,
        "node_list": "a100-1",
        "gpus": 8,
    }
    return b.add_job(site.begin, **(facts | values))


def waiting(site, reason, **values):
    facts = {"user": "nlp-1", "slurm_id": 900, "gpus": 8, "nodes": 1, "reason": reason}
    return b.add_job(site.begin, **(facts | values))


def limit(site, **fields):
    known = site.broker.policy.qos
    known["normal"] = replace(known["normal"], **fields)
    site.portal.poll_policy()


def test_a_limit_with_its_use_and_a_link_to_the_job(site):
    limit(site, max_tres_per_user=tres({"gres/gpu": 12}))
    holding = running(site, slurm_id=101)
    job = waiting(site, "QOSMaxGRESPerUser")
    shown = site.signed_in().get(f"/jobs/{job}").text
    said = words(shown)
    assert "In QoS normal one person may use 12 GPUs at once." in said
    assert "8 GPUs taken, and this job asks for 8 GPUs." in said
    assert f'href="/jobs/{holding}">101</a>' in shown
    assert "Ask for 4 GPUs on 1 node" in said
    assert "Use QoS urgent" in said
    live = words(site.signed_in().get(f"/jobs/{job}/state").text)
    assert "In QoS normal one person may use 12 GPUs at once." in live


def test_a_job_that_can_never_start_is_told_so_and_gets_no_estimate(site):
    limit(site, max_tres_per_user=tres({"gres/gpu": 4}))
    job = waiting(site, "QOSMaxGRESPerUser", estimated_start=site.broker.now + HOUR)
    said = words(site.signed_in().get(f"/jobs/{job}").text)
    assert "As it is, this job can never start" in said
    assert "You already use as many GPUs" not in said
    assert "Estimate by Slurm" not in said


def test_one_card_is_one(site):
    limit(site, max_tres_per_user=tres({"gres/gpu": 8}))
    running(site, slurm_id=101, gpus=1)
    job = waiting(site, "QOSMaxGRESPerUser")
    shown = words(site.signed_in().get(f"/jobs/{job}").text)
    assert "1 GPU taken, and this job asks for 8 GPUs." in shown


def test_strangers_are_counted_without_a_name(site):
    limit(site, grp_tres=tres({"gres/gpu": 8}))
    hidden = running(site, slurm_id=102, user="vision-1", group="vision")
    job = waiting(site, "QOSGrpGRES")
    shown = site.signed_in().get(f"/jobs/{job}").text
    assert "others, whose jobs you may not see" in words(shown)
    assert "vision-1" not in shown
    assert f'href="/jobs/{hidden}"' not in shown
    assert "vision-1" in site.signed_in("boss").get(f"/jobs/{job}").text


def test_the_api_gives_codes_and_numbers(site):
    limit(site, max_tres_per_user=tres({"gres/gpu": 8}))
    running(site, slurm_id=101)
    job = waiting(site, "QOSMaxGRESPerUser")
    login = {"login": "nlp-1", "password": b.PASSWORD}
    token = site.app.test_client().post("/api/v1/sessions", json=login).get_json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    found = site.app.test_client().get(f"/api/v1/jobs/{job}/why", headers=headers).get_json()
    assert found["limit"]["field"] == "max_tres_per_user"
    assert (found["limit"]["limit"], found["limit"]["used"], found["limit"]["asked"]) == (8, 8, 8)
    assert found["users"][0]["some"][0]["number"] == "101"
    assert {one["code"] for one in found["helps"]} >= {"other_qos", "raise_qos_limit"}
    stranger = {"login": "vision-1", "password": b.PASSWORD}
    token = site.app.test_client().post("/api/v1/sessions", json=stranger).get_json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    path = f"/api/v1/jobs/{job}/why"
    assert site.app.test_client().get(path, headers=headers).status_code == 404


def test_the_place_in_the_queue_and_a_comparison(site, monkeypatch):
    first = waiting(site, "Resources", slurm_id=901, user="nlp-2", qos="urgent")
    waiting(site, "Priority", slurm_id=903, user="vision-1", group="vision")
    own = waiting(site, "Priority", slurm_id=902)
    points = p.PriorityFactors(
        902, "nlp-1", "nlp", "a100", "normal", 10_500, 0, 500, 0, 0, 0, 0, 10_000, 0, ""
    )
    ahead = replace(points, job_id=901, user="nlp-2", qos="urgent", priority=100_000, age=0,
                    of_qos=100_000)  # fmt: skip
    hidden = replace(points, job_id=903, user="vision-1", account="vision", priority=20_000,
                     fair_share=9_500)  # fmt: skip
    weights = p.PriorityWeights(1000, 0, 10_000, 0, 0, 100_000, "")
    given = p.Priorities(weights, (points, ahead, hidden))
    monkeypatch.setattr(FakeBroker, "priorities", lambda _: given)
    poll.poll_priority(begin=site.begin, broker=site.broker, now=site.broker.now)
    browser = site.signed_in()
    shown = browser.get(f"/jobs/{own}?compare=901").text
    said = words(shown)
    assert "2 jobs stand before it in a100, of 3 that wait there." in said
    assert "A job that you may not see: It stands before this one: Fair share" in said
    assert "its QoS urgent gives 100,000 points, yours (normal) 10,000." in said
    assert f'href="/jobs/{first}"' in shown
    assert "vision-1" not in shown
    none = words(browser.get(f"/jobs/{own}?compare=903").text)
    assert "No job 903 that waits with points and that you may see." in none
    assert browser.get(f"/jobs/{own}?compare=<b>").status_code == 200


@pytest.fixture
def upkeep(site):
    start = site.broker.now + timedelta(hours=2, minutes=44)
    nodes = tuple(node.name for node in site.broker.nodes() if "a100" in node.partitions)
    site.broker.policy.reservations = (
        p.Reservation("upkeep", start, start + 4 * HOUR, nodes, "a100", ("MAINT",), (), ("root",)),
    )
    site.portal.poll_policy()


@pytest.mark.usefixtures("upkeep")
def test_the_form_warns_before_maintenance_and_a_button_takes_what_fits(site, filled):
    browser = site.signed_in()
    shown = browser.post("/submit/choices", filled()).text
    assert "A limit of 2 hours 40 minutes still fits before." in words(shown)
    pressed = browser.post("/submit", filled() | {"try": "time_limit=02:40:00"}).text
    assert 'value="02:40:00"' in pressed
    assert "still fits before" not in words(pressed)
    # It only warns.
    assert browser.post("/submit", filled()).status_code == 303


@pytest.mark.usefixtures("upkeep")
def test_the_job_and_the_cluster_say_so_too(site):
    job = waiting(site, "ReqNodeNotAvail, Reserved for maintenance", time_limit_minutes=600)
    browser = site.signed_in()
    said = words(browser.get(f"/jobs/{job}").text)
    assert "A limit of 2 hours 40 minutes still fits before." in said
    assert f"/jobs/{job}/time-limit?time_limit=" in browser.get(f"/jobs/{job}").text
    assert "Maintenance upkeep" in words(browser.get("/cluster").text)
    asked = browser.get(f"/jobs/{job}/time-limit?time_limit=02:40:00").text
    assert 'value="02:40:00"' in asked


def test_a_job_that_runs_or_has_left_has_no_such_box(site):
    job = running(site, slurm_id=101)
    assert "What would help" not in site.signed_in().get(f"/jobs/{job}").text
    gone = waiting(site, "Priority", left_queue_at=site.broker.now)
    assert "What would help" not in site.signed_in().get(f"/jobs/{gone}").text


def test_the_form_refuses_what_a_limit_never_lets_start(site, filled):
    limit(site, max_tres_minutes_per_job=tres({"gres/gpu": 60 * 8 * 6}))
    answer = site.signed_in().post("/submit", filled())
    assert answer.status_code == 422
    assert "GPUs × time limit is 4 days; one job may have 2 days (normal)." in words(answer.text)
    assert 'value="time_limit=360"' in answer.text
