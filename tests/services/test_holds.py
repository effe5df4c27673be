"""From Submit to the end of the job: what is held, by whom it is paid, and what comes back."""

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.core.credits import MILLION
from gateway.core.pricing import cost
from gateway.services import act, credit, lend, prices
from gateway.services.draft import InvalidAsk
from gateway.services.verify import verify
from gateway.store import credit as rows
from gateway.testing import builders as b
from gateway.testing.money import balance, entries_of, one_credit_an_hour, set_terms
from gateway.testing.portal import ask, portal

WORST = 8 * 24 * MILLION  # 8 cards, one day
HOUR = ask(time_limit="1:00:00", nodes="1", nproc_per_node="1")  # worth one credit


@pytest.fixture
def site(begin):
    made = portal(begin)
    one_credit_an_hour(begin, "a100", "rtx4090", starts=made.now - timedelta(days=1))
    yield made
    assert verify(read=begin).broken == ()


def give(site, amount, group="nlp"):
    credit.top_up(group, amount * MILLION, begin=site.begin, now=site.now)


def refusal(site, *args, **kwargs):
    with pytest.raises(InvalidAsk) as caught:
        site.submit(*args, **kwargs)
    (problem,) = caught.value.problems
    return problem


def test_the_worst_case_is_held_and_the_rest_comes_back(begin, site):
    give(site, 200)
    site.submit()
    assert balance(begin, "nlp") == 200 * MILLION - WORST
    site.broker.advance(2 * 3600)
    site.broker.finish(1)
    site.work()
    (run,) = site.runs()
    assert entries_of(begin, "nlp") == [
        ("top_up", 200 * MILLION),
        ("hold", -WORST),
        ("release", WORST),
        ("charge", -cost(8 * run.elapsed_seconds, MILLION, MILLION)),
    ]


def test_without_credit_nothing_is_kept_and_slurm_is_not_asked(begin, site):
    give(site, 191)
    problem = refusal(site)
    assert (problem.field, problem.code) == ("group", "not_enough_credit")
    assert (problem.facts["need"], problem.facts["free"]) == (WORST, 191 * MILLION)
    assert "submit" not in site.broker.calls
    with begin() as session:
        assert session.query(b.t.Submission).count() == 0


def test_a_type_without_a_price_is_refused_not_free(begin):
    made = portal(begin)
    one_credit_an_hour(begin, "rtx4090", starts=made.now - timedelta(days=1))
    assert refusal(made).code == "no_price"


def test_without_any_price_there_is_no_money(begin):
    made = portal(begin)
    assert made.submission(made.submit()).state == "accepted"
    assert entries_of(begin, "nlp") == []


