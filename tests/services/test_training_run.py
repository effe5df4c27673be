"""One run over its jobs: what adds up, and that it is the charges that are shared out."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from gateway.core.goodput import Use
from gateway.services import costs, settle, training
from gateway.services.training_run import TrainingRun, training_run
from gateway.store import models as t
from gateway.store import money_models as mm
from gateway.store.queries import training as reads
from gateway.store.uow import Begin
from gateway.testing import builders as b
from gateway.testing import money
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.training import add_portal_job, run_folder
from gateway.testing.training_samples import RUN, TrainingSample, fill_training

HOUR = timedelta(hours=1)
USER = "nlp-1"


def read_all(begin: Begin, broker: FakeBroker) -> None:
    now = b.NOW
    for _ in range(20):
        report = training.follow(
            begin=begin, read=begin, broker=broker, now=now, budget_seconds=60.0
        )
        now += timedelta(seconds=training.SLOWEST_SECONDS)
        if not report.jobs:
            return


@pytest.fixture
def broker() -> FakeBroker:
    return FakeBroker(now=b.NOW)


@pytest.fixture
def sample(begin: Begin, broker: FakeBroker) -> TrainingSample:
    money.one_credit_an_hour(begin)
    made = fill_training(begin, broker.files, now=b.NOW, user=USER)
    settle.settle(begin=begin, now=b.NOW)
    read_all(begin, broker)
    return made


def look(begin: Begin, job_id: int) -> TrainingRun:
    with begin() as session:
        return training_run(session, job_id, viewer=b.viewer(USER), now=b.NOW)


def test_the_parts_are_exactly_what_was_charged(begin: Begin, sample: TrainingSample) -> None:
    run = look(begin, sample.first)
    with begin() as session:
        charges = session.scalars(select(mm.Charge.card_seconds).order_by(mm.Charge.run_id)).all()
    charged = [one for one in run.stretches if one.is_charged]
    assert [one.goodput.total for one in charged] == list(charges)
    assert len(charges) == 2
    assert run.own.total == sum(charges)


def test_one_bill_is_the_sum_of_the_jobs_bills(begin: Begin, sample: TrainingSample) -> None:
    run = look(begin, sample.second)
    assert run.cost is not None
    with begin() as session:
        each = costs.of_jobs(session, run.jobs, now=b.NOW) or {}
    assert set(each) == {sample.first, sample.second}
    assert run.cost.total == sum(one.total or 0 for one in each.values())
    assert run.cost.charged == 15 * 16 * 1_000_000
    assert run.cost.accrued == 3 * 16 * 1_000_000


def test_waits_runs_and_steps_add_up_over_the_jobs(begin: Begin, sample: TrainingSample) -> None:
    run = look(begin, sample.second)
    assert run.name == RUN
    assert [one.state for one in run.stretches] == ["PREEMPTED", "TIMEOUT", "RUNNING"]
    assert run.ran == 18 * HOUR
    assert run.waited == timedelta(minutes=50 + 38 + 60)
    assert run.restarts == 2
    lost = [one.lost for one in run.stretches]
    assert lost[0] is None
    assert lost[1] == (run.stretches[0].reached or 0) - (run.stretches[1].resumed or 0)
    assert lost[1] is not None
    assert lost[1] > 0
    assert lost[2] == 0
    assert run.steps_lost == lost[1]
    assert run.step == sample.step


def test_each_use_is_found_where_the_sample_has_it(begin: Begin, sample: TrainingSample) -> None:
    first, second, third = (one.goodput for one in look(begin, sample.second).stretches)
    assert first.parts[Use.STALLED] == first.parts[Use.REPEATED] == 0
    # From the last step, 25 s before it goes silent, to the first one after 25 + 1 minutes.
    assert second.parts[Use.STALLED] == (25 + 26 * 60) * 16
    assert second.parts[Use.REPEATED] > 0
    assert third.parts[Use.STARTING] == 95 * 16
    assert third.share(Use.USEFUL) > 0.95


def test_both_jobs_tell_the_same_whole(begin: Begin, sample: TrainingSample) -> None:
    one, other = look(begin, sample.first), look(begin, sample.second)
    assert one.goodput == other.goodput
    assert one.jobs == other.jobs
    assert one.checkpoints == other.checkpoints
    assert one.events != other.events


@pytest.mark.parametrize(
    "other",
    [
        {"user": "nlp-2"},
        {"run": "another"},
        {"run": None},
        {"working_directory": f"/home/{USER}/elsewhere"},
        {"array_job_id": 900, "array_task": 1, "slurm_id": 901},
    ],
)
def test_only_jobs_of_the_same_person_name_folder_and_task_are_one_run(
    begin: Begin, other: dict[str, object]
) -> None:
    job = add_portal_job(begin, USER, run="long", working_directory="/home/shared")
    facts = {"user": USER, "run": "long", "working_directory": "/home/shared"} | other
    add_portal_job(begin, **facts)  # type: ignore[arg-type]
    with begin() as session:
        name, found = reads.linked(session, job)
    assert name == "long"
    assert [one.row.id for one in found] == [job]


def test_somebody_elses_job_with_our_token_joins_no_run(begin: Begin) -> None:
    job = add_portal_job(begin, USER, run="long")
    with begin() as session:
        token = session.get_one(t.Job, job).token
    b.add_job(begin, user="nlp-2", token=token, start_time=b.NOW, state="RUNNING")
    with begin() as session:
        assert [one.row.id for one in reads.linked(session, job)[1]] == [job]


def test_without_prices_and_without_a_word_all_is_not_measured(
    begin: Begin, broker: FakeBroker
) -> None:
    job = add_portal_job(begin, USER, start_time=b.NOW - HOUR, gpus=4)
    run = look(begin, job)
    assert run.cost is None
    assert run.goodput.parts[Use.NOT_MEASURED] == run.goodput.total == 4 * 3600
    assert (run.step, run.steps_lost, run.model) == (None, None, None)


def test_a_script_without_the_library_has_a_start_and_idle_minutes(
    begin: Begin, broker: FakeBroker
) -> None:
    job = add_portal_job(begin, USER, start_time=b.NOW - HOUR, gpus=1)
    folder = run_folder(begin, broker.files, job)
    folder.event(b.NOW - HOUR + timedelta(seconds=30), "start", nodes=1)
    for minute in range(60):
        at = b.NOW - HOUR + timedelta(minutes=minute, seconds=5)
        folder.look(at, "a100-1", 0.0 if 20 <= minute < 30 else 80.0)
    with begin() as session:
        session.query(t.Job).filter(t.Job.id == job).update({"submit_time": b.NOW - 2 * HOUR})
    read_all(begin, broker)
    parts = look(begin, job).goodput.parts
    assert (parts[Use.STARTING], parts[Use.IDLE]) == (30, 600)
    assert parts[Use.USEFUL] == 0
