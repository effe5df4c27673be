"""The unit of work: the one place that opens, commits and rolls back a transaction."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from gateway.errors import Busy
from gateway.wire.guard import inside_transaction

Begin = Callable[[], AbstractContextManager[Session]]

BUSY_MILLISECONDS = 5000


def make_engine(url: str) -> Engine:
    """An engine for SQLite or PostgreSQL. SQLite gets WAL, foreign keys and a busy time-out."""
    engine = create_engine(url, pool_pre_ping=not url.startswith("sqlite"))
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _tune_sqlite)
    return engine


def make_begin(engine: Engine, *, read_only: bool = False) -> Begin:
    """Return `begin`: a context that commits at its end and rolls back on any error.

    A transaction that writes takes SQLite's write lock at its start: one that reads first
    and writes later could be refused in the middle without a wait. Raises Busy when the
    database stays locked or its disk is full.
    """
    factory = sessionmaker(engine, expire_on_commit=False)
    immediate = engine.dialect.name == "sqlite" and not read_only

    @contextmanager
    def begin() -> Iterator[Session]:
        mark = inside_transaction.set(True)
        try:
            with factory() as session, session.begin():
                if immediate:
                    session.connection().exec_driver_sql("BEGIN IMMEDIATE")
                yield session
        except OperationalError as error:
            raise Busy(str(error.orig)) from error
        finally:
            inside_transaction.reset(mark)

    return begin


def _tune_sqlite(connection: Any, _record: Any) -> None:
    # The driver's own implicit BEGIN is off: `begin` says when and how a transaction starts.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
    cursor.close()
