"""`sacct --json` into the store: as its text comes in, whole or cut, real samples too."""

import gzip
import io
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import select

from gateway.core import json_jobs
from gateway.services.import_feed import JSON, BadHistory, Source, batches, feed
from gateway.services.import_history import import_history
from gateway.store import history_rows
from gateway.store.models import HeldRow, Job, Run

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "sacct-samples"
SET = {"set": True, "infinite": False, "number": 720}
UNSET = {"set": False, "infinite": False, "number": 0}


def row(**changes):
    """A row as 26.05 prints it: 8 cards for 6 hours."""
    tres = [
        {"type": "cpu", "name": "", "id": 1, "count": 64},
        {"type": "gres", "name": "gpu", "id": 1001, "count": 8},
    ]
    begin = 1_770_000_000
    return {
        "account": "nlp",
        "allocation_nodes": 2,
        "array": {"job_id": 0, "task_id": UNSET},
        "association": {"account": "nlp", "user": "ada"},
        "cluster": "north",
        "comment": {"job": ""},
        "exit_code": {"return_code": SET | {"number": 0}, "signal": {"id": UNSET}},
        "job_id": 7,
        "kill_request_user": "",
        "name": 'a "name" | with\nall',
        "nodes": "n[1-2]",
        "partition": "a100",
        "qos": "normal",
        "required": {"CPUs": 64},
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "time": {
            "submission": begin,
            "eligible": begin,
            "start": begin + 60,
            "end": begin + 21660,
            "elapsed": 21600,
            "suspended": 0,
            "limit": SET,
        },
        "tres": {"allocated": tres, "requested": tres},
        "user": "ada",
        "working_directory": "/home/ada",
    } | changes


@pytest.fixture
def put(begin, tmp_path):
    def _put(data, *, read=batches, cluster=None):
        path = tmp_path / "jobs.json"
        path.write_bytes(data if isinstance(data, bytes) else json.dumps(data).encode())
        given = Source(str(path), "UTC", "home", cluster, None, NOW, kind=JSON)
        return import_history(read(given), begin=begin, now=NOW)

    return _put


def rows(begin, *columns):
    with begin() as session:
        return [tuple(one) for one in session.execute(select(*columns).order_by(columns[0]))]


def test_a_job_comes_in_once_with_its_run(begin, put):
    for changed in (2, 0):
        report = put({"meta": {}, "jobs": [row()], "errors": []}, read=feed)
        assert (report.records, report.stored, report.changed, report.cut) == (1, 1, changed, None)
        assert report.clusters == ["north"]
    assert rows(begin, Job.slurm_id, Job.name, Job.time_limit_minutes) == [
        (7, 'a "name" | with\nall', 720)
    ]
    assert rows(begin, Run.slurm_id, Run.gpus, Run.elapsed_seconds) == [(7, 8, 21600)]


def test_who_never_started_has_no_run_though_an_old_sacct_says_a_start(begin, put):
    times = row()["time"]
    gone = times | {"start": times["submission"] + 9, "end": times["submission"] + 9, "elapsed": 0}
    put([row(state={"current": ["CANCELLED"]}, nodes="None assigned", time=gone)])
    assert rows(begin, Job.state, Job.start_time) == [("CANCELLED", None)]
    assert rows(begin, Run.id) == []


def test_a_row_that_cannot_be_understood_is_held_whole(begin, put):
    report = put({"jobs": [row(), row(job_id="x"), 5, row(job_id=8, user="", association={})]})
    assert (report.records, report.stored, report.held, report.ties) == (4, 1, 3, True)
    kept = {raw for (raw,) in rows(begin, HeldRow.raw)}
    assert "5" in kept
    assert any(json.loads(raw) == row(job_id="x") for raw in kept)


def at(*keys, value):
    """The row with another value at this place; DROPPED takes the key away."""
    odd = json.loads(json.dumps(row(job_id=8)))
    place = odd
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    if value is DROPPED:
        del place[keys[-1]]
    return odd


DROPPED = object()
ODD = [
    *(at("job_id", value=value) for value in ("8", 0, -8, 2**32, 2**70, 8.0, True, None, DROPPED)),
    *(at("cluster", value=value) for value in (5, ["north"], {}, "\ud800")),
    *(at("state", "current", value=value) for value in ("WEIRD", {"COMPLETED": 1}, [], [5], 3)),
    *(at("time", "start", value=value) for value in ("1770000000", None, 1e9, DROPPED)),
    *(at("time", "limit", value=value) for value in ("720", -1, SET | {"set": "true"})),
    at("time", "submission", value=2**40),
    at("time", "elapsed", value=2**40),
    *(at("tres", "allocated", value=value) for value in ("", {}, None, "gres/gpu=8", 8, [8])),
    *(at("tres", "allocated", 1, "count", value=value) for value in ("8", None, 10**400, DROPPED)),
    at("tres", "allocated", 1, "type", value=None),
    *(at("array", "job_id", value=value) for value in ("8", -1, 2**40, None)),
    at("array", "task", value=5) | {"array": {"job_id": 8, "task_id": UNSET, "task": 5}},
    *(at("name", value=value) for value in (5, ["name"], DROPPED)),
]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_a_row_with_numbers_as_text_or_other_odd_types_is_held_alone(begin, put, odd):
    report = put({"jobs": [row(), odd, row(job_id=9)]})
    assert (report.records, report.stored, report.held, report.ties) == (3, 2, 1, True)
    ((raw, reason),) = rows(begin, HeldRow.raw, HeldRow.reason)
    assert json.loads(raw) == odd
    assert reason


