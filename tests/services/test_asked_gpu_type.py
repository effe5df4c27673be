"""The type of card that a job asked for is kept beside the one that it was given."""

from datetime import timedelta

import pytest

from gateway.core.csv_mapping import from_toml
from gateway.history import reading
from gateway.history.importing.load import Given
from gateway.services import ingest_new, ingest_plan, keep_history
from gateway.services.import_set import import_set
from gateway.store import models as t
from gateway.testing import builders as b
from gateway.testing.portal import CLUSTER, portal
from gateway.wire import messages as m

ANY, A100 = "cpu=8,gres/gpu=2", "cpu=8,gres/gpu:a100=2,gres/gpu=2"


def seen(job_id=7, **values):
    """In the queue: of any type, and given an A100 once it runs."""
    facts = {
        "job_id": job_id, "user": "nlp-1", "uid": 20002, "name": "own", "account": "nlp",
        "partition": "mixed", "qos": "normal", "state": "PENDING", "reason": "Priority",
        "submit_time": b.NOW, "eligible_time": b.NOW, "start_time": None, "end_time": None,
        "estimated_start": None, "time_limit_minutes": 60, "nodes": 1, "cpus": 8, "gpus": 2,
        "gpu_type": None, "node_list": None, "priority": 1000, "restarts": 0, "exit_code": None,
        "exit_signal": None, "working_directory": "/home/nlp-1", "output": None, "comment": None,
    }  # fmt: skip
    return m.QueueJob(**(facts | values))


def runs(**values):
    started = {"state": "RUNNING", "reason": None, "start_time": b.NOW, "node_list": "mixed-1"}
    return seen(**(started | {"gpu_type": "a100"} | values))


def record(job_id=50, **values):
    facts = {
        "job_id": job_id, "user": "nlp-1", "uid": 20002, "name": "own", "account": "nlp",
        "partition": "mixed", "qos": "normal", "state": "COMPLETED", "submit_time": b.NOW,
        "eligible_time": b.NOW, "start_time": b.NOW, "end_time": b.NOW + timedelta(hours=1),
        "elapsed_seconds": 3600, "suspended_seconds": 0, "time_limit_minutes": 60, "nodes": 1,
        "cpus": 8, "alloc_tres": A100, "req_tres": ANY, "node_list": "mixed-1", "exit_code": 0,
        "exit_signal": 0, "restarts": 0, "reason": None, "working_directory": "/home/nlp-1",
        "comment": None,
    }  # fmt: skip
    return m.RunRecord(**(facts | values))


def kept(begin, read, tmp_path):
    """(given, asked) as the history has them, by job."""
    keep_history.keep(tmp_path / "history", begin=begin, read=read, now=b.NOW)
    with reading.runs(tmp_path / "history") as connection:
        return connection.execute(
            "SELECT gpu_type, req_gpu_type FROM waits ORDER BY slurm_id"
        ).fetchall()


def test_a_job_of_any_type_asked_for_none_whatever_it_was_given(begin, read, tmp_path):
    site = portal(begin)
    for now in (seen(), runs(), seen(restarts=1, submit_time=b.NOW + timedelta(hours=1))):
        site.broker.queue = lambda one=now: m.Queue((one,), site.now)
        site.poll()
    assert kept(begin, read, tmp_path) == [("a100", None)]


def test_the_type_asked_for_is_known_from_the_first_look_on(begin, read, tmp_path):
    site = portal(begin)
    typed = {"gpu_type": "a100", "req_gpu_type": "a100"}
    site.broker.queue = lambda: m.Queue((seen(**typed),), site.now)
    site.poll()
    assert kept(begin, read, tmp_path) == [("a100", "a100")]
    # What is no longer said of a job that is over is kept.
    site.broker.queue = lambda: m.Queue(
        (runs(state="COMPLETED", end_time=b.NOW, gpu_type=None),), site.now
    )
    site.poll()
    assert kept(begin, read, tmp_path) == [("a100", "a100")]


def many_at_once(session, records):
    ingest_plan.apply(session, records, cluster=CLUSTER, now=b.NOW)


def one_by_one(session, records):
    ingest_plan.apply_one_by_one(session, records, cluster=CLUSTER, now=b.NOW)


@pytest.mark.parametrize("put", [many_at_once, one_by_one])
def test_accounting_tells_what_was_requested(begin, read, tmp_path, put):
    records = [record(50), record(51, req_tres=A100), record(52, req_tres="no such thing")]
    with begin() as session:
        put(session, records)
    assert kept(begin, read, tmp_path) == [("a100", None), ("a100", "a100"), ("a100", None)]


def test_accounting_fills_in_what_nobody_knew(begin, read, tmp_path):
    """As after an update: jobs from before it have no type asked for until they are told of."""
    job = b.add_job(begin, slurm_id=51, submit_time=b.NOW, partition="mixed", user="nlp-1")
    with begin() as session:
        assert session.get_one(t.Job, job).req_gpu_type is None
        many_at_once(session, [record(51, req_tres=A100)])
    assert kept(begin, read, tmp_path) == [("a100", "a100")]


@pytest.mark.parametrize(
    ("req", "asked"),
    [
        (ANY, None),
        (A100, "a100"),
        ("cpu=8", None),
        ("gres/gpu:a100=1,gres/gpu:h100=1", None),
        ("", None),
        ("=,", None),
    ],
)
def test_a_type_is_asked_for_where_it_is_that_of_every_card(req, asked):
    assert ingest_new.asked_gpu_type(req) == asked


def imported(tmp_path, text, mapping=None):
    (tmp_path / "jobs.csv").write_text(text)
    given = Given(
        str(tmp_path / "jobs.csv"),
        "csv",
        "old",
        "UTC",
        b.NOW,
        mapping=from_toml(mapping) if mapping else None,
    )
    report = import_set(given, imports=tmp_path / "imports", keep=len)
    assert report.loaded.held == 0
    with reading.runs(tmp_path / "history") as connection:
        return connection.execute(
            "SELECT gpu_type, req_gpu_type FROM waits ORDER BY slurm_id"
        ).fetchall()


def test_a_file_of_sacct_tells_it_by_its_requested_resources(tmp_path):
    times = "2026-01-01T00:00:00|2026-01-01T01:00:00|2026-01-01T02:00:00"
    text = "\n".join(
        (
            "JobIDRaw|Submit|Start|End|State|AllocTRES|ReqTRES",
            f"1|{times}|COMPLETED|{A100}|{ANY}",
            f"2|{times}|COMPLETED|{A100}|{A100}",
            f"3|{times}|COMPLETED|{A100}|",
        )
    )
    assert imported(tmp_path, text) == [("a100", None), ("a100", "a100"), ("a100", None)]


def test_a_column_of_a_file_may_tell_it(tmp_path):
    text = "nr,in,out,done,got,wish\n1,1700000000,1700000100,1700000200,a100,\n"
    text += "2,1700000000,1700000100,1700000200,a100,h100\n"
    mapping = (
        '[columns]\nid = "nr"\nsubmit = "in"\nstart = "out"\nend = "done"\n'
        'gpu_type = "got"\nreq_gpu_type = "wish"\n'
    )
    assert imported(tmp_path, text, mapping) == [("a100", None), ("a100", "h100")]
