"""The broker's language: what is unknown, missing or mistyped is refused."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BadMessage
from gateway.wire import codec
from gateway.wire import messages as m
from gateway.wire.verbs import VERBS

REQUEST = m.SubmitRequest(
    token="t",
    user="nlp-1",
    name="n",
    account="nlp",
    partition="a100",
    qos="normal",
    nodes=1,
    gpus_per_node=1,
    cpus_per_task=1,
    time_limit_minutes=5,
    working_directory="/home/nlp-1",
    output="/home/nlp-1/%j.out",
    script="#!/bin/bash\ntrue\n",
)


def test_a_request_survives_the_wire() -> None:
    assert codec.parse(m.SubmitRequest, codec.dump(REQUEST)) == REQUEST


def test_times_survive_in_utc_to_the_microsecond() -> None:
    at = datetime(2026, 2, 28, 23, 59, 59, 123456, tzinfo=UTC)
    queue = m.Queue((), taken_at=at)
    assert codec.parse(m.Queue, codec.dump(queue)).taken_at == at


def test_nested_tuples_and_absent_values_survive() -> None:
    node = m.Node("a100-1", "IDLE", None, ("a100",), 32, 0, 1024, "a100", 8, 0)
    assert codec.parse(m.Nodes, codec.dump(m.Nodes((node,)))).nodes == (node,)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"uid": 0}, "uid"),
        ({"nodes": "1"}, "nodes"),
        ({"nodes": True}, "nodes"),
        ({"nodes": 1.0}, "nodes"),
        ({"name": None}, "name"),
        ({"requeue": 1}, "requeue"),
    ],
)
def test_an_unknown_or_mistyped_field_is_refused_by_name(
    change: dict[str, object], word: str
) -> None:
    with pytest.raises(BadMessage, match=word):
        codec.parse(m.SubmitRequest, codec.dump(REQUEST) | change)


def test_a_missing_field_is_refused_by_name() -> None:
    data = codec.dump(REQUEST)
    del data["account"]
    with pytest.raises(BadMessage, match="account"):
        codec.parse(m.SubmitRequest, data)


@pytest.mark.parametrize("data", [None, [], "x", 1, float("inf")])
def test_what_is_no_object_is_refused(data: object) -> None:
    with pytest.raises(BadMessage):
        codec.parse(m.SubmitRequest, data)


@pytest.mark.parametrize("when", [float("inf"), float("nan"), 1e300, "now", True])
def test_what_is_no_time_is_refused(when: object) -> None:
    with pytest.raises(BadMessage):
        codec.parse(m.Queue, {"jobs": [], "taken_at": when})


@given(st.text(), st.text())
def test_any_text_survives_the_wire(name: str, script: str) -> None:
    request = replace(REQUEST, name=name, script=script)
    assert codec.parse(m.SubmitRequest, codec.dump(request)) == request


def test_the_table_of_verbs_has_no_verb_that_runs_a_command() -> None:
    assert not {"run", "exec", "shell", "command"} & set(VERBS)
    assert all(name == verb.name for name, verb in VERBS.items())
