"""People and groups, for lists and for the choices of a filter."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from gateway.core.access import Role
from gateway.store.models import AssociationNow, PartitionNow, Person, QosNow

MOST_PEOPLE = 500
MOST_GROUPS = 1_000


@dataclass(frozen=True, slots=True)
class PersonLine:
    """A portal account in a list."""

    id: int
    login: str
    unix_user: str
    display_name: str
    role: Role
    created_at: datetime
    disabled_at: datetime | None


@dataclass(frozen=True, slots=True)
class Choices:
    """What a job list's filters can be set to."""

    groups: tuple[str, ...]
    partitions: tuple[str, ...]
    qos: tuple[str, ...]
    templates: tuple[str, ...]


def people(session: Session, *, after: str = "") -> tuple[PersonLine, ...]:
    """By login, from behind `after` on."""
    query = (
        select(
            Person.id,
            Person.login,
            Person.unix_user,
            Person.display_name,
            Person.role,
            Person.created_at,
            Person.disabled_at,
        )
        .where(Person.login > after)
        .order_by(Person.login)
        .limit(MOST_PEOPLE)
    )
    return tuple(
        PersonLine(id_, login, unix_user, name, Role(role), created, disabled)
        for id_, login, unix_user, name, role, created, disabled in session.execute(query)
    )


def groups(session: Session) -> tuple[str, ...]:
    """Every group that somebody is in."""
    query = select(AssociationNow.account).distinct().order_by(AssociationNow.account)
    return tuple(session.scalars(query.limit(MOST_GROUPS)))


def members(session: Session, group: str) -> tuple[str, ...]:
    """The Unix accounts of a group."""
    query = select(AssociationNow.user).where(AssociationNow.account == group).distinct()
    return tuple(session.scalars(query.order_by(AssociationNow.user).limit(MOST_PEOPLE)))


def choices(session: Session, *, own_groups: tuple[str, ...] | None = None) -> Choices:
    """`own_groups` None: everybody's."""
    return Choices(
        groups=groups(session) if own_groups is None else own_groups,
        partitions=tuple(session.scalars(select(PartitionNow.name).order_by(PartitionNow.name))),
        qos=tuple(session.scalars(select(QosNow.name).order_by(QosNow.name))),
        templates=_templates(session),
    )


def _templates(session: Session) -> tuple[str, ...]:
    """The templates that jobs came from, by leaps along the index: DISTINCT reads all jobs."""
    leaps = text(
        "WITH RECURSIVE leap(word) AS ("
        " SELECT min(template) FROM job UNION ALL"
        " SELECT (SELECT min(template) FROM job WHERE template > leap.word)"
        " FROM leap WHERE leap.word IS NOT NULL)"
        " SELECT word FROM leap WHERE word IS NOT NULL LIMIT 200"
    )
    return tuple(word for (word,) in session.execute(leaps))
