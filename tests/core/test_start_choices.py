"""Other shapes of a request: only what can be sent, and only what is worth a change."""

from dataclasses import replace

import pytest

from gateway.core.ask import Ask
from gateway.core.forecast import Forecast, ForecastSource
from gateway.core.policy import Offer, build_offer, judge
from gateway.core.start_choices import Change, Ranked, best, in_the_way, others
from gateway.testing import builders as b
from gateway.testing.template_samples import shipped

ASK = Ask(
    template="ddp",
    group="nlp",
    partition="a100",
    qos="normal",
    nodes="2",
    nproc_per_node="4",
    time_limit="600",
    name="train",
    working_directory="~",
    values={"script": "train.py"},
)
COMMAND = replace(
    ASK,
    template="command",
    nodes="1",
    nproc_per_node="1",
    values={"command": "true", "gpus_per_node": "4"},
)


def offer() -> Offer:
    nodes = [
        b.node(f"{kind}-{n}", partitions=(kind,), gpu_type=kind, gpus=8, cpus=64)
        for kind in ("a100", "h100")
        for n in range(2)
    ]
    levels = (b.qos(), b.qos("spot"), b.qos("short", max_wall_minutes=60))
    return build_offer(
        "member",
        (b.association(qos=("normal", "spot", "short")),),
        (b.partition(), b.partition("h100")),
        levels,
        nodes,
    )


def sets(
    ask: Ask, *, shorter: int | None = None, template: str = "ddp"
) -> dict[str, dict[str, str]]:
    manifest, allowed = shipped(template), offer()
    judged = judge(ask, allowed, manifest)
    found = others(
        ask,
        judged.reading,
        allowed,
        manifest,
        problems=judged.problems,
        shorter_minutes=shorter,
    )
    return {f"{one.change}:{','.join(one.sets.values())}": dict(one.sets) for one in found}


def test_fewer_cards_are_fewer_nodes_where_there_are_several() -> None:
    found = sets(ASK)
    assert found["gpus:1"] == {"nodes": "1"}


def test_on_one_node_they_are_fewer_processes_or_what_the_template_asks_for() -> None:
    assert sets(replace(ASK, nodes="1"))["gpus:2"] == {"nproc_per_node": "2"}
    assert sets(COMMAND, template="command")["gpus:2"] == {"gpus_per_node": "2"}
    assert not [key for key in sets(replace(ASK, nodes="1", nproc_per_node="1")) if "gpus:" in key]


def test_another_qos_and_another_type_are_what_this_person_may_use() -> None:
    found = sets(ASK)
    assert found["qos:spot"] == {"qos": "spot"}
    assert "qos:short" not in found  # ten hours are too long for it
    assert found["gpu_type:h100,h100"] == {"partition": "h100", "gpu_type": "h100"}
    assert "gpu_type:a100,a100" not in found


def test_a_shorter_limit_is_one_that_is_given() -> None:
    assert sets(ASK, shorter=90)["time_limit:01:30:00"] == {"time_limit": "01:30:00"}
    assert not [key for key in sets(ASK) if key.startswith("time_limit")]


def test_a_field_that_is_still_empty_does_not_hide_them() -> None:
    assert sets(replace(ASK, values={})).keys() == sets(ASK).keys()


def test_what_cannot_be_read_of_the_shape_stands_in_the_way() -> None:
    manifest, allowed = shipped("ddp"), offer()
    empty = judge(replace(ASK, values={}), allowed, manifest)
    large = judge(replace(ASK, nodes="9"), allowed, manifest)
    assert not in_the_way(empty.problems)
    assert in_the_way(large.problems)


def ranked(seconds: int, costs: int | None, change: Change = Change.QOS) -> Ranked:
    return Ranked(Forecast(seconds, seconds * 3, ForecastSource.HISTORY, 300), costs, change)


@pytest.mark.parametrize(
    ("one", "worth"),
    [
        (ranked(1800, 100), True),  # half the wait
        (ranked(3500, 100), False),  # hardly sooner
        (ranked(3500, 90), True),  # not later, and cheaper
        (ranked(3700, 90), False),  # later
        (ranked(3500, None), False),
    ],
)
def test_others_are_sooner_or_cheaper_and_not_later(one: Ranked, worth: bool) -> None:
    assert bool(best(ranked(3600, 100), [one])) is worth


def test_of_each_kind_one_comes_before_a_second_of_a_kind() -> None:
    found = [
        ranked(100, 100, Change.GPU_TYPE),
        ranked(200, 100, Change.GPU_TYPE),
        ranked(300, 100, Change.GPU_TYPE),
        ranked(900, 100, Change.GPUS),
    ]
    assert best(ranked(3600, 100), found) == [0, 1, 3]
