"""What the shared poll keeps of why jobs wait."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

from sqlalchemy import func, select

from gateway.core.wait_causes import HELD_BY_GATE, Cause, split
from gateway.errors import BrokerSilent
from gateway.store import gate, wait_reasons
from gateway.store import models as t
from gateway.store.wait_models import WaitReason
from gateway.testing import builders as b
from gateway.testing.portal import CLUSTER, portal
from gateway.wire import messages as m

BEGAN = b.NOW - timedelta(hours=1)  # where the fake cluster's clock begins
START = int(BEGAN.timestamp())
queue_job = partial(b.queue_job, submit_time=BEGAN, eligible_time=BEGAN)


def poll(site, *jobs, after=15):
    """The queue is just this, `after` seconds later."""
    site.broker.advance(after)
    site.broker.queue = lambda: m.Queue(jobs, site.now)
    return site.poll()


def looks(begin):
    """(seconds since the start, reason) of all waits, by (job, submit)."""
    with begin() as session:
        last = session.scalar(select(func.max(t.Job.id))) or 0
        found = wait_reasons.between(session, 1, last + 1)
    return {
        (job, submit - START): [(since - START, reason) for since, reason in told]
        for (job, submit), told in found.items()
    }


def test_a_row_is_written_when_the_cause_changes_and_none_while_it_stays(begin):
    site = portal(begin)
    waits = queue_job(reason=None)
    for reason in (None, "Priority", "Priority", "Resources", "Priority"):
        poll(site, replace(waits, reason=reason))
    assert looks(begin) == {
        (1, 0): [(15, None), (30, "Priority"), (60, "Resources"), (75, "Priority")]
    }


def test_another_word_for_the_same_cause_is_no_change(begin):
    site = portal(begin)
    waits = queue_job()
    for reason in ("AssocGrpGRES", "AssocGrpCpuLimit", "AssocGrpJobsLimit"):
        poll(site, replace(waits, reason=reason))
    assert looks(begin) == {(1, 0): [(15, "AssocGrpGRES")]}


def test_who_runs_waits_for_nothing(begin):
    site = portal(begin)
    poll(site, queue_job(state="RUNNING", reason=None, start_time=BEGAN))
    assert looks(begin) == {}


def test_a_requeue_opens_another_wait(begin):
    site = portal(begin)
    poll(site, queue_job())
    poll(site, queue_job(state="RUNNING", reason=None, start_time=site.now))
    again = site.now + timedelta(seconds=1)
    poll(site, queue_job(submit_time=again, eligible_time=again, restarts=1))
    assert looks(begin) == {(1, 0): [(15, "Priority")], (1, 31): [(45, "Priority")]}


def test_the_same_look_twice_is_one(begin):
    site = portal(begin)
    poll(site, queue_job())
    with begin() as session:
        look = wait_reasons.Look(7, BEGAN, START, START + 15, "Resources")
        wait_reasons.put(session, CLUSTER, [look])
    assert looks(begin) == {(1, 0): [(15, "Priority")]}


def test_a_task_of_an_array_has_what_its_array_waited_for(begin):
    site = portal(begin)
    array = queue_job(array_job_id=7, array_tasks=3, reason="JobArrayTaskLimit")
    poll(site, array)
    running = queue_job(8, array_job_id=7, array_task=0, state="RUNNING", reason=None)
    poll(site, replace(array, array_tasks=2), replace(running, start_time=site.now))
    poll(site, replace(array, array_tasks=2, reason="Resources"))
    assert looks(begin) == {
        (1, 0): [(15, "JobArrayTaskLimit"), (45, "Resources")],
        (2, 0): [(15, "JobArrayTaskLimit"), (45, "Resources")],
    }
    # Until its start, 15 s after the submit, the task had waited for the throttle alone.
    told = looks(begin)[2, 0]
    assert split(0, 15, 15, told)[Cause.ARRAY_THROTTLE] == 15


def test_a_task_that_waits_by_itself_has_its_own_from_then_on(begin):
    site = portal(begin)
    array = queue_job(array_job_id=7, array_tasks=3)
    poll(site, array)
    poll(site, array, queue_job(8, array_job_id=7, array_task=0, reason="JobHeldUser"))
    poll(site, replace(array, reason="Resources"))
    assert looks(begin)[2, 0] == [(15, "Priority"), (30, "JobHeldUser")]


def test_an_array_of_another_submit_time_is_another(begin):
    site = portal(begin)
    poll(site, queue_job(array_job_id=7, array_tasks=3))
    later = BEGAN + timedelta(seconds=5)
    poll(site, queue_job(8, array_job_id=7, array_task=0, submit_time=later, reason="Resources"))
    assert looks(begin)[2, 5] == [(30, "Resources")]


def test_a_hold_of_the_gate_is_told_from_an_administrators(begin):
    site = portal(begin)
    poll(site, queue_job(7), queue_job(8))
    with begin() as session:
        gate.put_held(session, 1, at=site.now, reason="exhausted")
    poll(site, queue_job(7, reason="JobHeldAdmin"), queue_job(8, reason="JobHeldAdmin"))
    assert looks(begin) == {
        (1, 0): [(15, "Priority"), (30, HELD_BY_GATE)],
        (2, 0): [(15, "Priority"), (30, "JobHeldAdmin")],
    }


SENTENCE = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
)


def test_nodes_are_asked_only_where_a_reason_is_in_doubt(begin):
    site = portal(begin)
    asked = []

    def nodes():
        asked.append(site.now)
        return (b.node("a100-1", state="IDLE+DRAIN", partitions=("a100",)),)

    site.broker.nodes = nodes
    poll(site, queue_job())
    assert asked == []
    poll(site, queue_job(reason=SENTENCE))
    poll(site, queue_job(reason=SENTENCE))
    assert len(asked) == 1
    poll(site, queue_job(reason="Priority"))
    assert looks(begin) == {(1, 0): [(15, "Priority"), (30, "NodeDown"), (60, "Priority")]}


def test_where_slurm_does_not_tell_of_its_nodes_the_doubt_stays(begin):
    site = portal(begin)

    def silent():
        raise BrokerSilent("no answer")

    site.broker.nodes = silent
    assert poll(site, queue_job(reason=SENTENCE)).error_code is None
    assert looks(begin) == {(1, 0): [(15, SENTENCE)]}


def test_a_gap_is_kept_when_no_poll_looked_for_long(begin):
    site = portal(begin)
    for after in (15, 240, 241, 15):
        poll(site, queue_job(), after=after)
    with begin() as session:
        assert wait_reasons.gaps(session) == {CLUSTER: [(START + 255, START + 496)]}
        assert session.scalar(select(func.count()).select_from(WaitReason)) == 1


def test_a_poll_that_failed_is_no_look(begin):
    site = portal(begin)
    poll(site, queue_job())

    def silent():
        raise BrokerSilent("no answer")

    for _ in range(3):
        site.broker.advance(100)
        site.broker.queue = silent
        site.poll()
    poll(site, queue_job(), after=10)
    with begin() as session:
        assert wait_reasons.gaps(session) == {CLUSTER: [(START + 15, START + 325)]}
