"""Accounting into jobs and runs: every row once, none dropped, nothing ended by silence."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from gateway.core.waits import waits as waits_of
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.services import ingest as ingesting
from gateway.services import reconcile
from gateway.services.ingest import store
from gateway.store import models as t
from gateway.store import polls
from gateway.testing.portal import CLUSTER, portal
from gateway.wire import messages as m

DAY = datetime(2026, 3, 2, tzinfo=UTC)
GPUS = "cpu=16,gres/gpu:a100=4,gres/gpu=4,node=1"


def at(clock: str) -> datetime:
    hours, minutes, *seconds = (int(part) for part in clock.split(":"))
    return DAY + timedelta(hours=hours, minutes=minutes, seconds=sum(seconds))


def record(job_id=50, **values):
    facts = {
        "job_id": job_id,
        "user": "nlp-1",
        "uid": 20002,
        "name": "train",
        "account": "nlp",
        "partition": "a100",
        "qos": "normal",
        "state": "COMPLETED",
        "submit_time": at("08:30"),
        "eligible_time": at("08:30"),
        "start_time": at("09:00"),
        "end_time": at("10:00"),
        "elapsed_seconds": 3600,
        "suspended_seconds": 0,
        "time_limit_minutes": 600,
        "nodes": 1,
        "cpus": 16,
        "alloc_tres": GPUS,
        "req_tres": GPUS,
        "node_list": "a100-1",
        "exit_code": 0,
        "exit_signal": 0,
        "restarts": 0,
        "reason": None,
        "working_directory": "/home/nlp-1",
        "comment": None,
    }
    return m.RunRecord(**(facts | values))


RUN_1 = record(state="PREEMPTED")
RUN_2 = record(
    submit_time=at("10:00"),
    eligible_time=at("10:02"),
    start_time=at("12:00"),
    end_time=at("15:00"),
    elapsed_seconds=3 * 3600,
    restarts=1,
)


def put(begin, *records, held=()):
    answer = m.Accounting(tuple(records), tuple(held), len(records) + len(held))
    return store(answer, begin=begin, cluster=CLUSTER, now=at("16:00"))


def only(session, kind):
    (found,) = session.scalars(select(kind))
    return found


@pytest.mark.parametrize("order", [(RUN_1, RUN_2), (RUN_2, RUN_1)])
@pytest.mark.parametrize("together", [True, False])
def test_a_preempted_job_has_two_runs_under_one_row(begin, order, together):
    """Case 6: 4 + 12 GPU-hours; the first submit is kept."""
    for part in [order] if together else [(one,) for one in order]:
        put(begin, *part)
    with begin() as session:
        job = only(session, t.Job)
        runs = list(session.scalars(select(t.Run).order_by(t.Run.submit_time)))
        assert [run.job_id for run in runs] == [job.id, job.id]
        assert [run.gpus * run.elapsed_seconds // 3600 for run in runs] == [4, 12]
        assert [run.state for run in runs] == ["PREEMPTED", "COMPLETED"]
        assert (job.submit_time, job.last_submit_time) == (at("08:30"), at("10:00"))
        assert (job.state, job.active, job.end_time) == ("COMPLETED", False, at("15:00"))


def test_a_job_of_three_runs_takes_the_middle_one_in_last(begin):
    second = replace(RUN_2, state="PREEMPTED")
    third = record(
        submit_time=at("15:00"), start_time=at("15:10"), restarts=2, end_time=at("16:00")
    )
    put(begin, RUN_1)
    put(begin, third)
    put(begin, second)
    with begin() as session:
        only(session, t.Job)
        assert session.scalar(select(func.count()).select_from(t.Run)) == 3


def test_a_preempted_run_does_not_end_a_job_that_may_be_queued_again(begin):
    """Case 6: between 10:00 and 12:00 it is requeued and waits."""
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.poll()
    site.broker.preempt(1)
    site.ingest()
    (job,) = site.jobs()
    assert (job.active, job.state) == (True, "PENDING")
    assert [run.state for run in site.runs()] == ["PREEMPTED"]
    site.poll()
    assert (site.jobs()[0].state, site.jobs()[0].restarts) == ("PENDING", 1)


def test_a_requeue_that_accounting_saw_first_is_told_once(begin):
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.poll()
    first = site.jobs()[0].submit_time
    runs = (
        record(1, state="PREEMPTED", submit_time=first, end_time=site.now),
        record(1, state="RUNNING", submit_time=site.now, restarts=1, end_time=None),
    )
    put(begin, *runs)
    put(begin, *runs)
    with begin() as session:
        (told,) = session.scalars(select(t.Event).where(t.Event.kind == "requeued"))
        assert (told.detail, told.at) == ({"restart": 1}, site.now)


def test_a_preempted_run_alone_does_not_end_a_job_that_the_queue_has(begin):
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.poll()
    start = site.jobs()[0].submit_time
    put(begin, record(1, state="PREEMPTED", submit_time=start, end_time=site.now))
    (job,) = site.jobs()
    assert (job.active, job.state) == (True, "RUNNING")


def test_a_preempted_job_that_the_queue_no_longer_has_is_over(begin):
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.poll()
    site.broker.jobs[1].request = _no_requeue(site.broker.jobs[1].request)
    site.broker.preempt(1)
    site.broker.advance(3600)
    site.poll()
    site.reconcile()
    (job,) = site.jobs()
    assert (job.active, job.state, job.left_queue_at) == (False, "PREEMPTED", None)


def test_a_job_cancelled_in_the_middle_of_a_requeue_keeps_the_queues_word(begin):
    """Seen on a real cluster: accounting's last word is REQUEUED then."""
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.broker.cancel(1, user="nlp-1")
    site.poll()
    put(begin, record(1, state="REQUEUED", submit_time=site.jobs()[0].submit_time))
    assert site.jobs()[0].state == "CANCELLED"


