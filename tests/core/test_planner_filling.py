"""From a plan to the form, and back; numbers as typed; what a site knows of itself."""

import pytest

from gateway.core.offer import GpuKind, GroupChoice, Limits, Offer, PartitionChoice, QosChoice
from gateway.core.planner import filling
from gateway.core.planner.plan import plan
from gateway.core.planner.site import Preemptions, measured, sizes_like
from gateway.core.planner.typed import count, whole_count
from gateway.errors import Refused
from gateway.testing.planner_samples import CARDS, ask

TEMPLATES = ("single-gpu", "ddp", "fsdp", "hf-fsdp", "deepspeed-zero3", "colossalai")


def offer(*, kind: str = "a100", minutes: int = 600) -> Offer:
    limits = Limits(minutes, "partition", None, None, None, None, None, None)
    qos = QosChoice("normal", "", 0, False, True, 1_000_000, limits)
    cards = (GpuKind(kind, 8, 4),)
    place = PartitionChoice("big", "UP", True, 4, None, minutes, None, 64, cards, (qos,))
    return Offer("nlp-1", (GroupChoice("nlp", True, False, (place,)),))


def fill(offered: Offer | None = None, **given):
    return filling.fill(plan(ask(**given), cards=CARDS), offered or offer(), TEMPLATES)


@pytest.mark.parametrize(
    ("strategy", "template", "values"),
    [
        ("ddp", "ddp", {}),
        ("fsdp", "fsdp", {}),
        ("zero2-offload", "deepspeed-zero3", {"stage": "2", "offload": "optimizer"}),
        ("zero3-offload-all", "deepspeed-zero3", {"stage": "3", "offload": "both"}),
        ("colossal-gemini", "colossalai", {"plugin": "gemini"}),
    ],
)
def test_a_strategy_has_its_template_and_the_template_says_the_strategy(
    strategy: str, template: str, values: dict[str, str]
) -> None:
    found = fill(strategy=strategy)
    assert found.fields["template"] == template
    assert values.items() <= found.values.items()
    assert filling.strategy_of(template, found.values, planned=strategy) == strategy


def test_a_changed_field_of_the_form_is_another_strategy() -> None:
    values = {"stage": "2", "offload": "none"}
    assert filling.strategy_of("deepspeed-zero3", values, planned="zero3") == "zero2"
    assert filling.strategy_of("command", {}, planned="zero3") is None


def test_nodes_and_processes_make_the_cards_that_were_planned() -> None:
    for gpus, nodes, each in ((16, 2, 8), (12, 2, 6), (3, 1, 3)):
        found = fill(gpus=gpus)
        assert (found.fields["nodes"], found.fields["nproc_per_node"]) == (str(nodes), str(each))
    spread = fill(gpus=16, gpus_per_node=4)  # what is sharded within a node depends on it
    assert (spread.fields["nodes"], spread.fields["nproc_per_node"]) == ("4", "4")
    told = {one.code: dict(one.facts) for one in fill(gpus=9).notices}
    assert told["other_cards"] == {"asked": 9, "filled": 10}
    assert "too_few_nodes" in {one.code for one in fill(gpus=64).notices}


def test_the_time_is_the_upper_end_of_the_hours_as_far_as_the_limit_goes() -> None:
    short = fill(tokens=1e9)  # about 6 hours
    assert short.fields["time_limit"] == "06:11:00"
    assert "several_stretches" not in {one.code for one in short.notices}
    long = fill()  # about 74 hours at the most
    assert long.fields["time_limit"] == "10:00:00"
    assert dict(long.notices[-1].facts) == {"stretches": 8}


def test_cards_that_nobody_has_here_are_told_and_nothing_is_guessed() -> None:
    found = fill(offer(kind="rtx4090"))
    assert "partition" not in found.fields
    assert [one.code for one in found.notices] == ["no_such_card"]


@pytest.mark.parametrize(
    ("text", "number"), [("10B", 10e9), ("3.2t", 3.2e12), ("12e9", 12e9), ("1,024", 1024.0)]
)
def test_numbers_are_read_as_typed(text: str, number: float) -> None:
    assert count("tokens", text) == number


@pytest.mark.parametrize("text", ["", "B", "ten", "1e99999999999", "9" * 99, "1.5.2"])
def test_what_is_no_number_is_refused_at_its_field(text: str) -> None:
    with pytest.raises(Refused) as refused:
        count("tokens", text)
    assert (refused.value.code, refused.value.field) == ("plan_number", "tokens")


@pytest.mark.parametrize(("text", "code"), [("1.5", "plan_whole"), ("inf", "plan_number")])
def test_a_whole_number_has_no_fraction(text: str, code: str) -> None:
    with pytest.raises(Refused) as refused:
        whole_count("layers", text)
    assert refused.value.code == code


def test_few_jobs_or_preemptions_say_nothing() -> None:
    assert measured([0.4] * 4) is None
    assert measured([0.4, 0.5, 0.6, 0.3, 0.2, 7.0, -1.0]).jobs == 5
    assert Preemptions(4, 10**6).hours_between is None
    assert Preemptions(5, 5 * 7200).hours_between == pytest.approx(2)
    assert Preemptions(10**6, 1).hours_between == pytest.approx(1 / 60)


def test_jobs_are_compared_with_those_of_their_size() -> None:
    assert [sizes_like(n) for n in (1, 2, 8, 16, 65)] == [
        *((1, 1), (2, 8), (2, 8), (9, 64), (65, None))
    ]
