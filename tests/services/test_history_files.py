"""The history's files: merged while others read, killed at any point, beside imported sets."""

import os
import random
import signal
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.core.past_runs import COLUMNS
from gateway.history import blocks, export, reading, sets
from gateway.services import keep_history
from gateway.store import history, history_rows, jobs
from gateway.store.schema import upgrade
from gateway.store.uow import make_begin, make_engine
from gateway.testing import builders as b

KILLS = 25
PUBLIC = 1_700_000_000


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "history"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Two jobs a block, four blocks a file."""
    monkeypatch.setattr(history, "BLOCK", 2)
    monkeypatch.setattr(keep_history, "GROUP", 4)


def keep(folder, begin, read):
    return keep_history.keep(folder, begin=begin, read=read, now=b.NOW)


def found(folder, columns="job_id, state", view="waits"):
    with reading.runs(folder) as connection:
        query = f"SELECT {columns} FROM {view} ORDER BY job_id, run_id"
        return connection.execute(query).fetchall()


def names(folder):
    return sorted(set(blocks.load(folder).files.values()))


def grow_old(folder, seconds=keep_history.QUIET_SECONDS + 1):
    """As if nothing had been written for so long."""
    past = time.time() - seconds
    for file in folder.glob("*.parquet"):
        os.utime(file, (past, past))


def change(begin, job, **values):
    with begin() as session:
        jobs.change(session, [{"id": job, **values}])


def test_quiet_blocks_go_into_one_file_and_a_changed_one_comes_out_of_it(folder, begin, read):
    keep(folder, begin, read)
    for _ in range(20):  # blocks 0 to 10
        b.add_job(begin)
        keep(folder, begin, read)
    assert len(names(folder)) == 11
    grow_old(folder)
    for _ in range(4):
        keep(folder, begin, read)
    assert len(names(folder)) == 3
    assert [job for job, _ in found(folder)] == list(range(1, 21))
    change(begin, 5, state="CANCELLED", active=False, end_time=b.NOW)
    assert keep(folder, begin, read).made == 1
    assert len(names(folder)) == 4
    assert dict(found(folder))[5] == "CANCELLED"
    assert len(found(folder)) == 20
    grow_old(folder)
    keep(folder, begin, read)
    assert len(names(folder)) == 3
    before = names(folder)
    grow_old(folder)
    keep(folder, begin, read)
    assert names(folder) == before


def test_a_rebuilt_history_has_few_files_and_no_others(folder, begin, read):
    for _ in range(20):
        b.add_job(begin)
    assert keep(folder, begin, read).rebuilt
    assert len(names(folder)) == 3
    assert sorted(file.name for file in folder.glob("*.parquet")) == names(folder)
    assert len(found(folder)) == 20


def test_a_reader_of_the_old_list_still_finds_its_files_after_a_merge(folder, begin, read):
    """Also those that were written long ago."""
    keep(folder, begin, read)
    for _ in range(6):
        b.add_job(begin)
        keep(folder, begin, read)
    grow_old(folder)
    with ExitStack() as stack:
        connection = stack.enter_context(reading.runs(folder))
        keep(folder, begin, read)
        change(begin, 1, state="FAILED")
        keep(folder, begin, read)
        assert connection.execute("SELECT count(*) FROM waits").fetchone() == (6,)
    assert len(found(folder)) == 6


def test_a_pending_array_is_as_many_rows_as_it_has_tasks(folder, begin, read):
    b.add_job(begin, array_job_id=500, array_tasks=10_000)
    job = b.add_job(begin, state="COMPLETED")
    b.add_run(begin, job)
    keep(folder, begin, read)
    with reading.runs(folder) as connection:
        query = "SELECT count(*), sum(gpus) FROM waits WHERE start_time IS NULL"
        assert connection.execute(query).fetchone() == (10_000, 20_000)
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (1,)


def test_in_step_needs_no_worker_and_waits_for_nobody(folder, begin, read):
    b.add_job(begin)
    made = keep_history.in_step(folder, begin=begin, read=read, now=b.NOW)
    assert (made.rebuilt, len(found(folder))) == (True, 1)
    b.add_job(begin)
    with blocks.writing(folder, wait=True):
        assert keep_history.in_step(folder, begin=begin, read=read, now=b.NOW).busy
    keep_history.in_step(folder, begin=begin, read=read, now=b.NOW)
    assert len(found(folder)) == 2


# Imported sets.


def rows_of(source, count):
    """Rows of a set, a column each."""
    facts = {
        "cluster": "old",
        "submit_time": PUBLIC,
        "eligible_time": PUBLIC,
        "start_time": PUBLIC + 60,
        "end_time": PUBLIC + 3660,
        "elapsed_seconds": 3600,
        "state": "COMPLETED",
        "gpus": 4,
        "source": source,
    }
    return [tuple((facts | {"slurm_id": n}).get(name) for name in COLUMNS) for n in range(count)]


def imported(folder, name, count):
    imports = folder.parent / sets.FOLDER
    with sets.changing(imports):
        place = sets.folder_of(imports, name)
        place.mkdir(parents=True, exist_ok=True)
        file = blocks.write(place, 0, rows_of(name, count))
        given = sets.ImportedSet(name, "csv", count, 1, b.NOW, (file,))
        sets.publish(imports, given)
    return given


def counts(folder):
    with reading.runs(folder) as connection:
        query = "SELECT source, count(*) FROM waits GROUP BY 1 ORDER BY 1 NULLS FIRST"
        return connection.execute(query).fetchall()


def test_an_imported_set_is_read_where_it_lies_whatever_becomes_of_the_history(folder, begin, read):
    given = imported(folder, "graham", 3)
    assert counts(folder) == [("graham", 3)]
    b.add_run(begin, b.add_job(begin, state="COMPLETED"))
    keep(folder, begin, read)
    keep_history.rebuild(folder, begin=begin, read=read, now=b.NOW)
    assert counts(folder) == [(None, 1), ("graham", 3)]
    assert len(found(folder, "run_id", "runs")) == 1
    for file in folder.iterdir():
        file.unlink()
    assert counts(folder) == [("graham", 3)]
    assert sets.listed(folder.parent / sets.FOLDER) == [given]


def test_sets_are_published_replaced_and_removed_each_at_once(folder):
    imports = folder.parent / sets.FOLDER
    imported(folder, "b", 2)
    imported(folder, "a", 1)
    imported(folder, "b", 5)
    assert counts(folder) == [("a", 1), ("b", 5)]
    with sets.changing(imports):
        sets.sweep(imports)
        assert len(list((imports / "b").iterdir())) == 1
        assert sets.remove(imports, "b")
        assert not sets.remove(imports, "b")
    assert counts(folder) == [("a", 1)]
    assert not (imports / "b").exists()


def test_a_set_that_is_older_than_a_column_has_nulls_in_it(folder):
    imports = folder.parent / sets.FOLDER
    given = imported(folder, "old", 2)
    file = imports / "old" / given.files[0]
    fewer = file.with_name("fewer.parquet")
    with reading.runs(folder) as connection:
        query = f"SELECT * EXCLUDE (priority, cause_unknown) FROM {blocks.parquet([file])}"
        blocks.copy(connection, query, fewer)
    with sets.changing(imports):
        older = replace(given, files=(fewer.name,), shape=blocks.SHAPE - 1)
        sets.publish(imports, older)
    assert found(folder, "priority, cause_unknown, gpus") == [(None, None, 4)] * 2
    imported(folder, "new", 1)
    assert counts(folder) == [("new", 1), ("old", 2)]


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", "x" * 65, ".hidden"])
def test_no_name_of_a_set_leads_elsewhere(tmp_path, name):
    assert not sets.is_name(name)
    with pytest.raises(ValueError, match="name of a set"):
        sets.folder_of(tmp_path, name)


def test_a_list_of_sets_that_cannot_be_read_is_told_and_not_taken_for_none(folder):
    imported(folder, "a", 1)
    (folder.parent / sets.FOLDER / sets.LIST).write_text('{"sets": [{"name": "../x"}]}')
    with pytest.raises(sets.BrokenSets), reading.runs(folder):
        pass


def test_a_set_with_a_file_that_has_lost_its_end_is_told_and_can_be_forgotten(folder):
    given = imported(folder, "a", 1)
    imports = folder.parent / sets.FOLDER
    os.truncate(imports / "a" / given.files[0], 1000)
    with pytest.raises(sets.BrokenSets, match="forget a"), reading.runs(folder):
        pass
    with sets.changing(imports):
        assert sets.remove(imports, "a")
    assert counts(folder) == []


# Export.


def test_the_export_is_one_file_that_others_read(folder, begin, read, tmp_path):
    import duckdb

    imported(folder, "graham", 3)
    user = "ü\N{GRINNING FACE}"
    b.add_run(begin, b.add_job(begin, state="COMPLETED", user=user))
    b.add_job(begin)
    keep(folder, begin, read)
    file = tmp_path / "all.parquet"
    assert export.export(folder, file) == 5
    with duckdb.connect() as connection:
        relation = connection.read_parquet(str(file))
        assert relation.columns == list(COLUMNS)
        told = relation.filter("run_id IS NOT NULL").project('"user", submit_time, gpus').fetchall()
    assert told == [(user, (b.NOW - timedelta(hours=1)).replace(tzinfo=None), 2)]
    since = b.NOW - timedelta(hours=1)
    assert export.export(folder, file, since=since) == 2
    assert export.export(folder, file, until=since) == 3
    assert export.export(folder, file, since=since, until=since) == 0
    assert [one.name for one in tmp_path.glob("all*")] == ["all.parquet"]


def test_an_export_that_fails_leaves_what_was_there(folder, tmp_path, monkeypatch):
    file = tmp_path / "all.parquet"
    file.write_text("before")
    monkeypatch.setattr(blocks, "to_disk", _killed)
    with pytest.raises(KeyboardInterrupt):
        export.export(folder, file)
    assert file.read_text() == "before"
    assert [one.name for one in tmp_path.glob("all*")] == ["all.parquet"]


# Killed.


def work(url, folder):
    """Turns of the worker, on a database that changes; blocks are merged at once."""
    engine = make_engine(url)
    begin, read = make_begin(engine), make_begin(engine, read_only=True)
    while True:
        with begin() as session:
            last, _ = history.highest(session)
        change(begin, random.randint(1, last), state="RUNNING", start_time=b.NOW)
        b.add_run(begin, b.add_job(begin, state="COMPLETED"))
        change(begin, random.randint(1, last), state="CANCELLED", start_time=None)
        keep_history.QUIET_SECONDS = -1
        keep(folder, begin, read)


def killed(url, folder, after):
    child = os.fork()
    if child == 0:
        try:
            work(url, folder)
        finally:
            os._exit(1)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the worker ended by itself"


def told(begin):
    """What the database says, without the history."""
    with begin() as session:
        return sorted(
            (row[1], row[0], row[9])
            for block in history.blocks(session)
            for row, _ in history_rows.rows(session, block, now=b.NOW)
        )


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.timeout(120)
def test_killed_at_any_point_it_is_whole_and_the_next_turn_brings_it_in_step(tmp_path):
    """With real processes, since only kill -9 leaves half a file, a lock, and marks as they are."""
    folder, url = tmp_path / "history", f"sqlite:///{tmp_path / 'sluice.db'}"
    engine = make_engine(url)
    upgrade(engine)
    begin, read = make_begin(engine), make_begin(engine, read_only=True)
    for _ in range(20):
        b.add_job(begin)
    keep(folder, begin, read)
    chance = random.Random(7)
    repaired = 0
    for _ in range(KILLS):
        killed(url, folder, chance.uniform(0.02, 0.25))
        seen = [job for (job,) in found(folder, "job_id")]
        assert len(seen) == len(set(seen)) >= 20
        repaired += keep(folder, begin, read).made > 0
        assert sorted(found(folder, "job_id, run_id, state"), key=str) == sorted(
            told(begin), key=str
        )
    engine.dispose()
    assert repaired, "no kill came before the history was in step"


def _killed(*_given, **_named):
    raise KeyboardInterrupt
