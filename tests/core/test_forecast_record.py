"""The score of forecasts: judged when their time has come, whatever came of the job."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.core.forecast import ForecastSource
from gateway.core.forecast_record import LEAST, Coverage, Told, bins, gpu_class, score

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ONE = Told(
    made_at=NOON,
    source=ForecastSource.HISTORY,
    p50_at=NOON + 10 * MINUTE,
    p90_at=NOON + 60 * MINUTE,
    partition="a100",
    gpus=8,
    user="member",
    own=False,
    started_at=None,
    left_at=None,
)


def started(minutes: float, **values: object) -> Told:
    return replace(ONE, started_at=NOON + minutes * MINUTE, **values)  # type: ignore[arg-type]


def left(minutes: float) -> Told:
    return replace(ONE, left_at=NOON + minutes * MINUTE)


def test_a_start_by_the_time_is_covered() -> None:
    found = score([started(5), started(10), started(11)], now=NOON + 90 * MINUTE)
    assert found.p50 == Coverage(counted=3, covered=2)
    assert found.p90 == Coverage(counted=3, covered=3)


def test_who_still_waits_is_not_covered_once_the_time_has_passed() -> None:
    found = score([started(5), ONE], now=NOON + 61 * MINUTE)
    assert found.p90 == Coverage(counted=2, covered=1, late=1)
    assert found.waiting == 1


def test_an_early_start_counts_no_sooner_than_a_late_one_would() -> None:
    """Else the record of young forecasts would be of the quick ones alone."""
    found = score([started(1), ONE], now=NOON + 30 * MINUTE)
    assert found.p50 == Coverage(counted=2, covered=1, late=1)
    assert found.p90 == Coverage(early=2)


def test_who_left_before_the_time_says_nothing_and_who_left_after_it_was_not_covered() -> None:
    found = score([left(30), left(70)], now=NOON + 90 * MINUTE)
    assert found.p90 == Coverage(counted=1, left=1)
    assert found.p50 == Coverage(counted=2)
    assert found.waiting == 0


def test_few_are_no_percentage() -> None:
    few, enough = [started(5)] * (LEAST - 1), [started(5)] * LEAST
    assert score(few, now=NOON + 90 * MINUTE).p90.share is None
    assert score(few, now=NOON + 90 * MINUTE).error_s is None
    assert score(enough, now=NOON + 90 * MINUTE).p90.share == 1


def test_the_error_is_the_median_of_those_that_started() -> None:
    rows = [started(5)] * 20 + [started(40)] * 20 + [ONE] * 50
    found = score(rows, now=NOON + 90 * MINUTE)
    assert found.error_s == pytest.approx((5 * 60 + 30 * 60) / 2)
    assert found.error_times == pytest.approx((2 + 4) / 2)


def test_own_jobs_are_no_other_people() -> None:
    rows = [started(5, own=True), started(5, user="other"), started(6, user="other")]
    assert score(rows, now=NOON).others == 1


def test_bins_are_of_the_forecast_and_tell_of_the_start() -> None:
    long = replace(ONE, p50_at=NOON + timedelta(hours=2), p90_at=None)
    rows = [*(started(n) for n in range(11)), replace(long, started_at=NOON + 30 * MINUTE), ONE]
    short, other = bins(rows)
    assert (short.low_s, short.high_s, short.started) == (300, 900, 11)
    assert (short.p10_s, short.median_s, short.p90_s) == (60, 300, 540)
    assert (other.low_s, other.started, other.median_s) == (3600, 1, 1800)


def test_a_start_seen_before_the_forecast_was_no_wait() -> None:
    assert started(-1).actual_s == 0


@pytest.mark.parametrize(
    ("gpus", "name"), [(0, "0"), (1, "1"), (2, "2-4"), (5, "5-8"), (8, "5-8"), (9, ">8")]
)
def test_classes_of_cards(gpus: int, name: str) -> None:
    assert gpu_class(gpus) == name
