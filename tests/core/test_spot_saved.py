"""What spot really saved, also where it cost more."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gateway.core.credits import MILLION, Credits
from gateway.core.pricing import Item, Preempted, Price, PriceList, QosTerms
from gateway.core.spot_saved import PaidRun, saved, spot_qos, steady_qos
from gateway.wire.messages import Qos

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
PRICES = PriceList(
    (Price("a100", Credits(MILLION), START - 10 * HOUR),),
    (QosTerms("spot", 800_000, Preempted.FREE, START - 10 * HOUR),),
)


def run(hours: float, *, after: float, preempted: bool = False, charged: float, again=None):
    start = START + after * HOUR
    item = Item("a100", 1, round(hours * 3600), MILLION, 800_000)
    return PaidRun(
        start, start + hours * HOUR, preempted, (item,), Credits(round(charged * MILLION)), again
    )


def test_a_preempted_run_that_was_given_back_saves_its_price_and_the_discount():
    runs = [
        run(2, after=0, preempted=True, charged=0, again=0.3),
        run(3, after=3, charged=2.4, again=0.2),
    ]
    found = saved(runs, qos="spot", normal="normal", prices=PRICES)
    assert found.charged == 2_400_000
    assert found.elsewhere == 2 * MILLION + 3 * MILLION * 8 // 10  # a fifth was made again
    assert found.money == 2 * MILLION
    assert found.waited == HOUR
    assert found.again == 0.6 * HOUR
    assert found.later == 1.6 * HOUR


def test_it_may_have_cost_more():
    runs = [
        run(4, after=0, preempted=True, charged=3.2, again=0),
        run(4, after=5, charged=3.2, again=0.9),
    ]
    found = saved(runs, qos="spot", normal="normal", prices=PRICES)
    assert found.elsewhere == 4_400_000
    assert found.money == -2 * MILLION


def test_what_nobody_measured_is_not_guessed():
    runs = [run(1, after=0, preempted=True, charged=0.8), run(1, after=2, charged=0.8)]
    found = saved(runs, qos="spot", normal="normal", prices=PRICES)
    assert found.again is None
    assert found.elsewhere == 2 * MILLION
    assert found.later == HOUR


def test_a_run_that_was_requeued_for_another_reason_makes_nothing_again_for_spot():
    runs = [run(1, after=0, charged=0.8), run(1, after=2, charged=0.8, again=0.5)]
    found = saved(runs, qos="spot", normal="normal", prices=PRICES)
    assert (found.again, found.elsewhere, found.waited) == (timedelta(), 2 * MILLION, timedelta())


def test_where_a_package_paid_there_is_no_comparison():
    paid = replace(run(1, after=0, charged=0.5), items=None)
    found = saved([paid], qos="spot", normal="normal", prices=PRICES)
    assert (found.elsewhere, found.money, found.charged) == (None, None, 500_000)


def test_no_run_is_no_comparison():
    assert saved([], qos="spot", normal="normal", prices=PRICES) is None


def test_which_qos_are_spot_and_what_they_are_compared_with():
    levels = (
        Qos(name="urgent", priority=900, preempts=("Spot", "scavenger", "paused")),
        Qos(name="normal", priority=100, preempts=("spot",)),
        Qos(name="spot", preempt_mode=("requeue",)),
        Qos(name="scavenger", preempt_mode=("cancel",)),
        Qos(name="paused", preempt_mode=("suspend", "gang")),
    )
    assert spot_qos(levels) == {"spot"}
    assert steady_qos(levels) == "normal"
    pushed = (*levels[2:], replace(levels[0], preempts=("normal",)), Qos(name="normal"))
    assert steady_qos(pushed) == "paused"
    assert steady_qos(()) == ""
