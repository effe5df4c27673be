"""Days and hours of the week where the clock is not ahead by whole quarters of an hour."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from gateway.core.wait_figures import Dimension
from gateway.core.wait_shapes import Step
from gateway.history.stats import clock
from gateway.history.stats.chosen import Rows
from gateway.history.stats.columns import Part
from gateway.history.stats.time_keys import TimeKeys


@pytest.mark.parametrize(
    ("zone", "year", "quarters"),
    [
        ("Africa/Monrovia", 1972, False),  # 44 min 30 s behind until January
        ("Asia/Kathmandu", 2026, True),
        ("Australia/Lord_Howe", 2026, True),  # half an hour of summer time
    ],
)
def test_each_second_has_the_day_and_hour_that_the_clock_shows(zone, year, quarters):
    first = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
    last = first + 300 * 86_400
    seconds = np.arange(first, last, 77_777 // 7, dtype=np.uint32)
    assert clock.changes_at_quarters(int(seconds[0]), int(seconds[-1]), zone) is quarters
    part = _part(seconds)
    found = Rows(part, np.array([0]), np.array([len(seconds)]), slice(0, len(seconds)))
    shown = [datetime.fromtimestamp(int(s), ZoneInfo(zone)) for s in seconds]
    days = TimeKeys([part], Dimension.SUBMIT_DAY, zone)
    assert [days.names[code] for code in days.of(found)] == [str(t.date()) for t in shown]
    hours = TimeKeys([part], Dimension.HOUR_OF_WEEK, zone)
    assert hours.of(found).tolist() == [t.weekday() * 24 + t.hour for t in shown]
    weeks = TimeKeys([part], Dimension.SUBMIT_DAY, zone, Step.WEEK)
    mondays = [date.fromordinal(t.date().toordinal() - t.weekday()) for t in shown]
    assert [weeks.names[code] for code in weeks.of(found)] == [str(day) for day in mondays]


def _part(seconds):
    kinds = {"rows": np.array([len(seconds)], np.int32), "kind": np.array([0], np.int32)}
    return Part({"submit": seconds}, kinds, {})