def test_fifty_at_once_on_credit_for_ten(begin, site):
    """Threads on one file; each has its own form. Ten are held, and ten jobs exist."""
    give(site, 10)
    start, outcomes = threading.Barrier(50), []

    def press(number):
        start.wait()
        try:
            outcomes.append(site.submit(HOUR, key=f"form-{number}"))
        except InvalidAsk as refused:
            outcomes.append(refused.problems[0].code)

    threads = [threading.Thread(target=press, args=(n,)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("not_enough_credit") == 40
    assert len(site.broker.jobs) == 10
    assert balance(begin, "nlp") == 0


def test_a_form_posted_twice_holds_once(begin, site):
    give(site, 10)
    assert site.submit(HOUR) == site.submit(HOUR)
    assert balance(begin, "nlp") == 9 * MILLION


@pytest.mark.parametrize("how", ["refused", "withdrawn"])
def test_what_slurm_never_had_gives_the_credit_back(begin, site, how):
    give(site, 10)
    if how == "refused":
        site.broker.refuse_next("invalid_qos")
        site.submit(HOUR)
    else:
        site.broker.unreachable = True
        submission = site.submit(HOUR)
        assert balance(begin, "nlp") == 9 * MILLION
        act.withdraw(submission, viewer=site.viewer, begin=begin, now=site.now)
    assert balance(begin, "nlp") == 10 * MILLION


def test_silence_keeps_the_hold_until_the_job_is_found(begin, site):
    give(site, 10)
    site.broker.silent_after_next()
    site.submit(HOUR)
    assert balance(begin, "nlp") == 9 * MILLION
    site.run_outbox(seconds=10)
    site.broker.finish(1)
    site.work()
    assert 0 < 10 * MILLION - balance(begin, "nlp") < MILLION


def test_a_job_cancelled_while_it_waits_costs_nothing(begin, site):
    give(site, 400)
    site.submit(ask(nodes="4", nproc_per_node="8", time_limit="1:00:00"), key="first")
    site.submit(ask(nodes="4", nproc_per_node="8", time_limit="1:00:00"), key="second")
    assert balance(begin, "nlp") == 336 * MILLION
    site.poll()
    site.broker.cancel(2, user="nlp-1")
    site.poll()  # the queue's word alone gives nothing back
    site.settle()
    assert balance(begin, "nlp") == 336 * MILLION
    site.work()
    assert balance(begin, "nlp") == 368 * MILLION


def test_each_run_of_a_requeued_job_is_paid_and_the_next_is_held_again(begin, site):
    give(site, 10)
    site.submit(ask(nodes="1", nproc_per_node="4", time_limit="2:00:00"))
    site.work()
    site.broker.advance(3600)
    site.broker.preempt(1)
    site.work()
    # 10 - 4 for the first run; of the 8 for another whole run there are 6
    assert balance(begin, "nlp") == 0
    site.broker.advance(1800)
    site.broker.finish(1)
    site.work()
    assert balance(begin, "nlp") == pytest.approx(4 * MILLION, abs=4 * MILLION / 60)


def test_package_then_the_grant_that_ends_first_then_the_balance(begin, site):
    offer = prices.add_offer("week", "a100", "0.5", begin=begin, now=site.now)
    give(site, 100)
    credit.buy_package("nlp", offer, 2, key="p", begin=begin, now=site.now)
    for days in (60, 30):
        credit.grant(
            "nlp",
            2 * MILLION,
            reason="trial",
            key=str(days),
            expires=site.now + timedelta(days=days),
            begin=begin,
            now=site.now,
        )
    site.submit(ask(nodes="1", nproc_per_node="8", time_limit="1:00:00"))
    held = [-amount for kind, amount in entries_of(begin, "nlp") if kind == "hold"]
    # 2 card-hours of the package at 0.5, then 6 at 1: both grants, 2 each, and 2 of the balance
    assert held == [MILLION, 2 * MILLION, 2 * MILLION, 2 * MILLION]
    with begin() as session:
        pots = rows.expired_pot(session, 4), rows.expired_pot(session, 3)
    assert [pot.left for pot in pots] == [0, 0]


def test_a_package_is_for_its_own_type(begin, site):
    offer = prices.add_offer("week", "rtx4090", "0.5", begin=begin, now=site.now)
    give(site, 10)
    credit.buy_package("nlp", offer, 10, key="p", begin=begin, now=site.now)
    assert refusal(site, ask(nodes="1", nproc_per_node="6", time_limit="1:00:00")).code == (
        "not_enough_credit"
    )


def test_spot_costs_its_factor(begin, site):
    set_terms(begin, "spot", "0.82")
    give(site, 1)
    site.submit(replace(HOUR, qos="spot"))
    assert balance(begin, "nlp") == 180_000


def test_a_members_cap_counts_what_is_held_and_spent(begin, site):
    give(site, 100)
    with begin() as session:
        rows.set_cap(session, "nlp", "nlp-1", 2 * MILLION)
    site.submit(HOUR, key="one")
    site.submit(HOUR, key="two")
    assert refusal(site, HOUR, key="three").code == "member_cap_reached"
    site.broker.cancel(1, user="nlp-1")
    site.work()
    site.submit(HOUR, key="four")


def test_a_held_pot_pays_also_after_its_end(begin, site):
    credit.grant(
        "nlp",
        MILLION,
        reason="trial",
        expires=site.now + timedelta(minutes=30),
        begin=begin,
        now=site.now,
    )
    site.submit(HOUR)
    site.broker.advance(3000)
    site.work()
    assert refusal(site, HOUR, key="other").code == "not_enough_credit"
    site.broker.finish(1)
    site.work()
    assert balance(begin, "nlp") == 0
    kinds = [kind for kind, _ in entries_of(begin, "nlp")]
    assert kinds == ["grant", "hold", "release", "charge", "expire"]


def test_lent_credit_is_used_and_owed(begin, site):
    give(site, 10, group="vision")
    loan = lend.lend("vision", "nlp", 5 * MILLION, due=None, key="l", begin=begin, now=site.now)
    site.submit(HOUR)
    site.broker.advance(3600)
    site.broker.finish(1)
    site.work()
    lend.give_back(loan, 4 * MILLION, key="r", begin=begin, now=site.now)
    lend.give_back(loan, 4 * MILLION, key="r", begin=begin, now=site.now)
    assert balance(begin, "vision") == 9 * MILLION
    assert balance(begin, "nlp") == pytest.approx(0, abs=20_000)
    with begin() as session:
        assert rows.loan(session, loan).owed == MILLION
    give(site, 2)
    lend.give_back(loan, MILLION, key="rest", begin=begin, now=site.now)
    assert balance(begin, "vision") == 10 * MILLION


def test_a_loan_goes_back_by_itself_on_its_day(begin, site):
    give(site, 10, group="vision")
    due = site.now + timedelta(days=1)
    lend.lend("vision", "nlp", 5 * MILLION, due=due, key="l", begin=begin, now=site.now)
    assert balance(begin, "nlp") == 5 * MILLION
    site.broker.advance(24 * 3600)
    site.settle()
    site.settle()
    assert (balance(begin, "nlp"), balance(begin, "vision")) == (0, 10 * MILLION)


def test_half_of_a_grant_is_carried_over_once(begin, site):
    credit.grant(
        "nlp",
        8 * MILLION,
        reason="award",
        expires=site.now + timedelta(days=1),
        carry_over_millionths=500_000,
        begin=begin,
        now=site.now,
    )
    for left in (4 * MILLION, 0):
        site.broker.advance(24 * 3600)
        site.settle()
        assert balance(begin, "nlp") == left


def test_a_campaign_gives_once_a_group_while_stock_lasts(begin, site):
    credit.add_campaign("SPRING", 10 * MILLION, days=30, stock=1, begin=begin, now=site.now)
    credit.redeem("nlp", "SPRING", begin=begin, now=site.now)
    for group, code in (("nlp", "code_used"), ("vision", "code_used_up")):
        with pytest.raises(credit.Refused, match=code):
            credit.redeem(group, "SPRING", begin=begin, now=site.now)
    assert balance(begin, "nlp") == 10 * MILLION


def test_what_plain_sbatch_runs_up_is_not_free(begin, site):
    give(site, 10)
    with begin() as session:
        credit.ledger.set_rules(session, "nlp", committed=10 * MILLION)
    assert refusal(site, HOUR).facts["free"] == 0


def test_a_clock_set_back_an_hour_neither_charges_twice_nor_gives_anything(begin, site):
    give(site, 10)
    site.submit(HOUR)
    site.broker.advance(1800)
    site.broker.finish(1)
    site.work()
    before = entries_of(begin, "nlp")
    site.broker.now -= timedelta(hours=1)
    site.work()
    assert entries_of(begin, "nlp") == before
    site.submit(HOUR, key="second")
    assert entries_of(begin, "nlp")[len(before) :] == [("hold", -MILLION)]
    site.broker.advance(600)
    site.broker.finish(2)
    site.work()
    kinds = [kind for kind, _ in entries_of(begin, "nlp")[len(before) :]]
    assert kinds == ["hold", "release", "charge"]
