"""The shared poll: what it stores, and what silence must not end."""

from dataclasses import replace
from datetime import timedelta

from sqlalchemy import select

from gateway.errors import BrokerSilent
from gateway.services import link, poll_plan
from gateway.services import requeues as told_requeues
from gateway.store import jobs, polls
from gateway.store import models as t
from gateway.testing import builders as b
from gateway.testing.portal import CLUSTER, ask, portal
from gateway.wire import messages as m


def shows(site, *jobs):
    """Let the queue be just this."""
    site.broker.queue = lambda: m.Queue(jobs, site.now)


def requeues(begin):
    """The numbers of the restarts that stand in the histories of all jobs."""
    with begin() as session:
        query = select(t.Event.detail).where(t.Event.kind == "requeued").order_by(t.Event.id)
        return [detail["restart"] for detail in session.scalars(query)]


def hides(site):
    site.broker.queue = lambda: m.Queue((), site.now)


def test_a_job_that_starts_and_ends_is_followed(begin):
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.poll()
    assert site.jobs()[0].state == "RUNNING"
    site.broker.finish(1)
    assert site.poll().ended == 1
    (job,) = site.jobs()
    assert (job.state, job.active, job.end_time) == ("COMPLETED", False, site.now)


def test_an_unchanged_queue_writes_no_row(begin):
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.poll()
    site.broker.advance(15)
    again = site.poll()
    assert (again.added, again.changed, again.left) == (0, 0, 0)


def test_a_job_of_plain_sbatch_is_stored_too(begin):
    site = portal(begin)
    shows(site, b.queue_job())
    assert site.poll().added == 1
    (job,) = site.jobs()
    assert (job.template, job.token, job.user) == (None, None, "nlp-1")


def test_an_empty_answer_ends_nothing(begin):
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.poll()
    hides(site)
    assert site.poll().left == 1
    (job,) = site.jobs()
    assert (job.active, job.state) == (True, "RUNNING")
    assert job.left_queue_at is not None


def test_an_error_ends_nothing_and_is_noted(begin):
    site = portal(begin)
    site.submit()
    site.broker.unreachable = True
    assert site.poll().error_code == "slurm_unreachable"
    assert site.jobs()[0].active
    with begin() as session:
        assert polls.get(session, "queue").error_code == "slurm_unreachable"


def test_when_a_job_was_last_seen_is_kept_from_the_poll_before_it_went(begin):
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.poll()
    site.broker.advance(60)
    site.poll()
    seen = site.now
    hides(site)
    for _ in range(3):
        site.broker.advance(15)
        site.poll()
    assert site.jobs()[0].seen_at == seen


def test_a_job_that_comes_back_into_the_queue_is_no_longer_gone(begin):
    site = portal(begin)
    shows(site, b.queue_job())
    site.poll()
    hides(site)
    site.poll()
    shows(site, b.queue_job())
    site.poll()
    assert site.jobs()[0].left_queue_at is None


def test_a_requeue_is_the_same_job_with_a_later_submit_time(begin):
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.poll()
    first = site.jobs()[0].submit_time
    site.broker.preempt(1)
    site.poll()
    (job,) = site.jobs()
    assert (job.submit_time, job.last_submit_time, job.restarts) == (first, site.now, 1)
    assert (job.state, job.active) == ("PENDING", True)


def test_a_job_requeued_after_its_end_is_open_again(begin):
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.broker.finish(1)
    site.poll()
    site.broker.advance(5)
    site.broker.requeue(1, user="nlp-1")
    site.poll()
    (job,) = site.jobs()
    assert (job.active, job.restarts, job.end_time) == (True, 1, None)


def test_an_old_answer_does_not_open_an_ended_job_again(begin):
    site = portal(begin)
    running = b.queue_job(state="RUNNING", start_time=b.NOW)
    shows(site, replace(running, state="COMPLETED", end_time=b.NOW + timedelta(minutes=5)))
    site.poll()
    shows(site, running)
    site.poll()
    (job,) = site.jobs()
    assert (job.active, job.state) == (False, "COMPLETED")


