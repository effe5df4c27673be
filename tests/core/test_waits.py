"""Cases 3, 4 and 6: deferral is no queue wait, unstarted jobs have none, runs are apart."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.waits import RunTimes, job_waits, waits

NOW = datetime(2026, 3, 2, 20, tzinfo=UTC)


def at(clock: str) -> datetime:
    return datetime.fromisoformat(f"2026-03-02T{clock}+00:00")


def hm(hours: int, minutes: int = 0) -> timedelta:
    return timedelta(hours=hours, minutes=minutes)


def test_waiting_for_ones_own_predecessor_is_deferral() -> None:
    got = waits(at("08:00:00"), at("13:00:00"), at("13:07:00"), None, NOW)
    assert got.queue_wait == hm(0, 7)
    assert got.deferral == hm(5)


def test_a_held_job_that_is_cancelled_has_no_queue_wait() -> None:
    got = waits(at("09:00:00"), None, None, at("11:00:00"), NOW)
    assert got.queue_wait is None
    assert got.deferral == hm(2)
    assert got.gave_up_after is None
    assert got.run_time == hm(0)


def test_a_begin_time_is_deferral() -> None:
    got = waits(at("09:00:00"), at("11:00:00"), at("11:01:00"), None, at("12:00:00"))
    assert got.queue_wait == hm(0, 1)
    assert got.deferral == hm(2)
    assert got.run_time == hm(0, 59)


def test_a_begin_time_ahead_has_deferred_only_until_now() -> None:
    got = waits(at("09:00:00"), at("11:00:00"), None, None, at("10:00:00"))
    assert got.deferral == hm(1)
    assert got.waiting_so_far is None


def test_cancelled_while_pending_gave_up_and_ran_for_nothing() -> None:
    got = waits(at("10:30:00"), at("10:30:00"), None, at("10:42:10"), NOW)
    assert got.queue_wait is None
    assert got.run_time == timedelta(0)
    assert got.gave_up_after == timedelta(seconds=730)
    assert got.deferral == timedelta(0)


def test_a_pending_job_waits_so_far() -> None:
    got = waits(at("10:30:00"), at("10:30:00"), None, None, at("11:00:00"))
    assert (got.queue_wait, got.run_time, got.waiting_so_far) == (None, None, hm(0, 30))


def test_an_end_ahead_is_a_forecast() -> None:
    got = waits(at("09:00:00"), at("09:00:00"), at("09:05:00"), at("23:00:00"), at("10:05:00"))
    assert got.run_time == hm(1)


def test_slurms_elapsed_wins_over_the_clock() -> None:
    got = waits(at("09:00:00"), at("09:00:00"), at("10:00:00"), at("14:00:00"), NOW, elapsed=hm(3))
    assert got.run_time == hm(3)


PREEMPTED_RUN = RunTimes(at("08:30:00"), at("08:30:00"), at("09:00:00"), at("10:00:00"))
SECOND_RUN = RunTimes(at("10:00:00"), at("10:02:00"), at("12:00:00"), at("15:00:00"))


def test_a_requeued_job_is_one_job_of_two_runs() -> None:
    got = job_waits([SECOND_RUN, PREEMPTED_RUN], NOW)
    assert got.submit == at("08:30:00")
    assert got.first.queue_wait == hm(0, 30)
    assert got.requeue_waits == (hm(1, 58),)
    assert got.run_time == hm(4)
    assert got.runs == 2
    assert not got.requeued_waiting


def test_between_its_runs_it_is_requeued_and_waiting() -> None:
    again = RunTimes(at("10:00:00"), at("10:02:00"), None, None)
    got = job_waits([PREEMPTED_RUN, again], at("11:00:00"))
    assert got.requeued_waiting
    assert got.runs == 1
    assert got.requeue_waits == ()
    assert got.run_time == hm(1)


def test_a_job_that_never_started_has_no_runs() -> None:
    got = job_waits([RunTimes(at("10:00:00"), at("10:00:00"), None, None)], at("11:00:00"))
    assert (got.runs, got.run_time, got.requeued_waiting) == (0, None, False)


moments = st.integers(0, 10**6).map(lambda s: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(0, s))


@given(moments, st.none() | moments, st.none() | moments, st.none() | moments, moments)
def test_no_wait_is_ever_negative(
    submit: datetime,
    eligible: datetime | None,
    start: datetime | None,
    end: datetime | None,
    now: datetime,
) -> None:
    got = waits(submit, eligible, start, end, now)
    each = (got.queue_wait, got.deferral, got.run_time, got.waiting_so_far, got.gave_up_after)
    assert all(value is None or value >= timedelta(0) for value in each)
    if start is None:
        assert got.queue_wait is None
