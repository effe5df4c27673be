"""What no training can be is refused in words, with its field."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.planner.cards import read_cards
from gateway.core.planner.plan import Ask, Plan, plan
from gateway.core.planner.strategies import NAMES, Precision
from gateway.errors import BadConfiguration, Refused
from gateway.testing.planner_samples import CARDS, ask

SHAPE = {"params": None, "layers": 48, "hidden": 4096, "heads": 32, "vocab": 50_000}
NUMBERS = (
    *("tokens", "gpus", "gpus_per_node", "micro_batch", "sequence", "params", "mfu", "write_gbs"),
    *("save_seconds", "keep", "interrupted_hours", "spot_interrupted_hours", "restart_minutes"),
    *("host_gb", "within_hours"),
)
DIMENSIONS = ("layers", "hidden", "heads", "vocab")
# Where nothing is a number that makes sense.
_ZERO_IS_FINE = {"restart_minutes"}


@pytest.mark.parametrize("field", NUMBERS)
@pytest.mark.parametrize("value", [-1, 0, math.nan, math.inf, -math.inf, 1e30])
def test_a_number_that_is_none_is_refused_at_its_field(field, value):
    if value == 0 and field in _ZERO_IS_FINE:
        plan(ask(**{field: value}), cards=CARDS)
        return
    with pytest.raises(Refused) as refused:
        plan(ask(**{field: value}), cards=CARDS)
    assert refused.value.field == field
    assert refused.value.code in {"plan_number", "plan_range", "plan_above"}


@pytest.mark.parametrize("field", DIMENSIONS)
@pytest.mark.parametrize("value", [-1, 0, math.nan, 10**30])
def test_a_dimension_that_is_none_is_refused_at_its_field(field, value):
    with pytest.raises(Refused) as refused:
        plan(ask(**(SHAPE | {field: value})), cards=CARDS)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("asked", "field", "code"),
    [
        ({"params": None}, "params", "plan_no_model"),
        (SHAPE | {"heads": None}, "heads", "plan_dimensions"),
        (SHAPE | {"vocab": None}, "vocab", "plan_dimensions"),
        (SHAPE | {"heads": 33}, "heads", "plan_heads"),
        (SHAPE | {"params": 70e9}, "params", "plan_params_differ"),
        (SHAPE | {"layers": 100_000, "hidden": 1_000_000, "heads": 1000}, "layers", "plan_range"),
        ({"strategy": "zero4"}, "strategy", "plan_strategy"),
        ({"strategy": "single"}, "gpus", "plan_single"),
        ({"gpus": 1.5}, "gpus", "plan_whole"),
        ({"precision": "int4"}, "precision", "plan_precision"),
        ({"gpu": "v100-32g", "precision": "bf16"}, "precision", "plan_no_bf16"),
        ({"gpu": "ascend-910b", "precision": "fp32"}, "precision", "plan_no_fp32"),
        ({"recompute": "some"}, "recompute", "plan_recompute"),
        ({"mfu": 1.01}, "mfu", "plan_above"),
        ({"budget": -1}, "budget", "amount_not_positive"),
    ],
)
def test_what_does_not_go_together_is_refused(asked, field, code):
    with pytest.raises(Refused) as refused:
        plan(ask(**asked), cards=CARDS)
    assert (refused.value.field, refused.value.code) == (field, code)


@pytest.mark.parametrize(
    ("typed", "near"), [("a100", "a100-80g"), ("h10", "h100-sxm"), ("RTX 4080", "rtx4090")]
)
def test_an_unknown_card_is_refused_with_the_nearest_names(typed, near):
    with pytest.raises(Refused) as refused:
        plan(ask(gpu=typed), cards=CARDS)
    assert refused.value.code == "plan_card"
    assert near in str(refused.value.facts["near"])


def test_a_card_is_found_however_it_is_written():
    assert plan(ask(gpu="A100_80G"), cards=CARDS).card.name == "a100-80g"


def test_a_v100_gets_fp16_and_is_told_so():
    found = plan(ask(gpu="v100-32g"), cards=CARDS)
    assert found.setup.precision is Precision.FP16
    assert "fp16_for_bf16" in {one.code for one in found.notices}


def test_parameters_alone_say_what_was_assumed():
    found = plan(ask(params=175e9), cards=CARDS)
    size = found.model.dimensions
    assert size.layers == pytest.approx(96, abs=2)
    assert size.hidden == pytest.approx(12288, rel=0.03)
    assert "dimensions_assumed" in {one.code for one in found.notices}


@pytest.mark.parametrize("params", [1000, 12_345, 1e6, 1e14])
def test_the_smallest_and_the_largest_models_can_be_planned(params):
    assert plan(ask(params=params, strategy="fsdp"), cards=CARDS).speed.hours.value > 0


def test_every_card_has_what_a_plan_needs_and_no_figure_with_sparsity():
    for card in CARDS.values():
        assert card.source
        assert card.tflops_16bit < 1000
        assert plan(ask(gpu=card.name), cards=CARDS).card is card
    assert CARDS["h100-sxm"].tflops_16bit == 989
    assert CARDS["ascend-910b"].is_uncertain


def test_a_site_adds_a_card_and_corrects_one():
    own = {"mine": {"tflops_16bit": 100, "memory_gb": 48, "mfu_low": 0.3, "mfu_high": 0.4}}
    own["mine"] |= {"source": "our own sheet", "resources": ["mine48"]}
    found = read_cards({"cards": own | {"a100-80g": {"measured_mfu": 0.5}}}, base=CARDS)
    assert found["mine"].resources == ("mine48",)
    assert found["a100-80g"].tflops_16bit == 312
    speed = plan(ask(mfu=None), cards=found).speed
    assert (speed.mfu.origin, speed.mfu.figure.value) == ("site", 0.5)
    assert speed.hours.low < speed.hours.value < speed.hours.high


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"memory_gb": 0}, "memory_gb must be above 0"),
        ({"memory_gb": math.nan}, "memory_gb must be above 0"),
        ({"memory_gb": "80"}, "memory_gb is not of the right kind"),
        ({"bf16": 1}, "bf16 is not of the right kind"),
        ({"memory": 80}, "unknown field 'memory'"),
        ({"mfu_low": 1.5}, "mfu_low must be above 0 and at most 1"),
        ({"mfu_low": 0.9, "mfu_high": 0.1}, "mfu_low is above mfu_high"),
        ({"memory_gb": 80}, "tflops_16bit is missing"),
        (7, "is no table"),
    ],
)
def test_a_wrong_card_is_told_in_words(row, words):
    with pytest.raises(BadConfiguration, match=words):
        read_cards({"cards": {"mine": row}})


def test_a_wrong_file_tells_every_problem():
    with pytest.raises(BadConfiguration, match=r"unknown table 'card'.*cards is no table"):
        read_cards({"card": {}, "cards": 3})


_anything = st.one_of(
    st.sampled_from([-1, 0, 0.5, 1, 16, 1e9, 1e14, 1e17, 1e30, 5e-324, math.nan, math.inf]),
    st.floats(1e-3, 1e6),
    st.integers(1, 10**12),
)


@given(
    st.dictionaries(st.sampled_from([*NUMBERS, *DIMENSIONS]), _anything, max_size=4),
    st.sampled_from(NAMES),
    st.sampled_from(sorted(CARDS)),
)
def test_any_numbers_make_a_plan_of_finite_numbers_or_a_refusal(given_, strategy, card):
    found = _plan_or_field(ask(strategy=strategy, gpu=card, **given_))
    if not isinstance(found, Plan):
        assert found
        return
    figures = (found.memory.total, found.memory.host, found.speed.hours, found.checkpoint.waste)
    for figure in figures:
        assert 0 < figure.low <= figure.value <= figure.high < math.inf


def _plan_or_field(asked: Ask) -> Plan | str | None:
    try:
        return plan(asked, cards=CARDS)
    except Refused as refused:
        return refused.field


def test_32_bits_take_more_hours_and_no_second_copy():
    half, full = (plan(ask(precision=one), cards=CARDS) for one in ("bf16", "fp32"))
    assert full.speed.hours.value == pytest.approx(half.speed.hours.value * 312 / 19.5)
    assert full.memory.state == half.memory.state
    assert "step" not in dict(full.memory.overheads)
    assert full.checkpoint.size.high == 12 * 10e9


def test_parameters_count_where_the_dimensions_are_told_too():
    found = plan(ask(**(SHAPE | {"params": 12e9})), cards=CARDS)
    assert found.model.params == 12_000_000_000
    assert not found.model.is_assumed
    assert found.setup.nodes == 2


def test_recomputation_is_told_not_to_be_in_the_mfu():
    codes = {one.code for one in plan(ask(recompute="full"), cards=CARDS).notices}
    assert "mfu_is_not_hfu" in codes