def test_a_requeue_seen_while_its_old_run_completes_is_one_job(begin):
    """Seen on a real cluster: the restart is counted before the submit time moves."""
    site = portal(begin)
    running = b.queue_job(state="RUNNING", start_time=b.NOW, node_list="a100-1")
    shows(site, running)
    site.poll()
    shows(site, replace(running, state="COMPLETING", restarts=1))
    site.poll()
    shows(site, b.queue_job(submit_time=b.NOW + timedelta(minutes=1), restarts=1))
    site.poll()
    (job,) = site.jobs()
    assert (job.state, job.restarts) == ("PENDING", 1)
    assert requeues(begin) == [1]


def test_each_requeue_is_told_once_in_the_jobs_history(begin):
    site = portal(begin)
    site.submit()
    for count in (1, 2):
        site.broker.advance(600)
        site.poll()
        site.broker.preempt(1)
        for _ in range(2):
            site.poll()
            site.ingest()
        assert requeues(begin) == list(range(1, count + 1))
    with begin() as session:
        last = session.scalars(select(t.Event).where(t.Event.kind == "requeued")).all()[-1]
    assert last.at == site.jobs()[0].last_submit_time


def test_a_poll_that_was_compared_before_accounting_told_the_requeue_tells_it_not_again(begin):
    site = portal(begin)
    running = b.queue_job(state="RUNNING", start_time=b.NOW, node_list="a100-1")
    shows(site, running)
    site.poll()
    again = b.queue_job(submit_time=b.NOW + timedelta(minutes=1), restarts=1)
    with begin() as session:
        known = jobs.by_slurm_ids(session, CLUSTER, [running.job_id])
    plan = poll_plan.make(m.Queue((again,), b.NOW + timedelta(minutes=2)), known)
    (requeue,) = plan.requeues
    for _ in range(2):
        with begin() as session:
            told_requeues.tell(session, [requeue])
    assert requeues(begin) == [1]


def test_a_job_cancelled_while_it_waited_never_started(begin):
    """Seen on a real cluster: slurmctld gives it its end as its start."""
    site = portal(begin)
    end = b.NOW + timedelta(minutes=12)
    shows(site, b.queue_job(state="CANCELLED", start_time=end, end_time=end))
    site.poll()
    (job,) = site.jobs()
    assert (job.start_time, job.end_time, job.active) == (None, end, False)


def test_an_id_that_comes_again_is_another_job(begin):
    """A cluster whose state was cleared counts its job ids from 1 again (trap 16)."""
    site = portal(begin)
    shows(site, b.queue_job(1, state="COMPLETED", start_time=b.NOW, end_time=b.NOW))
    site.poll()
    later = b.NOW + timedelta(days=3)
    shows(site, b.queue_job(1, submit_time=later, name="other"))
    site.poll()
    old, new = site.jobs()
    assert (old.name, old.active, new.name, new.active) == ("own", False, "other", True)


def test_an_id_that_comes_again_does_not_end_the_job_that_had_it(begin):
    site = portal(begin)
    shows(site, b.queue_job(1, state="RUNNING", start_time=b.NOW))
    site.poll()
    shows(site, b.queue_job(1, submit_time=b.NOW + timedelta(hours=1), name="other"))
    site.poll()
    old, new = site.jobs()
    assert (old.active, old.left_queue_at is not None, new.active) == (True, True, True)


def test_a_requeue_of_the_job_that_has_the_id_again_is_not_taken_for_the_old_one(begin):
    site = portal(begin)
    shows(site, b.queue_job(1, state="COMPLETED", start_time=b.NOW, end_time=b.NOW))
    site.poll()
    later = b.NOW + timedelta(days=3)
    shows(site, b.queue_job(1, submit_time=later, restarts=1))
    site.poll()
    assert len(site.jobs()) == 2


