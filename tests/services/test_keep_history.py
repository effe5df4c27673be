"""The columnar history: in step, whole at each moment, and made again when it is gone."""

import json
import os
from datetime import timedelta

import pytest

from gateway.history import blocks, reading
from gateway.services import history_facts, keep_history
from gateway.store import charges, history, jobs, reviews
from gateway.testing import builders as b


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "history"


@pytest.fixture
def small(monkeypatch):
    """Two runs a block."""
    monkeypatch.setattr(history, "BLOCK", 2)


def keep(folder, begin, read):
    return keep_history.keep(folder, begin=begin, read=read, now=b.NOW)


def rows(folder, columns="run_id, state, elapsed_seconds"):
    with reading.runs(folder) as connection:
        return connection.execute(f"SELECT {columns} FROM runs ORDER BY run_id").fetchall()


def one_by_one(folder, read):
    """Each block in a file of its own, as they are while they change."""
    manifest = blocks.load(folder)
    files = keep_history._write(folder, manifest.files, read=read, now=b.NOW)
    blocks.save(folder, blocks.Manifest(files, manifest.highest, b.NOW))


def add(begin, **values):
    return b.add_run(begin, b.add_job(begin, state="COMPLETED"), **values)


def test_a_run_is_there_after_the_next_turn_with_all_its_columns(folder, begin, read):
    assert keep(folder, begin, read) == keep_history.Kept(rebuilt=True)
    user = "ü\N{GRINNING FACE}"
    job = b.add_job(begin, state="COMPLETED", user=user, qos=None, template=None)
    b.add_run(begin, job, node_list=None)
    assert keep(folder, begin, read) == keep_history.Kept(made=1)
    assert rows(folder, '"user", qos, template, gpus, gpu_type, charge, limit_minutes') == [
        (user, None, None, 2, "a100", None, 60)
    ]
    hour = timedelta(hours=1)
    at = b.NOW.replace(tzinfo=None)
    assert rows(folder, "submit_time, eligible_time, start_time, end_time") == [
        (at - hour, at - hour, at - hour, at)
    ]


def test_nothing_is_written_while_nothing_changes(folder, begin, read):
    add(begin)
    keep(folder, begin, read)
    before = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    assert keep(folder, begin, read) == keep_history.Kept()
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == before


@pytest.mark.usefixtures("small")
def test_only_the_block_of_a_changed_run_is_made_again(folder, begin, read):
    for _ in range(5):
        add(begin)
    keep(folder, begin, read)
    one_by_one(folder, read)
    before = blocks.load(folder).files
    with begin() as session:
        reviews.end_by_decision(session, 4, 60)
    assert keep(folder, begin, read).made == 1
    after = blocks.load(folder).files
    assert {block for block in after if after[block] != before[block]} == {2}
    assert [row[2] for row in rows(folder)] == [3600, 3600, 3600, 60, 3600]


def test_accounting_that_tells_an_end_marks_the_run(folder, begin, read):
    job = b.add_job(begin, state="RUNNING", slurm_id=7, start_time=b.NOW)
    run = b.add_run(begin, job, end_time=None, state="RUNNING")
    keep(folder, begin, read)
    with begin() as session:
        known = jobs.runs_by_slurm_ids(session, b.CLUSTER, [7])
        ((_, before),) = known.items()
        jobs.put_run(session, before | {"end_time": b.NOW, "state": "TIMEOUT"}, before=before)
    keep(folder, begin, read)
    assert rows(folder, "run_id, state") == [(run, "TIMEOUT")]


def test_a_charge_marks_the_run(folder, begin, read):
    run = add(begin)
    keep(folder, begin, read)
    with begin() as session:
        charges.settled(session, [run])
    assert keep(folder, begin, read).made == 1


