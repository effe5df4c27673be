"""`sluice results`: what jobs reported, and jobs side by side."""

from datetime import timedelta

import pytest

from gateway.services import poll, training
from gateway.testing import builders as b
from gateway.testing.fakebroker import FakeBroker
from gateway.testing.result_samples import fill_results
from tests.cli.test_money_commands import begin, run, told

__all__ = ["begin"]

BY = ("--by", "nlp-1")


@pytest.fixture
def numbers(begin):
    """Slurm's numbers of jobs that reported results."""
    broker = FakeBroker()
    poll.poll_cluster(begin=begin, broker=broker, now=broker.now)
    poll.poll_policy(begin=begin, broker=broker, now=broker.now)
    for login in ("nlp-1", "vision-1"):
        b.add_person(begin, login)
    fill_results(begin, broker.files, now=broker.now)
    for _ in range(3):
        training.follow(begin=begin, read=begin, broker=broker, now=broker.now, budget_seconds=60.0)
        broker.now += timedelta(seconds=training.SLOWEST_SECONDS)
    with begin() as session:
        found = session.query(b.t.Job.slurm_id).order_by(b.t.Job.id).all()
    return [str(row[0]) for row in found]


def test_what_a_job_reported(numbers):
    found = told("results", "show", numbers[0], *BY)
    results = {one["name"]: one for one in found["results"]}
    assert results["val/loss"]["count"] == 21
    assert results["grad_norm"]["not_finite"] == 1
    text = run("results", "show", numbers[0], *BY).output
    assert "val/loss" in text
    assert "Traceback" not in text


def test_jobs_side_by_side(numbers):
    found = told("results", "compare", *numbers[:2], *BY)
    assert [str(one["slurm_id"]) for one in found["jobs"]] == numbers[:2]
    assert "* " in run("results", "compare", *numbers[:2], *BY).output


@pytest.mark.parametrize("words", [("show", "999999"), ("compare", "999999")])
def test_a_job_that_is_none_is_told(numbers, words):
    done = run("results", *words, *BY)
    assert done.exit_code != 0
    assert "Traceback" not in done.output


def test_who_may_not_see_a_job_is_told_nothing(numbers):
    assert run("results", "show", numbers[0], "--by", "vision-1").exit_code != 0
    assert run("results", "compare", *numbers[:2], "--by", "vision-1").exit_code != 0


def test_no_more_than_eight(numbers):
    done = run("results", "compare", *map(str, range(1, 11)), *BY)
    assert done.exit_code == 2
    assert "At most 8" in done.output
