"""Memory by part: the published tables, DeepSpeed's estimator, and what must never turn round."""

import json
import subprocess
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.planner import activations, verdict
from gateway.core.planner.memory import Memory, memory
from gateway.core.planner.model import of_dimensions
from gateway.core.planner.setup import Recompute
from gateway.core.planner.strategies import NAMES, Precision
from gateway.core.planner.verdict import Fit
from gateway.testing.planner_samples import CARDS, TEN_BILLION, bare, model, on
from gateway.testing.torch_python import PYTHON, needs

GIB = 2**30
ESTIMATES = Path(__file__).with_name("deepspeed_estimates.py")

params_ = st.integers(10**6, 10**12)
sharded = st.sampled_from(["zero1", "zero2", "zero3", "zero3-offload", "fsdp", "fsdp-hybrid"])


@pytest.mark.parametrize(
    ("params", "gpus", "ddp", "zero1", "zero2", "zero3"),
    [
        (1e9, 8, 16, 5.5, 3.8, 2.0),
        (7e9, 8, 112, 38.5, 26.3, 14.0),
        (10e9, 16, 160, 47.5, 28.8, 10.0),
        (13e9, 16, 208, 61.8, 37.4, 13.0),
    ],
)
def test_model_state_is_that_of_the_published_table(params, gpus, ddp, zero1, zero2, zero3):
    table = {"ddp": ddp, "zero1": zero1, "zero2": zero2, "zero3": zero3, "fsdp": zero3}
    for strategy, expected in table.items():
        state = bare(model(params), on(strategy, gpus)).state / 1e9
        assert state == pytest.approx(expected, abs=0.051), strategy


@pytest.mark.parametrize(
    ("recompute", "gigabytes"),
    [(Recompute.NONE, 45.9), (Recompute.SELECTIVE, 13.7)],
)
def test_activations_are_those_of_the_published_example(recompute, gigabytes):
    found = of_dimensions(TEN_BILLION, sequence=2048)
    figure = activations.activations(found, on("ddp", 1, recompute=recompute))
    assert figure.value / 1e9 == pytest.approx(gigabytes, abs=0.05)


def test_full_checkpointing_keeps_the_inputs_and_one_layer():
    found, used = of_dimensions(TEN_BILLION, sequence=2048), on("ddp", 1, recompute=Recompute.FULL)
    kept = activations.inputs(found, used)
    assert kept / 1e9 == pytest.approx(0.8, abs=0.01)
    one = activations.layer(found, used, attention=False)
    assert activations.activations(found, used).value == kept + one


def test_the_ten_billion_have_as_many_parameters_as_the_example_says():
    assert of_dimensions(TEN_BILLION, sequence=2048).params == pytest.approx(9.7e9, rel=0.03)


def _as_estimator_counts(found: Memory) -> float:
    """Parameters, optimizer states, gradients, and what it adds for the largest layer."""
    extra = dict(found.overheads)
    more = (extra[name].value for name in ("gathered", "step") if name in extra)
    return found.state + sum(more)


# What DeepSpeed 0.19.8 prints for 10 B parameters, a largest layer of 0.2 B and 2 x 8 cards: GiB.
PRINTED = {
    "zero3-offload-all": (0.75, 125.7),
    "zero3-offload": (1.91, 111.8),
    "zero3": (11.2, 8.9),
    "zero2-offload": (18.6, None),
    "zero2": (29.1, None),
}


@pytest.mark.parametrize("strategy", PRINTED)
def test_memory_is_within_a_tenth_of_what_deepspeeds_estimator_prints(strategy):
    card, host = PRINTED[strategy]
    found = bare(model(10e9, largest_layer=200_000_000), on(strategy, 16))
    assert _as_estimator_counts(found) / GIB == pytest.approx(card, rel=0.1)
    if host is not None:
        assert found.host.value / GIB == pytest.approx(host, rel=0.1)