def test_what_a_writer_left_half_is_never_read(folder, begin, read, monkeypatch):
    """Killed before the list, while it is written, and before the marks are taken away."""
    add(begin)
    keep(folder, begin, read)
    add(begin)
    for where in ("gateway.history.blocks.save", "os.fsync", "gateway.store.history.unmark"):
        with monkeypatch.context() as patch:
            patch.setattr(where, _killed)
            with pytest.raises(KeyboardInterrupt):
                keep(folder, begin, read)
        assert len(rows(folder)) in {1, 2}
    keep(folder, begin, read)
    assert len(rows(folder)) == 2


def test_a_list_or_file_that_is_gone_or_broken_is_made_anew(folder, begin, read):
    add(begin)
    for spoil in (
        (folder / blocks.LIST).unlink,
        lambda: (folder / blocks.LIST).write_text('{"shape": 1, "fil'),
        lambda: (folder / blocks.LIST).write_text("[]"),
        lambda: (folder / blocks.LIST).write_text(json.dumps({"shape": blocks.SHAPE + 1})),
        lambda: [file.unlink() for file in folder.glob("runs-*.parquet")],
        lambda: [file.write_bytes(b"") for file in folder.glob("runs-*.parquet")],
        lambda: [os.truncate(file, 1000) for file in folder.glob("runs-*.parquet")],
        lambda: [file.write_bytes(b"x" * 9000) for file in folder.glob("runs-*.parquet")],
    ):
        assert keep(folder, begin, read).rebuilt
        assert len(rows(folder)) == 1
        spoil()
        assert rows(folder) == []


def test_an_older_database_makes_it_anew(folder, begin, read):
    add(begin)
    keep(folder, begin, read)
    manifest = blocks.load(folder)
    blocks.save(folder, blocks.Manifest(manifest.files, manifest.highest + 1, b.NOW))
    assert keep(folder, begin, read).rebuilt


def test_a_reader_has_its_moment_while_a_writer_goes_on(folder, begin, read):
    add(begin)
    keep(folder, begin, read)
    with reading.runs(folder) as connection:
        add(begin)
        keep(folder, begin, read)
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (1,)
    assert len(rows(folder)) == 2


def test_files_that_nothing_names_go_after_a_while(folder, begin, read, monkeypatch):
    add(begin)
    keep(folder, begin, read)
    add(begin)
    keep(folder, begin, read)
    assert len(list(folder.glob("runs-*.parquet"))) == 2
    monkeypatch.setattr(blocks, "KEPT_SECONDS", -1)
    keep_history.rebuild(folder, begin=begin, read=read, now=b.NOW)
    assert len(list(folder.glob("runs-*.parquet"))) == 1
    assert len(rows(folder)) == 2


def test_two_writers_never_write_at_once(folder, begin, read):
    add(begin)
    with blocks.writing(folder, wait=True):
        assert keep(folder, begin, read) == keep_history.Kept(busy=True)
    assert keep(folder, begin, read).made == 1


def test_what_is_marked_while_a_block_is_made_is_made_again(folder, begin, read, monkeypatch):
    run = add(begin)
    keep(folder, begin, read)
    with begin() as session:
        charges.settled(session, [run])
    write = blocks.write

    def meanwhile(*given):
        with begin() as session:
            reviews.end_by_decision(session, run, 60)
        return write(*given)

    with monkeypatch.context() as patch:
        patch.setattr(blocks, "write", meanwhile)
        keep(folder, begin, read)
    assert keep(folder, begin, read).made == 1
    assert rows(folder, "elapsed_seconds") == [(60,)]


def test_info_tells_what_there_is_and_what_is_behind(folder, begin, read):
    add(begin)
    nothing = history_facts.known(folder, read=read)
    assert (nothing.runs, nothing.to_make, nothing.made_at) == (0, 1, None)
    b.add_job(begin)
    b.add_job(begin, state="CANCELLED", end_time=b.NOW)
    keep(folder, begin, read)
    add(begin)
    found = history_facts.known(folder, read=read)
    assert (found.runs, found.never_started, found.waiting) == (1, 1, 1)
    assert (found.blocks, found.files, found.to_make, found.made_at) == (1, 1, 1, b.NOW)
    assert found.bytes > 0


def _killed(*_given, **_named):
    raise KeyboardInterrupt
