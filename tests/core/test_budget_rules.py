"""Budgets in whole numbers: what is spent, what is reached, what stands against a job."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core import budgets
from gateway.core.budgets import Action, Category, Standing, Threshold
from gateway.core.credits import MILLION
from gateway.testing.builders import NOW

STOP = Threshold(100, Action.STOP)
APPROVE = Threshold(80, Action.APPROVE)


def test_the_published_example_adds_up():
    """Its authors print 93,000 spent and 7,000 left."""
    lines = {"data_work": 8_000 * MILLION, "storage": 300 * MILLION}
    standing = Standing(100_000 * MILLION, 85_000 * MILLION, lines)
    assert standing.spent == 93_300 * MILLION
    assert standing.left == 6_700 * MILLION
    assert standing.percent == 93
    assert standing.by_category == {
        Category.CARD_HOURS: 85_000 * MILLION,
        Category.STORAGE: 300 * MILLION,
        Category.DATA_WORK: 8_000 * MILLION,
        Category.OTHER: 0,
    }
    assert [t.percent for t in budgets.reached(standing, budgets.DEFAULT_THRESHOLDS)] == [50, 80]


def test_card_hours_that_were_paid_outside_are_card_hours():
    standing = Standing(100, 10, {"card_hours": 5})
    assert standing.by_category[Category.CARD_HOURS] == standing.spent == 15


@pytest.mark.parametrize(("spent", "reached"), [(94_999_999, False), (95_000_000, True)])
def test_a_threshold_is_reached_to_the_millionth(spent, reached):
    assert Standing(100 * MILLION, spent).has_reached(95) is reached


def test_what_was_reached_before_is_not_news():
    before = Threshold(50, Action.NOTIFY, NOW)
    assert budgets.reached(Standing(100, 100), [STOP, before, APPROVE]) == [APPROVE, STOP]


@pytest.mark.parametrize(
    ("spent", "held", "worst", "approved", "against"),
    [
        (0, 0, 80, 0, None),
        (0, 0, 81, 0, (80, "approve", 80)),
        (70, 10, 1, 0, (80, "approve", 0)),
        (70, 10, 1, 90, None),
        (70, 10, 11, 90, (90, "approve", 10)),
        (80, 0, 0, 0, (80, "approve", 0)),
        (90, 0, 20, 200, (100, "stop", 10)),
        (100, 0, 0, 200, (100, "stop", 0)),
    ],
)
def test_what_stands_against_a_job(spent, held, worst, approved, against):
    standing = Standing(100, spent, held=held)
    found = budgets.barrier(standing, [STOP, APPROVE], worst=worst, approved_until=approved)
    assert (found and (found.percent, found.action.value, found.free)) == against


def test_a_stop_says_more_than_an_approval():
    found = budgets.barrier(Standing(100, 100), [APPROVE, STOP], worst=1, approved_until=0)
    assert found.action is Action.STOP


def test_a_notice_stops_nothing():
    notify = [Threshold(50, Action.NOTIFY)]
    assert budgets.barrier(Standing(100, 500), notify, worst=1, approved_until=0) is None


def test_the_pace_tells_the_day_it_runs_dry():
    found = budgets.outlook(70, recent=140, days=14, now=NOW)
    assert (found.per_day, found.dry_at) == (10, NOW + timedelta(days=7))


@pytest.mark.parametrize(("left", "recent"), [(70, 0), (70, -5), (10**15, 1)])
def test_without_a_pace_nobody_knows(left, recent):
    assert budgets.outlook(left, recent=recent, days=14, now=NOW).dry_at is None


def test_what_is_gone_is_dry_now():
    assert budgets.outlook(0, recent=1, days=14, now=NOW).dry_at == NOW


@pytest.mark.parametrize(("hours", "days"), [(0, 1), (1, 1), (25, 2), (24 * 40, 14)])
def test_a_young_budget_has_a_short_pace(hours, days):
    assert budgets.pace_days(NOW - timedelta(hours=hours), NOW) == days


def test_a_burn_down_ends_today():
    days = [(date(2026, 3, day), 10) for day in (1, 2, 3)]
    found = budgets.burn_down(100, days, until=date(2026, 3, 2))
    assert found == [(date(2026, 3, 1), 90), (date(2026, 3, 2), 80)]


@given(st.integers(1, 10**15), st.integers(0, 10**15), st.integers(0, 10**15), st.integers(0, 200))
def test_what_is_let_through_never_passes_the_stop(amount, spent, worst, approved):
    standing = Standing(amount, spent)
    found = budgets.barrier(standing, [APPROVE, STOP], worst=worst, approved_until=approved)
    assert found is not None or spent + worst <= amount