def test_memory_is_within_a_tenth_of_deepspeeds_estimator():
    """The estimator itself, where there is DeepSpeed: 36 shapes, each with every way to offload."""
    needs("deepspeed")
    shapes = product([125e6, 1.3e9, 10e9, 70e9], [1, 4, 8], [1, 2, 8])
    cases = [
        (strategy, model(params), cards, nodes)
        for params, cards, nodes in shapes
        for strategy in PRINTED
    ]
    asked = [
        (strategy, found.params, found.largest_layer, cards, nodes)
        for strategy, found, cards, nodes in cases
    ]
    told = subprocess.run(
        [PYTHON, ESTIMATES, json.dumps(asked)], capture_output=True, text=True, check=True
    )
    answers = json.loads(told.stdout.splitlines()[-1])
    assert len(answers) == len(cases) == 180
    for (strategy, found, cards, nodes), (card, host) in zip(cases, answers, strict=True):
        own = bare(found, on(strategy, cards * nodes, gpus_per_node=cards))
        case = (strategy, found.params, cards, nodes)
        assert _as_estimator_counts(own) == pytest.approx(card, rel=0.1), case
        # For ZeRO-2 with offload it counts the cards of all nodes against the memory of one.
        if strategy != "zero2-offload" or nodes == 1:
            assert own.host.value == pytest.approx(host, rel=0.1), case


def test_62_gb_a_card_cannot_be_model_state_under_zero3_with_offload():
    for strategy, most in (("zero3-offload", 2.1e9), ("zero3-offload-all", 0.9e9)):
        found = bare(model(10e9, largest_layer=200_000_000), on(strategy, 16))
        assert _as_estimator_counts(found) < most
    assert bare(model(10e9), on("zero3", 16)).state < 62e9 / 6


def test_62_gb_can_be_a_peak_with_large_activations():
    found = of_dimensions(TEN_BILLION, sequence=2048)
    used = on("zero3-offload", 16, micro_batch=4)
    needed = memory(found, used)
    assert needed.activations.value / 1e9 == pytest.approx(54.8, abs=0.1)
    assert needed.logits.value / 1e9 == pytest.approx(2.5, abs=0.1)
    assert needed.total.low < 62e9 < needed.total.high


@given(params_, sharded, st.integers(1, 512), st.integers(1, 512))
def test_more_cards_never_need_more_memory_each(params, strategy, one, other):
    few, many = sorted((one, other))
    found = model(params)
    needs = [memory(found, on(strategy, gpus)).total.value for gpus in (few, many)]
    # Rounding of floats, not of the rule.
    assert needs[1] <= needs[0] * (1 + 1e-12)


@given(params_, st.sampled_from(NAMES), st.integers(1, 64), st.integers(1, 64))
def test_a_larger_batch_never_needs_less(params, strategy, one, other):
    small, large = sorted((one, other))
    gpus = 1 if strategy == "single" else 8
    found = model(params)
    needs = [memory(found, on(strategy, gpus, micro_batch=b)).total.value for b in (small, large)]
    assert needs[0] <= needs[1]


@given(params_, st.sampled_from(NAMES), st.sampled_from(list(Precision)))
def test_a_band_holds_its_number_and_parts_make_the_whole(params, strategy, precision):
    gpus = 1 if strategy == "single" else 16
    found = memory(model(params), on(strategy, gpus, precision=precision))
    for _, figure in found.parts:
        assert 0 <= figure.low <= figure.value <= figure.high
    assert found.total.value == pytest.approx(sum(one.value for _, one in found.parts))


@given(params_, sharded)
def test_the_least_cards_are_the_least(params, strategy):
    card, found, used = CARDS["a100-80g"], model(params), on(strategy, 8)
    least = verdict.least_gpus(found, used, card)
    if least is None:
        assert not verdict.fits(found, used.over(4096), card)
        return
    assert verdict.fits(found, used.over(least), card)
    assert least == 1 or not verdict.fits(found, used.over(least - 1), card)


def test_what_fits_by_the_estimate_alone_is_tight():
    found, used = model(10e9), on("zero3", 16)
    total = memory(found, used).total
    card = CARDS["a100-80g"]
    assert verdict.fit(total, card) is Fit.YES
    between = [one for one in CARDS.values() if total.value <= one.memory < total.high]
    assert [verdict.fit(total, one) for one in between] == [Fit.TIGHT] * len(between)
    assert verdict.fit(total, CARDS["rtx4090"]) is Fit.NO


def test_what_does_not_fit_names_each_single_change_that_helps():
    card, found = CARDS["a100-40g"], model(10e9)
    told = {one.kind: one.values for one in verdict.changes(found, on("zero3", 4), card, CARDS)}
    assert int(told["gpus"][0]) > 4
    assert "zero3-offload" in told["strategy"]
    assert "ddp" not in told["strategy"]
    assert "a100-80g" in told["card"]


def test_no_number_of_cards_makes_ddp_fit():
    found = {
        one.strategy: one.gpus
        for one in verdict.fewest(model(10e9), on("ddp", 16), CARDS["a100-80g"])
    }
    assert found["ddp"] is None
    assert found["single"] is None
    assert found["zero3"] == 4
