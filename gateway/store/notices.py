"""Notices: told once under a key, until what they tell of is over."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from gateway.store import money_models as mm
from gateway.store.models import table_of
from gateway.store.upsert import chunks

_TABLE = table_of(mm.Notice)


def tell(
    session: Session,
    key: str,
    *,
    kind: str,
    facts: Mapping[str, Any],
    now: datetime,
    group: str | None = None,
) -> bool:
    """Whether it is news. One that is open gets the facts of now; one that was over comes again."""
    query = select(_TABLE.c.facts, _TABLE.c.gone_at).where(_TABLE.c.key == key)
    found = session.execute(query).one_or_none()
    if found is None:
        row = {"key": key, "group_name": group, "kind": kind, "facts": dict(facts), "at": now}
        session.execute(insert(_TABLE), row)
        return True
    again = found[1] is not None
    if not again and found[0] == dict(facts):
        return False
    values: dict[str, Any] = {"facts": dict(facts)}
    if again:
        values |= {"at": now, "gone_at": None}
    session.execute(update(_TABLE).where(_TABLE.c.key == key).values(**values))
    return again


def over(session: Session, keys: Iterable[str], *, now: datetime) -> None:
    """What these tell of is over; those that are not open are left as they are."""
    for part in chunks(sorted(set(keys))):
        session.execute(
            update(_TABLE)
            .where(_TABLE.c.key.in_(part), _TABLE.c.gone_at.is_(None))
            .values(gone_at=now)
        )


def is_open(session: Session, key: str) -> bool:
    query = select(_TABLE.c.id).where(_TABLE.c.key == key, _TABLE.c.gone_at.is_(None))
    return session.scalar(query) is not None


def open_keys(session: Session, kinds: Iterable[str]) -> dict[str, datetime]:
    """Keys of the open notices of these kinds, and since when."""
    query = select(_TABLE.c.key, _TABLE.c.at).where(
        _TABLE.c.kind.in_(list(kinds)), _TABLE.c.gone_at.is_(None)
    )
    return {row[0]: row[1] for row in session.execute(query)}
