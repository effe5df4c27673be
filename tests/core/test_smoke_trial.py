"""What a form's smoke job asks for, and which forms its verdict holds for."""

from dataclasses import replace

import pytest

from gateway.core import smoke
from gateway.core.ask import Ask
from gateway.core.offer import GpuKind, GroupChoice, Limits, Offer, PartitionChoice, QosChoice
from gateway.core.policy import Reading

ASK = Ask(
    template="ddp",
    group="nlp",
    partition="a100",
    qos="normal",
    nodes="1",
    nproc_per_node="2",
    time_limit="1-00:00:00",
    name="train",
    working_directory="~",
    values={"script": "train.py", "run_name": "llama", "upload_to": "/archive"},
)
READING = Reading(
    group="nlp",
    partition="a100",
    qos="normal",
    nodes=1,
    nproc_per_node=2,
    gpus_per_node=2,
    cpus_per_task=8,
    time_limit_minutes=1440,
    name="train",
)


def qos(name: str = "normal", minutes: int | None = None) -> QosChoice:
    limits = Limits(minutes, "partition", None, None, None, None, None, None)
    return QosChoice(name, name, 0, False, True, 1_000_000, limits)


def partition(name: str, nodes: int, each: int, kind: str = "a100", **changes) -> PartitionChoice:
    made = PartitionChoice(
        name=name,
        state="UP",
        is_default=False,
        nodes=nodes,
        max_nodes=None,
        max_minutes=None,
        default_minutes=None,
        cpus_per_node=32,
        gpus=(GpuKind(kind, each, nodes),),
        qos=(qos(),),
    )
    return replace(made, **changes)


def trial(debug: PartitionChoice, reading: Reading = READING) -> Ask:
    group = GroupChoice("nlp", True, False, (partition("a100", 4, 8), debug))
    return smoke.trial(ASK, reading, Offer("nlp-1", (group,)), partition="debug")


def test_it_runs_on_the_small_partition_where_that_has_the_room() -> None:
    found = trial(partition("debug", 1, 2))
    assert (found.partition, found.time_limit, found.name) == ("debug", "5", "train-smoke")
    assert (found.nodes, found.nproc_per_node, found.qos) == ("1", "2", "normal")


@pytest.mark.parametrize(
    "debug",
    [
        partition("debug", 1, 1),
        partition("debug", 1, 2, kind="rtx4090"),
        partition("debug", 1, 2, state="DOWN"),
        partition("debug", 1, 2, cpus_per_node=4),
        partition("debug", 1, 2, qos=(qos("other"),)),
        partition("debug", 2, 2, gpus=(GpuKind("a100", 2, 1), GpuKind("rtx4090", 2, 1))),
        partition("other", 1, 2),
    ],
)
def test_what_does_not_fit_there_runs_on_its_own_partition(debug: PartitionChoice) -> None:
    found = trial(debug)
    assert (found.partition, found.nodes, found.nproc_per_node) == ("a100", "1", "2")


def test_never_with_fewer_nodes() -> None:
    wide = replace(READING, nodes=2)
    assert trial(partition("debug", 1, 2), wide).partition == "a100"
    assert trial(partition("debug", 4, 2, max_nodes=1), wide).partition == "a100"
    assert trial(partition("debug", 2, 2), wide).partition == "debug"


def test_it_takes_no_longer_than_the_job_or_the_partition() -> None:
    short = replace(READING, time_limit_minutes=3)
    assert trial(partition("debug", 1, 2), short).time_limit == "3"
    assert trial(partition("debug", 1, 2, qos=(qos(minutes=2),))).time_limit == "2"


def test_its_run_is_one_of_its_own() -> None:
    values = trial(partition("debug", 1, 2)).values
    assert values == {"script": "train.py", "run_name": "", "upload_to": ""}


def test_a_long_name_stays_a_name() -> None:
    long = replace(READING, name="n" * 64)
    assert len(trial(partition("debug", 1, 2), long).name) == 64


def test_the_verdict_holds_for_the_same_job_whatever_its_time_and_name() -> None:
    same = replace(ASK, time_limit="2-0", name="other", qos="spot")
    assert smoke.is_same(ASK, same)
    assert smoke.is_same(ASK, replace(ASK, values=ASK.values | {"arguments": ""}))
    for changes in ({"nodes": "2"}, {"partition": "x"}, {"values": {"script": "other.py"}}):
        assert not smoke.is_same(ASK, replace(ASK, **changes))


def test_a_key_is_of_form_values_and_the_smoke_job_before() -> None:
    first = smoke.key("k", ASK, previous=None)
    assert first == smoke.key("k", ASK, previous=None)
    others = {
        smoke.key("k", replace(ASK, nodes="2"), previous=None),
        smoke.key("k", ASK, previous=7),
        smoke.key("other", ASK, previous=None),
    }
    assert len(others | {first}) == 4
    assert all(len(key) <= 64 for key in others | {smoke.next_key("k" * 64, 7)})
