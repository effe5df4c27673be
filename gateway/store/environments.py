"""Published environments, facts by name, and checks."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from gateway.core.env_facts import Facts, dump_facts, read_facts
from gateway.core.environments import Environment, of_table, to_table
from gateway.store.environment_models import (
    EnvironmentCheck,
    EnvironmentFacts,
    PublishedEnvironment,
)
from gateway.store.models import Person, table_of
from gateway.store.upsert import insert_if_new

_P = PublishedEnvironment
_C = EnvironmentCheck


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """What was published, by whom last, and when; `retired_at`: it is not offered any more."""

    environment: Environment
    created_at: datetime
    changed_at: datetime
    changed_by: str
    retired_at: datetime | None


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A check as it ended: `gpu_type` empty without a GPU, `steps` as the job told them."""

    environment: str
    gpu_type: str
    site_job_id: int
    at: datetime
    ok: bool
    code: str | None
    fingerprint: str
    driver: str
    capability: str
    seconds: float
    found: dict[str, Any]
    steps: list[Any]

    @property
    def facts(self) -> Facts:
        return read_facts(self.found)


_CHECK_COLUMNS = [getattr(_C, name) for name in CheckRow.__slots__]


def published(session: Session, groups: Collection[str]) -> list[Environment]:
    """What is offered of them to members of these groups, without facts."""
    query = (
        select(_P.document, _P.group)
        .where(_P.retired_at.is_(None), or_(_P.group == "", _P.group.in_(list(groups))))
        .order_by(_P.name)
    )
    return [_environment(document, group) for document, group in session.execute(query)]


def rows(session: Session, name: str | None = None) -> list[PublishedRow]:
    """All of them, retired ones too, without facts; or the one of this name."""
    columns = (_P.document, _P.group, _P.created_at, _P.changed_at, Person.login, _P.retired_at)
    query = select(*columns).join(Person, Person.id == _P.person_id).order_by(_P.name)
    if name is not None:
        query = query.where(_P.name == name)
    return [
        PublishedRow(_environment(document, group), *rest)
        for document, group, *rest in session.execute(query)
    ]


def add(session: Session, environment: Environment, *, person_id: int, now: datetime) -> bool:
    """False when the name is taken. Facts are kept apart: `set_facts`."""
    row = {
        "name": environment.name,
        "group_name": environment.group,
        "document": _document(environment),
        "created_at": now,
        "changed_at": now,
        "person_id": person_id,
        "retired_at": None,
    }
    return insert_if_new(session, table_of(_P), row) is not None


def change(session: Session, environment: Environment, *, person_id: int, now: datetime) -> None:
    """Another text under the same name, offered again where it was retired."""
    session.execute(
        update(_P)
        .where(_P.name == environment.name)
        .values(
            document=_document(environment), changed_at=now, person_id=person_id, retired_at=None
        )
    )


def retire(session: Session, name: str, *, person_id: int, now: datetime) -> None:
    session.execute(
        update(_P)
        .where(_P.name == name, _P.retired_at.is_(None))
        .values(retired_at=now, changed_at=now, person_id=person_id)
    )


def facts(session: Session) -> dict[str, Facts]:
    """What is known, by the environment's name."""
    query = select(EnvironmentFacts.name, EnvironmentFacts.facts)
    return {name: read_facts(found) for name, found in session.execute(query)}


def set_facts(session: Session, name: str, found: Facts, *, person_id: int, now: datetime) -> None:
    row = EnvironmentFacts(name=name, facts=dump_facts(found), at=now, person_id=person_id)
    session.merge(row)


def add_check(session: Session, row: CheckRow) -> None:
    session.add(_C(**{name: getattr(row, name) for name in CheckRow.__slots__}))


def newest_checks(session: Session) -> dict[tuple[str, str], CheckRow]:
    """The newest of each pair of environment and GPU type."""
    newest = select(func.max(_C.id)).group_by(_C.environment, _C.gpu_type)
    query = select(*_CHECK_COLUMNS).where(_C.id.in_(newest))
    found = [CheckRow(*row) for row in session.execute(query)]
    return {(row.environment, row.gpu_type): row for row in found}


def checks_of(session: Session, name: str, *, limit: int = 50) -> list[CheckRow]:
    """An environment's checks, the newest first."""
    query = (
        select(*_CHECK_COLUMNS).where(_C.environment == name).order_by(_C.id.desc()).limit(limit)
    )
    return [CheckRow(*row) for row in session.execute(query)]


def _environment(document: dict[str, Any], group: str) -> Environment:
    return replace(of_table(document), group=group, published=True)


def _document(environment: Environment) -> dict[str, object]:
    table = to_table(environment)
    table.pop("facts", None)
    return table
