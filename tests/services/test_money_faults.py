"""What people found by trying to make the ledger lose, make or stop money."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.core.credits import MILLION, BadCredits, parse_credits
from gateway.core.pricing import Usage
from gateway.errors import NotFound, Refused
from gateway.services import credit, hold, lend, longer, prices, refund, review, settle
from gateway.services.verify import verify
from gateway.store import credit as rows
from gateway.store import holds, notices
from gateway.store import money_models as mm
from gateway.testing import builders as b
from gateway.testing.builders import NOW, add_event, add_job, add_person, add_run
from gateway.testing.money import (
    balance,
    change_run,
    charge_of,
    entries_of,
    one_credit_an_hour,
    set_price,
    set_terms,
)
from gateway.testing.portal import ask, portal

HOUR = 3600


@pytest.fixture
def paid(begin):
    one_credit_an_hour(begin, "a100")
    for group in ("nlp", "vision"):
        credit.top_up(group, 100 * MILLION, begin=begin, now=NOW)
    return begin


@pytest.fixture
def site(begin):
    made = portal(begin)
    one_credit_an_hour(begin, "a100", "rtx4090", starts=made.now - timedelta(days=1))
    yield made
    assert verify(read=begin).broken == ()


def ended(begin, *, gpus=4, seconds=HOUR, **values):
    job = values.pop("job", None) or add_job(begin, state="COMPLETED", gpus=gpus)
    facts = {
        "start_time": NOW - timedelta(seconds=seconds),
        "elapsed_seconds": seconds,
        "gpus": gpus,
        "alloc_tres": f"gres/gpu={gpus},gres/gpu:a100={gpus}",
        "to_settle": True,
    }
    return add_run(begin, job, **(facts | values))


def settled(begin):
    report = settle.settle(begin=begin, now=NOW)
    assert verify(read=begin).broken == ()
    return report


def moved(begin, run, **values):
    change_run(begin, run, **values)
    return settled(begin)


class TestCorrectedRecords:
    def test_a_corrected_account_moves_the_charge(self, paid):
        run = ended(paid)
        settled(paid)
        moved(paid, run, group="vision")
        assert (balance(paid, "nlp"), balance(paid, "vision")) == (100 * MILLION, 96 * MILLION)
        moved(paid, run, elapsed_seconds=1800, end_time=NOW - timedelta(seconds=1800))
        assert balance(paid, "vision") == 98 * MILLION

    @pytest.mark.parametrize("between", [{"elapsed_seconds": 0}, {"group": ""}])
    def test_also_when_a_doubtful_record_came_between(self, paid, between):
        run = ended(paid)
        settled(paid)
        moved(paid, run, **({"group": "vision"} | between))
        assert charge_of(paid, run).reason is not None
        moved(paid, run, group="vision", elapsed_seconds=HOUR)
        assert (balance(paid, "nlp"), balance(paid, "vision")) == (100 * MILLION, 96 * MILLION)

    def test_an_undone_refund_after_a_move_is_the_new_groups(self, paid):
        run = ended(paid)
        settled(paid)
        refund.refund(charge_of(paid, run).id, note="x", begin=paid, now=NOW, person_id=None)
        moved(paid, run, group="vision")
        refund.undo(charge_of(paid, run).id, begin=paid, now=NOW, person_id=None)
        assert verify(read=paid).broken == ()
        assert (balance(paid, "nlp"), balance(paid, "vision")) == (100 * MILLION, 96 * MILLION)

    def test_a_corrected_state_is_judged_again(self, paid):
        run = ended(paid, state="FAILED")
        settled(paid)
        moved(paid, run, state="NODE_FAIL")
        assert balance(paid, "nlp") == 100 * MILLION
        moved(paid, run, state="COMPLETED")
        assert balance(paid, "nlp") == 96 * MILLION

    def test_a_corrected_qos_is_another_price(self, paid):
        set_terms(paid, "urgent", "3")
        run = ended(paid)
        settled(paid)
        moved(paid, run, qos="urgent")
        assert balance(paid, "nlp") == 88 * MILLION

    def test_a_backdated_price_changes_nothing_that_was_charged(self, paid):
        run = ended(paid)
        settled(paid)
        later, before = NOW + timedelta(hours=1), NOW - timedelta(days=2)
        prices.set_price("a100", "2", starts=before, backdated=True, begin=paid, now=later)
        moved(paid, run, elapsed_seconds=HOUR - 900, end_time=NOW - timedelta(seconds=900))
        assert balance(paid, "nlp") == 97 * MILLION

    def test_an_earlier_beginning_charges_what_was_passed_over(self, begin):
        set_price(begin, "a100", "1", starts=NOW - timedelta(minutes=1))
        run = ended(begin)
        settled(begin)
        set_price(begin, "rtx4090", "1")
        set_price(begin, "a100", "1")
        settled(begin)
        assert charge_of(begin, run).amount == 4 * MILLION

    def test_a_lapsed_grant_gets_nothing_back(self, paid):
        ends = NOW + timedelta(hours=1)
        credit.grant("nlp", 4 * MILLION, reason="trial", expires=ends, begin=paid, now=NOW)
        run = ended(paid)
        settled(paid)
        change_run(paid, run, elapsed_seconds=1800, end_time=NOW - timedelta(seconds=1800))
        settle.settle(begin=paid, now=ends)
        credit.expire_due(begin=paid, now=ends)
        assert balance(paid, "nlp") == 102 * MILLION

    def test_one_run_that_cannot_be_settled_stops_no_other(self, paid, monkeypatch):
        bad, good = ended(paid), ended(paid)
        real = settle.settle_run

        def fails(books, run):
            if run.id == bad:
                raise OverflowError
            real(books, run)

        monkeypatch.setattr(settle, "settle_run", fails)
        settled(paid)
        assert charge_of(paid, good).amount == 4 * MILLION
        assert charge_of(paid, bad).reason == "unsettled"
        monkeypatch.undo()
        moved(paid, bad)
        assert charge_of(paid, bad).amount == 4 * MILLION


class TestHolds:
    def test_what_a_hold_was_extended_by_pays_too(self, begin, site):
        offer = prices.add_offer("week", "a100", "0.5", begin=begin, now=site.now)
        credit.top_up("nlp", 9 * MILLION, begin=begin, now=site.now)
        credit.buy_package("nlp", offer, 16, key="p", begin=begin, now=site.now)
        site.submit(ask(nodes="1", nproc_per_node="8", time_limit="1:00:00"))
        site.poll()
        (job,) = site.jobs()
        with begin() as session:
            assert longer.hold_more(session, job.id, minutes=120, zone=b.UTC, now=site.now)
        site.broker.set_time_limit(1, user="nlp-1", minutes=120)
        site.broker.advance(7000)
        site.broker.finish(1)
        site.work()
        (run,) = site.runs()
        spent = 9 * MILLION - balance(begin, "nlp")
        assert spent == pytest.approx(run.elapsed_seconds * 8 / 3600 * MILLION / 2, abs=2)

    def test_ones_own_token_on_another_job_frees_nothing(self, begin, site):
        credit.top_up("nlp", 200 * MILLION, begin=begin, now=site.now)
        site.submit()
        site.poll()
        token = site.submission(1).token
        other = add_job(
            begin, user="nlp-1", state="COMPLETED", gpus=1, token=token, accounted=True, slurm_id=99
        )
        with begin() as session:
            session.get_one(b.t.Job, other).submit_time = site.now
        ended(
            begin,
            job=other,
            gpus=1,
            user="nlp-1",
            start_time=site.now,
            end_time=site.now + HOUR * timedelta(seconds=1),
        )
        site.settle()
        with begin() as session:
            assert holds.of_submission(session, 1).amount == 192 * MILLION

    def test_a_hold_that_was_closed_meanwhile_is_not_extended(self, begin, site):
        credit.top_up("nlp", 200 * MILLION, begin=begin, now=site.now)
        site.submit()
        with begin() as session:
            before = holds.of_submission(session, 1)
            hold.release(session, before, now=site.now)
        bill = prices_of_an_hour(begin, site)
        with begin() as session:
            cover = hold.extend(session, before, bill, month_began=site.now, now=site.now)
        assert cover.total == 0
        assert balance(begin, "nlp") == 200 * MILLION

    def test_a_job_that_slurm_lost_before_it_ran_is_told_and_its_hold_given_back(self, begin, site):
        credit.top_up("nlp", 200 * MILLION, begin=begin, now=site.now)
        site.submit()
        site.poll()
        site.broker.jobs.clear()
        site.poll()
        site.broker.advance(2 * HOUR)
        site.work()
        review.find_lost(begin=begin, now=site.now)
        with begin() as session:
            assert "hold_lost:1" in notices.open_keys(session, ["hold_lost"])
        review.release_lost(1, begin=begin, now=site.now)
        assert balance(begin, "nlp") == 200 * MILLION
        with begin() as session:
            assert notices.open_keys(session, ["hold_lost"]) == {}
        with pytest.raises(NotFound):
            review.release_lost(1, begin=begin, now=site.now)

    def test_after_a_requeue_the_whole_worst_case_is_held_again(self, begin, site):
        credit.top_up("nlp", 9 * MILLION, begin=begin, now=site.now)
        site.submit(ask(nodes="1", nproc_per_node="8", time_limit="1:00:00"))
        site.broker.advance(1200)
        site.broker.preempt(1)
        site.work()
        credit.top_up("nlp", 100 * MILLION, begin=begin, now=site.now)
        site.broker.advance(1200)
        site.broker.preempt(1)
        site.work()
        with begin() as session:
            assert holds.of_submission(session, 1).amount == 8 * MILLION


def prices_of_an_hour(begin, site):
    from gateway.core.pricing import bill
    from gateway.store.prices import load

    with begin() as session:
        return bill(Usage(HOUR, {"a100": 1}), qos=None, at=site.now, prices=load(session))


class TestPeople:
    def test_a_decision_on_a_run_without_end_stays_whatever_accounting_repeats(self, begin, site):
        """Case 21."""
        credit.top_up("nlp", 200 * MILLION, begin=begin, now=site.now)
        site.submit(ask(nodes="1", nproc_per_node="8", time_limit="2:00:00"))
        site.broker.advance(HOUR)
        site.work()
        kept = dict(site.broker.jobs)
        site.broker.queue = lambda: replace(real_queue(), jobs=())
        real_queue = type(site.broker).queue.__get__(site.broker)
        site.broker.run_seconds = None
        site.poll()
        site.broker.now += timedelta(hours=1, minutes=30)
        review.find_lost(begin=begin, now=site.now)
        (run,) = site.runs()
        row = charge_of(begin, run.id)
        assert (row.reason, row.amount) == ("no_end", 0)
        assert row.pending is not None
        for _ in range(2):
            review.decide(
                row.id,
                seconds=HOUR,
                gpus={"a100": 8},
                note="seen for an hour",
                begin=begin,
                now=site.now,
                person_id=None,
            )
            site.ingest()
            site.settle()
            site.ingest()
            site.settle()
        assert kept
        assert charge_of(begin, run.id).amount == 8 * MILLION
        assert balance(begin, "nlp") == 192 * MILLION

    def test_a_mended_runaway_is_never_free_at_the_second_look(self, paid):
        run = ended(paid, seconds=0, elapsed_seconds=0, end_time=NOW, start_time=NOW)
        with paid() as session:
            session.add(
                mm.Charge(
                    run_id=run, group="nlp", user="member", state="review", reason="no_end",
                    amount=0, card_seconds=0, items=[], version=0, at=NOW,
                )
            )  # fmt: skip
        settled(paid)
        assert charge_of(paid, run).reason == "end_before_last_seen"
        moved(paid, run, exit_code=1)
        assert charge_of(paid, run).state == "review"

    def test_a_cancel_that_slurm_refused_gives_nothing_back(self, paid):
        admin = add_person(paid, "root-of-all", role="administrator")
        for outcome, at in (("already_done", NOW), ("done", NOW - timedelta(days=3))):
            job = add_job(paid, state="CANCELLED", gpus=4)
            add_event(
                paid, "cancel", job_id=job, person_id=admin, at=at, detail={"outcome": outcome}
            )
            run = ended(paid, job=job, state="CANCELLED")
            settled(paid)
            assert charge_of(paid, run).amount == 4 * MILLION
        assert balance(paid, "nlp") == 92 * MILLION

    def test_nobody_is_charged_who_has_no_name(self, paid):
        run = ended(paid, group="")
        settled(paid)
        given = {"note": "x", "begin": paid, "now": NOW, "person_id": None}
        with pytest.raises(Refused, match="no_group"):
            review.decide(charge_of(paid, run).id, seconds=HOUR, gpus={"a100": 1}, **given)
        review.decide(charge_of(paid, run).id, waive=True, **given)
        settled(paid)
        assert charge_of(paid, run).state == "waived"

    def test_cpu_only_runs_can_be_decided(self, paid):
        set_price(paid, "cpu", "1")
        run = ended(paid, gpus=0, alloc_tres="cpu=4", elapsed_seconds=0)
        settled(paid)
        assert charge_of(paid, run).reason == "times_differ"
        review.decide(
            charge_of(paid, run).id,
            seconds=HOUR,
            gpus={},
            note="x",
            begin=paid,
            now=NOW,
            person_id=None,
        )
        settled(paid)
        assert charge_of(paid, run).amount == 4 * MILLION


class TestCredit:
    def test_a_loan_returned_while_it_was_held_ends_in_ones_own_balance(self, begin, site):
        credit.top_up("vision", 100 * MILLION, begin=begin, now=site.now)
        due = site.now + timedelta(hours=2)
        loan = lend.lend(
            "vision", "nlp", 100 * MILLION, due=due, key="l", begin=begin, now=site.now
        )
        submission = site.submit(ask(nodes="1", nproc_per_node="8", time_limit="10:00:00"))
        credit.top_up("nlp", 80 * MILLION, begin=begin, now=site.now)
        lend.give_back(loan, 100 * MILLION, key="r", begin=begin, now=site.now)
        with begin() as session:
            hold.release_of(session, submission, now=site.now)
        assert credit.expire_due(begin=begin, now=due) == 1
        assert (balance(begin, "nlp"), balance(begin, "vision")) == (80 * MILLION, 100 * MILLION)
        with begin() as session:
            assert rows.loan(session, loan).owed == 0

    def test_a_key_is_one_groups(self, paid):
        given = {"reason": "trial", "key": "k", "begin": paid, "now": NOW}
        credit.grant("nlp", MILLION, **given)
        with pytest.raises(Refused, match="key_used"):
            credit.grant("vision", MILLION, **given)
        assert entries_of(paid, "vision") == [("top_up", 100 * MILLION)]

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            ("0.9999999", "credits_too_fine"),
            ("0." + "9" * 40, "credits_too_fine"),
            ("1_0", "credits_unreadable"),
            ("\uff11\uff12", "credits_unreadable"),
            ("9e999999", "credits_unreadable"),
            ("1" + "0" * 400, "credits_too_large"),
            ("1000000001", "credits_too_large"),
            ("NaN", "credits_unreadable"),
            (".", "credits_unreadable"),
            ("", "credits_unreadable"),
        ],
    )
    def test_an_amount_is_exact_or_refused(self, text, code):
        with pytest.raises(BadCredits, match=code):
            parse_credits(text)

    @pytest.mark.parametrize(
        ("text", "amount"),
        [
            ("1.2", 1_200_000),
            ("-0.5", -500_000),
            (" 007.10 ", 7_100_000),
            (".25", 250_000),
            ("3.", 3_000_000),
        ],
    )
    def test_amounts(self, text, amount):
        assert parse_credits(text) == amount
