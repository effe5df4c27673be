"""One conclusion about where waits went."""

import pytest

from gateway.core.wait_causes import Cause
from gateway.core.wait_conclusion import LEAST_JOBS, Conclusion, Verdict, conclude


@pytest.mark.parametrize(
    ("seconds", "conclusion", "share"),
    [
        ({Cause.PRIORITY: 50, Cause.NO_GPUS: 33, Cause.GROUP_LIMIT: 17}, Conclusion.FULL, 0.83),
        ({Cause.GROUP_LIMIT: 61, Cause.PRIORITY: 39}, Conclusion.GROUP_LIMIT, 0.61),
        ({Cause.USER_LIMIT: 7, Cause.QOS_LIMIT: 3}, Conclusion.USER_LIMIT, 0.7),
        ({Cause.QOS_LIMIT: 6, Cause.NO_GPUS: 4}, Conclusion.QOS_LIMIT, 0.6),
        (
            {Cause.DEFERRAL: 4, Cause.ARRAY_THROTTLE: 4, Cause.NO_GPUS: 2},
            Conclusion.OWN_CHOICE,
            0.8,
        ),
        ({Cause.NODES_DOWN: 1}, Conclusion.NODES_DOWN, 1.0),
        ({Cause.RESERVATION: 3, Cause.PRIORITY: 1}, Conclusion.RESERVATION, 0.75),
        ({Cause.UNKNOWN: 70, Cause.NO_GPUS: 30}, Conclusion.NOBODY_LOOKED, 0.7),
        ({Cause.GROUP_LIMIT: 1, Cause.NO_GPUS: 1}, Conclusion.GROUP_LIMIT, 0.5),
    ],
)
def test_what_had_half_of_the_wait_is_the_conclusion(seconds, conclusion, share):
    assert conclude(LEAST_JOBS, seconds) == Verdict(conclusion, pytest.approx(share))


def test_nobody_is_told_that_a_larger_limit_would_not_help_where_limits_had_a_quarter():
    seconds = {Cause.NO_GPUS: 56, Cause.USER_LIMIT: 24, Cause.GROUP_LIMIT: 18, Cause.DEFERRAL: 2}
    assert conclude(LEAST_JOBS, seconds) == Verdict(
        Conclusion.FULL_AND_LIMITS, 0.56, limits=pytest.approx(0.42)
    )


def test_without_a_half_the_largest_is_named():
    seconds = {Cause.GROUP_LIMIT: 40, Cause.NO_GPUS: 35, Cause.UNKNOWN: 25}
    assert conclude(50, seconds) == Verdict(Conclusion.MIXED, 0.4, Conclusion.GROUP_LIMIT)


def test_few_jobs_and_no_wait_say_nothing():
    assert conclude(LEAST_JOBS - 1, {Cause.NO_GPUS: 9}) == Verdict(Conclusion.TOO_FEW)
    assert conclude(50, dict.fromkeys(Cause, 0)) == Verdict(Conclusion.NO_WAIT)