def test_a_job_cancelled_while_it_waited_has_no_run(begin):
    """Case 4: final state stored, run time 0, GPUs used 0, the wait undefined."""
    cancelled = record(
        state="CANCELLED by 60112",
        submit_time=at("10:30:00"),
        eligible_time=at("10:30:00"),
        start_time=None,
        end_time=at("10:42:10"),
        elapsed_seconds=0,
        nodes=0,
        node_list=None,
        alloc_tres="",
    )
    put(begin, cancelled)
    with begin() as session:
        job = only(session, t.Job)
        assert (job.state, job.active, job.start_time) == ("CANCELLED", False, None)
        assert (job.end_time - job.submit_time).total_seconds() == 730
        assert list(session.scalars(select(t.Run))) == []


@pytest.mark.parametrize("state", ["DEADLINE", "CANCELLED"])
def test_never_started_is_over_whatever_the_word(begin, state):
    put(begin, record(state=state, start_time=None, alloc_tres="", elapsed_seconds=0))
    with begin() as session:
        assert not only(session, t.Job).active


def test_deferral_and_queue_wait_are_two_numbers(begin):
    """Case 3 (a): 5 h deferred by the person, 7 minutes in the queue."""
    put(
        begin,
        record(
            submit_time=at("08:00"),
            eligible_time=at("13:00"),
            start_time=at("13:07"),
            end_time=at("14:00"),
        ),
    )
    with begin() as session:
        run = only(session, t.Run)
        waits = waits_of(
            run.submit_time, run.eligible_time, run.start_time, run.end_time, at("16:00")
        )
        assert (waits.deferral, waits.queue_wait) == (timedelta(hours=5), timedelta(minutes=7))


def test_a_held_job_that_was_cancelled_is_learned_of(begin):
    """Case 3 (b): eligible unknown; the portal must still learn of the cancel."""
    site = portal(begin)
    site.submit()
    site.broker.hold(1, user="nlp-1")
    site.poll()
    site.broker.advance(7200)
    site.broker.cancel(1, user="nlp-1")
    site.broker.advance(3600)
    site.poll()
    assert site.jobs()[0].active
    site.reconcile()
    (job,) = site.jobs()
    assert (job.state, job.active, job.eligible_time) == ("CANCELLED", False, None)


@pytest.mark.parametrize(
    "name", ["a|b", "x|COMPLETED|00:00:00|0", "run\r", "two\nlines", "名字", "train 🚀"]
)
def test_free_text_hides_no_job(begin, name):
    """Case 13: 8 GPUs for 6 h each time, the text as it was."""
    tres = "cpu=64,gres/gpu=8,node=1"
    put(
        begin,
        record(
            name=name,
            working_directory="d|1",
            alloc_tres=tres,
            req_tres=tres,
            end_time=at("15:00"),
            elapsed_seconds=6 * 3600,
        ),
    )
    with begin() as session:
        job, run = only(session, t.Job), only(session, t.Run)
        assert (job.name, job.working_directory) == (name, "d|1")
        assert run.gpus * run.elapsed_seconds == 48 * 3600


