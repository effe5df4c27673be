"""The page of an array's task shows the others, and how the array does as a whole."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import event, select

from gateway.store.models import Job
from gateway.store.queries.arraytasks import MOST_TASKS, array_overview
from gateway.testing import builders as b
from tests.web.conftest import Site

HEADING = "Tasks of this array"


def _task(site: Site, number: int | None, **values: object) -> int:
    facts: dict[str, object] = {
        "array_job_id": 5000,
        "array_task": number,
        "user": "nlp-1",
        "slurm_id": 5000 if number is None else 5001 + number,
        "submit_time": site.broker.now - timedelta(hours=2),
    }
    return b.add_job(site.begin, **(facts | values))


def _swept(site: Site, filled: Callable[..., dict[str, str]]) -> str:
    form = filled(template="sweep", nodes="1", nproc_per_node="1", **{"v-script": "train.py"})
    form |= {"v-table": "lr\n1\n2\n3\n4\n5\n", "v-max_at_once": "2", "v-environment": "none"}
    return str(site.signed_in().post("/submit", form).location)


def test_a_fresh_sweep_is_shown_as_an_array_without_a_tasks_number(
    site: Site, filled: Callable[..., dict[str, str]]
) -> None:
    place = _swept(site, filled)
    for looked in (False, True):  # as the submit left it, then as the queue has it
        if looked:
            site.look()
        with site.begin() as session:
            [array] = session.scalars(select(Job.array_job_id))
        page = site.signed_in().get(place).text
        assert f"array {array}</span></h1>" in page
        assert f"{array}_%a.out</code>" in page
        assert "0-4 waiting" in page
        assert "Waiting in the queue: 5" in page


def test_those_that_run_have_a_row_and_the_rest_their_range(
    site: Site, filled: Callable[..., dict[str, str]]
) -> None:
    place = _swept(site, filled)
    site.broker.advance(1)
    site.look()
    with site.begin() as session:
        rows = {job.array_task: job.id for job in session.scalars(select(Job))}
    browser = site.signed_in()
    for path in (place, f"{place}/state", f"/jobs/{rows[1]}"):
        page = browser.get(path).text
        assert HEADING in page
        assert "2-4 waiting" in page
        assert "Running: 2" in page
        assert "Waiting in the queue: 3" in page
    page = browser.get(f"/jobs/{rows[1]}").text
    assert '<b aria-current="page">1</b>' in page
    assert f'<a href="/jobs/{rows[0]}">0</a>' in page
    assert f'<a href="/jobs/{rows[None]}">2-4 waiting</a>' in page


def test_an_array_from_outside_the_portal_tells_how_many_wait(site: Site) -> None:
    done = _task(
        site,
        0,
        state="COMPLETED",
        start_time=site.broker.now - timedelta(hours=1),
        end_time=site.broker.now - timedelta(minutes=18),
    )
    _task(site, None, array_tasks=16)
    page = site.signed_in().get(f"/jobs/{done}").text
    assert "16 tasks waiting" in page
    assert "Waiting in the queue: 16" in page
    assert "Ended well: 1" in page
    assert '<td class="number" data-label="Run time">42 min</td>' in page


def test_a_record_that_was_cut_counts_at_least_one(site: Site) -> None:
    job = _task(site, None)
    page = site.signed_in().get(f"/jobs/{job}").text
    assert "further tasks waiting" in page
    assert "Waiting in the queue: at least 1" in page


def test_a_job_of_no_array_has_no_such_section(site: Site) -> None:
    job = b.add_job(site.begin, user="nlp-1")
    assert HEADING not in site.signed_in().get(f"/jobs/{job}").text


@pytest.mark.parametrize(("login", "sees"), [("nlp-1", True), ("nlp-2", False), ("boss", True)])
def test_a_task_in_another_group_is_only_for_those_who_may_see_it(
    site: Site, login: str, *, sees: bool
) -> None:
    job = _task(site, 0)
    other = _task(site, 1, group="speech", state="FAILED")
    page = site.signed_in(login).get(f"/jobs/{job}").text
    assert HEADING in page
    assert (f'href="/jobs/{other}"' in page) is sees
    assert ("Ended with an error: 1" in page) is sees


def test_an_older_array_with_the_same_id_is_another(site: Site) -> None:
    job = _task(site, 0, token="a" * 32)
    other = _task(site, 1, token="b" * 32)
    stranger = _task(site, 2, user="nlp-2")
    page = site.signed_in().get(f"/jobs/{job}").text
    assert f'href="/jobs/{other}"' not in page
    assert f'href="/jobs/{stranger}"' not in page


def test_of_very_many_the_first_are_shown_and_the_list_has_the_rest(site: Site) -> None:
    jobs = [_task(site, number) for number in range(MOST_TASKS + 3)]
    page = site.signed_in().get(f"/jobs/{jobs[0]}").text
    assert page.count('<tr id="t') == MOST_TASKS
    assert 'href="/jobs?id=5000"' in page
    assert "3 more in the list of jobs" in page
    assert f"Waiting in the queue: {MOST_TASKS + 3}" in page


def test_the_tasks_are_found_by_the_index_of_their_array(site: Site) -> None:
    job = _task(site, 0)
    asked: list[tuple[str, object]] = []
    with site.begin() as session:
        bind = session.connection()
        event.listen(bind, "before_cursor_execute", lambda *a: asked.append((a[2], a[3])))
        array_overview(session, job, groups=None)
        array_overview(session, job, groups=("nlp",))
        assert len(asked) == 4
        for statement, values in asked.copy():
            plan = str(bind.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all())  # type: ignore[arg-type]
            assert "ix_job_array_job_id" in plan
            assert "SCAN job" not in plan
