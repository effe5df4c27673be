"""Jobs that wait or never started, as rows of the columnar history, on each database."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.core.past_runs import COLUMNS
from gateway.core.wait_causes import Cause
from gateway.services import ingest_new
from gateway.store import history, history_rows, jobs, squeezed
from gateway.store import models as t
from gateway.testing import builders as b
from tests.store.test_history_rows import record

HOUR = timedelta(hours=1)


def rows(read, block=0, now=b.NOW):
    """Each row by column, with `tasks`, how many it stands for."""
    with read() as session:
        return [
            dict(zip(COLUMNS, row, strict=True)) | {"tasks": tasks}
            for row, tasks in history_rows.rows(session, block, now=now)
        ]


def seconds(at):
    return int(at.timestamp())


def causes(row):
    return {cause: row[f"cause_{cause}"] for cause in Cause if row[f"cause_{cause}"]}


def clear(begin):
    with begin() as session:
        history.unmark(session, [one for ids in history.marks(session).values() for one in ids])


def marked(begin):
    with begin() as session:
        return sorted(history.marks(session))


def test_a_job_that_was_cancelled_while_it_waited_has_a_row_without_start(begin, read):
    b.add_job(begin, state="CANCELLED", end_time=b.NOW, eligible_time=None)
    (row,) = rows(read)
    assert (row["run_id"], row["start_time"], row["end_time"]) == (None, None, seconds(b.NOW))
    assert (row["gpus"], row["elapsed_seconds"], row["seen_at"]) == (2, None, None)
    assert causes(row) == {Cause.DEFERRAL: 3600}


def test_a_job_that_waits_is_known_to_wait_until_now(begin, read):
    job = b.add_job(begin, reason="Resources", eligible_time=b.NOW - HOUR / 2, priority=7)
    (row,) = rows(read, now=b.NOW + HOUR)
    assert (row["job_id"], row["start_time"], row["end_time"]) == (job, None, None)
    assert (row["seen_at"], row["priority"]) == (seconds(b.NOW + HOUR), 7)
    assert row["cause_now"] == Cause.NO_GPUS
    assert sum(causes(row).values()) == 7200
    assert causes(row)[Cause.DEFERRAL] == 1800


@pytest.mark.parametrize("eligible", [None, b.NOW + HOUR])
def test_before_it_is_eligible_a_job_waits_for_its_person(begin, read, eligible):
    b.add_job(begin, reason="Priority", eligible_time=eligible)
    (row,) = rows(read)
    assert (row["cause_now"], causes(row)) == (Cause.DEFERRAL, {Cause.DEFERRAL: 3600})


def test_a_pending_array_counts_its_tasks(begin, read):
    """Case 5: one record stands for many tasks."""
    b.add_job(begin, array_job_id=500, array_tasks=37)
    b.add_job(begin, array_job_id=600, array_tasks=5, state="CANCELLED", end_time=b.NOW)
    started = b.add_job(begin, array_job_id=500, array_task=3, state="COMPLETED", array_tasks=9)
    b.add_run(begin, started)
    b.add_job(begin, array_job_id=500, array_task=4, array_tasks=9)  # one that was held alone
    assert [row["tasks"] for row in rows(read)] == [1, 37, 5, 1]


def test_a_job_that_waits_again_has_a_row_beside_its_run(begin, read):
    """Case 6: after a requeue, with the submit time of the wait that goes on."""
    job = b.add_job(begin, restarts=1, last_submit_time=b.NOW, eligible_time=b.NOW)
    b.add_run(begin, job, state="PREEMPTED")
    run, wait = rows(read, now=b.NOW + HOUR)
    assert (run["state"], run["submit_time"]) == ("PREEMPTED", seconds(b.NOW - HOUR))
    assert (wait["run_id"], wait["submit_time"]) == (None, seconds(b.NOW))
    assert (wait["restarts"], sum(causes(wait).values())) == (1, 3600)


def test_a_job_that_starts_has_one_row_at_each_moment(begin, read):
    """Before accounting tells of it, and after; while it runs, and when it ended."""
    job = b.add_job(begin)
    assert [row["start_time"] for row in rows(read)] == [None]
    with begin() as session:
        jobs.change(session, [{"id": job, "state": "RUNNING", "start_time": b.NOW - HOUR / 2}])
    (row,) = rows(read)
    assert (row["run_id"], row["start_time"], row["seen_at"], row["cause_now"]) == (
        *(None, seconds(b.NOW - HOUR / 2)),
        *(None, None),
    )
    assert sum(causes(row).values()) == 1800
    run = b.add_run(begin, job, state="RUNNING", end_time=None, start_time=b.NOW - HOUR / 2)
    assert [row["run_id"] for row in rows(read)] == [run]
    with begin() as session:
        jobs.change(session, [{"id": job, "state": "COMPLETED", "active": False}])
    assert [row["run_id"] for row in rows(read)] == [run]


def test_an_ended_job_whose_run_accounting_has_not_told_yet_did_start(begin, read):
    b.add_job(begin, state="COMPLETED", start_time=b.NOW - HOUR / 2, end_time=b.NOW)
    (row,) = rows(read)
    assert (row["start_time"], row["end_time"]) == (seconds(b.NOW - HOUR / 2), seconds(b.NOW))


def test_a_requeued_job_that_was_cancelled_while_it_waited_has_its_run_alone(begin, read):
    job = b.add_job(begin, state="CANCELLED", restarts=1, last_submit_time=b.NOW, end_time=b.NOW)
    run = b.add_run(begin, job, state="PREEMPTED")
    assert [row["run_id"] for row in rows(read)] == [run]


def test_a_start_before_the_submit_waited_for_nothing(begin, read):
    job = b.add_job(begin, state="COMPLETED")
    b.add_run(begin, job, start_time=b.NOW - 2 * HOUR)
    assert [causes(row) for row in rows(read)] == [{}]


def test_what_changes_a_row_marks_its_block_and_what_does_not_does_not(begin, monkeypatch):
    monkeypatch.setattr(history, "BLOCK", 2)
    ids = [b.add_job(begin) for _ in range(4)]
    clear(begin)
    with begin() as session:
        jobs.change(session, [{"id": ids[0], "priority": 5, "estimated_start": b.NOW}])
        jobs.change(session, [{"id": ids[1], "left_queue_at": b.NOW, "seen_at": b.NOW}])
    assert marked(begin) == []
    for changed in ({"reason": "Priority"}, {"state": "CANCELLED"}, {"template": "fsdp"}):
        with begin() as session:
            jobs.change(session, [{"id": ids[3], **changed}])
        assert marked(begin) == [2]
        clear(begin)


def test_jobs_that_the_poll_adds_are_marked(begin, monkeypatch):
    monkeypatch.setattr(history, "BLOCK", 2)
    b.add_job(begin)
    clear(begin)
    with begin() as session:
        row = {c.name: getattr(session.get_one(t.Job, 1), _attribute(c.name)) for c in _COLUMNS}
        assert jobs.add_all(session, [row | {"slurm_id": 900 + n} for n in range(4)]) == 4
    assert marked(begin) == [1, 2]


def test_prepared_jobs_of_an_import_are_marked(begin, monkeypatch):
    """The way that writes straight to SQLite, too."""
    monkeypatch.setattr(history, "BLOCK", 2)
    never = {"start_time": None, "elapsed_seconds": 0, "state": "CANCELLED"}
    records = [record(1), *(replace(record(number), **never) for number in (2, 3, 4, 5))]
    values = map(ingest_new.values_of, records)
    made = ingest_new.prepare(values, cluster=b.CLUSTER, now=b.NOW)
    assert (len(made.jobs), len(made.runs)) == (5, 1)
    with begin() as session:
        squeezed.put(session, squeezed.squeeze_jobs(made.jobs), squeezed.squeeze_runs(made.runs))
    assert marked(begin) == [0, 1, 2]


def test_a_run_that_comes_for_a_job_of_old_marks_its_block(begin, monkeypatch):
    monkeypatch.setattr(history, "BLOCK", 2)
    old, _ = b.add_job(begin, state="COMPLETED"), b.add_job(begin)
    clear(begin)
    with begin() as session:
        before = history.highest(session)
    b.add_run(begin, old)
    clear(begin)
    with begin() as session:
        history.mark_since(session, before)
    assert marked(begin) == [old // 2]


def test_tasks_that_are_told_their_template_are_marked(begin):
    b.add_job(begin, array_job_id=500, token="t", template=None)  # no secret
    clear(begin)
    with begin() as session:
        jobs.tell_tasks(
            session, 500, cluster=b.CLUSTER, user="member", token="t", told={"template": "ddp"}
        )
    assert marked(begin) == [0]


_COLUMNS = [c for c in t.Job.__table__.columns if c.name != "id"]


def _attribute(column):
    return "group" if column == "group_name" else column
