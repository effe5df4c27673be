"""The administrator's acts on portal accounts. A disabled person's sessions end at once."""

import re
import secrets
from datetime import datetime

import structlog

from gateway.core.access import Role, Viewer
from gateway.errors import NotFound, Refused
from gateway.services import signin
from gateway.services.passwords import hash_password
from gateway.services.signin import LIFE, token_hash
from gateway.store import people, signins
from gateway.store.people import PersonRow
from gateway.store.uow import Begin

log = structlog.get_logger(__name__)

_LOGIN = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}", re.ASCII)
_UNIX_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}", re.ASCII)
_NEVER = frozenset({"root", "nobody", "slurm", "munge", "daemon"})
LONGEST_NAME = 100


def add(
    login: str,
    *,
    unix_user: str,
    display_name: str,
    role: Role,
    password: str,
    begin: Begin,
    now: datetime,
) -> int:
    """A new portal account's id. Refused when the login or the Unix account is taken."""
    login = login.strip().lower()
    if not _LOGIN.fullmatch(login):
        raise Refused("bad_login", field="login")
    if not _UNIX_USER.fullmatch(unix_user) or unix_user in _NEVER:
        raise Refused("bad_unix_user", field="unix_user")
    name = _display_name(display_name)
    hashed = hash_password(password)
    with begin() as session:
        person_id = people.add(
            session,
            login=login,
            unix_user=unix_user,
            display_name=name,
            role=role,
            password_hash=hashed,
            now=now,
        )
        if person_id is None:
            taken = people.login_exists(session, login)
            raise Refused(
                "login_taken" if taken else "unix_user_taken",
                field="login" if taken else "unix_user",
            )
    log.info("person_added", person_id=person_id, role=role.value)
    return person_id


def set_password(
    login: str, password: str, *, begin: Begin, now: datetime, keep_session: int | None = None
) -> int:
    """Ends every other session and token: who changes a password may have lost the old one. Whose
    it is: what they have open in applications is closed by app_acts.end_of_session."""
    hashed = hash_password(password)
    with begin() as session:
        person = _known(people.by_login(session, login), login)
        people.set_password_hash(session, person.id, hashed)
        signins.end_all(session, person.id, now=now, but=keep_session)
    log.info("password_set", person_id=person.id)
    return person.id


def change_own_password(
    viewer: Viewer,
    *,
    old: str,
    new: str,
    end_others: bool,
    address: str,
    begin: Begin,
    now: datetime,
) -> None:
    """Refused without the old one: an open browser is not enough to lock its owner out."""
    hashed = hash_password(new)
    signin.confirm(viewer, old, address=address, begin=begin, now=now)
    with begin() as session:
        people.set_password_hash(session, viewer.person_id, hashed)
        if end_others:
            signins.end_all(session, viewer.person_id, now=now, but=viewer.session_id)
    log.info("password_changed", person_id=viewer.person_id, others_ended=end_others)


def set_role(login: str, role: Role, *, begin: Begin) -> None:
    """Refused for the last administrator: nobody could give the role back."""
    with begin() as session:
        person = _known(people.by_login(session, login), login)
        if role is not Role.ADMINISTRATOR and _is_last(
            person, people.other_administrators(session, person.id)
        ):
            raise Refused("last_administrator")
        people.set_role(session, person.id, role)
    log.info("role_set", person_id=person.id, role=role.value)


def disable(login: str, *, begin: Begin, now: datetime) -> int:
    """No sign-in any more, and every session and token ends. Jobs in Slurm go on. Who it is, as
    `set_password`."""
    with begin() as session:
        person = _known(people.by_login(session, login), login)
        if _is_last(person, people.other_administrators(session, person.id)):
            raise Refused("last_administrator")
        people.set_disabled(session, person.id, now)
        signins.end_all(session, person.id, now=now)
    log.info("person_disabled", person_id=person.id)
    return person.id


def enable(login: str, *, begin: Begin) -> None:
    with begin() as session:
        person = _known(people.by_login(session, login), login)
        people.set_disabled(session, person.id, None)
    log.info("person_enabled", person_id=person.id)


def set_preferences(
    person_id: int, *, locale: str | None, timezone: str | None, begin: Begin
) -> None:
    """What a person chose for pages; None follows the browser and the site."""
    with begin() as session:
        people.set_preferences(session, person_id, locale=locale, timezone=timezone)


def new_token(login: str, *, name: str, begin: Begin, now: datetime) -> str:
    """An API token, shown this once. `name` tells it from others in the list of sessions."""
    token = secrets.token_urlsafe(32)
    with begin() as session:
        person = _known(people.by_login(session, login), login)
        if person.disabled_at is not None:
            raise Refused("person_disabled")
        signins.add(
            session,
            person_id=person.id,
            token_hash=token_hash(token),
            kind="api",
            address="",
            agent=name[:LONGEST_NAME],
            now=now,
            expires_at=now + LIFE["api"],
        )
    log.info("token_made", person_id=person.id)
    return token


def _display_name(text: str) -> str:
    name = " ".join(text.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise Refused("bad_display_name", field="display_name", longest=LONGEST_NAME)
    return name


def _known(person: PersonRow | None, login: str) -> PersonRow:
    if person is None:
        raise NotFound(f"no person {login}")
    return person


def _is_last(person: PersonRow, others: int) -> bool:
    return person.role is Role.ADMINISTRATOR and person.disabled_at is None and others == 0
