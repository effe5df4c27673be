"""Hours, interruptions and checkpoints: the published claims and tables."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.planner import checkpoints
from gateway.core.planner.plan import plan
from gateway.core.planner.waste import daly, interruptions, waste, young
from gateway.testing.planner_samples import CARDS, ask, model, on


def planned(**given):
    return plan(ask(**given), cards=CARDS)


def test_3_trillion_tokens_take_two_years_and_not_a_day():
    found = planned(tokens=3.2e12)
    assert found.speed.hours.value == pytest.approx(18_420, rel=0.001)
    assert found.speed.hours.value / 24 == pytest.approx(767, abs=1)
    assert found.speed.hours.low > 1000 * 18


def test_what_22_hours_would_take_instead():
    within = planned(tokens=3.2e12, within_hours=22.5).within
    assert within.gpus == pytest.approx(13_100, rel=0.01)
    assert within.tokens == pytest.approx(3.9e9, rel=0.01)
    assert within.mfu > 400


def test_12_billion_tokens_take_69_hours():
    assert planned().speed.hours.value == pytest.approx(69, abs=0.5)


def test_3_billion_tokens_take_18_hours():
    assert planned(tokens=3.2e9).speed.hours.value == pytest.approx(18.4, abs=0.05)


def test_attention_is_counted_where_the_dimensions_are_known():
    shape = {"params": None, "layers": 48, "hidden": 4096, "heads": 32, "vocab": 50_000}
    for sequence, share in ((2048, 0.08), (4096, 0.16)):
        found = planned(**shape, sequence=sequence).speed
        assert found.is_attention_counted
        added = found.flops_per_token.value / (6 * planned(**shape, sequence=sequence).model.params)
        assert added - 1 == pytest.approx(share, abs=0.01)
    assert not planned().speed.is_attention_counted


def test_an_mfu_that_offload_cannot_reach_is_told():
    codes = {one.code for one in planned(strategy="zero3-offload").notices}
    assert "mfu_with_offload" in codes


def test_without_an_mfu_the_cards_own_range_makes_the_band():
    found = planned(mfu=None).speed
    assert found.mfu.origin == "usual"
    assert found.hours.low < found.hours.value < found.hours.high
    slow = planned(mfu=None, strategy="zero3-offload").speed
    assert slow.mfu.figure.high <= 0.30


@given(st.floats(1e6, 1e15), st.floats(1e6, 1e15))
def test_more_tokens_never_take_fewer_hours(one, other):
    few, many = sorted((int(one), int(other)))
    assert planned(tokens=few).speed.hours.value <= planned(tokens=many).speed.hours.value


@given(st.integers(1, 4096), st.floats(0.01, 1))
def test_the_hours_give_the_mfu_back(gpus, mfu):
    found = planned(gpus=gpus, mfu=mfu, strategy="zero3")
    done = found.tokens / (found.speed.hours.value * 3600) * found.speed.flops_per_token.value
    assert done / (gpus * 312e12) == pytest.approx(mfu)


@pytest.mark.parametrize(
    ("save", "every", "minutes", "best", "hour", "two", "four"),
    [
        (60, 6, 27, 7.5, 10.0, 17.5, 33.8),
        (60, 24, 54, 3.7, 3.8, 5.0, 8.8),
        (140, 24, 82, 5.7, 6.0, 6.1, 9.3),
        (300, 6, 60, 16.7, 16.7, 20.8, 35.4),
    ],
)
def test_the_waste_is_that_of_the_published_table(save, every, minutes, best, hour, two, four):
    given_ = interruptions(save=save, between=every * 3600, restart=0)
    interval = young(save, every * 3600)
    assert interval / 60 == pytest.approx(minutes, abs=0.5)
    for at, expected in ((interval, best), (3600, hour), (7200, two), (14400, four)):
        assert waste(at, given_) * 100 == pytest.approx(expected, abs=0.051)


def test_the_waste_of_a_spot_job_with_and_without_the_best_interval():
    spot = interruptions(save=60, between=6 * 3600, restart=300)
    assert waste(3600, spot) * 100 == pytest.approx(11.4, abs=0.05)
    assert waste(young(60, 6 * 3600), spot) * 100 == pytest.approx(8.8, abs=0.05)


@given(st.floats(0.1, 1e5), st.floats(1, 1e8), st.floats(0.1, 10))
def test_youngs_interval_is_the_best_one(save, between, other):
    given_ = interruptions(save=save, between=between, restart=60)
    best = young(save, between)
    assert waste(best, given_) <= waste(best * other, given_) * (1 + 1e-9)


def test_dalys_interval_is_near_youngs_for_short_saves_and_bounded_for_long_ones():
    assert daly(60, 86_400) == pytest.approx(young(60, 86_400), rel=0.02)
    assert daly(1000, 400) == 400
    assert math.isfinite(daly(1e7, 1))


@pytest.mark.parametrize(("strategy", "gigabytes"), [("ddp", 120), ("zero3", 140)])
def test_a_checkpoint_of_ten_billion_parameters(strategy, gigabytes):
    size = checkpoints.size(model(10e9), on(strategy, 16))
    assert size.value / 1e9 == gigabytes
    assert (size.low / 1e9, size.high / 1e9) == (120, 140)


@pytest.mark.parametrize(("speed", "seconds"), [(1.0, 140), (0.1, 1400)])
def test_saving_takes_the_size_over_the_speed_of_storage(speed, seconds):
    found = planned(write_gbs=speed, keep=3).checkpoint
    assert found.save.value == pytest.approx(seconds)
    assert found.disk.value / 1e9 == pytest.approx(4 * 140)
    assert found.signal_lead > seconds + 60
