"""A sweep from the form to its tasks: one submission, an array, each task charged and linked."""

from datetime import timedelta

import pytest

from gateway.core.credits import MILLION
from gateway.services import act, credit
from gateway.services.draft import InvalidAsk
from gateway.services.environments import NONE
from gateway.services.preview import preview
from gateway.services.submit import ask_of_job
from gateway.services.verify import verify
from gateway.store import gate_facts
from gateway.store.queries import job as reads
from gateway.testing.money import balance, one_credit_an_hour
from gateway.testing.portal import ask, portal

TABLE = 'lr,note\n0.1,"two words, $HOME"\n0.01,it\'s\n0.001,\n'


def sweep(**values):
    typed = {"script": "train.py", "table": TABLE, "max_at_once": "2"} | values
    return ask(template="sweep", nodes="1", nproc_per_node="1", time_limit="1:00:00", values=typed)


@pytest.fixture
def site(begin):
    return portal(begin)


def look(site, wanted):
    return preview(
        wanted,
        viewer=site.viewer,
        begin=site.begin,
        catalogue=site.catalogue,
        environments=(NONE,),
    )


def test_a_row_is_a_task_and_each_gets_its_own_words(site):
    made = site.submission(site.submit(sweep()))
    assert made.request["array"] == "0-2%2"
    assert made.request["output"].endswith("/train-%A_%a.out")
    assert "\n#SBATCH --array=0-2%2\n" in made.script
    assert "\nrow --lr=0.1 '--note=two words, $HOME'\n" in made.script
    assert """\nrow --lr=0.01 '--note=it'"'"'s'\n""" in made.script
    assert "\nrow --lr=0.001 --note=\n" in made.script


def test_the_tasks_run_two_at_a_time_and_belong_to_the_submission(site):
    submission = site.submission(site.submit(sweep()))
    site.broker.advance(1)
    site.poll()
    states = {(job.slurm_id, job.array_task, job.state) for job in site.jobs()}
    assert states == {(1, None, "PENDING"), (2, 0, "RUNNING"), (3, 1, "RUNNING")}
    assert {job.token for job in site.jobs()} == {submission.token}
    assert {job.array_job_id for job in site.jobs()} == {1}
    assert {job.template for job in site.jobs()} == {"sweep"}
    assert site.submission(submission.id).job_id == site.jobs()[0].id
    outputs = {job.slurm_id: job.output for job in site.jobs()}
    assert outputs[3].endswith("/train-1_1.out")


def test_a_longer_limit_of_the_array_is_paid_for_its_later_tasks_and_not_for_the_earlier(site):
    one_credit_an_hour(site.begin, "a100", "rtx4090", starts=site.now - timedelta(days=1))
    credit.top_up("nlp", 20 * MILLION, begin=site.begin, now=site.now)
    site.submit(sweep(table=TABLE + "0.5,later\n"))
    site.broker.advance(60)
    site.poll()
    (array,) = [job for job in site.jobs() if job.array_task is None]
    act.act(
        array.id,
        "set_time_limit",
        minutes=120,
        viewer=site.viewer,
        begin=site.begin,
        broker=site.broker,
        now=site.now,
    )
    site.broker.advance(60)
    site.broker.finish(2)
    site.broker.advance(60)
    site.poll()
    jobs = site.jobs()
    tasks = {job.array_task: job for job in jobs}
    assert tasks[2].time_limit_minutes == 120
    assert tasks[2].id != array.id
    with site.begin() as session:
        paid = gate_facts.limits_paid_for(session, [job.id for job in jobs])
    assert paid == {array.id: 120, tasks[2].id: 120}


def test_from_a_task_the_whole_array_is_cancelled_and_all_held_credit_comes_back(site):
    one_credit_an_hour(site.begin, "a100", "rtx4090", starts=site.now - timedelta(days=1))
    credit.top_up("nlp", 10 * MILLION, begin=site.begin, now=site.now)
    site.submit(sweep())
    site.broker.advance(60)
    site.poll()
    task = next(job for job in site.jobs() if job.array_task == 0)
    act.act(
        task.id,
        "cancel_array",
        viewer=site.viewer,
        begin=site.begin,
        broker=site.broker,
        now=site.now,
    )
    assert {job.state for job in site.broker.jobs.values()} == {"CANCELLED"}
    site.work()
    assert {job.state for job in site.jobs()} == {"CANCELLED"}
    spent = sum(cost_of(run.elapsed_seconds) for run in site.runs())
    assert balance(site.begin, "nlp") == 10 * MILLION - spent
    assert verify(read=site.begin).broken == ()


def test_the_page_of_a_task_knows_what_was_asked_for(site):
    submission = site.submission(site.submit(sweep()))
    site.broker.advance(1)
    site.poll()
    jobs = site.jobs()
    with site.begin() as session:
        for job in jobs:
            detail = reads.job(session, job.id)
            assert detail is not None
            assert detail.submission is not None
            assert detail.submission.row.id == submission.id
    again = ask_of_job(jobs[1].id, viewer=site.viewer, begin=site.begin)
    assert again.values["table"] == TABLE


def test_the_worst_case_of_every_task_is_held_and_each_is_charged(site):
    start = site.now - timedelta(days=1)
    one_credit_an_hour(site.begin, "a100", "rtx4090", starts=start)
    credit.top_up("nlp", 2 * MILLION, begin=site.begin, now=site.now)
    with pytest.raises(InvalidAsk) as caught:
        site.submit(sweep())
    assert [problem.code for problem in caught.value.problems] == ["not_enough_credit"]
    credit.top_up("nlp", 10 * MILLION, begin=site.begin, now=site.now)
    site.submit(sweep(), key="form-2")
    for _ in range(4):
        site.broker.advance(1800)
        for job in [job for job in site.broker.jobs.values() if job.state == "RUNNING"]:
            site.broker.finish(job.job_id)
        site.work()
    assert [(run.state, run.elapsed_seconds > 0) for run in site.runs()] == [
        ("COMPLETED", True)
    ] * 3
    spent = sum(cost_of(run.elapsed_seconds) for run in site.runs())
    assert balance(site.begin, "nlp") == 12 * MILLION - spent
    assert verify(read=site.begin).broken == ()


def cost_of(seconds):
    """One card at one credit an hour, rounded up."""
    return -(-seconds * MILLION // 3600)


@pytest.mark.parametrize(
    ("values", "field", "code"),
    [
        ({"table": ""}, "table", "field_required"),
        ({"table": "lr\n"}, "table", "table_no_rows"),
        ({"table": "lr\n" + "1\n" * 1001}, "table", "table_too_many_rows"),
        ({"max_at_once": "0"}, "max_at_once", "field_too_small"),
    ],
)
def test_a_table_that_is_no_array_is_told_at_its_field(site, values, field, code):
    seen = look(site, sweep(**values))
    assert [(problem.field, problem.code) for problem in seen.problems] == [(field, code)]
    assert seen.reading.array is None or field == "max_at_once"


def test_a_table_longer_than_the_sites_arrays_is_refused_with_a_sentence(site):
    site.broker.refuse_next("invalid_array")
    refused = site.submission(site.submit(sweep()))
    assert (refused.state, refused.error_code) == ("refused", "invalid_array")
