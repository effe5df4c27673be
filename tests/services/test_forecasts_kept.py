"""Forecasts of waiting jobs: made anew, kept once an hour, and what came of them."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from gateway.core.forecast import Ask, Forecast, ForecastSource, NoForecast
from gateway.services import forecast_keep, forecast_submit
from gateway.store import forecasts
from gateway.store.forecast_models import StartForecast
from gateway.store.models import Job, Submission
from gateway.store.queries import forecasts as reads
from gateway.store.uow import Begin, make_begin
from gateway.testing import builders as b
from gateway.testing.database import database

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NOW = b.NOW


class Rule:
    """Ten minutes a card and no other rule: what it was asked is kept."""

    version: str | None = "rule"

    def __init__(self) -> None:
        self.asked: list[Ask] = []

    def forecast(self, asks: Sequence[Ask]) -> list[Forecast | NoForecast]:
        self.asked = list(asks)
        return [
            NoForecast.TOO_THIN
            if one.partition == "quiet"
            else Forecast(600 * one.gpus, 1800 * one.gpus, ForecastSource.HISTORY, 300)
            for one in asks
        ]


@pytest.fixture
def begin(tmp_path):
    with database(tmp_path) as engine:
        yield make_begin(engine)


def waiting(begin: Begin, **values: object) -> int:
    given = {"state": "PENDING", "active": True, "submit_time": NOW, "last_submit_time": NOW}
    given |= {"eligible_time": NOW, "start_time": None, "end_time": None, "reason": "Priority"}
    return b.add_job(begin, **(given | values))


def renew(begin: Begin, now) -> forecast_keep.Report:
    return forecast_keep.renew(forecaster=Rule(), begin=begin, read=begin, now=now)


def kept(begin: Begin) -> list[StartForecast]:
    with begin() as session:
        return list(session.query(StartForecast).order_by(StartForecast.id))


def change(begin: Begin, job_id: int, **values: object) -> None:
    with begin() as session:
        for name, value in values.items():
            setattr(session.get_one(Job, job_id), name, value)


def newest(begin: Begin, job_id: int):
    with begin() as session:
        return reads.newest(session, job_id)


def test_the_newest_is_shown_and_one_an_hour_is_kept(begin):
    job = waiting(begin, gpus=2)
    for minutes in range(0, 125, 5):
        renew(begin, NOW + minutes * MINUTE)
    assert [one.made_at for one in kept(begin)] == [NOW, NOW + HOUR, NOW + 2 * HOUR]
    assert [one.moment for one in kept(begin)] == ["submit", "waiting", "waiting"]
    shown = newest(begin, job)[ForecastSource.HISTORY]
    assert shown.made_at == NOW + 2 * HOUR
    assert shown.p50_at == shown.made_at + 20 * MINUTE


def test_slurms_plan_is_kept_beside_ours(begin):
    job = waiting(begin, gpus=1, estimated_start=NOW + 3 * HOUR)
    renew(begin, NOW)
    assert {one.source: one.p50_at for one in kept(begin)} == {
        "history": NOW + 10 * MINUTE,
        "slurm": NOW + 3 * HOUR,
    }
    change(begin, job, estimated_start=NOW - MINUTE)
    renew(begin, NOW + MINUTE)
    assert set(newest(begin, job)) == {ForecastSource.HISTORY}  # a plan that is past is none


def test_a_job_of_long_ago_was_not_forecast_at_its_submit(begin):
    waiting(begin, submit_time=NOW - HOUR, last_submit_time=NOW - HOUR)
    renew(begin, NOW)
    assert [one.moment for one in kept(begin)] == ["waiting"]


@pytest.mark.parametrize("reason", ["Dependency", "JobHeldUser", "BeginTime"])
def test_what_waits_for_its_own_person_has_no_forecast(begin, reason):
    job = waiting(begin, reason=reason)
    renew(begin, NOW)
    assert (kept(begin), newest(begin, job)) == ([], {})


@pytest.mark.parametrize(
    ("values", "why"),
    [({"reason": "PartitionTimeLimit"}, "never"), ({"partition": "quiet"}, "too_thin")],
)
def test_where_there_is_no_number_the_reason_is_told(begin, values, why):
    job = waiting(begin, **values)
    renew(begin, NOW)
    assert kept(begin) == []
    assert newest(begin, job)[ForecastSource.HISTORY].why == why


def test_a_start_is_what_came_of_all_of_them(begin):
    job = waiting(begin)
    renew(begin, NOW)
    renew(begin, NOW + HOUR)
    change(begin, job, state="RUNNING", start_time=NOW + 90 * MINUTE)
    assert renew(begin, NOW + 2 * HOUR).resolved == 2
    assert {one.started_at for one in kept(begin)} == {NOW + 90 * MINUTE}
    assert newest(begin, job) == {}
    assert renew(begin, NOW + 3 * HOUR).resolved == 0


def test_a_requeue_is_a_second_wait(begin):
    """The forecasts of the first wait have the first start, those of the second the second."""
    job = waiting(begin)
    renew(begin, NOW)
    again = NOW + 5 * HOUR
    b.add_run(begin, job, submit_time=NOW, eligible_time=NOW, start_time=NOW + HOUR, end_time=again)
    change(begin, job, last_submit_time=again, eligible_time=again, restarts=1)
    renew(begin, again)
    change(begin, job, state="RUNNING", start_time=again + HOUR)
    renew(begin, again + 2 * HOUR)
    assert [one.started_at for one in kept(begin)] == [NOW + HOUR, again + HOUR]


def test_who_leaves_never_started(begin):
    job = waiting(begin)
    renew(begin, NOW)
    change(begin, job, state="CANCELLED", active=False, end_time=NOW + 20 * MINUTE)
    renew(begin, NOW + HOUR)
    ((started, left),) = [(one.started_at, one.left_at) for one in kept(begin)]
    assert (started, left) == (None, NOW + 20 * MINUTE)


def test_what_a_form_showed_is_the_jobs_first_forecast(begin):
    person = b.add_person(begin)
    asked = Ask(NOW, "nlp", "a100", "normal", 2, None, 1, 8, 600)
    submission = b.add_submission(begin, person)
    for _ in range(2):  # a form that is posted twice
        forecast_submit.keep(
            submission,
            asked,
            ours=Forecast(60, 600, ForecastSource.HISTORY, 300),
            model="rule",
            slurm=NOW + HOUR,
            begin=begin,
        )
    job = waiting(begin)
    with begin() as session:
        session.get_one(Submission, submission).job_id = job
    renew(begin, NOW + MINUTE)
    found = kept(begin)
    assert [(one.source, one.job_id, one.moment) for one in found] == [
        ("history", job, "submit"),
        ("slurm", job, "submit"),
    ]
    with begin() as session:
        assert len(reads.of_job(session, job, submission)) == 2


def test_an_array_is_shown_one_and_none_is_kept(begin):
    job = waiting(begin, array_job_id=500, array_task=None, array_tasks=20)
    renew(begin, NOW)
    assert kept(begin) == []
    assert newest(begin, job)


def test_old_ones_are_forgotten(begin):
    waiting(begin)
    renew(begin, NOW)
    forecast_keep.prune(begin=begin, now=NOW + timedelta(days=179))
    assert kept(begin)
    forecast_keep.prune(begin=begin, now=NOW + timedelta(days=181))
    assert not kept(begin)


def test_of_too_many_jobs_those_without_points_are_left_out(begin):
    held, low, high = (waiting(begin, priority=points) for points in (None, 1, 9))
    with begin() as session:
        assert [row.id for row in forecasts.waiting(session, most=2)] == [high, low]
        assert [row.id for row in forecasts.waiting(session, most=3)][-1] == held
