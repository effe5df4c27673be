"""A database for tests: SQLite by default, PostgreSQL where SLUICE_TEST_DATABASE_URL names one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Engine, make_url

from gateway.store.schema import upgrade
from gateway.store.uow import make_engine

FLAG = "SLUICE_TEST_DATABASE_URL"


@contextmanager
def database(folder: Path, *, migrated: bool = True) -> Iterator[Engine]:
    """An empty database of its own, with the newest tables unless told otherwise."""
    url = os.environ.get(FLAG)
    engine = make_engine(_own_schema(url) if url else f"sqlite:///{folder / 'sluice.db'}")
    if migrated:
        upgrade(engine)
    try:
        yield engine
    finally:
        engine.dispose()
        if url:
            _drop(url, str(engine.url.query["options"]).rpartition("=")[2])


def _own_schema(url: str) -> str:
    name = f"t{uuid4().hex[:12]}"
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
    engine.dispose()
    own = make_url(url).update_query_dict({"options": f"-csearch_path={name}"})
    return own.render_as_string(hide_password=False)


def _drop(url: str, name: str) -> None:
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP SCHEMA {name} CASCADE")
    engine.dispose()
