"""The unit of work: the one place that opens, commits and rolls back a transaction."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, sessionmaker

from gateway.errors import Busy
from gateway.wire.guard import inside_transaction

Transaction = Session  # what `begin` gives: services pass it on and know no more of it
Begin = Callable[[], AbstractContextManager[Session]]

BUSY_MILLISECONDS = 5000
ASK_AGAIN_SECONDS = 0.001
CACHE_KIBIBYTES = 16 * 1024

# SQLite's primary codes: BUSY, LOCKED, IOERR, FULL, CANTOPEN. A full disk shows as any of the
# last three, by whether the log, the shared memory or the file could not grow.
_SQLITE_PASSES = frozenset({5, 6, 10, 13, 14})
# PostgreSQL: connection lost, too many connections, disk full, deadlock, lock time-out, restart.
_POSTGRES_PASSES = ("08", "40", "53", "55P03", "57")


def make_engine(url: str) -> Engine:
    """An engine for SQLite or PostgreSQL. SQLite gets WAL, foreign keys and a busy time-out."""
    # What is stored (hashes, scripts) must not come into the log with an error's text.
    engine = create_engine(url, pool_pre_ping=not url.startswith("sqlite"), hide_parameters=True)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _tune_sqlite)
    return engine


def make_begin(engine: Engine, *, read_only: bool = False) -> Begin:
    """Return `begin`: a context that commits at its end and rolls back on any error.

    A transaction that writes takes SQLite's write lock at its start: one that reads first
    and writes later could be refused in the middle without a wait. Raises Busy when the
    database stays locked, cannot be reached, or its disk is full.
    """
    factory = sessionmaker(engine, expire_on_commit=False)

    @contextmanager
    def begin() -> Iterator[Session]:
        mark = inside_transaction.set(True)
        try:
            with factory() as session, session.begin():
                _start(session, read_only=read_only)
                yield session
        except DBAPIError as error:
            if not _passes(error):
                raise
            raise Busy(str(error.orig)) from error
        finally:
            inside_transaction.reset(mark)

    return begin


def _start(session: Session, *, read_only: bool) -> None:
    dialect = session.get_bind().dialect.name
    if dialect == "sqlite" and read_only:
        session.connection().exec_driver_sql("BEGIN DEFERRED")
    elif dialect == "sqlite":
        _take_write_lock(session.connection())
    elif read_only:
        # One look: what a page adds up must not move between two of its queries.
        options = {"postgresql_readonly": True, "isolation_level": "REPEATABLE READ"}
        session.connection(execution_options=options)


def _take_write_lock(connection: Connection) -> None:
    """Ask again and again: SQLite's own waiting sleeps up to 100 ms between two tries, in which
    the lock is often free. Eight writers get twice as much done this way."""
    driver: Any = connection.connection.driver_connection
    until = time.monotonic() + BUSY_MILLISECONDS / 1000
    driver.execute("PRAGMA busy_timeout = 0")
    try:
        while time.monotonic() < until:
            try:
                driver.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    break
                time.sleep(ASK_AGAIN_SECONDS)
            else:
                return
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # a last time, for SQLAlchemy's own error
    finally:
        driver.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")


def _passes(error: DBAPIError) -> bool:
    """Whether the same statement may succeed later: a wrong statement never will."""
    if error.connection_invalidated:
        return True
    sqlite_code = getattr(error.orig, "sqlite_errorcode", None)
    if sqlite_code is not None:
        return (sqlite_code & 0xFF) in _SQLITE_PASSES
    sqlstate = getattr(error.orig, "sqlstate", None)
    if sqlstate is None:  # psycopg could not even connect
        return type(error.orig).__name__ in {"OperationalError", "ConnectionTimeout"}
    return str(sqlstate).startswith(_POSTGRES_PASSES)


def _keep_a_log(cursor: Any) -> None:
    """WAL. SQLite does not wait for another process that makes the same change at this moment."""
    ends = time.monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
            if not busy or time.monotonic() > ends:
                raise
            time.sleep(ASK_AGAIN_SECONDS)
        else:
            return


def _tune_sqlite(connection: Any, _record: Any) -> None:
    # The driver's own implicit BEGIN is off: `begin` says when and how a transaction starts.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    _keep_a_log(cursor)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute(f"PRAGMA cache_size = -{CACHE_KIBIBYTES}")
    cursor.close()
