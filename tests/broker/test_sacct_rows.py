"""Rows of sacct --json, made up and real (the samples are read in place, where they are)."""

import json
import os
from pathlib import Path

import pytest

from gateway.core.tres import gpu_count, parse_tres
from gateway.wire.messages import HeldRow, RunRecord
from gateway.wire.sacct_rows import read_row

SAMPLES = Path(os.environ.get("SLUICE_SACCT_SAMPLES", "../shared/sacct-samples"))


def row(**changes):
    """A row as 26.05 prints it: 8 GPUs for 6 hours."""
    number = {"set": True, "infinite": False, "number": 0}
    base = {
        "account": "nlp",
        "allocation_nodes": 1,
        "array": {"job_id": 0, "task_id": {"set": False, "infinite": False, "number": 0}},
        "association": {"user": "", "account": ""},
        "comment": {"job": "sluice:abc", "system": "", "administrator": ""},
        "exit_code": {
            "status": ["SUCCESS"],
            "return_code": number,
            "signal": {"id": {"set": False, "infinite": False, "number": 0}, "name": ""},
        },
        "job_id": 7,
        "name": "train",
        "nodes": "a100-1",
        "partition": "a100",
        "qos": "normal",
        "required": {"CPUs": 8},
        "restart_cnt": 0,
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "time": {
            "submission": 1_767_222_000,
            "eligible": 1_767_222_000,
            "start": 1_767_225_600,
            "end": 1_767_247_200,
            "elapsed": 21_600,
            "suspended": 0,
            "limit": {**number, "number": 480},
        },
        "tres": {
            "allocated": [
                {"type": "cpu", "name": "", "id": 1, "count": 8},
                {"type": "energy", "name": "", "id": 3, "count": -2},
                {"type": "gres", "name": "gpu", "id": 1001, "count": 8},
                {"type": "gres", "name": "gpu:a100", "id": 1002, "count": 8},
            ],
            "requested": [{"type": "gres", "name": "gpu", "id": 1001, "count": 8}],
        },
        "user": "nlp-1",
        "working_directory": "/home/nlp-1",
    }
    return {**base, **changes}


def gpu_hours(run):
    gpus, _ = gpu_count(parse_tres(run.alloc_tres))
    return gpus * run.elapsed_seconds / 3600


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "a|b"},
        {"name": "x|COMPLETED|00:00:00|0"},
        {"name": "run\r"},
        {"comment": {"job": "first line\nsecond line"}},
        {"working_directory": "/home/nlp-1/d|1"},
        {"name": 'a","user":"root'},
        {"name": "\u2028\u0000\x1e"},
    ],
)
def test_text_of_a_user_moves_no_field_and_hides_no_row(changes):
    run = read_row(json.loads(json.dumps(row(**changes))), {(7, 1_767_222_000): 2002})
    assert isinstance(run, RunRecord)
    assert gpu_hours(run) == 48
    assert (run.user, run.uid, run.state) == ("nlp-1", 2002, "COMPLETED")
    if "name" in changes:
        assert run.name == changes["name"]
    if "working_directory" in changes:
        assert run.working_directory == changes["working_directory"]


def test_bytes_that_are_no_utf8_survive():
    raw = json.dumps(row()).replace("train", "caf\udce9").encode("utf-8", "surrogateescape")
    run = read_row(json.loads(raw.decode("utf-8", "surrogateescape")), {})
    assert run.name == "caf\ufffd"
    assert gpu_hours(run) == 48


def test_a_job_that_never_started_has_no_times_of_a_run():
    cancelled = row(nodes="None assigned", allocation_nodes=0)
    cancelled["state"] = {"current": ["CANCELLED"], "reason": "None"}
    cancelled["time"] = {**cancelled["time"], "start": 0, "elapsed": 0, "eligible": 0xFFFFFFFE}
    cancelled["tres"] = {**cancelled["tres"], "allocated": []}
    run = read_row(cancelled, {})
    assert (run.start_time, run.eligible_time, run.node_list) == (None, None, None)
    assert (run.elapsed_seconds, run.alloc_tres) == (0, "")
    assert run.end_time is not None


@pytest.mark.parametrize(
    ("current", "state"),
    [
        (["PENDING", "REQUEUED"], "REQUEUED"),
        (["RUNNING", "COMPLETING"], "COMPLETING"),
        (["PREEMPTED"], "PREEMPTED"),
        ("TIMEOUT", "TIMEOUT"),
    ],
)
def test_a_flag_stands_for_the_state_as_sacct_prints_it(current, state):
    assert read_row(row(state={"current": current, "reason": ""}), {}).state == state


def test_a_signal_and_no_limit_are_their_own_values():
    killed = row()
    killed["exit_code"]["signal"] = {"id": {"set": True, "infinite": False, "number": 9}}
    killed["time"]["limit"] = {"set": False, "infinite": True, "number": 0}
    run = read_row(killed, {})
    assert (run.exit_code, run.exit_signal, run.time_limit_minutes) == (0, 9, None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("job_id", "7"),
        ("user", ""),
        ("time", {}),
        ("tres", {"allocated": [{"type": "gres", "name": "gpu,cpu=0", "id": 1, "count": 1}]}),
        ("state", {"current": []}),
        ("allocation_nodes", -1),
        ("allocation_nodes", True),
        ("exit_code", None),
    ],
)
def test_a_row_that_cannot_be_understood_is_held_whole(key, value):
    odd = row(**{key: value})
    held = read_row(odd, {})
    assert isinstance(held, HeldRow)
    assert json.loads(held.raw) == odd
    assert held.reason


@pytest.mark.parametrize("odd", [None, 3, "text", [], {}])
def test_what_is_no_row_is_held_too(odd):
    assert isinstance(read_row(odd, {}), HeldRow)


@pytest.mark.parametrize(
    "name",
    ["mila-iqia__SARC/slurm_23_2_6.json", "eth-cscs__firecrest-v2/slurm_get_job_from_db.json"],
)
def test_real_records_of_older_releases_are_read(name):
    path = SAMPLES / name
    if not path.exists():
        pytest.skip("the samples are not on this machine")
    jobs = json.loads(path.read_text())["jobs"]
    runs = [read_row(job, {}) for job in jobs]
    assert runs
    assert all(isinstance(run, RunRecord) for run in runs), runs
    assert all(run.time_limit_minutes == 7200 for run in runs)
