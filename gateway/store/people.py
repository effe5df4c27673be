"""Portal accounts. One Unix account belongs to one person: the database sees to it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from gateway.core.access import Role
from gateway.store.models import AssociationNow, Person, table_of


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A person, without the password."""

    id: int
    login: str
    unix_user: str
    display_name: str
    role: Role
    locale: str | None
    timezone: str | None
    created_at: datetime
    disabled_at: datetime | None


@dataclass(frozen=True, slots=True)
class Memberships:
    """A Unix account's groups, and those it leads, both sorted."""

    groups: tuple[str, ...]
    leads: tuple[str, ...]


_TABLE, _NOW = table_of(Person), table_of(AssociationNow)
_COLUMNS = tuple(_TABLE.c[name] for name in PersonRow.__slots__)
_BY_ID = select(*_COLUMNS).where(_TABLE.c.id == bindparam("of"))
_BY_LOGIN = select(*_COLUMNS).where(_TABLE.c.login == bindparam("login"))
_MEMBERSHIPS = select(_NOW.c.account, _NOW.c.facts).where(_NOW.c.user == bindparam("user"))


def add(
    session: Session,
    *,
    login: str,
    unix_user: str,
    display_name: str,
    role: Role,
    password_hash: str,
    now: datetime,
) -> int | None:
    """The new person's id; None when the login or the Unix account is somebody's already."""
    person = Person(
        login=login,
        unix_user=unix_user,
        display_name=display_name,
        role=role.value,
        password_hash=password_hash,
        created_at=now,
    )
    try:
        with session.begin_nested():
            session.add(person)
    except IntegrityError:
        return None
    return person.id


def by_login(session: Session, login: str) -> PersonRow | None:
    return _row(session.execute(_BY_LOGIN, {"login": login}).one_or_none())


def by_id(session: Session, person_id: int) -> PersonRow | None:
    return _row(session.execute(_BY_ID, {"of": person_id}).one_or_none())


def login_exists(session: Session, login: str) -> bool:
    return session.scalar(select(Person.id).where(Person.login == login)) is not None


def has_unix_user(session: Session, unix_user: str) -> bool:
    return session.scalar(select(Person.id).where(Person.unix_user == unix_user)) is not None


def password_hash(session: Session, login: str) -> str | None:
    """What to judge a password by; None for somebody unknown."""
    return session.scalar(select(Person.password_hash).where(Person.login == login))


def set_password_hash(session: Session, person_id: int, hashed: str) -> None:
    session.execute(update(Person).where(Person.id == person_id).values(password_hash=hashed))


def set_role(session: Session, person_id: int, role: Role) -> None:
    session.execute(update(Person).where(Person.id == person_id).values(role=role.value))


def set_disabled(session: Session, person_id: int, at: datetime | None) -> None:
    session.execute(update(Person).where(Person.id == person_id).values(disabled_at=at))


def set_preferences(
    session: Session, person_id: int, *, locale: str | None, timezone: str | None
) -> None:
    values = {"locale": locale, "timezone": timezone}
    session.execute(update(Person).where(Person.id == person_id).values(values))


def other_administrators(session: Session, person_id: int) -> int:
    """How many administrators could still sign in without this person."""
    query = (
        select(func.count())
        .select_from(Person)
        .where(
            Person.role == Role.ADMINISTRATOR.value,
            Person.disabled_at.is_(None),
            Person.id != person_id,
        )
    )
    return session.scalar(query) or 0


def memberships(session: Session, unix_user: str) -> Memberships:
    """What the last poll of the associations says."""
    rows = session.execute(_MEMBERSHIPS, {"user": unix_user})
    found = [(account, bool(facts.get("is_coordinator"))) for account, facts in rows]
    return Memberships(
        groups=tuple(sorted({account for account, _ in found})),
        leads=tuple(sorted({account for account, leads in found if leads})),
    )


def _row(found: Row[Any] | None) -> PersonRow | None:
    if found is None:
        return None
    values = found._asdict()
    return PersonRow(**values | {"role": Role(values["role"])})