def test_a_pending_array_is_one_row_that_counts_all_its_tasks(begin):
    """Case 5: 37 tasks of 2 GPUs want 74."""
    site = portal(begin)
    shows(site, b.queue_job(900, array_job_id=900, array_tasks=37))
    site.poll()
    (job,) = site.jobs()
    assert (job.array_job_id, job.array_tasks) == (900, 37)
    with begin() as session:
        (row,) = session.scalars(select(t.QueueNow))
        assert (row.jobs, row.gpus, row.state) == (37, 74, "PENDING")


def test_a_task_that_leaves_its_array_is_a_row_of_its_own(begin):
    site = portal(begin)
    shows(site, b.queue_job(900, array_job_id=900, array_tasks=3))
    site.poll()
    shows(
        site,
        b.queue_job(900, array_job_id=900, array_tasks=2),
        b.queue_job(901, array_job_id=900, array_task=1, state="RUNNING", start_time=b.NOW),
    )
    site.poll()
    assert [(job.slurm_id, job.array_task, job.array_tasks) for job in site.jobs()] == [
        (900, None, 2),
        (901, 1, None),
    ]


def test_a_small_step_of_priority_is_not_worth_a_write(begin):
    site = portal(begin)
    shows(site, b.queue_job(priority=1000))
    site.poll()
    shows(site, b.queue_job(priority=1010))
    assert site.poll().changed == 0
    shows(site, b.queue_job(priority=2000))
    assert site.poll().changed == 1
    shows(site, b.queue_job(priority=2000, estimated_start=b.NOW))
    assert site.poll().changed == 1


def test_the_queue_links_a_job_whose_answer_was_lost(begin):
    site = portal(begin)
    site.broker.silent_after_next()
    submission_id = site.submit()
    site.poll()
    (job,) = site.jobs()
    submission = site.submission(submission_id)
    assert (submission.state, submission.job_id, job.template) == ("accepted", job.id, "ddp")


def test_a_job_that_the_broker_cancelled_for_a_difference_stays_refused(begin):
    site = portal(begin)
    site.broker.refuse_next("accepted_differs")
    submission_id = site.submit()
    token = site.submission(submission_id).token
    shows(
        site,
        b.queue_job(
            state="CANCELLED", comment=f"sluice:{token}", submit_time=site.now, end_time=b.NOW
        ),
    )
    site.poll()
    submission = site.submission(submission_id)
    assert (submission.state, submission.error_code) == ("refused", "accepted_differs")
    assert submission.job_id == site.jobs()[0].id


def test_a_stranger_who_copies_a_token_is_not_the_submission(begin):
    site = portal(begin)
    site.broker.silent_before_next()
    submission_id = site.submit()
    token = site.submission(submission_id).token
    shows(site, b.queue_job(user="vision-1", comment=f"sluice:{token}", submit_time=site.now))
    site.poll()
    assert site.submission(submission_id).state == "unknown"


def test_a_second_job_with_a_token_is_cancelled_before_it_starts(begin):
    """Case 17: duplicates found later are reported and the unstarted one cancelled."""
    site = portal(begin)
    submission_id = site.submit()
    twin = site.broker.jobs[1]
    site.broker.jobs[2] = replace(twin, job_id=2, runs=[])
    report = site.poll()
    assert [duplicate.slurm_id for duplicate in report.duplicates] == [2]
    link.cancel_duplicates(report.duplicates, begin=begin, broker=site.broker, now=site.now)
    assert site.broker.jobs[2].state == "CANCELLED"
    assert site.broker.jobs[1].state == "RUNNING"
    assert "duplicate_cancelled" in site.events(submission_id)
    site.poll()
    assert site.poll().duplicates == ()


def test_a_second_job_that_runs_already_is_left_to_its_owner(begin):
    site = portal(begin)
    site.submit()
    twin = site.broker.jobs[1]
    site.broker.jobs[2] = replace(twin, job_id=2, runs=[])
    site.broker.advance(5)
    assert site.poll().duplicates == ()


