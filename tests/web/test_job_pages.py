"""Jobs for three people, texts of strangers, and pages that ask nothing of Slurm."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import select

from gateway.store.models import Job
from gateway.testing import builders as b
from tests.web.conftest import Site

EVIL = "<script>alert(1)</script>"
TURNED = "safe\u202egnp.exe\x1b[31m"


def _running(site: Site, **values: object) -> int:
    facts: dict[str, object] = {
        "state": "RUNNING",
        "user": "nlp-1",
        "start_time": site.broker.now - timedelta(minutes=30),
        "submit_time": site.broker.now - timedelta(hours=1),
    }
    return b.add_job(site.begin, **(facts | values))


@pytest.mark.parametrize(
    ("login", "status"), [("nlp-1", 200), ("nlp-2", 200), ("vision-1", 404), ("boss", 200)]
)
def test_who_may_look_at_a_job(site: Site, login: str, status: int) -> None:
    job = _running(site)
    browser = site.signed_in(login)
    for path in (f"/jobs/{job}", f"/jobs/{job}/state"):
        assert browser.get(path).status_code == status


def test_a_stranger_learns_nothing_by_asking(site: Site) -> None:
    job = _running(site)
    stranger = site.signed_in("vision-1")
    there, not_there = stranger.get(f"/jobs/{job}"), stranger.get("/jobs/99999")
    assert there.text == not_there.text.replace("99999", str(job))
    assert stranger.get("/search?q=101").location == "/jobs?id=101"
    assert stranger.post(f"/jobs/{job}/cancel").status_code == 404


def test_files_stay_the_owners(site: Site) -> None:
    job = _running(site, output="/home/nlp-1/x.out")
    site.broker.files.append("/home/nlp-1/x.out", "nlp-1", "secret line\n")
    for login in ("nlp-2", "nlp-lead", "boss"):
        browser = site.signed_in(login)
        assert "only they can read them here" in browser.get(f"/jobs/{job}").text
        assert browser.get(f"/jobs/{job}/output").status_code == 404
        assert "secret" not in browser.get(f"/jobs/{job}/output.txt").text
    assert "secret line" in site.signed_in().get(f"/jobs/{job}/output").get_json()["text"]


def test_a_colleague_may_not_act_and_a_leader_may(site: Site) -> None:
    job = _running(site)
    assert "Cancel the job" not in site.signed_in("nlp-2").get(f"/jobs/{job}").text
    assert site.signed_in("nlp-2").get(f"/jobs/{job}/cancel").status_code == 404
    assert "Cancel the job" in site.signed_in("nlp-lead").get(f"/jobs/{job}").text


@pytest.mark.parametrize("text", [EVIL, TURNED])
def test_a_hostile_name_stays_text(site: Site, text: str) -> None:
    job = _running(site, name=text, node_list=text, working_directory=text)
    browser = site.signed_in()
    for path in ("/jobs", f"/jobs/{job}", f"/jobs/{job}/cancel"):
        page = browser.get(path).text
        assert EVIL not in page
        assert "\u202e" not in page
        assert "\x1b" not in page


def test_hostile_output_comes_as_text_only(site: Site) -> None:
    job = _running(site, output="/home/nlp-1/x.out")
    site.broker.files.append("/home/nlp-1/x.out", "nlp-1", f"{EVIL}{TURNED}\r\n")
    browser = site.signed_in()
    piece = browser.get(f"/jobs/{job}/output?offset=0")
    assert piece.mimetype == "application/json"
    assert "\x1b" not in piece.get_json()["text"]
    page = browser.get(f"/jobs/{job}?output=end").text
    assert EVIL not in page
    assert "&lt;script&gt;" in page


def test_output_is_followed_by_offset_without_gaps(site: Site) -> None:
    job = _running(site, output="/home/nlp-1/x.out")
    browser = site.signed_in()
    assert browser.get(f"/jobs/{job}/output?offset=-60000").get_json()["text"] == ""
    text, offset = "", 0
    for part in ("one\n", "zwei ü\n", "三\n"):
        site.broker.files.append("/home/nlp-1/x.out", "nlp-1", part)
        piece = browser.get(f"/jobs/{job}/output?offset={offset}").get_json()
        text, offset = text + piece["text"], piece["next_offset"]
    assert text == "one\nzwei ü\n三\n"


def test_a_file_written_anew_is_read_from_its_beginning(site: Site) -> None:
    job = _running(site, output="/home/nlp-1/x.out")
    site.broker.files.write("/home/nlp-1/x.out", "nlp-1", "new\n")
    piece = site.signed_in().get(f"/jobs/{job}/output?offset=5000").get_json()
    assert (piece["restarted"], piece["text"]) == (True, "new\n")


def test_looking_at_pages_asks_nothing_of_slurm(site: Site) -> None:
    job = _running(site)
    browser = site.signed_in()
    before = list(site.broker.calls)
    for path in ("/jobs", f"/jobs/{job}", f"/jobs/{job}/state", "/cluster", "/submit", "/help"):
        assert browser.get(path).status_code == 200
    assert site.broker.calls == before


def test_a_saved_address_brings_the_list_back(site: Site) -> None:
    _running(site, name="wanted")
    _running(site, name="other", partition="debug")
    browser = site.signed_in()
    page = browser.get("/jobs?name=wan&partition=a100&state=running").text
    assert "wanted" in page
    assert ">other<" not in page
    assert "No job fits these filters" in browser.get("/jobs?name=nothing").text
    assert browser.get("/jobs?state=%00&id=x&since=never&sort=no&cursor=zz").status_code == 200


def test_a_live_update_is_the_rows_alone(site: Site) -> None:
    _running(site)
    rows = site.signed_in().get("/jobs", headers={"HX-Request": "true"}).text
    assert "<html" not in rows
    assert "RUNNING" in rows


def test_one_refresh_of_a_job_brings_all_that_its_end_changes(site: Site) -> None:
    job = _running(site, node_list="a100-7")
    live = site.signed_in().get(f"/jobs/{job}/state").text
    assert "<html" not in live
    assert "Cancel the job" in live
    assert '<div id="facts" hx-swap-oob="innerMorph">' in live
    assert live.count("a100-7") == 1
    assert "data-pane" not in live


def test_each_look_without_javascript_is_a_new_address(site: Site) -> None:
    job = _running(site, output="/home/nlp-1/x.out")
    browser = site.signed_in()
    assert f'href="/jobs/{job}?output=1#output"' in browser.get(f"/jobs/{job}").text
    page = browser.get(f"/jobs/{job}?output=1").text
    assert f'href="/jobs/{job}?output=2#output"' in page
    assert "Nothing has been written yet." in page
    site.broker.files.append("/home/nlp-1/x.out", "nlp-1", "first line\n")
    assert "first line" in browser.get(f"/jobs/{job}?output=2").text
    assert browser.get(f"/jobs/{job}?output={'9' * 400}").status_code == 200


@pytest.mark.parametrize(
    ("asked", "seen"),
    [
        ("failed", {"of-a-fault", "of-time"}),
        ("Failed", {"of-a-fault", "of-time"}),
        ("FAILED", {"of-a-fault"}),
        ("timeout", {"of-time"}),
        ("pending", {"in-line", "held-again"}),
        ("PENDING", {"in-line"}),
    ],
)
def test_small_letters_are_a_class_of_states_and_capitals_one(
    site: Site, asked: str, seen: set[str]
) -> None:
    names = {"FAILED": "of-a-fault", "TIMEOUT": "of-time", "PENDING": "in-line"}
    for number, (state, name) in enumerate((names | {"REQUEUE_HOLD": "held-again"}).items()):
        _running(site, state=state, name=name, slurm_id=500 + number)
    rows = site.signed_in().get(f"/jobs?state={asked}", headers={"HX-Request": "true"}).text
    everything = {*names.values(), "held-again"}
    assert {name for name in everything if f">{name}<" in rows} == seen


def test_a_job_is_found_by_its_id(site: Site) -> None:
    job = _running(site, slurm_id=4711)
    assert site.signed_in().get("/search?q=4711").location == f"/jobs/{job}"
    assert site.signed_in().get("/search?q=train").location == "/jobs?who=groups&name=train"


def test_waits_are_three_numbers_and_runs_are_listed(site: Site) -> None:
    now = site.broker.now
    first, second = now - timedelta(hours=9), now - timedelta(hours=6)
    job = _running(
        site,
        state="COMPLETED",
        submit_time=first,
        last_submit_time=second,
        eligible_time=second,
        start_time=second + timedelta(hours=1),
        end_time=now - timedelta(hours=3),
        restarts=1,
    )
    b.add_run(
        site.begin,
        job,
        state="PREEMPTED",
        submit_time=first,
        eligible_time=first + timedelta(minutes=10),
        start_time=first + timedelta(minutes=40),
        end_time=second,
        elapsed_seconds=8400,
    )
    b.add_run(
        site.begin,
        job,
        submit_time=second,
        eligible_time=second,
        start_time=second + timedelta(hours=1),
        end_time=now - timedelta(hours=3),
        elapsed_seconds=7200,
    )
    page = site.signed_in().get(f"/jobs/{job}").text
    assert "<dd>30 min<small" in page
    assert "<dd>10 min</dd>" in page
    assert "4 h 20 min" in page
    assert "then 1 h after a requeue" in page
    assert "PREEMPTED" in page


def test_acts_reach_slurm_and_stand_in_the_history(site: Site) -> None:
    browser = site.signed_in()
    form = {"form_key": "k", "template": "command", "group": "nlp", "partition": "debug",
            "qos": "normal", "nodes": "1", "nproc_per_node": "1", "time_limit": "20",
            "name": "short", "working_directory": "~", "v-command": "sleep 9",
            "v-gpus_per_node": "1"}  # fmt: skip
    place = browser.post("/submit", form).location
    assert browser.get(f"{place}/time-limit").status_code == 200
    assert browser.post(f"{place}/time-limit", {"time_limit": "10"}).status_code == 303
    assert site.broker.jobs[1].time_limit_minutes == 10
    wrong = browser.post(f"{place}/time-limit", {"time_limit": "soon"})
    assert wrong.status_code == 422
    assert 'value="soon"' in wrong.text
    assert browser.post(f"{place}/hold").status_code == 303
    assert browser.post(f"{place}/cancel").status_code == 303
    assert site.broker.jobs[1].state == "CANCELLED"
    page = browser.get(place).text
    assert "Change of the time limit to 10 minutes" in page
    assert browser.get(f"{place}/explode").status_code == 404


def test_a_task_offers_to_cancel_its_whole_array_and_a_single_job_does_not(
    site: Site, filled: Callable[..., dict[str, str]]
) -> None:
    browser = site.signed_in()
    form = filled(template="sweep", nodes="1", nproc_per_node="1", **{"v-script": "train.py"})
    form |= {"v-table": "lr\n1\n2\n3\n", "v-max_at_once": "2", "v-environment": "none"}
    place = browser.post("/submit", form).location
    site.broker.advance(1)
    site.look()
    task = next(job for job in site.broker.jobs.values() if job.state == "RUNNING")
    with site.begin() as session:
        task_id = session.scalar(select(Job.id).where(Job.slurm_id == task.job_id))
    for page in (place, f"/jobs/{task_id}"):
        assert f'href="{page}/cancel-array"' in browser.get(page).text
    assert "Cancel the whole array?" in browser.get(f"/jobs/{task_id}/cancel-array").text
    assert {job.state for job in site.broker.jobs.values()} == {"PENDING", "RUNNING"}
    assert browser.post(f"/jobs/{task_id}/cancel-array").status_code == 303
    assert {job.state for job in site.broker.jobs.values()} == {"CANCELLED"}
    assert "Cancel of the whole array" in browser.get(f"/jobs/{task_id}").text
    alone = _running(site, slurm_id=900)
    assert "Cancel the whole array" not in browser.get(f"/jobs/{alone}").text
    assert browser.post(f"/jobs/{alone}/cancel-array").status_code == 404


def test_what_slurm_does_not_answer_is_told_as_unknown(site: Site) -> None:
    job = _running(site, slurm_id=1)
    site.broker.silent_before_next()
    answer = site.signed_in().post(f"/jobs/{job}/cancel")
    assert answer.status_code == 503
    assert "It may have done it or not" in answer.text


def test_old_news_is_called_old(site: Site) -> None:
    site.broker.now += timedelta(hours=2)
    page = site.signed_in().get("/cluster").text
    assert "Slurm has not answered since" in page


def test_an_unexpected_fault_shows_nothing_of_itself(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = site.signed_in()
    site.app.testing = False
    site.app.config["PROPAGATE_EXCEPTIONS"] = False

    def broken() -> str:
        raise RuntimeError("password=hunter2")

    monkeypatch.setitem(site.app.view_functions, "help.index", broken)
    answer = browser.get("/help")
    assert answer.status_code == 500
    assert "hunter2" not in answer.text
    assert "Something went wrong here, not with you." in answer.text


@pytest.mark.parametrize(
    ("minutes", "sentence"),
    [(1, "is being read from accounting"), (90, "Slurm may have lost it")],
)
def test_a_job_that_slurm_no_longer_speaks_of_is_not_said_to_wait(
    site: Site, minutes: int, sentence: str
) -> None:
    left = site.broker.now - timedelta(minutes=minutes)
    job = _running(site, state="PENDING", start_time=None, left_queue_at=left)
    page = site.signed_in().get(f"/jobs/{job}").text
    assert sentence in page
    assert "That takes a few seconds" not in page
    assert "Cancel the job" not in page


def test_a_requeue_is_told_with_its_number_in_both_languages(site: Site) -> None:
    job = b.add_job(site.begin, user="nlp-1", restarts=2)
    b.add_event(site.begin, "requeued", job_id=job, detail={"restart": 2})
    browser = site.signed_in()
    assert "Back in the queue, to start again (restart 2)" in browser.get(f"/jobs/{job}").text
    browser.post("/language", {"language": "zh_Hans", "next": "/"})
    assert "已重新排队，将再次启动（第 2 次重启）" in browser.get(f"/jobs/{job}").text
