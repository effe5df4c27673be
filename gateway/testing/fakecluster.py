"""The made-up cluster under FakeBroker: its clock, its jobs, and what a test may do to them."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from gateway.errors import BrokerRefused, BrokerSilent, BrokerUnreachable
from gateway.testing import fakejobs
from gateway.testing.fakefiles import FakeFiles
from gateway.testing.fakejobs import FakeJob
from gateway.testing.fakepolicystate import PolicyState
from gateway.testing.fakesite import FACTS, FakePartition, FakePerson, FakeSite, lab
from gateway.wire.guard import inside_transaction

T = TypeVar("T")
BEGIN = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
_SYSTEM = frozenset({"daemon", "munge", "nobody", "slurm", "www-data"})


class FakeCluster:
    """`now` moves only by `advance`. A job runs until `finish`, its time limit, or
    `run_seconds`."""

    def __init__(
        self,
        site: FakeSite | None = None,
        *,
        now: datetime = BEGIN,
        run_seconds: float | None = None,
    ) -> None:
        self.site = site or lab()
        self.now = now
        self.files = FakeFiles()
        self.jobs: dict[int, FakeJob] = {}
        self.calls: list[str] = []
        self.limits = {(one.account, one.user): one for one in self.site.no_limits()}
        self.facts = FACTS
        self.policy = PolicyState(self.site)
        self.unreachable = False
        self.node_states: dict[str, str] = {}  # other than their jobs make of them
        self.run_seconds = run_seconds
        self.script_output: Callable[[FakeJob], str] = _greeting
        self._faults: list[Exception | str] = []
        self._next_id = 1
        for person in self.site.people:
            self.files.add_home(person.name)

    def advance(self, seconds: float) -> None:
        """Let time pass, in steps no longer than a minute: jobs start and reach their limits."""
        end = self.now + timedelta(seconds=seconds)
        while self.now < end:
            self.now = min(end, self.now + timedelta(seconds=min(60.0, max(1.0, seconds / 100))))
            self._tick()

    def finish(self, job_id: int, state: str = "COMPLETED", *, code: int = 0) -> None:
        """End a job now, running or not."""
        fakejobs.end_run(self.jobs[job_id], state, self.now, code=code)
        self._tick()

    def preempt(self, job_id: int) -> None:
        """Take the job's nodes; it queues again when it may be requeued."""
        job = self.jobs[job_id]
        if job.request.requeue:
            fakejobs.put_back(job, "PREEMPTED", self.now)
        else:
            fakejobs.end_run(job, "PREEMPTED", self.now)

    def fail_node(self, job_id: int) -> None:
        """The job's node dies: the run ends as NODE_FAIL and the job queues again."""
        fakejobs.put_back(self.jobs[job_id], "NODE_FAIL", self.now)

    def refuse_next(self, code: str) -> None:
        """The next act is refused, and nothing happens."""
        self._faults.append(BrokerRefused(code, code=code))

    def silent_before_next(self) -> None:
        """The next act gets no answer, and was never done."""
        self._faults.append(BrokerSilent("silent before acting"))

    def silent_after_next(self) -> None:
        """The next act gets no answer, but was done."""
        self._faults.append("silent after acting")

    # --- inside ---

    def _tick(self) -> None:
        for job in self.jobs.values():
            if job.state != "RUNNING" or job.start is None:
                continue
            if self.now - job.start >= timedelta(minutes=job.time_limit_minutes):
                fakejobs.end_run(job, "TIMEOUT", self.now)
            elif self.run_seconds and self.now - job.start >= timedelta(seconds=self.run_seconds):
                fakejobs.end_run(job, "COMPLETED", self.now)
        before = {job.job_id for job in self.jobs.values() if job.state == "RUNNING"}
        fakejobs.start_what_fits(self.site, list(self.jobs.values()), self.now, limits=self.limits)
        for job in self.jobs.values():
            if job.state == "RUNNING" and job.job_id not in before:
                path = fakejobs.output_path(job)
                self.files.append(path, job.request.user, self.script_output(job))

    def _act(self, name: str, act: Callable[[], T]) -> T:
        self._ask(name)
        fault = self._faults.pop(0) if self._faults else None
        if isinstance(fault, Exception):
            raise fault
        if fault is None:
            return act()
        with suppress(BrokerRefused):
            act()
        raise BrokerSilent(fault)

    def _ask(self, name: str) -> None:
        if inside_transaction.get():
            raise RuntimeError(f"{name}: a call to the broker inside a transaction")
        self.calls.append(name)
        if self.unreachable:
            raise BrokerUnreachable("made unreachable")

    def _person(self, name: str) -> FakePerson:
        if name == "root":
            raise BrokerRefused(name, code="root_refused")
        if name in _SYSTEM:
            raise BrokerRefused(name, code="system_account")
        person = self.site.person(name)
        if person is None:
            raise BrokerRefused(name, code="unknown_user")
        return person

    def _partition(self, name: str) -> FakePartition:
        partition = self.site.partition(name)
        if partition is None:
            raise BrokerRefused(name, code="invalid_partition")
        return partition

    def _own(self, job_id: int, user: str) -> FakeJob:
        person = self._person(user)
        job = self.jobs.get(job_id)
        if job is None or not fakejobs.is_in_queue(job, self.now):
            raise BrokerRefused(str(job_id), code="invalid_job_id")
        if job.uid != person.uid:
            raise BrokerRefused(str(job_id), code="not_owner")
        return job

    def _by_token(self, token: str) -> FakeJob | None:
        """Of an array the task that has its id."""
        mine = [job for job in self.jobs.values() if job.request.token == token]
        return next((job for job in mine if job.array_job_id in {None, job.job_id}), None)

    def _alike(self, job: FakeJob) -> list[FakeJob]:
        return fakejobs.alike(job, self.jobs.values())


def _greeting(job: FakeJob) -> str:
    return f"job {job.job_id} on {','.join(job.nodes)}\n"
