"""What the commands share: settings, a database that is ready, and errors as sentences."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import click
from sqlalchemy import Engine

from gateway.config import Settings, load_settings
from gateway.core.access import Viewer
from gateway.core.credits import format_credits
from gateway.errors import BadConfiguration, Busy, GatewayError, NotFound, Refused
from gateway.store import people
from gateway.store.schema import is_current, is_empty, upgrade
from gateway.store.uow import Begin, make_begin, make_engine

_AMOUNTS = frozenset({"need", "free", "owed"})  # facts in millionths

P = ParamSpec("P")
R = TypeVar("R")

REFUSALS = {
    "bad_login": "A login is up to 64 of a-z, 0-9 and . _ @ -, and begins with a letter or digit.",
    "bad_unix_user": "That is no Unix account a person may have: up to 32 of a-z, 0-9, _ and -.",
    "bad_display_name": "A name is 1 to {longest} characters that can be printed.",
    "login_taken": "Somebody has this login already.",
    "unix_user_taken": "This Unix account belongs to another person already.",
    "password_too_short": "The password is too short: at least {shortest} characters.",
    "password_too_long": "The password is too long: at most {longest} characters.",
    "last_administrator": "This is the last administrator: make another person one first.",
    "no_such_template": "There is no such template. There are: {known}.",
    "no_such_environment": "There is no such environment. There are: {known}. Or give the path of "
    "a virtual environment.",
    "no_such_name": "{name} is nothing that can be set. There are: {known}.",
    "plan_percent": "A share of the peak, at most 1: {percent} % is {share}.",
    "person_disabled": "This person is disabled: `sluice user enable` first.",
}


def said(command: Callable[P, R]) -> Callable[P, R]:
    """Our own errors become one sentence and exit code 1, without a stack of calls."""

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except GatewayError as error:
            raise click.ClickException(sentence(error)) from error

    return wrapped


def sentence(error: GatewayError) -> str:
    """For the terminal, in English."""
    if isinstance(error, Refused):
        return _refusal(error)
    if isinstance(error, NotFound):
        return f"There is {error}."
    if isinstance(error, Busy):
        return f"The database cannot be used now ({error}). Try again."
    return str(error) or error.code


def _refusal(error: Refused) -> str:
    if error.code in REFUSALS:
        return REFUSALS[error.code].format(**error.facts)
    from gateway.web.messages import TEXTS  # noqa: PLC0415  # Flask, for who is refused alone

    text = TEXTS.get(error.code)
    facts = {
        name: format_credits(value) if name in _AMOUNTS and isinstance(value, int) else value
        for name, value in error.facts.items()
    }
    words = text.english % facts if text else error.code
    place = " ".join(str(one) for one in (error.facts.get("object"), error.field) if one)
    return f"{place}: {words}" if place else words


def settings() -> Settings:
    """The settings, with every problem in one message."""
    try:
        return load_settings()
    except BadConfiguration as error:
        raise click.ClickException(f"The settings are wrong: {error}") from error


def now() -> datetime:
    return datetime.now(UTC)


@contextmanager
def database(*, read_only: bool = False, make: bool = False) -> Iterator[Begin]:
    """`begin` on a database whose tables are those of this code. `make`: where there is no file of
    SQLite's, or one in which nothing is yet, it is made; an older database is never changed by the
    way."""
    found = settings()
    engine = make_engine(found.database_url)
    try:
        if make and _has_nothing(found, engine):
            make_home(found)
            with private_files():
                upgrade(engine)
        if not has_database(found) or not is_current(engine):
            raise click.ClickException("The database is not ready: run `sluice db upgrade`.")
        yield make_begin(engine, read_only=read_only)
    finally:
        engine.dispose()


def has_database(found: Settings) -> bool:
    """Whether to look at all: SQLite would make an empty file by being asked."""
    file = sqlite_file(found)
    return file is None or file.exists()


def _has_nothing(found: Settings, engine: Engine) -> bool:
    """Who was killed while making it leaves an empty file."""
    file = sqlite_file(found)
    return file is not None and (not file.exists() or is_empty(engine))


def sqlite_file(found: Settings) -> Path | None:
    """The database's file; None for PostgreSQL."""
    prefix = "sqlite:///"
    if not found.database_url.startswith(prefix):
        return None
    return Path(found.database_url.removeprefix(prefix))


def make_home(found: Settings) -> None:
    """The folders under $SLUICE_HOME. What is there keeps its owner and mode."""
    for folder in (found.home, found.home / "run", found.home / "logs"):
        folder.mkdir(parents=True, exist_ok=True)
    (found.home / "sbatch_templates").mkdir(exist_ok=True)


@contextmanager
def private_files() -> Iterator[None]:
    """What is made inside is nobody else's: the database holds password hashes."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def viewer_of(begin: Begin, login: str) -> Viewer:
    """The person of this login, as if signed in. NotFound."""
    with begin() as session:
        person = people.by_login(session, login)
        if person is None:
            raise NotFound(f"no person {login}")
        member = people.memberships(session, person.unix_user)
    return Viewer(
        person_id=person.id,
        session_id=0,
        login=person.login,
        unix_user=person.unix_user,
        display_name=person.display_name,
        role=person.role,
        groups=member.groups,
        leads=member.leads,
    )
