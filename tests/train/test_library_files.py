"""The lines and files of a run folder are true whatever dies, and foreign ones do no harm."""

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice_train.files import RunFolder, append, lines, read_object, whole, write_whole

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("lines")


@given(st.dictionaries(st.text(max_size=8), json_values, max_size=4))
def test_what_is_appended_is_read_again(scratch, facts):
    path = scratch / "events.jsonl"
    append(path, facts)
    assert list(lines(path))[-1] == json.loads(json.dumps(facts))


@given(st.binary(max_size=200))
def test_foreign_bytes_are_passed_over_and_take_no_line_with_them(scratch, rubbish):
    path = scratch / "torn.jsonl"
    path.write_bytes(b'{"first": 1}\n' + rubbish)
    append(path, {"last": 2})
    found = list(lines(path))
    assert found[0] == {"first": 1}
    assert found[-1] == {"last": 2}


def test_what_is_not_finite_is_null(tmp_path):
    path = tmp_path / "metrics.jsonl"
    append(path, {"loss": math.nan, "inner": [math.inf, {"x": -math.inf}], "ok": 1.5})
    assert list(lines(path)) == [{"loss": None, "inner": [None, {"x": None}], "ok": 1.5}]


def test_a_line_is_never_longer_than_the_contract_allows(tmp_path):
    path = tmp_path / "events.jsonl"
    append(path, {"kind": "save_failed", "error": "é" * 9000})
    assert len(path.read_bytes()) <= 4000
    assert next(lines(path))["kind"] == "save_failed"
    with pytest.raises(ValueError, match="longer than 4000"):
        append(path, {f"name{number}": number for number in range(2000)})
    assert len(list(lines(path))) == 1


def test_the_last_bytes_begin_with_a_whole_line(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for step in range(100):
        append(path, {"step": step})
    found = [line["step"] for line in lines(path, last_bytes=100)]
    assert found == list(range(100 - len(found), 100))
    assert 4 <= len(found) <= 10


def test_no_file_has_no_lines(tmp_path):
    assert list(lines(tmp_path / "none.jsonl")) == []


WRITER = """
import sys
from pathlib import Path
from sluice_train.files import append
for count in range(300):
    append(Path(sys.argv[1]), {"who": sys.argv[2], "count": count, "text": "x" * 3000})
"""


def test_writers_at_once_lose_nothing(tmp_path):
    """Starts processes: only they can write at the same time."""
    path = tmp_path / "events.jsonl"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), who], env=_with_library())
        for who in "abc"
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    found = list(lines(path))
    for who in "abc":
        assert [line["count"] for line in found if line["who"] == who] == list(range(300))


def _with_library() -> dict[str, str]:
    root = Path(__file__).resolve().parents[2] / "contrib" / "sluice_train"
    return os.environ | {"PYTHONPATH": str(root)}


def test_a_file_holds_the_old_text_or_the_new_one_whenever_it_is_killed(tmp_path):
    seen, operation, died = set(), 0, True
    while died:
        operation += 1
        path = tmp_path / str(operation) / "DONE"
        write_whole(path, '{"step": 1}')
        died = _killed_before(operation, path, '{"step": 2}')
        seen.add(read_object(path)["step"])
    assert seen == {1, 2}


def _killed_before(operation: int, path: Path, text: str) -> bool:
    child = os.fork()
    if child == 0:
        count = 0

        def die(event: str, _: object) -> None:
            nonlocal count
            if event in {"open", "os.mkdir", "os.rename"}:
                count += 1
                if count == operation:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(die)
        try:
            write_whole(path, text)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_a_file_that_cannot_be_written_leaves_nothing_beside_it(tmp_path):
    (tmp_path / "DONE").mkdir()
    with pytest.raises(OSError, match="DONE"):
        write_whole(tmp_path / "DONE", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["DONE"]


@pytest.mark.parametrize("content", ["", "[1]", "{", "\0", "[" * 100000])
def test_what_is_no_object_is_none(tmp_path, content):
    (tmp_path / "file").write_text(content)
    assert read_object(tmp_path / "file") is None
    assert read_object(tmp_path / "absent") is None


def test_the_paths_come_from_the_environment(tmp_path):
    given_paths = {
        "SLUICE_RUN_DIR": str(tmp_path / "run"),
        "SLUICE_CHECKPOINT_DIR": str(tmp_path / "own"),
        "SLUICE_JOB": "120_3",
        "SLUICE_RESTART": "2",
    }
    folder = RunFolder.of_environment(given_paths)
    assert folder.checkpoints == tmp_path / "own"
    folder.event("start", nodes=2)
    line = next(lines(tmp_path / "run" / "events.jsonl"))
    assert line.pop("at") > 0
    assert line == {"kind": "start", "nodes": 2, "job": "120_3", "restart": 2}


def test_without_an_environment_there_is_a_folder_where_one_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = RunFolder.of_environment({})
    assert folder.path == tmp_path / "sluice-runs" / "local"
    assert folder.checkpoints == folder.path / "checkpoints"


def test_a_number_that_is_none_is_told_with_its_name():
    assert whole("X", 3, {}) == whole("X", 3, {"X": " "}) == 3
    assert whole("X", 3, {"X": "7"}) == 7
    with pytest.raises(ValueError, match="X must be a whole number, not 'many'"):
        whole("X", 3, {"X": "many"})
