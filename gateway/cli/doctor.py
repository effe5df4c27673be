"""`sluice doctor`: looks at an installation and names the fix for what is wrong."""

import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import click

from gateway.cli import front
from gateway.cli.common import has_database, now, said, settings
from gateway.config import Settings
from gateway.errors import BadConfiguration, GatewayError
from gateway.services.environments import load_environments
from gateway.services.templates import Catalogue
from gateway.store.queries.health import PollRow, polls
from gateway.store.queries.people import people
from gateway.store.schema import is_current
from gateway.store.uow import make_begin, make_engine

STALE_AFTER_INTERVALS = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """`fix` None: all is well."""

    what: str
    fix: str | None = None


@click.command()
@said
def doctor() -> None:
    """Check settings, folders, database, broker, polls and templates. Exit 1 if one is wrong."""
    found = settings()
    wrong = 0
    for check in (_home, _database, _broker, _templates, _environments, _nginx):
        for finding in check(found):
            wrong += finding.fix is not None
            click.echo(f"{'ok   ' if finding.fix is None else 'WRONG'} {finding.what}")
            if finding.fix is not None:
                click.echo(f"      fix: {finding.fix}")
    if wrong:
        raise SystemExit(1)


Check = Callable[[Settings], Iterator[Finding]]


def _home(found: Settings) -> Iterator[Finding]:
    if not found.home.is_dir():
        yield Finding(f"{found.home} does not exist", "run `sluice db upgrade`, or set SLUICE_HOME")
        return
    if not os.access(found.home, os.R_OK | os.W_OK | os.X_OK):
        yield Finding(f"{found.home} cannot be written", f"chown it to the account of {found.home}")
        return
    yield Finding(f"state in {found.home}")
    key = found.home / "secret_key"
    if key.exists() and key.stat().st_mode & 0o077:
        yield Finding("others can read secret_key", f"chmod 600 {key}")


def _database(found: Settings) -> Iterator[Finding]:
    engine = make_engine(found.database_url)
    try:
        if not has_database(found) or not is_current(engine):
            yield Finding("the database is not ready", "run `sluice db upgrade`")
            return
        yield Finding("the database has the newest shape")
        with make_begin(engine, read_only=True)() as session:
            anybody, rows = bool(people(session)), polls(session)
    except GatewayError as error:
        yield Finding(f"the database does not answer: {error}", "see the setting database_url")
        return
    finally:
        engine.dispose()
    if not anybody:
        yield Finding("nobody can sign in", "sluice user add LOGIN --role administrator")
    yield from _polls(rows)


def _polls(rows: tuple[PollRow, ...]) -> Iterator[Finding]:
    if not rows:
        yield Finding("the worker has never read the queue", "start it: `sluice up` or a service")
    for row in rows:
        age = None if row.succeeded_at is None else (now() - row.succeeded_at).total_seconds()
        fresh = age is not None and age <= STALE_AFTER_INTERVALS * max(
            row.interval_seconds or 60, 15
        )
        if fresh:
            yield Finding(f"poll {row.name}: {age:.0f} s old")
            continue
        when = "never succeeded" if age is None else f"last succeeded {age:.0f} s ago"
        fix = (
            f"its last try ended with {row.error_code}: see the broker's log"
            if row.error_code
            else "start the worker: `sluice up` or a service"
        )
        yield Finding(f"poll {row.name} {when}", fix)


def _broker(found: Settings) -> Iterator[Finding]:
    """Only whether somebody listens: asking would be an act of its own in the broker's log."""
    path = found.broker_socket
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(2)
        try:
            probe.connect(str(path))
        except OSError as error:
            fix = "start it (as root): `sluice up` or the service sluice-broker"
            yield Finding(f"the broker does not listen at {path}: {error.strerror}", fix)
            return
    yield Finding(f"the broker listens at {path}")


def _templates(found: Settings) -> Iterator[Finding]:
    catalogue = Catalogue.load(found.template_folders, kit=found.node_kit)
    yield Finding(f"{len(tuple(catalogue.all()))} job templates")
    for problem in catalogue.problems:
        yield Finding(
            f"template {problem.path}:{problem.line}: {problem.text}",
            "mend it; `sluice template check FOLDER` looks again",
        )


def _environments(found: Settings) -> Iterator[Finding]:
    try:
        listed = load_environments(found.environments_file)
    except BadConfiguration as error:
        yield Finding(str(error), f"mend {found.environments_file}")
        return
    yield Finding("1 environment" if len(listed) == 1 else f"{len(listed)} environments")


def _nginx(_found: Settings) -> Iterator[Finding]:
    """Only whether it is there: where it stands before the portal, the page of notebooks knows."""
    program = front.nginx()
    if program is None:
        yield Finding(
            "nginx is not installed, so notebooks cannot be opened",
            "install nginx (with auth_request), then `sluice up`, or see `sluice nginx-config`",
        )
        return
    yield Finding(f"nginx for notebooks: {program}")
