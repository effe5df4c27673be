"""Slower when slurmctld is slow or says no, sooner when somebody waits."""

from datetime import UTC, datetime, timedelta

import pytest

from gateway.core.pace import Last, is_due, next_interval

NINE = datetime(2026, 3, 2, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("current", "took", "failed", "expected"),
    [
        (15, 0.1, False, 15),
        (15, 0.1, True, 30),
        (15, 3.1, False, 30),
        (100, 0.1, True, 120),
        (120, 30, False, 120),
        (120, 0.1, False, 60),
        (20, 0.1, False, 15),
        (30, 5, False, 30),
    ],
)
def test_the_interval(current, took, failed, expected):
    assert next_interval(15, current, took=took, failed=failed) == expected


def test_a_base_above_two_minutes_is_not_shortened():
    assert next_interval(300, 300, took=0, failed=True) == 300


@pytest.mark.parametrize(
    ("seconds", "wanted", "took", "failed", "due"),
    [
        (14, None, 0, False, False),
        (15, None, 0, False, True),
        (1, 0, 0, False, False),
        (2, 0, 0, False, True),
        (3, 0, 1, False, False),
        (5, 0, 1, False, True),
        (5, 0, 0, True, False),
        (5, 60, 0, False, False),
        (-60, None, 0, False, True),
    ],
)
def test_when_a_read_is_due(seconds, wanted, took, failed, due):
    wanted_at = None if wanted is None else NINE + timedelta(seconds=wanted)
    last = Last(NINE, 15, wanted_at, took_seconds=took, failed=failed)
    assert is_due(last, NINE + timedelta(seconds=seconds)) is due


def test_the_first_read_is_due_at_once():
    assert is_due(Last(None, 15, None), NINE)
