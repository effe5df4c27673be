"""The database's shape over time: bring it to the newest, or say that it is not."""

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, inspect

from gateway.config import assets

# Two starts at once must not both migrate. Any number does; this one is ours.
_POSTGRES_LOCK = 0x51_0C_E0_01


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring an empty or an older database to `revision`. Safe to repeat, and to run twice at once:
    the second waits. Done whole or not at all."""
    with engine.begin() as connection:
        _lock(connection)
        command.upgrade(_config(connection), revision)


def downgrade(engine: Engine, revision: str) -> None:
    """Go back to an older shape; what only the newer shape can hold is lost."""
    with engine.begin() as connection:
        _lock(connection)
        command.downgrade(_config(connection), revision)


def is_current(engine: Engine) -> bool:
    """Whether the database has the shape that this code was written for."""
    with engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_heads()
    return set(found) == set(_scripts().get_heads())


def is_empty(engine: Engine) -> bool:
    """Whether the database has no table at all."""
    return not inspect(engine).get_table_names()


def _lock(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_POSTGRES_LOCK})")


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(assets() / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory(str(assets() / "migrations"))
