"""What a group that cannot pay may still do: by its money alone, never by Slurm's usage."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.core import gate
from gateway.core.credits import MILLION, Credits
from gateway.core.gate import Group, Limits, Member, Sending, Why, decide, keeps
from gateway.core.gate_cost import OpenJob, Rates, Shape, weigh
from gateway.core.ledger import AtZero
from gateway.core.pots import Pot, PotKind
from gateway.core.pricing import Preempted, Price, PriceList, QosTerms

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=400)
PRICES = PriceList(
    (Price("a100", Credits(MILLION), LONG_AGO), Price("rtx4090", Credits(MILLION // 2), LONG_AGO))
)


def job(number=1, **values):
    """One a100 for an hour, worth 1, that waits."""
    facts = {
        "id": number,
        "user": "ann",
        "order": (NOW - timedelta(hours=2), number),
        "kinds": ("a100",),
        "gpus": 1,
        "cpus": 4,
        "qos": "normal",
        "minutes": 60,
    }
    return OpenJob(**(facts | values))


def running(number=1, *, since=30, **values):
    """The same, running since so many minutes."""
    return job(number, started=NOW - timedelta(minutes=since), **values)


def group(credit, *jobs, **values):
    facts = {
        "name": "nlp",
        "pots": (Pot(1, PotKind.BALANCE, int(credit * MILLION), LONG_AGO),),
        "kept": 0,
        "at_zero": AtZero.HOLD,
        "overdraft": 0,
        "warning_minutes": 30,
        "jobs": jobs,
    }
    return Group(**(facts | values))


def decided(credit, *jobs, prices=PRICES, **values):
    return decide(group(credit, *jobs, **values), prices=prices, now=NOW)


def whole(decision):
    return decision.rulings[0]


def test_200_of_1000_are_left_after_800_whatever_slurm_has_forgotten():
    """Case 23: by usage that decays, half of the 800 would have come back."""
    grant = Pot(1, PotKind.GRANT, 200 * MILLION, LONG_AGO, NOW + timedelta(days=9))
    found = decided(0, pots=gate.usable([grant], now=NOW))
    assert found.free == 200 * MILLION
    assert not found.closed
    # At the cheapest price a card-hour is 0.5: 400 hours.
    assert whole(found).run_minutes == 400 * 60


def test_a_grant_that_has_lapsed_pays_nothing():
    lapsed = Pot(1, PotKind.GRANT, 200 * MILLION, LONG_AGO, NOW)
    found = decided(0, pots=gate.usable([lapsed], now=NOW))
    assert (found.free, found.closed) == (0, True)


def test_a_group_without_credit_is_shut():
    found = decided(0)
    assert whole(found).limits(Limits(None, None)) == Limits(0, 0)
    assert whole(found).why is Why.NOT_ENOUGH_CREDIT


def test_the_sites_own_limits_stay_where_they_are_tighter():
    assert whole(decided(0)).limits(Limits(10, 5)) == Limits(0, 0)
    assert whole(decided(1)).limits(Limits(10, 5)) == Limits(10, 5)
    assert whole(decided(1)).limits(Limits(None, 500)) == Limits(None, 120)


def test_what_runs_is_taken_off_first_then_what_waits_the_oldest_first():
    older, younger = job(2, minutes=120), job(3, minutes=120)
    found = decided(3, younger, older, running(1))
    assert found.pay == (2,)
    assert found.hold == ((3, Why.NOT_ENOUGH_CREDIT),)
    assert (found.committed, found.free) == (3 * MILLION, 0)
    assert found.need == 2 * MILLION
    assert found.closed


def test_a_smaller_job_passes_one_that_nobody_can_pay():
    found = decided(1, job(1, minutes=600), job(2))
    assert (found.pay, found.hold) == ((2,), ((1, Why.NOT_ENOUGH_CREDIT),))


def test_an_array_that_waits_counts_all_its_tasks():
    assert decided(9, job(tasks=10)).hold == ((1, Why.NOT_ENOUGH_CREDIT),)
    assert decided(10, job(tasks=10)).pay == (1,)


def test_what_a_hold_covers_costs_nothing_more():
    """The hold has taken the last credit: its job may start, and has the minutes for it."""
    held = job(1, covered_minutes=60)
    found = decided(0, held, kept=MILLION)
    assert (found.pay, found.hold, found.committed) == ((1,), (), 0)
    assert found.closed
    assert whole(found).run_minutes == 60


def test_a_limit_beyond_what_was_held_has_to_be_paid():
    longer = job(1, minutes=180, covered_minutes=60)
    assert decided(1, longer).hold == ((1, Why.NOT_ENOUGH_CREDIT),)
    assert decided(2, longer).pay == (1,)


def test_a_requeued_job_whose_hold_lacks_money_has_to_find_it():
    short = job(1, covered_minutes=60, shortage=MILLION)
    assert decided(0.5, short).hold == ((1, Why.NOT_ENOUGH_CREDIT),)
    assert decided(1, short).pay == (1,)


def test_a_submission_on_its_way_keeps_the_gate_open():
    found = decided(0, sending=(Sending("ann", 120),))
    assert not found.closed
    assert whole(found).run_minutes == 120


def test_a_job_without_any_limit_counts_as_everything():
    waiting = decided(100, job(minutes=None))
    assert waiting.hold == ((1, Why.NO_TIME_LIMIT),)
    going = decided(100, running(minutes=None), job(2))
    assert (going.free, going.committed) == (0, 100 * MILLION)
    assert going.closed
    assert going.hold == ((2, Why.NOT_ENOUGH_CREDIT),)


def test_cards_without_a_price_cost_nothing_and_are_named():
    found = decided(0, job(kinds=("h100",)))
    assert (found.pay, found.hold, found.no_price) == ((1,), (), ("h100",))
    # Their minutes are counted: Slurm's cap knows nothing of prices.
    assert whole(found).run_minutes == 60


def test_of_several_types_the_dearest_counts():
    assert decided(0.5, job(kinds=("a100", "rtx4090"))).hold
    assert decided(0.5, job(kinds=("rtx4090",))).pay
    assert decided(0.5, job(kinds=())).hold  # nobody knows which: it may be the dearest
    assert decided(0.5, job(kinds=("rtx4090", "h100"))).pay


def test_a_job_without_cards_is_free_where_cpus_are():
    assert decided(0, job(gpus=0, kinds=())).pay == (1,)
    cpu = PriceList((*PRICES.prices, Price("cpu", Credits(MILLION), LONG_AGO)))
    assert decided(3, job(gpus=0, kinds=()), prices=cpu).hold
    assert decided(4, job(gpus=0, kinds=()), prices=cpu).pay


def test_an_ended_job_counts_until_it_is_charged():
    over = running(since=90, ended=NOW - timedelta(minutes=60))
    found = decided(1, over)
    assert (found.committed, found.free) == (MILLION // 2, MILLION // 2)
    assert whole(found).run_minutes == 60  # of the rest alone


def test_a_job_past_its_limit_goes_on_costing():
    assert decided(9, running(since=120)).committed == 2 * MILLION


@pytest.mark.parametrize(
    ("at_zero", "overdraft", "stops"),
    [
        (AtZero.HOLD, 0, False),
        (AtZero.STOP, 0, True),
        (AtZero.STOP, 9, True),
        (AtZero.FINISH, 0, True),
        (AtZero.FINISH, 1, False),
    ],
)
def test_below_zero_running_jobs_get_what_the_groups_rule_says(at_zero, overdraft, stops):
    found = decided(
        0.5,
        running(since=60, minutes=600),
        at_zero=at_zero,
        overdraft=overdraft * MILLION,
    )
    assert found.now == -MILLION // 2
    assert found.stop == (((1, 90),) if stops else ())


def test_above_zero_nothing_is_stopped_though_the_worst_case_cannot_be_paid():
    found = decided(2, running(since=60, minutes=600), at_zero=AtZero.STOP)
    assert found.stop == ()
    assert found.closed


def test_a_last_stretch_is_never_longer_than_the_limit():
    rule = {"at_zero": AtZero.STOP}
    assert decided(0, running(since=31, minutes=60), **rule).stop == ()
    assert decided(0, running(since=29, minutes=60), **rule).stop == ((1, 59),)
    assert decided(0, running(since=29, minutes=None), **rule).stop == ((1, 59),)


def test_what_a_hold_has_paid_for_is_stopped_only_when_all_holds_are_owed():
    plain = running(1, since=60, minutes=600)
    paid = running(2, since=60, minutes=600, covered_minutes=600)
    rule = {"at_zero": AtZero.STOP, "kept": 10 * MILLION}
    assert [number for number, _ in decided(0, plain, paid, **rule).stop] == [1]
    assert [number for number, _ in decided(-20, plain, paid, **rule).stop] == [1, 2]


def test_jobs_that_cost_nothing_are_not_stopped():
    free = running(kinds=("h100",), minutes=600)
    assert decided(-1, free, at_zero=AtZero.STOP).stop == ()


def test_a_member_above_the_cap_is_shut_and_the_group_is_not():
    ann, bob = Member("ann", 0), Member("bob", 5 * MILLION)
    found = decided(9, job(1), job(2, user="bob"), members=(ann, bob))
    assert found.hold == ((1, Why.MEMBER_CAP),)
    assert found.pay == (2,)
    assert [(one.user, one.closed, one.run_minutes) for one in found.rulings] == [
        (None, False, 60 + 8 * 120),
        ("ann", True, 0),
        ("bob", False, 60 + 4 * 120),
    ]


def test_a_members_running_jobs_count_against_the_cap():
    found = decided(9, running(minutes=120), members=(Member("ann", MILLION),))
    assert found.rulings[1].closed
    assert found.rulings[1].run_minutes == 96  # what runs goes on; Slurm may lag 6 minutes


def test_a_package_counts_for_its_own_type_only():
    pots = (
        Pot(2, PotKind.PACKAGE, 10 * MILLION, LONG_AGO, None, "rtx4090", MILLION // 10),
        Pot(1, PotKind.BALANCE, 0, LONG_AGO),
    )
    assert decided(0, job(), pots=pots).hold
    assert decided(0, job(kinds=("rtx4090",)), pots=pots).pay
    # A card-hour of the package draws 0.1.
    assert whole(decided(0, pots=pots)).run_minutes == 100 * 60


def test_the_least_factor_makes_the_cap():
    spot = QosTerms("spot", MILLION // 4, Preempted.PAY, LONG_AGO)
    free = QosTerms("debug", 0, Preempted.PAY, LONG_AGO)
    prices = replace(PRICES, terms=(spot, free))
    assert whole(decided(1, prices=prices)).run_minutes == 8 * 60


def test_where_nothing_costs_there_is_no_cap():
    free = PriceList((Price("a100", Credits(0), LONG_AGO),))
    assert whole(decided(1, prices=free)).run_minutes is None


def test_a_cap_in_slurm_stays_while_it_is_nearly_right():
    assert keeps(100, 100)
    assert keeps(130, 100)
    assert not keeps(131, 100)
    assert keeps(1100, 1000)
    assert not keeps(1101, 1000)
    assert keeps(900, 1000)
    assert not keeps(899, 1000)
    assert keeps(None, None)
    assert not keeps(None, 5)
    assert not keeps(5, None)


def test_a_cap_in_slurm_is_never_too_tight_for_what_is_paid():
    assert not keeps(999, 1000, least=1000)
    assert keeps(990, 1000, least=900)
    assert not keeps(899, 1000, least=900)


def test_dearer_cards_than_were_paid_for_use_up_the_hold_sooner():
    """A waiting job can be given other cards by plain scontrol, long after its hold."""
    paid = Shape(("rtx4090",), 1, 4, "spot")
    same = job(covered_minutes=60, kinds=("rtx4090",), qos="spot", paid=paid)
    raised = job(covered_minutes=60, minutes=600, gpus=8, paid=paid)
    rates = Rates(PRICES)
    assert weigh(same, rates=rates, now=NOW).total == 0
    # 80 card-hours at 1, of which the hold paid half a credit
    assert weigh(raised, rates=rates, now=NOW).total == 80 * MILLION - MILLION // 2
    found = decided(0.7, raised)
    assert [one for one, _ in found.hold] == [1]
