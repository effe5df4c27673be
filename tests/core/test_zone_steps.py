"""A zone as a table says what datetime says, in both readings."""

from bisect import bisect_right
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from gateway.core.zone_steps import steps

ZONES = ("UTC", "Europe/Berlin", "Asia/Shanghai", "Australia/Lord_Howe", "Africa/Casablanca")


@pytest.mark.parametrize("name", ZONES)
def test_around_every_change_of_the_clock(name):
    zone = ZoneInfo(name)
    for fold, table in enumerate(steps(zone)):
        begins = [step.since for step in table]
        for begin in begins[1:]:
            for off in (-7200, -1801, -1, 0, 1, 1799, 3600):
                local = datetime(1970, 1, 1) + timedelta(seconds=begin + off)  # noqa: DTZ001
                told = local.replace(tzinfo=zone, fold=fold).utcoffset()
                found = table[bisect_right(begins, begin + off) - 1].offset
                assert told == timedelta(seconds=found), local