def test_a_row_that_cannot_be_read_is_kept_once(begin):
    row = m.HeldRow(raw="51|?|\x1f", reason="wrong number of fields")
    put(begin, record(), held=[row])
    put(begin, record(), held=[row])
    with begin() as session:
        held = only(session, t.HeldRow)
        assert (held.raw, held.reason) == (row.raw, row.reason)


def test_a_count_that_differs_is_an_alarm_and_is_kept(begin):
    site = portal(begin)
    site.broker.accounting = lambda **_: m.Accounting((record(),), (), 2)
    report = site.ingest()
    assert report.uncounted > 0
    with begin() as session:
        assert {held.reason for held in session.scalars(select(t.HeldRow))} == {
            "accounting_count_differs"
        }
        assert polls.get(session, "accounting").error_code == "accounting_count_differs"
        assert session.scalar(select(func.count()).select_from(t.Job)) == 1


def test_importing_twice_changes_nothing(begin):
    records = [RUN_1, RUN_2, record(51), record(52, start_time=None, state="CANCELLED")]
    assert put(begin, *records).changed > 0
    assert put(begin, *records).changed == 0


def test_an_id_that_comes_again_is_another_job(begin):
    """Trap 16: accounting still has the job of the cluster's earlier life."""
    later = DAY + timedelta(days=9)
    again = record(submit_time=later, start_time=later, end_time=later, restarts=0, name="train")
    put(begin, RUN_1, again)
    with begin() as session:
        assert session.scalar(select(func.count()).select_from(t.Job)) == 2


def test_gpus_asked_for_but_not_on_record_are_unknown_not_none(begin):
    put(begin, record(alloc_tres="cpu=16,node=1"), record(51, alloc_tres="x"))
    put(begin, record(52, alloc_tres="cpu=4", req_tres="cpu=4"))
    with begin() as session:
        found = session.execute(select(t.Run.slurm_id, t.Run.gpus).order_by(t.Run.slurm_id))
        assert [tuple(row) for row in found] == [(50, None), (51, None), (52, 0)]


def test_the_watermark_follows_and_overlaps(begin):
    site = portal(begin)
    asked = windows_asked(site)
    site.ingest()
    with begin() as session:
        assert polls.get(session, "accounting").watermark == site.now
    before = site.now
    site.broker.advance(30)
    asked.clear()
    site.ingest()
    assert asked == [(before - timedelta(minutes=5), site.now)]


def test_an_error_leaves_the_watermark_where_it_was(begin):
    site = portal(begin)
    site.ingest()
    mark = site.now
    site.broker.advance(60)
    site.broker.unreachable = True
    assert site.ingest().error_code == "slurm_unreachable"
    with begin() as session:
        assert polls.get(session, "accounting").watermark == mark


def test_killed_in_the_middle_of_an_import_the_watermark_stays(begin):
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.broker.finish(1)
    left = [2]

    def dying():
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return begin()

    site.begin = dying
    with pytest.raises(KeyboardInterrupt):
        site.ingest()
    site.begin = begin
    with begin() as session:
        assert polls.get(session, "accounting").watermark < site.now
    site.ingest()
    assert len(site.runs()) == 1


def test_a_job_that_ended_while_slurm_was_not_looked_at_is_reconciled(begin):
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.poll()
    site.ingest()
    site.broker.finish(1, "FAILED", code=3)
    ended = site.now
    site.broker.advance(3600)
    site.poll()
    assert site.jobs()[0].active
    assert site.reconcile().still_open == 0
    (job,) = site.jobs()
    assert (job.state, job.exit_code, job.end_time, job.active) == ("FAILED", 3, ended, False)


def test_a_job_that_accounting_never_ended_stays_open(begin):
    """Case 21: nobody has said that it ended."""
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.poll()
    site.broker.queue = lambda: m.Queue((), site.now)
    site.poll()
    site.broker.advance(86400 / 2)
    assert site.reconcile().still_open == 1
    assert site.jobs()[0].active


