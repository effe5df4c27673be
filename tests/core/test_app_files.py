"""What the node writes about an application is believed only where it makes sense."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core import apps
from gateway.core.manifest import Activity, App, Listen

KEY = "k" * 43
READY = {"address": "10.0.0.7", "port": 40_000, "key": KEY, "pid": 12, "at": 1_700_000_000.5}
NODES = frozenset({"10.0.0.7", "10.0.0.8"})
AT = datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)


def test_the_door_stands_on_a_node_of_the_cluster() -> None:
    found = apps.parse_ready(json.dumps(READY), NODES)
    assert found == apps.Ready("10.0.0.7", 40_000, KEY, 12, AT)
    assert KEY not in repr(found)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("address", "169.254.169.254"),
        ("address", ["10.0.0.7"]),
        ("address", None),
        ("port", 22),
        ("port", 1023),
        ("port", 65_536),
        ("port", "40000"),
        ("port", True),
        ("port", 40_000.0),
        ("key", "short"),
        ("key", KEY + "\r\nHost: else"),
        ("key", "ключ" + KEY),
        ("pid", 0),
        ("at", "now"),
        ("at", 1e300),
        ("at", float("inf")),
    ],
)
def test_a_door_that_makes_no_sense_is_none(name: str, value: object) -> None:
    assert apps.parse_ready(json.dumps({**READY, name: value}), NODES) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 16_000, "{}" + " " * 16_384])
def test_what_is_no_object_is_neither_a_door_nor_a_state(text: str) -> None:
    assert apps.parse_ready(text, NODES) is None
    assert apps.parse_state(text) is None


def test_a_state_is_read_part_by_part() -> None:
    told = {
        "at": 1_700_000_000.5,
        "phase": "warned",
        "why": "idle",
        "text": "one\x1b[31m\ntwo",
        "active_at": 1_700_000_000.5,
        "idle_seconds": 3600,
        "stops_at": "soon",
        "connections": -4,
        "gpu_util": 250,
        "saving": "yes",
        "saved": "ab" * 40,
    }
    found = apps.parse_state(json.dumps(told))
    assert found == apps.AppState(
        AT,
        apps.Phase.WARNED,
        apps.Why.IDLE,
        text="one[31m\ntwo",
        active_at=AT,
        idle_seconds=3600,
        gpu_util=100.0,
        saved=("ab" * 40)[:64],
    )
    assert apps.parse_state(json.dumps({**told, "phase": "<b>"})) is None


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists))
def test_no_value_breaks_the_reader(value: object) -> None:
    for name in (*READY, "phase", "why", "text", "stops_at", "gpu_util", "connections"):
        apps.parse_ready(json.dumps({**READY, name: value}), NODES)
        apps.parse_state(json.dumps({"at": 1, "phase": "ready", name: value}))


@pytest.mark.parametrize(
    ("path", "job"),
    [
        ("/apps/12/", 12),
        ("/apps/12/lab/tree", 12),
        ("/apps/12", 12),
        ("/apps/012/", None),
        ("/apps/1%32/", None),
        ("/apps//12/", None),
        ("/apps/../12/", None),
        ("/app/12/", None),
        ("/apps/٣/", None),
    ],
)
def test_the_job_of_a_path(path: str, job: int | None) -> None:
    assert apps.job_of_base(path) == job


def test_the_node_gets_the_manifest_as_words() -> None:
    app = App(("tensorboard", "{port}"), Listen.PORT, "data/runs", Activity.CONNECTIONS, True)
    assert apps.node_options(app) == (
        "--listen=port",
        "--ready=data/runs",
        "--activity=connections",
        "--isolate",
    )
    assert apps.ready_path("/home/a", 7) == "/home/a/.sluice/apps/7/ready.json"
