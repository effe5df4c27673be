"""The charge of each run: once, exact, corrected by a second line, held for review in doubt."""

from datetime import timedelta

import pytest

from gateway.core.billing import Suspended
from gateway.core.credits import MILLION
from gateway.services import credit, refund, review, settle
from gateway.services.verify import verify
from gateway.testing.builders import NOW, add_job, add_run
from gateway.testing.money import (
    balance,
    change_run,
    charge_of,
    entries_of,
    one_credit_an_hour,
    set_price,
    set_terms,
)

HOUR = 3600


@pytest.fixture(autouse=True)
def priced(begin):
    one_credit_an_hour(begin, "a100")
    credit.top_up("nlp", 1000 * MILLION, begin=begin, now=NOW)


def ended(begin, *, seconds=HOUR, gpus=4, job=None, **values):
    """A run that accounting has told the end of."""
    job_id = job or add_job(begin, state="COMPLETED", gpus=gpus or 0)
    tres = f"cpu=16,gres/gpu={gpus},gres/gpu:a100={gpus}"
    start = values.pop("start_time", NOW - timedelta(seconds=seconds))
    facts = {
        "start_time": start,
        "end_time": start + timedelta(seconds=seconds),
        "elapsed_seconds": seconds,
        "gpus": gpus,
        "alloc_tres": tres,
        "to_settle": True,
    }
    return add_run(begin, job_id, **(facts | values))


def settled(begin, **rules):
    report = settle.settle(begin=begin, now=NOW, rules=settle.Rules(**rules))
    assert verify(read=begin).broken == ()
    return report


def spent(begin, group="nlp"):
    return 1000 * MILLION - balance(begin, group)


def test_a_run_is_charged_once_whatever_is_repeated(begin):
    run = ended(begin, seconds=3 * HOUR, gpus=8)
    settled(begin)
    change_run(begin, run)  # imported again
    settled(begin)
    assert charge_of(begin, run).amount == 24 * MILLION
    assert entries_of(begin, "nlp")[1:] == [("charge", -24 * MILLION)]


def test_a_corrected_record_posts_one_correcting_entry(begin):
    run = ended(begin, seconds=3 * HOUR, gpus=8)
    settled(begin)
    change_run(begin, run, elapsed_seconds=9000, end_time=NOW - timedelta(seconds=1800))
    settled(begin)
    assert entries_of(begin, "nlp")[1:] == [("charge", -24 * MILLION), ("correction", 4 * MILLION)]
    assert charge_of(begin, run).amount == 20 * MILLION


def test_600_short_runs_are_their_seconds(begin):
    """35,400 s on one card are 9.8333 card-hours: not 0, not 600."""
    for _ in range(600):
        ended(begin, seconds=59, gpus=1)
    settled(begin)
    assert 0 <= spent(begin) - 9_833_334 <= 600


def test_each_run_of_a_preempted_job_is_charged_by_its_qos(begin):
    """Case 6: 4 + 12 = 16, or 12 where preempted runs are free."""
    set_terms(begin, "spot", "1", "free")
    for qos, right in (("normal", 16), ("spot", 12)):
        before = spent(begin)
        job = add_job(begin, state="COMPLETED", gpus=4, qos=qos)
        first = NOW - timedelta(hours=7)
        ended(begin, job=job, qos=qos, state="PREEMPTED", start_time=first, submit_time=first)
        ended(begin, job=job, qos=qos, seconds=3 * HOUR, submit_time=first + timedelta(hours=1))
        settled(begin)
        assert spent(begin) - before == right * MILLION, qos


@pytest.mark.parametrize(
    ("tres", "gpus", "cards"),
    [
        ("gres/gpu:a100=8,gres/gpu=8,cpu=64", 8, 8),
        ("gres/gpu:a100=2", 2, 2),
        ("gres/gpu=3,gres/gpu:a100=2,gres/gpu:v100=1", 3, 3),
        ("gres/gpumem=40G,gres/gpuutil=87,gres/gpu=1,gres/gpu:a100=1", 1, 1),
    ],
)
def test_typed_and_untyped_entries_are_the_same_cards(begin, tres, gpus, cards):
    """Case 7."""
    set_price(begin, "v100", "1")
    ended(begin, gpus=gpus, alloc_tres=tres)
    settled(begin)
    assert spent(begin) == cards * MILLION


def test_cards_of_unknown_type_wait_for_a_person(begin):
    """Case 7 (d): no node tells the type of two of the four."""
    run = ended(begin, gpus=4, alloc_tres="gres/gpu=4,gres/gpu:a100=2", node_list="gone-1")
    settled(begin)
    assert (charge_of(begin, run).state, charge_of(begin, run).reason) == (
        "review",
        "gpu_type_unknown",
    )
    assert spent(begin) == 0