def test_a_silent_accounting_ends_nothing(begin):
    site = portal(begin)
    site.submit()
    site.broker.advance(5)
    site.poll()
    site.broker.queue = lambda: m.Queue((), site.now)
    site.poll()
    site.broker.accounting = lambda **_: m.Accounting((), (), 0)
    site.reconcile()
    site.ingest()
    assert site.jobs()[0].active


def test_a_job_found_in_accounting_settles_its_submission(begin):
    site = portal(begin)
    site.broker.silent_after_next()
    submission_id = site.submit()
    site.broker.advance(5)
    site.broker.finish(1)
    site.ingest()
    assert site.submission(submission_id).state == "accepted"


def _no_requeue(request):
    return replace(request, requeue=False)


@pytest.mark.parametrize("error", [BrokerUnreachable, BrokerSilent, BrokerRefused])
def test_an_accounting_that_fails_leaves_the_lost_jobs_open(begin, error):
    site = portal(begin)
    site.submit()
    site.poll()
    site.broker.queue = lambda: m.Queue((), site.now)
    site.poll()

    def fails(**_):
        raise error("no")

    site.broker.accounting = fails
    report = site.reconcile()
    assert (report.error_code, report.still_open) == (error.code, 1)
    assert site.jobs()[0].active


def test_only_jobs_that_went_lately_are_asked_about_often(begin):
    site = portal(begin)
    site.submit()
    site.poll()
    site.broker.queue = lambda: m.Queue((), site.now)
    site.poll()
    site.broker.advance(3600)
    report = reconcile.reconcile(
        begin=begin,
        broker=site.broker,
        cluster=CLUSTER,
        now=site.now,
        recent=timedelta(minutes=15),
    )
    assert report.asked == 0


def test_the_first_start_reads_back_as_far_as_it_is_told_over_several_turns(begin):
    site = portal(begin)
    asked = windows_asked(site)

    def turn():
        return ingesting.ingest(
            begin=begin,
            broker=site.broker,
            cluster=CLUSTER,
            now=site.now,
            backfill=timedelta(days=2),
            most_windows=5,
        )

    turn()
    assert asked[0][0] == site.now - timedelta(days=2)
    turn()
    # Without a gap, up to now.
    assert all(later[0] < earlier[1] for earlier, later in itertools.pairwise(asked))
    assert asked[-1][1] == site.now
    assert len(asked) == 9
    turn()
    assert asked[-1] == (site.now - ingesting.OVERLAP, site.now)


def test_a_clock_set_back_asks_for_no_window_that_ends_before_it_begins(begin):
    site = portal(begin)
    site.ingest()
    asked = windows_asked(site)
    earlier = site.now - timedelta(hours=2)
    ingesting.ingest(begin=begin, broker=site.broker, cluster=CLUSTER, now=earlier)
    assert asked == [(earlier - ingesting.OVERLAP, earlier)]


def windows_asked(site):
    asked = []
    real = site.broker.accounting

    def spy(*, since, until):
        asked.append((since, until))
        return real(since=since, until=until)

    site.broker.accounting = spy
    return asked


@pytest.mark.parametrize("alloc", ["cpu=4,gres/gpu=-2", "gres/gpu", "77=3", "gres/gpu=many"])
def test_a_count_of_gpus_that_is_none_is_unknown(begin, alloc):
    put(begin, record(alloc_tres=alloc, req_tres="cpu=4"))
    with begin() as session:
        assert session.execute(select(t.Run.gpus, t.Run.alloc_tres)).one() == (None, alloc)


def test_what_accounting_is_told_an_hour_late_is_read_all_the_same(begin):
    """slurmctld hands over its backlog only after slurmdbd has come back."""
    site = portal(begin)
    told_late = record(end_time=site.now - timedelta(minutes=55), elapsed_seconds=60)
    known = []

    def accounting(*, since, until):
        runs = tuple(run for run in known if since <= run.end_time <= until)
        return m.Accounting(runs=runs, held=(), counted=len(runs))

    site.broker.accounting = accounting

    def turn(which, now):
        return ingesting.ingest(
            begin=begin, broker=site.broker, cluster=CLUSTER, now=now, turn=which
        ).rows

    assert turn(ingesting.FIRST_TURN, site.now) == 0
    assert turn(ingesting.LATE_TURN, site.now) == 0
    known.append(told_late)
    later = site.now + timedelta(minutes=10)
    assert turn(ingesting.FIRST_TURN, later) == 0
    assert turn(ingesting.LATE_TURN, later) == 1