def test_a_wish_is_met_by_one_read_that_began_after_it(begin):
    site = portal(begin)
    with begin() as session:
        polls.want(session, "queue", now=site.now)
        polls.want(session, "queue", now=site.now + timedelta(seconds=5))
        assert polls.get(session, "queue").wanted_at == site.now
    site.poll()
    with begin() as session:
        assert polls.get(session, "queue").wanted_at is None


def test_a_wish_made_while_a_read_runs_stays(begin):
    site = portal(begin)
    began = site.now
    real = site.broker.queue

    def slow():
        answer = real()
        with begin() as session:
            polls.want(session, "queue", now=began + timedelta(seconds=1))
        return answer

    site.broker.queue = slow
    site.poll()
    with begin() as session:
        assert polls.get(session, "queue").wanted_at is not None


def test_a_fresh_submission_is_watched_closely(begin):
    site = portal(begin)
    site.submit()
    site.poll()
    with begin() as session:
        assert polls.get(session, "queue").wanted_at is not None
    site.broker.advance(60)
    site.poll()
    with begin() as session:
        assert polls.get(session, "queue").wanted_at is None


def test_killed_between_the_rows_and_the_end_the_next_poll_finishes(begin):
    site = portal(begin)
    site.submit(ask(nodes="1"), key="one")
    site.submit(ask(nodes="1"), key="two")
    site.broker.advance(5)
    with _DiesAt(begin, 4) as dying:
        _raises(KeyboardInterrupt, lambda: replace_begin(site, dying).poll())
    report = site.poll()
    assert report.error_code is None
    assert [job.state for job in site.jobs()] == ["RUNNING", "RUNNING"]


def test_an_empty_list_of_accounts_locks_nobody_out(begin):
    site = portal(begin)
    site.broker.associations = tuple
    site.poll_policy()
    site.submit()
    with begin() as session:
        assert polls.get(session, "policy").error_code == "empty_answer"


def test_a_silent_read_of_the_nodes_keeps_the_last_ones(begin):
    site = portal(begin)

    def silent():
        raise BrokerSilent("nodes")

    site.broker.nodes = silent
    site.poll_policy()
    with begin() as session:
        assert len(list(session.scalars(select(t.NodeNow)))) == 7
        assert polls.get(session, "cluster").error_code == "slurm_unknown"


class _DiesAt:
    """A store that dies at its nth transaction."""

    def __init__(self, begin, number):
        self._begin, self._left = begin, number

    def __enter__(self):
        return self._call

    def __exit__(self, *_):
        return False

    def _call(self):
        self._left -= 1
        if self._left == 0:
            raise KeyboardInterrupt
        return self._begin()


def replace_begin(site, begin):
    return replace(site, begin=begin)


def _raises(kind, call):
    try:
        call()
    except kind:
        return
    raise AssertionError("did not die")


def test_an_answer_from_before_a_requeue_is_not_believed(begin):
    """Two polls may be under way: the older one's answer comes last."""
    site = portal(begin)
    shows(site, b.queue_job(state="RUNNING", start_time=b.NOW, node_list="a100-1"))
    site.poll()
    later = b.NOW + timedelta(hours=1)
    shows(site, b.queue_job(submit_time=later, eligible_time=later, restarts=1))
    site.poll()
    shows(site, b.queue_job(state="RUNNING", start_time=b.NOW, node_list="a100-1"))
    site.poll()
    (job,) = site.jobs()
    assert (job.state, job.last_submit_time, job.restarts) == ("PENDING", later, 1)


def test_a_job_that_is_not_stored_yet_settles_no_submission(begin):
    site = portal(begin)
    site.broker.silent_before_next()
    submission_id = site.submit()
    token = site.submission(submission_id).token
    seen = poll_plan.sightings(m.Queue((b.queue_job(comment=f"sluice:{token}"),), site.now))
    with begin() as session:
        assert link.link(session, seen, cluster=CLUSTER, now=site.now) == ()
    assert site.submission(submission_id).state == "unknown"
