"""Budgets on the ledger: what counts, what is told once, and what Submit is refused for."""

from datetime import timedelta

import pytest

from gateway.core.budgets import Action, Category, Threshold
from gateway.core.credits import MILLION
from gateway.errors import NotFound, Refused
from gateway.services import budgets, credit, refund
from gateway.services.draft import InvalidAsk
from gateway.services.settle import settle
from gateway.testing import builders as b
from gateway.testing.money import charge_of, one_credit_an_hour
from gateway.testing.portal import ask, portal
from gateway.web.messages import TEXTS

NOW = b.NOW
DAY = timedelta(days=1)
HOUR = ask(time_limit="1:00:00", nodes="1", nproc_per_node="1")  # its worst case is one credit
STOP = (Threshold(100, Action.STOP),)


def planned(begin, amount=100, *, starts=NOW - 10 * DAY, ends=NOW + 20 * DAY, **values):
    return budgets.add(
        "nlp", "spring", amount * MILLION, starts=starts, ends=ends, begin=begin, now=NOW, **values
    )


def ran(begin, *, gpus=2, now=NOW, **values):
    job = b.add_job(begin, state="COMPLETED", gpus=gpus)
    tres = f"gres/gpu={gpus},gres/gpu:a100={gpus}"
    times = {"start_time": now - timedelta(hours=1), "end_time": now, "to_settle": True}
    run = b.add_run(begin, job, alloc_tres=tres, **(times | values))
    settle(begin=begin, now=now)
    return run


def shown(begin, budget, now=NOW):
    with begin() as session:
        return budgets.shown(session, budget, now=now)


def notices(begin):
    from sqlalchemy import select

    from gateway.store.money_models import Notice

    with begin() as session:
        query = select(Notice).order_by(Notice.id)
        return [(n.group, n.facts["percent"]) for n in session.scalars(query)]


