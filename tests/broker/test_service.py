"""The verbs' own rules, over a Slurm that says what the test wants."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.broker.accounts import Account
from gateway.broker.service import Service
from gateway.broker.tokens import Tokens
from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.testing.contracts import Cast, request
from gateway.testing.fakejobs import FakeJob, queue_job, run_record
from gateway.wire import messages as m

CAST = Cast()
NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
PERSON = Account("nlp-1", 2002, 2000, (2000,), "/home/nlp-1", "/bin/bash")
PARTITION = m.Partition("a100", "UP", True, 4, 2880, 60, None, (), (), (), (), ("a100",))


def same(job: m.QueueJob) -> m.QueueJob:
    return job


@dataclass
class ScriptedSlurm:
    """Accepts everything; `change` is what a site's plugin makes of an accepted job."""

    change: Callable[[m.QueueJob], m.QueueJob] = same
    comments: bool = True
    read_error: Exception | None = None
    cancel_error: Exception | None = None
    submit_error: Exception | None = None
    known: dict[int, m.QueueJob] = field(default_factory=dict)
    cancelled: list[int] = field(default_factory=list)
    submitted: int = 0
    listed: int = 0

    def submit(self, account, asked):
        if self.submit_error:
            raise self.submit_error
        self.submitted += 1
        job = FakeJob(self.submitted, asked, account.uid, NOW, NOW, asked.time_limit_minutes)
        self.known[self.submitted] = self.change(queue_job(job))
        return self.submitted

    def job(self, job_id):
        if self.read_error:
            raise self.read_error
        return self.known[job_id]

    def jobs(self):
        self.listed += 1
        return tuple(self.known.values())

    def partition(self, name):
        return PARTITION if name == "a100" else None

    def cancel(self, account, job_id):
        if self.cancel_error:
            raise self.cancel_error
        self.cancelled.append(job_id)

    def keeps_comments(self):
        return self.comments


@dataclass
class ScriptedSacct:
    runs: tuple[m.RunRecord, ...] = ()
    error: Exception | None = None

    def window(self, since, until, user=None):
        if self.error:
            raise self.error
        return m.Accounting(self.runs, (), len(self.runs))


def account(name):
    if name != PERSON.name:
        return replace(PERSON, name=name, uid=4000)
    return PERSON


@pytest.fixture
def slurm():
    return ScriptedSlurm()


@pytest.fixture
def sacct():
    return ScriptedSacct()


@pytest.fixture
def service(slurm, sacct, tmp_path):
    others = (None,) * (len(Service.__slots__) - 4)
    return Service(slurm, account, Tokens(tmp_path / "tokens"), sacct, *others)


@pytest.mark.parametrize(
    ("field_name", "value"),
    [
        ("account", "vision"),
        ("qos", "spot"),
        ("partition", "rtx4090"),
        ("nodes", 2),
        ("gpus", 0),
        ("time_limit_minutes", None),
    ],
)
def test_a_job_that_slurm_changed_is_cancelled_and_refused(service, slurm, field_name, value):
    slurm.change = lambda job: replace(job, **{field_name: value})
    with pytest.raises(BrokerRefused, match=field_name) as caught:
        service.submit(request(CAST))
    assert caught.value.code == "accepted_differs"
    assert slurm.cancelled == [1]


@pytest.mark.parametrize("error", [BrokerUnreachable("away"), BrokerRefused("x", code="y")])
def test_a_changed_job_that_cannot_be_cancelled_is_unknown_not_refused(service, slurm, error):
    """The job is there: neither "nothing happened" nor "refused" may be believed of it."""
    slurm.change = lambda job: replace(job, qos="spot")
    slurm.cancel_error = error
    with pytest.raises(BrokerSilent):
        service.submit(request(CAST))


def as_array(asked: m.SubmitRequest, *tasks: int | None) -> tuple[m.QueueJob, ...]:
    """Records of array 1: a number is a task that runs, None all that wait (7 of them)."""
    job = FakeJob(1, asked, PERSON.uid, NOW, NOW, asked.time_limit_minutes, array_job_id=1)
    waiting = queue_job(job, 7)
    return tuple(
        waiting
        if task is None
        else replace(waiting, job_id=task + 2, state="RUNNING", array_task=task, array_tasks=None)
        for task in tasks
    )


def test_the_tasks_of_an_array_are_counted_whether_they_started_or_not(service, slurm):
    asked = request(CAST, array="0-9%3")
    slurm.jobs = lambda: as_array(asked, None, 0, 1, 2)
    assert service.submit(asked).array_tasks == 10


def test_an_array_of_other_tasks_is_cancelled_with_those_that_started(service, slurm):
    asked = request(CAST, array="0-10%3")
    slurm.jobs = lambda: as_array(asked, None, 0, 1, 2)
    with pytest.raises(BrokerRefused, match="tasks"):
        service.submit(asked)
    assert sorted(slurm.cancelled) == [1, 2, 3, 4]