def test_a_count_that_accounting_lacks_is_not_free(begin):
    """Case 8."""
    run = ended(begin, seconds=10 * HOUR, alloc_tres="cpu=16,mem=64G,node=1,billing=16", gpus=None)
    settled(begin)
    assert charge_of(begin, run).reason == "gpus_unknown"
    review.decide(
        charge_of(begin, run).id,
        seconds=10 * HOUR,
        gpus={"a100": 4},
        note="the script says four",
        begin=begin,
        now=NOW,
        person_id=None,
    )
    settled(begin)
    assert (charge_of(begin, run).state, spent(begin)) == ("posted", 40 * MILLION)


def test_suspended_time_is_billed_by_the_sites_choice(begin):
    """Case 10: 12 card-hours of running time, or 16 of held hardware; never 8, never 0."""
    for suspended, right in ((Suspended.RUNNING, 12), (Suspended.HELD, 16)):
        before = spent(begin)
        start = NOW - timedelta(hours=4)
        ended(
            begin,
            seconds=3 * HOUR,
            suspended_seconds=HOUR,
            start_time=start,
            end_time=NOW,
        )
        settled(begin, suspended=suspended)
        assert spent(begin) - before == right * MILLION


def test_times_that_do_not_add_up_are_held(begin):
    run = ended(begin, elapsed_seconds=0)
    settled(begin)
    assert charge_of(begin, run).reason == "times_differ"


def test_a_failed_node_gives_the_credit_back_and_the_line_stays(begin):
    """Case 11 (f): 80 with a visible zero line, and (g) nothing."""
    job = add_job(begin, state="COMPLETED", gpus=8)
    first = NOW - timedelta(hours=18)
    failed = ended(
        begin,
        job=job,
        gpus=8,
        seconds=7 * HOUR,
        state="NODE_FAIL",
        start_time=first,
        submit_time=first,
    )
    ended(begin, job=job, gpus=8, seconds=10 * HOUR)
    boot = ended(begin, gpus=8, seconds=720, state="BOOT_FAIL")
    settled(begin)
    settled(begin)
    assert spent(begin) == 80 * MILLION
    assert charge_of(begin, failed).amount == 56 * MILLION
    refund.undo(charge_of(begin, failed).id, begin=begin, now=NOW, person_id=None)
    change_run(begin, failed)
    settled(begin)
    assert spent(begin) == 136 * MILLION  # the rule does not give it again
    assert charge_of(begin, boot).amount == 1_600_000


@pytest.mark.parametrize("state", ["FAILED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "CANCELLED"])
def test_a_persons_own_end_is_paid(begin, state):
    ended(begin, state=state, gpus=1)
    settled(begin)
    assert spent(begin) == MILLION


def test_no_price_is_review_and_a_price_ends_it(begin):
    run = ended(begin, gpus=1, alloc_tres="gres/gpu=1,gres/gpu:h200=1")
    settled(begin)
    assert charge_of(begin, run).reason == "no_price"
    set_price(begin, "h200", "20")
    settled(begin)
    assert charge_of(begin, run).amount == 20 * MILLION


def test_the_price_in_force_at_the_start_counts(begin):
    set_price(begin, "a100", "5", starts=NOW - timedelta(minutes=30))
    ended(begin, gpus=1)
    settled(begin)
    assert spent(begin) == MILLION


def test_runs_from_before_the_first_price_are_not_charged(begin):
    ended(begin, start_time=NOW - timedelta(days=500))
    assert settled(begin).posted == 0
    assert spent(begin) == 0


def test_an_end_long_before_the_last_sight_is_not_believed(begin):
    """Case 21: after sacctmgr's repair a run of a day is said to have ended as it began."""
    start = NOW - timedelta(days=2)
    run = ended(
        begin,
        gpus=8,
        seconds=0,
        start_time=start,
        seen_until=start + timedelta(hours=26, minutes=58),
    )
    settled(begin)
    row = charge_of(begin, run)
    assert (row.reason, row.amount, row.pending) == ("end_before_last_seen", 0, 8 * MILLION)
    assert spent(begin) == 0


def test_an_administrators_cancel_is_given_back_with_the_event(begin):
    from gateway.testing.builders import add_event, add_person

    admin = add_person(begin, "root-of-all", role="administrator")
    job = add_job(begin, state="CANCELLED", gpus=1)
    add_event(begin, "cancel", job_id=job, person_id=admin, detail={"outcome": "done"})
    ended(begin, job=job, gpus=1, state="CANCELLED")
    settled(begin)
    assert spent(begin) == 0


def test_an_undone_refund_takes_what_is_left_and_overdraws_the_balance_for_the_rest(begin):
    ends = NOW + timedelta(days=1)
    credit.grant("nlp", MILLION, reason="trial", expires=ends, begin=begin, now=NOW)
    failed = ended(begin, gpus=1, state="NODE_FAIL")
    settled(begin)
    ended(begin, gpus=1)  # spends the grant that came back
    settled(begin)
    refund.undo(charge_of(begin, failed).id, begin=begin, now=NOW, person_id=None)
    assert verify(read=begin).broken == ()
    assert spent(begin) == MILLION