def test_charges_less_refunds_and_lines_are_what_is_spent(begin):
    one_credit_an_hour(begin, "a100")
    budget = planned(begin)
    ran(begin, now=NOW - 11 * DAY)  # before it began
    ran(begin)
    again = ran(begin, gpus=4)
    refund.refund(charge_of(begin, again).id, note="us", begin=begin, now=NOW, person_id=None)
    for amount in (3, 4, -3):
        budgets.add_line(
            budget, Category.STORAGE, amount * MILLION, note="disk", begin=begin, now=NOW
        )
    found = shown(begin, budget)
    assert found.standing.charged == 2 * MILLION
    assert found.standing.spent == 6 * MILLION
    assert [line.amount // MILLION for line in found.lines] == [3, 4, -3]
    assert found.burn_down[-1] == (NOW.date(), 94 * MILLION)
    assert found.burn_down[0] == ((NOW - 10 * DAY).date(), 100 * MILLION)
    assert (found.outlook.days, found.outlook.per_day) == (10, 600_000)
    assert found.outlook.dry_at == NOW + 94 * MILLION * DAY / 600_000


def test_lines_from_outside_the_dates_count_on_its_first_day(begin):
    budget = planned(begin)
    early = NOW - 30 * DAY
    budgets.add_line(budget, Category.OTHER, MILLION, note="before", at=early, begin=begin, now=NOW)
    assert shown(begin, budget).burn_down[0][1] == 99 * MILLION


def test_each_threshold_is_told_once(begin, read):
    budget = planned(begin)

    def told():
        return budgets.tell_due(begin=begin, read=read, now=NOW)

    assert told() == 0
    budgets.add_line(budget, Category.OTHER, 85 * MILLION, note="disks", begin=begin, now=NOW)
    assert told() == 2
    assert told() == 0
    budgets.add_line(budget, Category.OTHER, -85 * MILLION, note="no", begin=begin, now=NOW)
    budgets.add_line(budget, Category.OTHER, 99 * MILLION, note="yes", begin=begin, now=NOW)
    assert told() == 1
    assert notices(begin) == [("nlp", 50), ("nlp", 80), ("nlp", 95)]
    reached = [one.reached_at is not None for one in shown(begin, budget).thresholds]
    assert reached == [True, True, True, False]


@pytest.fixture
def site(begin):
    made = portal(begin)
    one_credit_an_hour(begin, "a100", starts=made.now - DAY)
    credit.top_up("nlp", 1000 * MILLION, begin=begin, now=made.now)
    return made


def current(site, amount, thresholds=STOP):
    return planned(
        site.begin, amount, starts=site.now - DAY, ends=site.now + DAY, thresholds=thresholds
    )


def problem(site):
    with pytest.raises(InvalidAsk) as caught:
        site.submit(HOUR, key="no")
    [found] = caught.value.problems
    return found


def test_a_stop_counts_what_is_held_and_leaves_nothing_behind(site):
    current(site, 2)
    for key in ("one", "two"):
        site.submit(HOUR, key=key)
    found = problem(site)
    assert (found.field, found.code) == ("group", "budget_stopped")
    assert found.facts == {"budget": "spring", "percent": 100, "need": MILLION, "free": 0}
    assert len(site.broker.jobs) == 2


def test_an_approval_lets_jobs_go_on_up_to_its_percent(site):
    budget = current(site, 10, (Threshold(5, Action.APPROVE), *STOP))
    assert problem(site).code == "budget_needs_approval"
    budgets.approve(budget, 20, begin=site.begin)
    for key in ("one", "two"):
        site.submit(HOUR, key=key)
    assert problem(site).facts["percent"] == 20
    budgets.approve(budget, 0, begin=site.begin)
    assert problem(site).facts["percent"] == 5


def test_a_budget_of_another_time_or_group_stops_nothing(site):
    for starts in (site.now - 2 * DAY, site.now + DAY):
        planned(site.begin, 1, starts=starts, ends=starts + DAY, thresholds=STOP)
    ends = site.now + DAY
    budgets.add("vision", "v", 1, starts=site.now - DAY, ends=ends, begin=site.begin, now=site.now)
    site.submit(HOUR, key="one")


def test_a_threshold_can_be_changed_and_taken_away(site):
    budget = current(site, 1, (Threshold(50, Action.STOP),))
    assert problem(site).code == "budget_stopped"
    budgets.set_threshold(budget, 50, Action.APPROVE, begin=site.begin)
    assert problem(site).code == "budget_needs_approval"
    budgets.set_threshold(budget, 50, None, begin=site.begin)
    budgets.set_threshold(budget, 100, Action.STOP, begin=site.begin)
    site.submit(HOUR, key="one")


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"amount": 0}, "amount_not_positive"),
        ({"ends": NOW - 10 * DAY}, "ends_before_start"),
        ({"thresholds": (Threshold(0, Action.STOP),)}, "percent_out_of_range"),
        ({"thresholds": STOP + STOP}, "percent_twice"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(begin, values, code):
    with pytest.raises(Refused) as caught:
        planned(begin, **values)
    assert caught.value.code == code
    assert code in TEXTS


def test_other_mistakes_are_refused_too(begin):
    budget = planned(begin)
    with pytest.raises(Refused, match="budget_name"):
        budgets.add("nlp", " ", 1, starts=NOW, ends=NOW + DAY, begin=begin, now=NOW)
    with pytest.raises(Refused, match="amount_is_zero"):
        budgets.add_line(budget, Category.OTHER, 0, note="x", begin=begin, now=NOW)
    with pytest.raises(Refused, match="note_missing"):
        budgets.add_line(budget, Category.OTHER, 1, note=" ", begin=begin, now=NOW)
    with pytest.raises(NotFound):
        budgets.approve(budget + 1, 10, begin=begin)
    assert {"budget_stopped", "budget_needs_approval", "budget_name", "amount_is_zero"} <= set(
        TEXTS
    )


def test_budgets_are_listed_newest_first(begin):
    old = planned(begin, starts=NOW - 30 * DAY, ends=NOW - 20 * DAY)
    new = planned(begin)
    with begin() as session:
        found = budgets.of_group(session, "nlp", now=NOW)
        assert budgets.of_group(session, "vision", now=NOW) == []
    assert [one.row.id for one in found] == [new, old]
    assert found[1].burn_down[-1][0] == (NOW - 20 * DAY).date()


def test_a_button_pressed_twice_enters_it_once(begin):
    budget = planned(begin)
    assert planned(begin) == budget
    given = {"note": "disks", "begin": begin, "person_id": None}
    line = budgets.add_line(budget, Category.STORAGE, 300, now=NOW, **given)
    soon, later = NOW + timedelta(seconds=1), NOW + timedelta(minutes=1)
    assert budgets.add_line(budget, Category.STORAGE, 300, now=soon, **given) == line
    assert budgets.add_line(budget, Category.STORAGE, 300, now=later, **given) != line


def test_a_budget_is_ended_and_stops_nothing_any_more(begin):
    budget = planned(begin)
    budgets.end(budget, begin=begin, now=NOW)
    with begin() as session:
        assert budgets.shown(session, budget, now=NOW).row.ends == NOW
        assert budgets.barrier(session, "nlp", 10**15, now=NOW + timedelta(seconds=1)) is None


@pytest.mark.parametrize("years", [(-2000, 1), (0, 2000)])
def test_a_budget_of_a_thousand_years_is_a_slip(begin, years):
    starts, ends = (NOW.replace(year=min(9999, max(1, NOW.year + n))) for n in years)
    with pytest.raises(Refused, match="budget_too_long"):
        planned(begin, starts=starts, ends=ends)
