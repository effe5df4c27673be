"""Sizes, growth, forecasts and months of volumes, against what was worked out by hand."""

from datetime import UTC, date, datetime, timedelta

import pytest

from gateway.core.volumes import (
    GB,
    Day,
    StoragePrice,
    billed_bytes,
    forecast,
    format_size,
    growth,
    month_cost,
    month_price,
    parse_size,
    percent,
    price_at,
    warning,
)
from gateway.errors import Refused

TODAY = date(2026, 11, 30)
TB = 2**40


def line(days, per_day, *, first=100 * GB, wobble=0):
    """Used, day by day up to today; with a wobble up and down."""
    return [
        Day(
            TODAY - timedelta(days=days - 1 - n),
            first + n * per_day + (wobble if n % 2 else -wobble),
            None,
        )
        for n in range(days)
    ]


@pytest.mark.parametrize(
    ("typed", "size"),
    [
        ("2 TB", 2 * TB),
        ("2tb", 2 * TB),
        ("500G", 500 * GB),
        ("1.5TiB", TB + TB // 2),
        ("0.001 GB", 1 * 2**20),
        ("1024 PB", 2**60),
    ],
)
def test_sizes_are_read_as_people_type_them(typed, size):
    assert parse_size(typed) == size


@pytest.mark.parametrize("typed", ["", "2", "-2 TB", "0 GB", "1025 PB", "2 KB", "1e3 GB", "２ TB"])
def test_what_is_no_size_is_refused(typed):
    with pytest.raises(Refused) as refused:
        parse_size(typed)
    assert (refused.value.code, refused.value.field) == ("volume_bad_size", "size")


def test_sizes_are_written_with_a_unit():
    written = [format_size(n) for n in (0, 50 * 2**20, GB, TB + TB // 2, 2048 * GB)]
    assert written == ["0 MB", "50 MB", "1 GB", "1.50 TB", "2 TB"]


def test_thresholds_are_reached_not_rounded_to():
    assert [percent(n, 1000) for n in (799, 800, 999, 1000)] == [79, 80, 99, 100]
    assert [warning(n, 1000) for n in (799, 800, 900, 999, 1000, 1200)] == [
        None, 80, 90, 90, 100, 100,
    ]  # fmt: skip
    assert warning(None, 1000) is None
    assert warning(5, None) is None


def test_growth_is_of_the_last_thirty_days():
    assert growth(line(60, GB), today=TODAY) == 30 * GB
    assert growth(line(20, GB), today=TODAY) == 19 * GB
    assert growth(line(10, GB), today=TODAY) is None
    assert growth([], today=TODAY) is None


def test_a_straight_line_says_the_day():
    # 100 GB, then 1 GB a day for 56 days: 156 GB today, so 200 GB in 44 days.
    full = forecast(line(57, GB), limit=200 * GB, today=TODAY)
    assert full is not None
    assert (full.at, full.days, full.per_day) == (TODAY + timedelta(days=44), 56, GB)
    assert full.earliest == full.latest == full.at


def test_a_wobbly_line_says_how_sure_it_is():
    full = forecast(line(57, GB, wobble=GB), limit=200 * GB, today=TODAY)
    assert full is not None
    assert full.latest is not None
    assert full.earliest < full.at < full.latest


@pytest.mark.parametrize(
    ("days", "limit"),
    [
        (line(13, GB), 200 * GB),  # too little is known
        (line(57, 0), 200 * GB),
        (line(57, -GB), 200 * GB),  # it shrinks
        (line(57, GB), None),
        (line(57, GB, wobble=60 * GB), 900 * GB),  # nobody can say whether it grows
        (line(57, 2**20), 900 * TB),  # not in ten years
        ([], 200 * GB),
    ],
)
def test_where_nobody_can_say_nothing_is_said(days, limit):
    assert forecast(days, limit=limit, today=TODAY) is None


def test_what_is_full_is_full_today():
    full = forecast(line(57, GB), limit=150 * GB, today=TODAY)
    assert full is not None
    assert full.at == TODAY


def test_two_terabytes_more_are_61_44_a_month():
    assert month_price(2 * TB, 30_000) == 61_440_000


def test_a_month_is_its_days_rounded_up_once():
    whole = [(2 * TB, 30_000)] * 30
    assert month_cost(whole, days_of_month=30) == 61_440_000
    assert month_cost(whole[:15], days_of_month=30) == 30_720_000
    assert month_cost([(1, 1)], days_of_month=31) == 1
    assert month_cost([], days_of_month=31) == 0


def test_a_day_that_nobody_read_goes_as_the_one_before():
    month = [date(2026, 11, 1) + timedelta(days=n) for n in range(5)]
    days = [
        Day(date(2026, 10, 20), 1, 10),
        Day(month[2], 3, 20),
        Day(month[3], None, None),
        Day(month[4], 7, None),
    ]
    assert list(billed_bytes(days, month).values()) == [10, 10, 20, 20, 7]
    assert list(billed_bytes(days[1:], month)) == month[2:]
    assert billed_bytes([], month) == {}


def test_an_areas_own_price_stands_before_that_of_all():
    at = datetime(2026, 11, 1, tzinfo=UTC)
    prices = [
        StoragePrice("", 30_000, at),
        StoragePrice("fast", 90_000, at),
        StoragePrice("", 20_000, at + timedelta(days=10)),
    ]
    assert price_at(prices, "slow", at - timedelta(seconds=1)) is None
    assert price_at(prices, "slow", at) == 30_000
    assert price_at(prices, "slow", at + timedelta(days=11)) == 20_000
    assert price_at(prices, "fast", at + timedelta(days=11)) == 90_000
