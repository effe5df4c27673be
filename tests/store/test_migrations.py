from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect

from gateway.config import assets
from gateway.store import (
    app_models,  # noqa: F401
    capacity_models,  # noqa: F401
    contribution_models,  # noqa: F401
    dataset_models,  # noqa: F401
    facts_models,  # noqa: F401
    forecast_models,  # noqa: F401
    history_models,  # noqa: F401
    money_models,  # noqa: F401  # its tables join the metadata
    people_models,  # noqa: F401
    recipe_models,  # noqa: F401
    result_models,  # noqa: F401
    schema,
    snapshot_models,  # noqa: F401
    spot_models,  # noqa: F401
    training_models,  # noqa: F401
    volume_models,  # noqa: F401
    wait_models,  # noqa: F401
)
from gateway.store.models import Base
from gateway.store.uow import make_begin
from gateway.testing.database import database
from gateway.testing.samples import fill


def is_ours(name: str | None, kind: str, _parents: object) -> bool:
    """Not the tables of a search, which the database makes and keeps by itself."""
    return kind != "table" or not (name or "").startswith("recipe_words")


def differences(engine: Engine) -> list[object]:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_name": is_ours})
        return list(compare_metadata(context, Base.metadata))


def test_there_is_one_head() -> None:
    assert len(ScriptDirectory(str(assets() / "migrations")).get_heads()) == 1


def test_up_from_empty_equals_the_models(engine: Engine) -> None:
    assert differences(engine) == []


def test_down_leaves_nothing_and_up_again_equals_the_models(engine: Engine) -> None:
    schema.downgrade(engine, "base")
    left = set(inspect(engine).get_table_names()) - {"alembic_version"}
    schema.upgrade(engine)

    assert left == set()
    assert differences(engine) == []


def test_each_step_up_keeps_the_data(tmp_path: Path) -> None:
    """Filled at the head, taken down step by step to the first tables, and up again."""
    with database(tmp_path) as engine:
        fill(make_begin(engine))
        with engine.connect() as connection:
            before = connection.exec_driver_sql("select id, name, state from job order by id").all()

        schema.downgrade(engine, "0001")
        schema.upgrade(engine)

        with engine.connect() as connection:
            after = connection.exec_driver_sql("select id, name, state from job order by id").all()
    assert after == before
    assert before


def test_whether_it_is_current(tmp_path: Path) -> None:
    with database(tmp_path, migrated=False) as engine:
        empty = schema.is_current(engine)
        schema.upgrade(engine, "0001")
        older = schema.is_current(engine)
        schema.upgrade(engine)
        schema.upgrade(engine)

        assert (empty, older, schema.is_current(engine)) == (False, False, True)
