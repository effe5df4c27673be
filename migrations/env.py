"""Run by Alembic. The connection comes from `gateway.store.schema`; by hand, the address comes
from `-x url=...` or from the gateway's own settings."""

from alembic import context
from sqlalchemy import Connection

from gateway.config import load_settings
from gateway.store import (  # their tables join the metadata
    app_models,  # noqa: F401
    capacity_models,  # noqa: F401
    contribution_models,  # noqa: F401
    dataset_models,  # noqa: F401
    environment_models,  # noqa: F401
    facts_models,  # noqa: F401
    forecast_models,  # noqa: F401
    history_models,  # noqa: F401
    money_models,  # noqa: F401
    people_models,  # noqa: F401
    policy_models,  # noqa: F401
    recipe_models,  # noqa: F401
    result_models,  # noqa: F401
    snapshot_models,  # noqa: F401
    spot_models,  # noqa: F401
    training_models,  # noqa: F401
    volume_models,  # noqa: F401
    wait_models,  # noqa: F401
)
from gateway.store.models import Base
from gateway.store.types import UtcDateTime
from gateway.store.uow import make_engine


def render(kind: str, item: object, _context: object) -> str | bool:
    """Old migrations must not depend on what our column types become later."""
    if kind == "type" and isinstance(item, UtcDateTime):
        return "sa.DateTime(timezone=True)"
    return False


def run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_item=render,
        # SQLite cannot alter most things in place: Alembic copies the table instead.
        render_as_batch=connection.dialect.name == "sqlite",
    )
    with context.begin_transaction():
        context.run_migrations()


def run_by_hand() -> None:
    url = context.get_x_argument(as_dictionary=True).get("url") or load_settings().database_url
    engine = make_engine(url)
    with engine.begin() as connection:
        run(connection)
    engine.dispose()


if context.is_offline_mode():
    raise SystemExit("the migrations need a database: --sql is not supported")
given = context.config.attributes.get("connection")
if given is None:
    run_by_hand()
else:
    run(given)