@pytest.mark.parametrize("odd", ["[" * 100_000, '{"a":' + "9" * 5000 + "}]}", "1 x 2]}"])
def test_what_no_reader_of_json_takes_is_held_and_said(begin, put, odd):
    text = f'{{"jobs": [{json.dumps(row())}, {odd}'
    report = put(text.encode())
    assert (report.stored, report.ties) == (1, True)
    assert report.held >= 1
    assert report.cut
    assert any(odd[:20] in raw or raw in odd for (raw,) in rows(begin, HeldRow.raw))


@pytest.mark.parametrize(
    ("listed", "tasks"),
    [
        ("60-89", 30),
        ("60-89%4", 30),
        ("1,3,5", 3),
        ("0x2A", 3),  # slurmdbd keeps a mask of bits
        ("0xFF%2", 8),
        ("1,3,5,...", None),  # Slurm cut it: nobody knows
        ("0-9999999", None),
        ("rubbish", None),
        ("", None),
    ],
)
def test_an_array_that_never_started_tells_its_tasks(begin, put, listed, tasks):
    """Case 5."""
    times = row()["time"] | {"start": 0, "elapsed": 0}
    array = {"job_id": 7, "task_id": UNSET, "task": listed}
    never = row(array=array, state={"current": ["CANCELLED"]}, nodes="None assigned", time=times)
    for _ in range(2):
        put({"jobs": [never]})
    with begin() as session:
        assert session.execute(select(Job.array_tasks, Job.array_task)).all() == [(tasks, None)]
        assert sum(times for _, times in history_rows.rows(session, 0, now=NOW)) == (tasks or 1)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_of_a_cut_file_the_whole_rows_come_in(begin, put, pack):
    data = pack(json.dumps({"jobs": [row(job_id=n) for n in range(1, 400)]}).encode())
    report = put(data[: len(data) * 3 // 4])
    assert report.cut
    assert report.ties
    assert report.held == 1
    assert 0 < report.stored < 399
    assert len(rows(begin, Job.id)) == report.stored


def test_what_slurm_did_not_give_is_said(put):
    report = put({"jobs": [row()], "errors": [{"error": "no slurmdbd"}]})
    assert (report.stored, report.ties) == (1, True)
    assert "no slurmdbd" in report.cut


@pytest.mark.parametrize("text", [b"", b"hello", b"{}", b'{"jobs": 5}', b"JobID|User\n1|a\n"])
def test_what_is_no_list_of_jobs_is_refused(begin, put, text):
    with pytest.raises(BadHistory, match="sacct --json"):
        put(text)
    assert rows(begin, Job.id) == []


def test_bytes_that_are_no_utf8_and_nul_lose_no_row(begin, put):
    data = json.dumps([row(name="A\0"), row(job_id=8, name="XY")]).encode()
    report = put(data.replace(b"XY", b"\xff\xf0\x9f\x9a\x80"))
    assert (report.stored, report.held) == (2, 0)
    assert rows(begin, Job.slurm_id, Job.name) == [(7, "A\ufffd"), (8, "\ufffd🚀")]


def test_elements_are_found_wherever_the_text_is_torn():
    told = {"meta": {"jobs": [1]}, "jobs": [{"a": n, "t": "]}," * n} for n in range(40)], "z": 12}
    text = json.dumps(told, indent=1)

    class Dripping(io.StringIO):
        def read(self, _size=-1):
            return super().read(7)

    assert list(json_jobs.jobs(Dripping(text))) == told["jobs"]
    for end in range(len(text)):
        with pytest.raises((json_jobs.NoJobs, json_jobs.CutShort)):
            list(json_jobs.jobs(io.StringIO(text[:end])))


@pytest.mark.parametrize(
    ("sample", "user", "cards", "state"),
    [
        ("mila-iqia__SARC/slurm_23_2_6.json", "user04", 2, "RUNNING"),
        ("eth-cscs__firecrest-v2/slurm_get_job_from_db.json", "test-user", 0, "COMPLETED"),
    ],
)
def test_a_real_sample_comes_in(begin, put, sample, user, cards, state):
    path = Path(os.environ.get("SLUICE_SACCT_SAMPLES", SAMPLES)) / sample
    if not path.exists():
        pytest.skip(f"{path} is not there")
    report = put(path.read_bytes())
    assert (report.stored, report.held, report.cut) == (1, 0, None)
    assert rows(begin, Run.user, Run.gpus, Run.state) == [(user, cards, state)]
