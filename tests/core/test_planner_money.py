"""Costs of a plan: exact, and where a cheaper hour is the dearer way."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.credits import MILLION, Credits, parse_credits
from gateway.core.planner import money
from gateway.core.planner.money import Rate
from gateway.core.planner.plan import plan
from gateway.testing.planner_samples import CARDS, ask

LIST = Rate("normal", "list", parse_credits("3.5"))
PACKAGE = Rate("package", "week", LIST.per_hour, 900_000)
SPOT = Rate("spot", "spot", LIST.per_hour, 820_000)


def test_85000_for_16_cards_and_30_days_is_7_38_a_card_hour():
    each = money.per_card_hour(parse_credits("85000"), cards=16, hours=30 * 24)
    assert round(each / MILLION, 2) == Fraction("7.38")
    listed = money.priced(LIST, gpus=16, hours=720.0, waste=0)
    assert listed.work == parse_credits("40320")
    assert money.priced(PACKAGE, gpus=16, hours=720.0, waste=0).work == parse_credits("36288")
    nine = Rate("spot", "spot", parse_credits("9"), 820_000)
    assert round(money.priced(nine, gpus=16, hours=720.0, waste=0).work / MILLION) == 85_018


def test_10_buys_8_hours_of_a_card_at_1_2():
    own = Rate("normal", "list", parse_credits("1.2"))
    assert money.priced(own, gpus=1, hours=8.0, waste=0).work == parse_credits("9.60")


def test_16_cards_for_22_and_a_half_hours_at_3_5():
    assert money.priced(LIST, gpus=16, hours=22.5, waste=0).work == parse_credits("1260")


def test_spot_loses_to_a_package_past_9_8_percent_of_waste():
    assert float(money.break_even(SPOT, PACKAGE)) == pytest.approx(0.0976, abs=0.0001)
    assert float(money.break_even(SPOT, LIST)) == pytest.approx(0.22, abs=0.001)
    steady = money.priced(PACKAGE, gpus=16, hours=100.0, waste=0)
    for waste, loses in ((0.097, False), (0.098, True), (0.114, True), (0.088, False)):
        spot = money.priced(SPOT, gpus=16, hours=100.0, waste=waste)
        (crossing,) = money.crossings((steady, spot))
        assert crossing.is_passed is loses
        assert (spot.expected > steady.expected) is loses


def test_a_plan_says_which_way_is_cheapest_with_the_waste_of_each():
    rates = (LIST, PACKAGE, SPOT)
    often = {"save_seconds": 300.0, "spot_interrupted_hours": 6.0, "interrupted_hours": 240.0}
    found = plan(ask(**often), cards=CARDS, rates=rates).cost
    assert found is not None
    assert found.cheapest.rate == PACKAGE
    rare = plan(ask(save_seconds=30.0, spot_interrupted_hours=48.0), cards=CARDS, rates=rates).cost
    assert rare is not None
    assert rare.cheapest.rate == SPOT


def test_without_prices_there_is_no_cost():
    assert plan(ask(), cards=CARDS).cost is None


def test_a_budget_is_read_as_a_price_of_the_card_hour():
    found = plan(ask(budget=parse_credits("85000")), cards=CARDS, rates=(LIST,)).budget
    assert found is not None
    assert found.kinds == ("list",)
    small = plan(ask(budget=parse_credits("10")), cards=CARDS, rates=(LIST,)).budget
    assert small is not None
    assert small.kinds == ()


@given(st.integers(1, 512), st.floats(0.001, 1e4), st.floats(0, 2), st.integers(1, 10**9))
def test_waste_never_makes_it_cheaper_and_amounts_are_whole(gpus, hours, waste, per_hour):
    found = money.priced(
        Rate("normal", "x", Credits(per_hour)), gpus=gpus, hours=hours, waste=waste
    )
    assert isinstance(found.work, int)
    assert isinstance(found.expected, int)
    assert 0 < found.work <= found.expected
