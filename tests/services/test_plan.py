"""A plan with this site's cards, price list, QoS terms and packages."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.core.credits import MILLION, parse_credits
from gateway.errors import BadConfiguration, Refused
from gateway.services import prices
from gateway.services.plan import load_cards, plan_training, typed_rates
from gateway.store.training_models import TrainingEvent, TrainingPoint
from gateway.testing import builders as b
from gateway.testing.planner_samples import CARDS, ask

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def planned(begin, **given):
    resource = given.pop("resource", None)
    return plan_training(ask(**given), cards=CARDS, begin=begin, now=NOW, resource=resource)


@pytest.fixture
def priced(begin):
    """3.50 a card-hour since yesterday, 9.00 from tomorrow; three QoS, and a package at 3.15."""
    day = timedelta(days=1)
    for per_hour, starts in (("3.5", NOW - day), ("9", NOW + day)):
        prices.set_price("a100", per_hour, starts=starts, begin=begin, now=NOW, backdated=True)
    prices.set_terms("spot", "0.82", begin=begin, now=NOW)
    prices.set_terms("urgent", "1.5", begin=begin, now=NOW)
    prices.set_terms("same", "1", begin=begin, now=NOW)
    prices.add_offer("week", "a100", "3.15", begin=begin, now=NOW)
    return begin


def test_a_site_without_prices_gets_a_plan_without_a_cost(begin):
    found = planned(begin)
    assert found.cost is None
    assert found.speed.hours.value == pytest.approx(69, abs=0.5)


def test_the_list_each_qos_and_each_package_are_compared(priced):
    cost = planned(priced).cost
    kinds = {one.rate.name: one.rate.kind for one in cost.offers}
    assert kinds == {"list": "normal", "spot": "spot", "urgent": "normal", "week": "package"}
    by_name = {one.rate.name: one for one in cost.offers}
    assert by_name["list"].rate.per_hour == parse_credits("3.5")
    assert by_name["spot"].waste > by_name["list"].waste


def test_a_package_draws_at_its_own_price(priced):
    (week,) = [one for one in planned(priced).cost.offers if one.rate.name == "week"]
    assert (week.rate.per_hour, week.rate.factor_millionths) == (parse_credits("3.15"), MILLION)


def test_a_qos_whose_preempted_runs_are_free_is_told(begin):
    prices.set_price("a100-80g", "3.5", begin=begin, now=NOW)
    prices.set_terms("spot", "0.82", preempted="free", begin=begin, now=NOW)
    assert "preempted_is_free" in {one.code for one in planned(begin).notices}


def test_the_resource_can_be_named(priced):
    prices.set_price("big", "8.2", begin=priced, now=NOW)
    cost = planned(priced, resource="big").cost
    assert cost.offers[0].rate.per_hour == parse_credits("8.2")
    assert all(one.rate.kind != "package" for one in cost.offers)
    with pytest.raises(Refused) as refused:
        planned(priced, resource="none")
    assert (refused.value.code, refused.value.field) == ("no_price", "resource")


def test_typed_rates_count_before_the_list(priced):
    typed = typed_rates(parse_credits("9"), spot_off=18 * MILLION, package_off=10 * MILLION)
    found = plan_training(ask(), cards=CARDS, begin=priced, now=NOW, typed=typed)
    assert [one.rate.factor_millionths for one in found.cost.offers] == [MILLION, 900_000, 820_000]


@pytest.mark.parametrize("off", [-1, 100 * MILLION, 250 * MILLION])
def test_a_discount_of_everything_is_refused(off):
    with pytest.raises(Refused) as refused:
        typed_rates(parse_credits("9"), spot_off=off)
    assert (refused.value.code, refused.value.field) == ("plan_discount", "spot_off")


def test_a_free_price_is_refused():
    with pytest.raises(Refused):
        typed_rates(parse_credits("0"))


def test_the_sites_own_cards_come_on_top(tmp_path):
    assert load_cards(tmp_path).keys() == load_cards().keys()
    (tmp_path / "cards.toml").write_text("[cards.a100-80g]\nmeasured_mfu = 0.47\n")
    assert load_cards(tmp_path)["a100-80g"].measured_mfu == 0.47


@pytest.mark.parametrize("text", ["[cards.mine]\nmemory_gb = 1\n", "[cards", "[cards.x]\ny = 1\n"])
def test_a_wrong_card_file_is_named(tmp_path, text):
    (tmp_path / "cards.toml").write_text(text)
    with pytest.raises(BadConfiguration, match=r"cards\.toml"):
        load_cards(tmp_path)


def test_a_card_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "cards.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadConfiguration, match=r"cards\.toml"):
        load_cards(tmp_path)


def _runs(begin, *, preempted, ended, hours):
    """Runs in QoS spot, each so many hours long."""
    states = ["PREEMPTED"] * preempted + ["COMPLETED"] * ended
    for place, state in enumerate(states):
        job_id = b.add_job(begin, slurm_id=5000 + place, qos="spot", state="COMPLETED")
        b.add_run(begin, job_id, state=state, elapsed_seconds=hours * 3600)


def test_the_sites_own_preemptions_are_used_where_there_are_enough(priced):
    _runs(priced, preempted=5, ended=15, hours=2)
    (spot,) = planned(priced).cost.interrupted
    assert (spot.name, spot.origin, spot.events) == ("spot", "site", 5)
    assert spot.hours == pytest.approx(8)  # 20 runs of 2 hours, 5 of them preempted


def test_few_preemptions_are_no_record(priced):
    _runs(priced, preempted=4, ended=15, hours=2)
    (spot,) = planned(priced).cost.interrupted
    assert (spot.origin, spot.hours) == ("assumed", 6)


def test_what_somebody_says_goes_before_the_record(priced):
    _runs(priced, preempted=5, ended=0, hours=2)
    found = planned(priced, spot_interrupted_hours=48.0).cost
    assert [one.origin for one in found.interrupted] == ["asked"]
    often = planned(priced).cost
    waste = {one.rate.name: one.waste for one in found.offers}["spot"]
    assert {one.rate.name: one.waste for one in often.offers}["spot"] > waste


def _trained(begin, *, shares, gpus=16, kind="a100", purpose=None):
    """Ended jobs whose scripts told a model of 10 billion parameters and 100 seconds of steps."""
    for share in shares:
        rate = share * gpus * 312e12 / 60e9
        job_id = b.add_job(
            begin,
            state="COMPLETED",
            token=f"{len(shares)}{share}{gpus}{kind}{purpose}",
            gpus=gpus,
            gpu_type=kind,
            purpose=purpose,
            start_time=NOW - timedelta(hours=1),
            end_time=NOW,
        )
        _tell(begin, job_id, tokens=rate * 100)


def _tell(begin, job_id, *, tokens):
    """Eleven lines, ten seconds apart; what the first one counts was before it."""
    with begin() as session:
        session.add(
            TrainingEvent(job_id=job_id, at=1, restart=0, kind="model", facts={"params": 10e9})
        )
        numbers = dict.fromkeys(("loss", "losses", "samples", "seconds", "timed", "peak_bytes"), 0)
        point = {"job_id": job_id, "restart": 0, "at": 0, "lines": 11, "first_at": 0}
        point |= {"last_at": 100, "first_step": 1, "last_step": 11, "tokens": int(tokens * 1.1)}
        session.add(TrainingPoint(**point, **numbers))


def test_hours_are_by_the_mfu_of_this_sites_jobs_where_enough_have_ended(begin):
    _trained(begin, shares=(0.30, 0.36, 0.38, 0.40, 0.48))
    share = planned(begin, mfu=None).speed.mfu
    assert (share.origin, share.jobs) == ("site", 5)
    assert share.figure.value == pytest.approx(0.38, rel=0.001)
    assert 0.30 <= share.figure.low < 0.38 < share.figure.high <= 0.48
    assert planned(begin, mfu=0.5).speed.mfu.origin == "asked"
    assert planned(begin, mfu=None, strategy="zero3-offload").speed.mfu.origin == "usual"
    own = plan_training(
        ask(mfu=None),
        cards={**CARDS, "a100-80g": replace(CARDS["a100-80g"], measured_mfu=0.44)},
        begin=begin,
        now=NOW,
    )
    assert own.speed.mfu.figure.value == 0.44  # what the site wrote down itself


def test_jobs_of_other_cards_sizes_and_smoke_jobs_are_no_measure(begin):
    _trained(begin, shares=(0.4,) * 4)
    _trained(begin, shares=(0.41,) * 5, gpus=4)
    _trained(begin, shares=(0.42,) * 5, kind="h100")
    _trained(begin, shares=(0.43,) * 5, purpose="smoke")
    assert planned(begin, mfu=None).speed.mfu.origin == "usual"
    assert planned(begin, mfu=None, gpus=8).speed.mfu.figure.value == pytest.approx(0.41, rel=0.001)


def test_nonsense_that_a_script_told_is_no_measure(begin):
    _trained(begin, shares=(1.5, 2.0, 3.0, 40.0, 1e9))
    assert planned(begin, mfu=None).speed.mfu.origin == "usual"