def test_an_array_is_found_by_when_it_was_submitted_though_a_task_was_requeued(service, slurm):
    asked = request(CAST, array="0-9%3")
    service.submit(asked)
    first, *others = as_array(asked, 0, 1, 2, None)
    slurm.jobs = lambda: (replace(first, submit_time=NOW + timedelta(minutes=5)), *others)
    found = service.find(m.FindRequest(asked.token, PERSON.name, NOW)).job
    assert (found.job_id, found.submit_time) == (1, NOW)


def test_of_a_whole_array_what_waits_is_cancelled_first(service, slurm):
    slurm.jobs = lambda: tuple(reversed(as_array(request(CAST, array="0-9%3"), None, 0, 1, 2)))
    service.cancel_array(m.JobRequest(1, PERSON.name))
    assert slurm.cancelled == [1, 4, 3, 2]


def test_a_task_that_ended_meanwhile_does_not_keep_the_others(service, slurm):
    slurm.jobs = lambda: as_array(request(CAST, array="0-9%3"), 0, 1, 2)
    tried = []

    def cancel(account, job_id):
        tried.append(job_id)
        if job_id == 2:
            raise BrokerRefused("2", code="already_done")

    slurm.cancel = cancel
    service.cancel_array(m.JobRequest(1, PERSON.name))
    assert tried == [2, 3, 4]


def test_an_array_whose_list_of_tasks_is_cut_is_not_counted(service, slurm):
    asked = request(CAST, array="0-10%3")
    slurm.jobs = lambda: tuple(replace(job, array_tasks=None) for job in as_array(asked, None))
    assert service.submit(asked).array_tasks is None


def test_a_task_of_an_array_is_found_as_the_array(service, slurm):
    asked = request(CAST, array="0-9%3")
    service.submit(asked)
    slurm.jobs = lambda: as_array(asked, 4)
    assert service.submit(asked).job_id == 1


def test_a_new_token_needs_no_look_into_the_queue(service, slurm):
    service.submit(request(CAST))
    assert slurm.listed == 0


def test_a_token_that_never_reached_slurm_needs_no_look_either(service, slurm):
    """After an outage thousands are sent again: each look would read the whole queue."""
    asked = request(CAST)
    slurm.submit_error = BrokerUnreachable("slurmctld is away")
    with pytest.raises(BrokerUnreachable):
        service.submit(asked)
    slurm.submit_error = None
    service.submit(asked)
    assert (slurm.submitted, slurm.listed) == (1, 0)


def test_a_token_whose_submit_was_silent_is_looked_for(service, slurm):
    asked = request(CAST)
    slurm.submit_error = BrokerSilent("timed out")
    with pytest.raises(BrokerSilent):
        service.submit(asked)
    slurm.submit_error = None
    service.submit(asked)
    assert slurm.listed == 1


def test_a_token_seen_before_is_looked_for_first(service, slurm):
    asked = request(CAST)
    first = service.submit(asked)
    assert service.submit(asked) == first
    assert slurm.submitted == 1


def test_a_token_seen_before_and_denied_is_submitted(service, slurm):
    asked = request(CAST)
    service.submit(asked)
    slurm.known.clear()
    assert service.submit(asked).job_id == 2


def test_when_accounting_is_away_a_seen_token_is_not_submitted_again(service, slurm, sacct):
    asked = request(CAST)
    service.submit(asked)
    slurm.known.clear()
    sacct.error = BrokerUnreachable("slurmdbd is away")
    with pytest.raises(BrokerUnreachable):
        service.submit(asked)
    assert slurm.submitted == 1


def test_an_accepted_job_that_cannot_be_read_back_is_unknown_not_refused(service, slurm):
    slurm.read_error = BrokerUnreachable("away")
    with pytest.raises(BrokerSilent):
        service.submit(request(CAST))
    assert not slurm.cancelled


def test_a_token_is_found_for_its_own_user_only(service, slurm):
    asked = request(CAST)
    service.submit(asked)
    assert service.find(m.FindRequest(asked.token, "nlp-1", NOW)).job.job_id == 1
    assert service.find(m.FindRequest(asked.token, "biolab-1", NOW)).job is None


def test_accounting_gives_the_first_submit_time_of_a_requeued_job(service, slurm, sacct):
    asked = request(CAST, gpus_per_node=4)
    job = FakeJob(9, asked, 2002, NOW, NOW, 5)
    first = run_record(job, NOW)
    second = replace(first, submit_time=NOW.replace(hour=9))
    sacct.runs = (second, first)
    found = service.find(m.FindRequest(asked.token, "nlp-1", NOW)).job
    assert (found.job_id, found.submit_time, found.gpus) == (9, NOW, 4)


def test_without_comments_in_accounting_no_token_is_denied(service, slurm):
    slurm.comments = False
    with pytest.raises(BrokerSilent, match="job_comment"):
        service.find(m.FindRequest("0" * 32, "nlp-1", NOW))


def test_what_has_no_room_in_the_partition_is_never_sent(service, slurm):
    for code, changes in (
        ("invalid_partition", {"partition": "nowhere"}),
        ("invalid_node_count", {"nodes": 5}),
        ("invalid_time_limit", {"time_limit_minutes": 2881}),
    ):
        with pytest.raises(BrokerRefused) as caught:
            service.submit(request(CAST, **changes))
        assert caught.value.code == code
    assert slurm.submitted == 0
