"""Runs as rows of the columnar history, on each database, and the marks of what has changed."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway.core.past_runs import COLUMNS
from gateway.services import ingest_new
from gateway.store import history, history_rows, new_jobs
from gateway.testing import builders as b
from gateway.wire import messages as m


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(history, "BLOCK", 2)


def ids(session, block):
    return [row[0] for row, _ in history_rows.rows(session, block, now=b.NOW)]


def add(begin, **values):
    return b.add_run(begin, b.add_job(begin, state="COMPLETED"), **values)


def test_times_are_whole_seconds_on_each_database(begin, read):
    end = datetime(2026, 3, 1, 12, 0, 0, 987_654, tzinfo=UTC)
    add(begin, end_time=end, eligible_time=None)
    with read() as session:
        ((row, times),) = history_rows.rows(session, 0, now=b.NOW)
    assert times == 1
    found = dict(zip(COLUMNS, row, strict=True))
    assert found["end_time"] == int(end.timestamp())
    assert found["eligible_time"] is None
    assert found["start_time"] == int((b.NOW - timedelta(hours=1)).timestamp())


@pytest.mark.usefixtures("small")
def test_blocks_are_those_that_hold_a_run(begin, read):
    runs = [add(begin) for _ in range(3)]
    assert runs == [1, 2, 3]
    with read() as session:
        assert history.blocks(session) == [0, 1]
        assert ids(session, 1) == [2, 3]
        assert ids(session, 2) == []


@pytest.mark.usefixtures("small")
def test_what_was_marked_meanwhile_stays(begin):
    add(begin)
    with begin() as session:
        seen = history.marks(session)
        history.mark(session, [0, 1, 2])
        history.unmark(session, [mark for ids in seen.values() for mark in ids])
    with begin() as session:
        assert set(history.marks(session)) == {0, 1}


@pytest.mark.usefixtures("small")
def test_runs_that_are_stored_many_at_once_are_marked(begin):
    add(begin)
    with begin() as session:
        history.unmark(session, [i for ids in history.marks(session).values() for i in ids])
        prepared = ingest_new.prepare(
            [ingest_new.values_of(record(number)) for number in range(500, 505)],
            cluster=b.CLUSTER,
            now=b.NOW,
        )
        new_jobs.put(session, prepared.jobs, prepared.runs)
    with begin() as session:
        runs = [run for block in history.blocks(session) for run in ids(session, block)]
        assert len(runs) == 6
        assert {run // 2 for run in runs[1:]} == set(history.marks(session))


def record(number):
    return m.RunRecord(
        job_id=number,
        user="ann",
        uid=None,
        name="train",
        account="nlp",
        partition="a100",
        qos="normal",
        state="COMPLETED",
        submit_time=b.NOW,
        eligible_time=b.NOW,
        start_time=b.NOW,
        end_time=b.NOW + timedelta(hours=1),
        elapsed_seconds=3600,
        suspended_seconds=0,
        time_limit_minutes=90,
        nodes=1,
        cpus=8,
        alloc_tres="cpu=8,gres/gpu=2,gres/gpu:a100=2",
        req_tres="",
        node_list="a100-1",
        exit_code=0,
        exit_signal=0,
        restarts=0,
        reason=None,
        working_directory="/home",
        comment=None,
    )
