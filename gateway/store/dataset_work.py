"""Requests about datasets, and what verifications found."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from gateway.store import dataset_models as dm
from gateway.store.datasets import VersionRow
from gateway.store.models import Person, table_of

MOST_REQUESTS = 200
_D, _V = table_of(dm.Dataset).c, table_of(dm.DatasetVersion).c
_VERSION_COLUMNS = [getattr(dm.DatasetVersion, name) for name in VersionRow.__slots__]


@dataclass(frozen=True, slots=True)
class RequestRow:
    """See dataset_models.DatasetRequest; `name` None: it is not there yet."""

    id: int
    kind: str
    state: str
    dataset_id: int | None
    person_id: int
    group: str | None
    text: str
    at: datetime
    answer: str
    decided_at: datetime | None
    name: str | None
    owner_group: str | None
    owner_id: int | None
    login: str
    unix_user: str


_Q = table_of(dm.DatasetRequest).c
_P = table_of(Person).c
_REQUEST: list[Any] = [
    *(_Q.id, _Q.kind, _Q.state, _Q.dataset_id, _Q.person_id, _Q.group_name, _Q.text, _Q.at),
    *(_Q.answer, _Q.decided_at, _D.name, _D.group_name, _D.owner_id, _P.login, _P.unix_user),
]


def add_request(session: Session, values: dict[str, Any]) -> int:
    row = dm.DatasetRequest(state="open", answer="", **values)
    session.add(row)
    session.flush()
    return row.id


def requests(session: Session, *, state: str | None = "open") -> tuple[RequestRow, ...]:
    """Of everybody, newest first."""
    query = (
        select(*_REQUEST)
        .join(table_of(Person), _P.id == _Q.person_id)
        .outerjoin(table_of(dm.Dataset), _D.id == _Q.dataset_id)
        .order_by(_Q.at.desc(), _Q.id.desc())
        .limit(MOST_REQUESTS)
    )
    if state is not None:
        query = query.where(_Q.state == state)
    return tuple(RequestRow(*row) for row in session.execute(query))


def request(session: Session, request_id: int) -> RequestRow | None:
    query = (
        select(*_REQUEST)
        .join(table_of(Person), _P.id == _Q.person_id)
        .outerjoin(table_of(dm.Dataset), _D.id == _Q.dataset_id)
        .where(_Q.id == request_id)
    )
    found = session.execute(query).one_or_none()
    return RequestRow(*found) if found else None


def decide(session: Session, request_id: int, **values: Any) -> bool:
    """Whether it was still open."""
    table = table_of(dm.DatasetRequest)
    done = session.execute(
        update(table).where(_Q.id == request_id, _Q.state == "open").values(**values)
    )
    return bool(getattr(done, "rowcount", 0))


@dataclass(frozen=True, slots=True)
class CheckRow:
    """See dataset_models.DatasetCheck."""

    id: int
    version_id: int
    site_job: int | None
    at: datetime
    health: str
    facts: dict[str, Any]


_CHECK = [getattr(dm.DatasetCheck, name) for name in CheckRow.__slots__]


def add_check(session: Session, values: dict[str, Any]) -> int:
    row = dm.DatasetCheck(**values)
    session.add(row)
    session.flush()
    return row.id


def checks(
    session: Session, version_ids: Sequence[int], *, limit: int = 50
) -> tuple[CheckRow, ...]:
    """Newest first."""
    query = (
        select(*_CHECK)
        .where(dm.DatasetCheck.version_id.in_(version_ids))
        .order_by(dm.DatasetCheck.at.desc(), dm.DatasetCheck.id.desc())
        .limit(limit)
    )
    return tuple(CheckRow(*row) for row in session.execute(query))


def due_for_check(session: Session, *, before: datetime, limit: int) -> tuple[VersionRow, ...]:
    """Published versions with a manifest that nobody has looked at since; the oldest first."""
    query = (
        select(*_VERSION_COLUMNS)
        .where(
            _V.state == "published",
            _V.manifest.is_not(None),
            func.coalesce(_V.checked_at, _V.published_at) < before,
        )
        .order_by(func.coalesce(_V.checked_at, _V.published_at))
        .limit(limit)
    )
    return tuple(VersionRow(*row) for row in session.execute(query))
