"""`INSERT … ON CONFLICT DO NOTHING`, which SQLite and PostgreSQL spell alike."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import FromClause, Table, column
from sqlalchemy.dialects import sqlite
from sqlalchemy.orm import Session

T = TypeVar("T")

# SQLite takes at most 32,766 variables a statement, older ones 999.
CHUNK = 500


def insert_if_new(session: Session, table: FromClause, row: dict[str, Any]) -> int | None:
    """The new row's id, or None when a unique key says that it is there already."""
    found: int | None = _insert(session, table, row, "id")
    return found


def insert_named_if_new(session: Session, table: FromClause, row: dict[str, Any]) -> bool:
    """The same for tables whose key is a name."""
    return _insert(session, table, row, "name") is not None


def chunks(items: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """The items in slices that fit one statement."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def insert_ignoring(session: Session, table: FromClause) -> Any:
    """The bare statement, for many rows at once."""
    return _ignoring(table, session.get_bind().dialect.name, None)


def _insert(session: Session, table: FromClause, row: dict[str, Any], key: str) -> Any:
    statement = _ignoring(table, session.get_bind().dialect.name, key)
    return session.execute(statement, row).scalar()


@cache
def _ignoring(table: FromClause, dialect: str, key: str | None) -> Any:
    """Built once: SQLAlchemy takes five times as long to build a statement as to run it."""
    assert isinstance(table, Table)
    insert: Any = sqlite.insert
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # noqa: PLC0415  # megabytes for who needs it

        insert = postgresql.insert
    statement = insert(table).on_conflict_do_nothing()
    return statement if key is None else statement.returning(column(key))
