"""Statements and what was spent: every line explained, every sum the sum of its lines."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.core.credits import MILLION
from gateway.core.months import month_bounds
from gateway.services import credit, lend, prices, refund, settle
from gateway.store.queries import balances, spending, statement
from gateway.testing import money
from gateway.testing.builders import NOW, add_job, add_person, add_run, add_submission

HOUR = timedelta(hours=1)
SINCE, UNTIL = month_bounds("2026-03", UTC)


@pytest.fixture(autouse=True)
def priced(begin):
    money.one_credit_an_hour(begin, "a100")
    credit.top_up("nlp", 100 * MILLION, begin=begin, now=NOW - timedelta(days=20))


def ran(begin, *, gpus=2, user="member", now=NOW, **values):
    """A job of one hour that was charged at `now`; its run."""
    job = add_job(begin, state="COMPLETED", gpus=gpus, user=user, name=f"job-of-{user}")
    times = {"start_time": now - HOUR, "end_time": now}
    tres = f"gres/gpu={gpus},gres/gpu:a100={gpus}"
    run = add_run(begin, job, user=user, alloc_tres=tres, to_settle=True, **(times | values))
    settle.settle(begin=begin, now=now)
    return run


def test_a_line_says_what_it_was_for_and_balances_run_on(begin, read):
    run = ran(begin)
    failed = ran(begin, gpus=8, state="NODE_FAIL")
    with read() as session:
        lines = statement.entries(session, "nlp", since=SINCE, until=UNTIL)
        sums = statement.totals(session, "nlp", since=SINCE, until=UNTIL)
    assert [(line.kind, line.amount // MILLION, line.balance // MILLION) for line in lines] == [
        ("charge", -2, 98),
        ("charge", -8, 90),
        ("refund", 8, 98),
    ]
    assert (lines[0].run_id, lines[0].job_name, lines[0].user) == (run, "job-of-member", "member")
    assert lines[0].run_start == NOW - HOUR
    assert (lines[2].run_id, lines[2].refund_reason) == (failed, "node_fail")
    assert lines[2].refund_evidence["nodes"] == "a100-1"
    assert (sums.opening, sums.closing) == (100 * MILLION, 98 * MILLION)
    assert [(line.kind, line.entries) for line in sums.lines] == [("charge", 2), ("refund", 1)]


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_join_without_a_gap(begin, read, newest_first):
    for hours in range(7):
        ran(begin, now=NOW + hours // 2 * HOUR)  # some at the same moment
    window = {"since": SINCE, "until": UNTIL, "newest_first": newest_first}
    with read() as session:
        whole = statement.entries(session, "nlp", **window)
        charges = statement.entries(session, "nlp", **window, kinds=["charge"])
        pages, after = [], None
        while page := statement.entries(session, "nlp", **window, after=after, limit=2):
            pages += page
            after = page[-1].place
    assert len(whole) == 7
    assert pages == whole == charges


def test_the_newest_jobs_are_found_behind_many_runs_of_one(begin, read):
    first = ran(begin, now=NOW - HOUR)
    job = add_job(begin, state="COMPLETED")
    for minutes in range(9):
        start = NOW - HOUR + timedelta(minutes=minutes)
        more = {"start_time": start, "end_time": start, "elapsed_seconds": 0, "to_settle": True}
        add_run(begin, job, submit_time=start, alloc_tres="gres/gpu=2,gres/gpu:a100=2", **more)
    settle.settle(begin=begin, now=NOW)
    with read() as session:
        newest, oldest = spending.jobs(session, "nlp", limit=2)
        assert spending.jobs(session, "nlp", limit=1) == [newest]
        assert spending.jobs(session, "vision") == []
    assert (newest.job_id, newest.runs) == (job, 9)
    assert oldest.charged == money.charge_of(begin, first).amount


def test_holds_can_be_left_out(begin, read):
    from gateway.core.pricing import Bill, Item
    from gateway.services import hold

    person = add_person(begin)
    submission = add_submission(begin, person)
    bill = Bill((Item("a100", 2, 3600, MILLION, MILLION),))
    with begin() as session:
        hold.place(
            session,
            bill,
            submission_id=submission,
            group="nlp",
            user="member",
            month_began=SINCE,
            now=NOW,
        )
    ran(begin)
    with read() as session:
        lines = statement.entries(session, "nlp", since=SINCE, until=UNTIL)
        plain = statement.entries(session, "nlp", since=SINCE, until=UNTIL, holds=False)
        found = balances.balance(session, "nlp", now=NOW)
    assert [(one.kind, one.balance // MILLION) for one in lines] == [("hold", 98), ("charge", 96)]
    assert (lines[0].submission_id, lines[0].job_name) == (submission, "train")
    assert [(one.kind, one.balance // MILLION) for one in plain] == [("charge", 98)]
    assert (found.available, found.held) == (96 * MILLION, 2 * MILLION)
    assert [(pot.kind, pot.held) for pot in found.pots] == [("balance", 2 * MILLION)]


def test_both_sides_of_a_loan_name_the_other(begin, read):
    lend.lend("nlp", "vision", 5 * MILLION, due=None, begin=begin, now=NOW, key="one")
    with read() as session:
        [gave] = statement.entries(session, "nlp", since=SINCE, until=UNTIL)
        [got] = statement.entries(session, "vision", since=SINCE, until=UNTIL)
    assert (gave.other_group, gave.amount) == ("vision", -5 * MILLION)
    assert (got.other_group, got.balance) == ("nlp", 5 * MILLION)
    with read() as session:
        [(group, pot)] = balances.grants(session)
    assert (group, pot.kind, pot.given) == ("vision", "loan", 5 * MILLION)


def test_members_are_told_apart_and_refunds_taken_off(begin, read):
    ran(begin, gpus=3)
    ran(begin, gpus=4, user="other")
    ran(begin, gpus=8, user="other", state="NODE_FAIL")
    with read() as session:
        found = spending.by_member(session, "nlp", since=SINCE, until=UNTIL)
        total = spending.spent(session, "nlp", since=SINCE, until=UNTIL)
    assert [(one.user, one.spent // MILLION, one.runs) for one in found] == [
        ("other", 4, 2),
        ("member", 3, 1),
    ]
    assert found[0].card_seconds == 12 * 3600
    assert total == 7 * MILLION


def test_days_are_those_of_the_sites_zone(begin, read):
    """23:50 in London is the next day in Kathmandu, 45 minutes off the hour."""
    zone = ZoneInfo("Asia/Kathmandu")
    for at in (datetime(2026, 3, 2, 18, 14, tzinfo=UTC), datetime(2026, 3, 2, 18, 16, tzinfo=UTC)):
        ran(begin, now=at)
    since, until = month_bounds("2026-03", zone)
    with read() as session:
        found = spending.by_day(session, "nlp", since=since, until=until, zone=zone)
    assert len(found) == 31
    assert [(one.day, one.spent // MILLION) for one in found if one.spent] == [
        (date(2026, 3, 2), 2),
        (date(2026, 3, 3), 2),
    ]


def test_a_job_is_told_with_all_its_runs_and_its_part_of_packages(begin, read):
    offer = prices.add_offer("pack", "a100", "0.5", begin=begin, now=NOW - HOUR * 30)
    credit.buy_package("nlp", offer, 2, begin=begin, now=NOW - HOUR * 29, key="p")
    run = ran(begin, gpus=4)
    refund_of = ran(begin, gpus=1, user="other", now=NOW + HOUR)
    charge = money.charge_of(begin, refund_of)
    refund.refund(charge.id, note="ours", begin=begin, now=NOW, person_id=None)
    with read() as session:
        newest, oldest = spending.jobs(session, "nlp")
        [own] = spending.jobs(session, "nlp", user="member")
        same = spending.of_job(session, oldest.job_id)
    assert own == same == oldest
    assert (oldest.charged, oldest.from_packages) == (3 * MILLION, 1 * MILLION)
    assert (oldest.card_seconds, oldest.runs) == (4 * 3600, 1)
    assert (newest.user, newest.charged, newest.spent) == ("other", MILLION, 0)
    assert money.charge_of(begin, run).amount == 3 * MILLION


def test_a_balance_tells_pots_in_the_order_of_use(begin, read):
    for days, key in ((30, "late"), (3, "soon")):
        credit.grant(
            "nlp",
            10 * MILLION,
            reason="trial",
            begin=begin,
            now=NOW,
            key=key,
            expires=NOW + timedelta(days=days),
        )
    credit.grant(
        "nlp", MILLION, reason="award", begin=begin, now=NOW, starts=NOW + timedelta(days=9)
    )
    ran(begin, gpus=4)
    with read() as session:
        found = balances.balance(session, "nlp", now=NOW)
        nobody = balances.balance(session, "nobody", now=NOW)
        listed = balances.grants(session, group="nlp")
        everybodys = balances.grants(session)
        groups = balances.groups(session)
    days = [pot.expires and (pot.expires - NOW).days for pot in found.pots]
    assert days == [3, 30, None, None]
    assert [(pot.left // MILLION, pot.given // MILLION) for pot in found.pots[:2]] == [
        (6, 10),
        (10, 10),
    ]
    assert (found.available, found.to_come) == (116 * MILLION, MILLION)
    assert (nobody.available, nobody.pots) == (0, ())
    assert [pot.reason for _, pot in listed] == ["award", "trial", "trial"]
    assert listed == everybodys
    assert groups == ["nlp"]
