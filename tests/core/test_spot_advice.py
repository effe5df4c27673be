"""The spot adviser: against a simulation, and at its edges."""

import math
import random
from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core import spot
from gateway.core.credits import MILLION
from gateway.core.spot import Origin, Prices, Work
from gateway.core.spot_record import rate
from gateway.errors import Refused

HOUR = 3600.0
DAY = Work(seconds=12 * HOUR, cards=8, interval=HOUR, save=60.0, restart=300.0, wait=900.0)


def simulated(work: Work, mean: float, chance: random.Random) -> tuple[float, float, float, int]:
    """Finish, time on nodes, the last run, preemptions: moment by moment, without a formula."""
    done = finish = on_nodes = run = 0.0
    events, restart = 0, 0.0
    left = chance.expovariate(1 / mean)
    while done < work.seconds:
        step = min(work.interval, work.seconds - done)
        save = work.save if done + step < work.seconds else 0.0
        piece = restart + step + save
        spent = min(left, piece)
        finish, on_nodes, run = finish + spent, on_nodes + spent, run + spent
        if left < piece:
            events, restart, run = events + 1, work.restart, 0.0
            finish += work.wait
            left = chance.expovariate(1 / mean)
        else:
            left, restart = left - piece, 0.0
            done += step
    return finish, on_nodes, run, events


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    hours=st.floats(0.5, 60),
    interval=st.floats(10, 180),
    save=st.floats(0.1, 5),
    restart=st.floats(0, 20),
    wait=st.floats(0, 120),
    between=st.floats(1.5, 50),
)
def test_what_is_expected_is_what_a_simulation_gives(
    hours: float, interval: float, save: float, restart: float, wait: float, between: float
) -> None:
    work = Work(hours * HOUR, 1, interval * 60, save * 60, restart * 60, wait * 60)
    found = spot.outlook(work, between * HOUR)
    assert found is not None
    chance = random.Random(5)
    runs = [simulated(work, between * HOUR, chance) for _ in range(4000)]
    finish = sorted(one[0] for one in runs)
    spread = finish[3200] - finish[0]
    assert found.mean == pytest.approx(fmean(finish), rel=0.03)
    assert found.on_nodes == pytest.approx(fmean(one[1] for one in runs), rel=0.03)
    assert found.last_run == pytest.approx(fmean(one[2] for one in runs), rel=0.05)
    assert found.preemptions == pytest.approx(fmean(one[3] for one in runs), rel=0.1, abs=0.03)
    for wanted, at in ((0.5, found.p50), (0.9, found.p90)):
        share = sum(one <= at + 1 for one in finish) / len(finish)
        near = finish[int(wanted * 4000)]
        assert abs(share - wanted) < 0.05 or at == pytest.approx(near, rel=0.03, abs=0.05 * spread)


def test_without_preemptions_it_takes_the_work_and_its_checkpoints() -> None:
    found = spot.outlook(DAY, 1e12)
    assert found is not None
    assert found.mean == pytest.approx(12 * HOUR + 11 * 60, abs=1)  # the last piece needs none
    assert found.p50 == pytest.approx(found.p90, abs=1)
    assert found.lost == pytest.approx(0, abs=1)
    assert found.last_run == pytest.approx(found.on_nodes, abs=1)


def test_an_interval_far_beyond_the_time_between_preemptions_never_ends() -> None:
    assert spot.outlook(replace(DAY, interval=12 * HOUR), 0.2 * HOUR) is None
    advice = spot.advise(
        replace(DAY, interval=12 * HOUR), spot.between(0.2, None, 0), Prices(MILLION)
    )
    assert advice.spot is None
    assert advice.costs is not None
    assert advice.costs.spot is None
    assert advice.at_best is not None  # with the best interval it does


def test_the_best_interval_is_that_with_the_least_time() -> None:
    best = spot.best_interval(60.0, 6 * HOUR, 100 * HOUR)
    assert best == pytest.approx(math.sqrt(2 * 60 * 6 * HOUR), rel=0.05)  # Young's, nearly
    times = {
        minutes: spot.outlook(replace(DAY, seconds=100 * HOUR, interval=minutes * 60), 6 * HOUR)
        for minutes in range(5, 121, 1)
    }
    least = min(times, key=lambda minutes: times[minutes].on_nodes)  # type: ignore[union-attr]
    assert least == pytest.approx(best / 60, rel=0.15)


def test_the_best_interval_stays_within_the_job_and_above_a_minute() -> None:
    assert spot.best_interval(60.0, 1000 * HOUR, 0.5 * HOUR) == 0.5 * HOUR
    assert spot.best_interval(0.001, 60.0, 5 * HOUR) == 60.0
    assert spot.best_interval(10 * HOUR, HOUR, 5 * HOUR) == HOUR  # Daly's bound: M


def test_given_back_is_never_dearer_than_paid() -> None:
    prices = Prices(3_500_000, 820_000, MILLION, gives_back=True)
    advice = spot.advise(DAY, spot.between(3.0, None, 0), prices)
    costs = advice.costs
    assert costs is not None
    assert costs.spot is not None
    assert costs.spot_given_back is not None
    assert costs.spot_given_back < costs.spot
    assert costs.by_rule == costs.spot_given_back
    assert replace(costs, gives_back=False).by_rule == costs.spot
    hours = 8 * (12 + 11 / 60)
    assert costs.normal == pytest.approx(hours * 3_500_000, rel=1e-6)


def test_where_the_time_between_is_from() -> None:
    enough, few = rate(9, 9 * 3600 * 4), rate(4, 9 * 3600 * 4)
    site = spot.between(None, enough, 40)
    assert (site.origin, site.seconds, site.events, site.runs) == (Origin.SITE, 4 * HOUR, 9, 40)
    assert site.low is not None
    assert site.high is not None
    assert site.low < site.seconds < site.high
    assert spot.between(None, few, 40).origin is Origin.ASSUMED
    assert spot.between(None, None, 0).seconds == 6 * HOUR
    assert spot.between(2.5, enough, 40).origin is Origin.ASKED


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hours", 0.0),
        ("hours", math.nan),
        ("hours", math.inf),
        ("hours", 1e9),
        ("cards", 0.5),
        ("cards", -1.0),
        ("interval_minutes", 0.5),
        ("interval_minutes", -5.0),
        ("save_minutes", 0.0),
        ("restart_minutes", -1.0),
        ("wait_minutes", math.nan),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(field: str, value: float) -> None:
    asked = {
        "hours": 12.0, "cards": 8.0, "interval_minutes": 60.0, "save_minutes": 1.0,
        "restart_minutes": 5.0, "wait_minutes": 15.0,
    }  # fmt: skip
    spot.work(**asked)
    with pytest.raises(Refused) as refused:
        spot.work(**(asked | {field: value}))
    assert refused.value.field == field


def test_a_negative_time_between_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        spot.between(-1.0, None, 0)
    assert refused.value.field == "between_hours"


def test_the_longest_job_with_the_shortest_interval_is_answered_soon() -> None:
    work = spot.work(
        hours=20_000, cards=1, interval_minutes=1, save_minutes=0.01, restart_minutes=1,
        wait_minutes=1,
    )  # fmt: skip
    found = spot.outlook(work, 5 * HOUR)
    assert found is not None
    assert found.p50 < found.p90
    assert found.last_run < 20 * HOUR


def test_how_far_is_far() -> None:
    assert not spot.is_far(100, 60)
    assert spot.is_far(121, 60)
    assert spot.is_far(29, 60)
