"""`sluice db`: the database's shape."""

import click

from gateway.cli.common import has_database, make_home, private_files, said, settings
from gateway.store.schema import is_current
from gateway.store.schema import upgrade as bring_up
from gateway.store.uow import make_engine


@click.group()
def db() -> None:
    """Bring the database to the shape that this version needs, or look whether it has it."""


@db.command()
@said
def upgrade() -> None:
    """Make the database, or bring an older one up. Safe to repeat."""
    found = settings()
    make_home(found)
    engine = make_engine(found.database_url)
    with private_files():
        bring_up(engine)
    engine.dispose()
    click.echo("The database is ready.")


@db.command()
@said
def check() -> None:
    """Exit 1 when the database does not have the shape that this version needs."""
    found = settings()
    engine = make_engine(found.database_url)
    current = has_database(found) and is_current(engine)
    engine.dispose()
    if not current:
        raise click.ClickException("The database is not ready: run `sluice db upgrade`.")
    click.echo("The database is ready.")
