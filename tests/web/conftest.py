"""An app over a FakeBroker and a database of its own, and people who are signed in to it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import Engine
from werkzeug.test import TestResponse

from gateway.config import load_settings
from gateway.store.uow import Begin, make_begin
from gateway.testing import builders as b
from gateway.testing.database import database
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.portal import CLUSTER, Portal
from gateway.web.app import create_app

PEOPLE = ("nlp-1", "nlp-2", "nlp-lead", "vision-1")
_TOKEN = re.compile(r'name="csrf_token" value="([^"]+)"')


@dataclass
class Browser:
    """A client that keeps its cookies and sends the CSRF token of the page it has seen."""

    client: FlaskClient

    def get(self, path: str, **options: Any) -> TestResponse:
        return self.client.get(path, **options)

    def post(self, path: str, data: dict[str, Any] | None = None, **options: Any) -> TestResponse:
        return self.client.post(path, data={**(data or {}), "csrf_token": self.token()}, **options)

    def token(self) -> str:
        found = _TOKEN.search(self.client.get("/settings", follow_redirects=True).text)
        assert found is not None
        return found[1]


@dataclass
class Site:
    """The app with all that stands behind it."""

    app: Flask
    portal: Portal
    broker: FakeBroker
    begin: Begin

    def browser(self) -> Browser:
        return Browser(self.app.test_client())

    def signed_in(self, login: str = "nlp-1") -> Browser:
        browser = self.browser()
        answer = browser.post("/sign-in", {"login": login, "password": b.PASSWORD})
        assert answer.status_code == 303
        return browser

    def look(self) -> None:
        """The worker's polls, once."""
        self.portal.poll_policy()
        self.portal.poll()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with database(tmp_path) as engine:
        yield engine


@pytest.fixture
def site(engine: Engine, tmp_path: Path) -> Site:
    begin, broker = make_begin(engine), FakeBroker()
    settings = load_settings({"SLUICE_HOME": str(tmp_path), "SLUICE_CLUSTER_NAME": CLUSTER})
    app = create_app(
        settings,
        begin=begin,
        read=make_begin(engine, read_only=True),
        broker=broker,
        clock=lambda: broker.now,
    )
    app.testing = True
    for login in PEOPLE:
        b.add_person(begin, login)
    b.add_person(begin, "boss", role="administrator")
    viewer = b.viewer("nlp-1", groups=("nlp",))
    made = Site(app, Portal(begin, broker, viewer), broker, begin)
    made.look()
    return made


@pytest.fixture
def filled() -> Callable[..., dict[str, str]]:
    """A form that works; keyword arguments change fields."""

    def fill(**changes: str) -> dict[str, str]:
        form = {
            "form_key": "key-1",
            "template": "ddp",
            "shown_template": "ddp",
            "group": "nlp",
            "partition": "a100",
            "qos": "normal",
            "nodes": "2",
            "nproc_per_node": "4",
            "time_limit": "12:00:00",
            "name": "train",
            "working_directory": "~",
            "environment": "none",
            "v-script": "train.py",
            "v-arguments": "",
        }
        return form | changes

    return fill
