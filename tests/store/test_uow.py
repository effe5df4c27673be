import threading
from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from gateway.errors import Busy
from gateway.store import models as t
from gateway.store import uow
from gateway.store.uow import Begin, make_begin, make_engine
from gateway.testing import builders as b
from gateway.wire.guard import inside_transaction


def people(read: Begin) -> int:
    with read() as session:
        return int(session.scalar(text("select count(*) from person")) or 0)


def is_sqlite(engine: Engine) -> bool:
    return engine.dialect.name == "sqlite"


def test_what_is_done_inside_is_kept(begin: Begin, read: Begin) -> None:
    b.add_person(begin)

    assert people(read) == 1


def test_an_error_inside_undoes_it_all(begin: Begin, read: Begin) -> None:
    def fail() -> None:
        with begin() as session:
            session.add(t.Lease(name="x", holder="y", expires_at=b.NOW))
            session.execute(text("delete from person"))
            session.flush()
            raise RuntimeError("in the middle")

    b.add_person(begin)
    with pytest.raises(RuntimeError):
        fail()

    assert people(read) == 1
    with read() as session:
        assert session.get(t.Lease, "x") is None


def test_inside_is_marked_so_that_no_network_call_slips_in(begin: Begin) -> None:
    with begin():
        assert inside_transaction.get()
    assert not inside_transaction.get()


def test_a_reader_neither_waits_for_a_writer_nor_sees_its_half(begin: Begin, read: Begin) -> None:
    with begin() as session:
        session.add(t.Lease(name="x", holder="y", expires_at=b.NOW))
        session.flush()
        token = inside_transaction.set(False)
        seen: list[object] = []

        def look() -> None:
            with read() as other:
                seen.append(other.get(t.Lease, "x"))

        thread = threading.Thread(target=look)
        thread.start()
        thread.join(timeout=20)
        inside_transaction.reset(token)

    assert seen == [None]


def test_one_read_sees_one_moment(engine: Engine, begin: Begin, read: Begin) -> None:
    if not is_sqlite(engine):
        pytest.skip("PostgreSQL reads each statement anew, on purpose")
    with read() as session:
        before = session.scalar(text("select count(*) from person"))
        b.add_person(begin)
        after = session.scalar(text("select count(*) from person"))

    assert (before, after) == (0, 0)


def test_a_locked_database_is_busy(
    engine: Engine, begin: Begin, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not is_sqlite(engine):
        pytest.skip("PostgreSQL locks rows, not the database")
    monkeypatch.setattr(uow, "BUSY_MILLISECONDS", 30)
    other = make_engine(str(engine.url))
    with begin(), pytest.raises(Busy):
        b.add_person(make_begin(other))
    other.dispose()

    b.add_person(begin)


def test_two_who_read_and_then_write_do_not_lose_each_others_work(
    begin: Begin, engine: Engine
) -> None:
    """Threads on connections of their own: the write lock is taken before the read."""
    if not is_sqlite(engine):
        pytest.skip("on PostgreSQL the statements themselves lock")
    b.add_job(begin, priority=0)

    def add_one() -> None:
        for _ in range(20):
            with begin() as session:
                job = session.get_one(t.Job, 1)
                job.priority = (job.priority or 0) + 1

    threads = [threading.Thread(target=add_one) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with begin() as session:
        assert session.get_one(t.Job, 1).priority == 60


def test_a_full_disk_is_busy_and_nothing_of_it_is_kept(engine: Engine, begin: Begin) -> None:
    if not is_sqlite(engine):
        pytest.skip("the bound on pages is SQLite's")
    b.add_person(begin)

    def fill() -> None:
        with begin() as session:
            pages = session.scalar(text("pragma page_count"))
            session.execute(text(f"pragma max_page_count = {pages}"))
            session.add(t.Lease(name="x", holder="y" * 100_000, expires_at=b.NOW))

    with pytest.raises(Busy, match="full"):
        fill()
    with begin() as session:
        session.execute(text("pragma max_page_count = 1000000"))
        assert session.get(t.Lease, "x") is None
        session.add(t.Lease(name="x", holder="y" * 100_000, expires_at=b.NOW))


def test_a_wrong_statement_is_no_matter_of_trying_again(begin: Begin) -> None:
    with pytest.raises(DBAPIError), begin() as session:
        session.execute(text("select * from no_such_table"))


def test_a_database_that_cannot_be_reached_is_busy(tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path}/no/such/folder/x.db")

    with pytest.raises(Busy), make_begin(engine)():
        pass


def test_a_reader_cannot_write_on_postgresql(engine: Engine, read: Begin) -> None:
    if is_sqlite(engine):
        pytest.skip("SQLite's readers are only kept from the lock")
    with pytest.raises(DBAPIError):
        b.add_person(read)


def test_a_persons_job_needs_a_person(begin: Begin) -> None:
    with pytest.raises(DBAPIError):
        b.add_submission(begin, 99)


def test_an_error_does_not_tell_what_was_to_be_stored(begin: Begin) -> None:
    with pytest.raises(DBAPIError) as error:
        b.add_submission(begin, 99, script="a secret script")
    assert "secret" not in str(error.value)


def test_naive_times_do_not_reach_the_database(begin: Begin) -> None:
    with pytest.raises(Exception, match="naive"):
        b.add_person(begin, created_at=b.NOW.replace(tzinfo=None))


def test_times_come_back_aware_and_in_utc(begin: Begin, read: Begin) -> None:
    job_id = b.add_job(begin)

    with read() as session:
        assert session.get_one(t.Job, job_id).seen_at == b.NOW


def test_an_errors_text_holds_no_value(begin: Begin) -> None:
    with pytest.raises(DBAPIError) as caught, begin() as session:
        session.execute(text("insert into nowhere values (:secret)"), {"secret": "hunter2"})

    assert "nowhere" in str(caught.value)
    assert "hunter2" not in str(caught.value)
