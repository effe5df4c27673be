"""How each periodic read of Slurm went, how far it has come, and who wants it sooner."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, select, update
from sqlalchemy.orm import Session

from gateway.store.models import Poll, table_of
from gateway.store.upsert import insert_named_if_new


@dataclass(frozen=True, slots=True)
class PollRow:
    name: str
    tried_at: datetime | None
    succeeded_at: datetime | None
    error_code: str | None
    interval_seconds: float | None
    watermark: datetime | None
    wanted_at: datetime | None


COLUMNS = tuple(getattr(Poll, name) for name in PollRow.__slots__)
_TABLE = table_of(Poll)
_WANT = (
    update(_TABLE)
    .where(_TABLE.c.name == bindparam("of"), _TABLE.c.wanted_at.is_(None))
    .values(wanted_at=bindparam("now"))
)
_IS_THERE = select(_TABLE.c.name).where(_TABLE.c.name == bindparam("of"))


def get(session: Session, name: str) -> PollRow:
    """The row; an empty one before the first read."""
    found = session.execute(select(*COLUMNS).where(Poll.name == name)).one_or_none()
    return PollRow(*found) if found else PollRow(name, None, None, None, None, None, None)


def want(session: Session, name: str, *, now: datetime) -> None:
    """Ask for a read soon. The first wish stands until a read began after it."""
    result = session.execute(_WANT, {"of": name, "now": now})
    if not getattr(result, "rowcount", 0) and not session.scalar(_IS_THERE, {"of": name}):
        insert_named_if_new(session, _TABLE, {"name": name, "wanted_at": now})


def tried(session: Session, name: str, *, at: datetime) -> None:
    _make(session, name)
    _set(session, name, {"tried_at": at})


def succeeded(
    session: Session,
    name: str,
    *,
    began: datetime,
    at: datetime,
    watermark: datetime | None = None,
    error_code: str | None = None,
) -> None:
    """A read that began at `began` is stored: wishes up to then are met. Keep this in the
    transaction that stores what was read."""
    _make(session, name)
    values: dict[str, Any] = {"succeeded_at": at, "error_code": error_code}
    if watermark is not None:
        values["watermark"] = watermark
    _set(session, name, values)
    _set(session, name, {"wanted_at": None}, Poll.wanted_at <= began)


def failed(session: Session, name: str, *, code: str) -> None:
    _make(session, name)
    _set(session, name, {"error_code": code})


def set_interval(session: Session, name: str, seconds: float) -> None:
    _make(session, name)
    _set(session, name, {"interval_seconds": seconds})


def _make(session: Session, name: str) -> None:
    insert_named_if_new(session, _TABLE, {"name": name})


def _set(session: Session, name: str, values: dict[str, Any], *where: Any) -> int:
    statement = update(Poll).where(Poll.name == name, *where).values(**values)
    result = session.execute(statement.execution_options(synchronize_session=False))
    return int(getattr(result, "rowcount", 0))
