"""A store of its own for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from gateway.store.uow import Begin, make_begin
from gateway.testing.database import database


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with database(tmp_path) as engine:
        yield engine


@pytest.fixture
def begin(engine: Engine) -> Begin:
    return make_begin(engine)


@pytest.fixture
def read(engine: Engine) -> Begin:
    return make_begin(engine, read_only=True)
