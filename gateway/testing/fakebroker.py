"""FakeBroker: the port's promises in memory, with a clock of its own and faults on demand."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from gateway.broker.checks import check_submit
from gateway.broker.service import accepted
from gateway.core.arrays import parse_array
from gateway.core.limits import extension_refusal, partition_refusal, time_limit_refusal
from gateway.core.readback import differences
from gateway.errors import BrokerRefused
from gateway.testing import fakejobs
from gateway.testing.fakecluster import BEGIN
from gateway.testing.fakejobs import FakeJob
from gateway.testing.fakesite import FakePartition
from gateway.testing.fakevolumes import FakeVolumes
from gateway.wire import messages as m
from gateway.wire.shapes import asked_shape, shape_of

__all__ = ["BEGIN", "FakeBroker"]

MAX_ARRAY_SIZE = 1001  # Slurm's default


class FakeBroker(FakeVolumes):
    """The contract tests run on this and on the real one."""

    def submit(self, request: m.SubmitRequest) -> m.AcceptedJob:
        return self._act("submit", lambda: self._submit(request))

    def find(self, token: str, *, user: str, since: datetime) -> m.AcceptedJob | None:
        self._ask("find")
        person = self._person(user)
        job = self._by_token(token)
        if job is None or job.uid != person.uid or self._last_seen(job) < since:
            return None
        return accepted(fakejobs.queue_job(job))

    def cancel(self, job_id: int, *, user: str) -> None:
        def act() -> None:
            job = self._own(job_id, user)
            if job.ended:
                raise BrokerRefused(job.state, code="already_done")
            for one in self._alike(job):
                fakejobs.end_run(one, "CANCELLED", self.now)
            self._tick()

        self._act("cancel", act)

    def cancel_array(self, array_job_id: int, *, user: str) -> None:
        def act() -> None:
            tasks = [job for job in self.jobs.values() if job.array_job_id == array_job_id]
            mine = [self._own(job.job_id, user) for job in tasks if not job.ended]
            if not tasks:
                raise BrokerRefused(str(array_job_id), code="invalid_job_id")
            if not mine:
                raise BrokerRefused(str(array_job_id), code="already_done")
            for one in mine:
                fakejobs.end_run(one, "CANCELLED", self.now)
            self._tick()

        self._act("cancel-array", act)

    def hold(self, job_id: int, *, user: str) -> None:
        def act() -> None:
            for one in self._alike(self._pending(job_id, user)):
                one.eligible = None

        self._act("hold", act)

    def release(self, job_id: int, *, user: str) -> None:
        def act() -> None:
            job = self._own(job_id, user)
            if job.ended:
                raise BrokerRefused(job.state, code="already_done")
            if job.held_by_admin:
                raise BrokerRefused(str(job_id), code="held_by_admin")
            for one in self._alike(job):
                one.eligible = one.eligible or self.now
            self._tick()

        self._act("release", act)

    def requeue(self, job_id: int, *, user: str) -> None:
        def act() -> None:
            job = self._own(job_id, user)
            if job.state == "PENDING":
                raise BrokerRefused(job.state, code="job_pending")
            fakejobs.put_back(job, "REQUEUED", self.now)

        self._act("requeue", act)

    def set_time_limit(self, job_id: int, *, user: str, minutes: int) -> None:
        def act() -> None:
            job = self._own(job_id, user)
            if job.ended:
                raise BrokerRefused(job.state, code="already_done")
            refusal = time_limit_refusal(
                current=job.time_limit_minutes,
                wanted=minutes,
                pending=job.state == "PENDING",
                partition_max=self._partition(job.request.partition).max_minutes,
            )
            if refusal:
                raise BrokerRefused(str(job_id), code=refusal)
            for one in self._alike(job):
                one.time_limit_minutes = minutes

        self._act("set-time-limit", act)

    def extend(self, job_id: int, *, user: str, minutes: int) -> None:
        def act() -> None:
            job = self._own(job_id, user)
            refusal = extension_refusal(
                current=job.time_limit_minutes,
                wanted=minutes,
                running=job.state == "RUNNING",
                partition_max=self._partition(job.request.partition).max_minutes,
            )
            if refusal:
                raise BrokerRefused(str(job_id), code=refusal)
            job.time_limit_minutes = minutes

        self._act("extend", act)

    def queue(self) -> m.Queue:
        self._ask("queue")
        kept = [job for job in self.jobs.values() if fakejobs.is_in_queue(job, self.now)]
        return m.Queue(
            tuple(fakejobs.queue_job(*record) for record in fakejobs.listed(kept)), self.now
        )

    def nodes(self) -> tuple[m.Node, ...]:
        self._ask("nodes")
        jobs = list(self.jobs.values())
        return tuple(
            _node(partition, name, jobs, self.node_states.get(name))
            for partition in self.site.partitions
            for name in partition.node_names()
        )

    def partitions(self) -> tuple[m.Partition, ...]:
        self._ask("partitions")
        return tuple(_partition(partition) for partition in self.site.partitions)

    def estimate(self, request: m.SubmitRequest) -> m.Estimate:
        self._ask("estimate")
        self._check(request)
        starts = [(job.start, job.time_limit_minutes) for job in self.jobs.values() if job.nodes]
        ends = [start + timedelta(minutes=limit) for start, limit in starts if start]
        here = [node for node in self.nodes() if request.partition in node.partitions]
        free = [node for node in here if node.gpus - node.gpus_used >= request.gpus_per_node]
        start = self.now if len(free) >= request.nodes else max(ends, default=self.now)
        return m.Estimate(start_time=start, message=f"to start at {start:%Y-%m-%dT%H:%M:%S}")

    def accounting(self, *, since: datetime, until: datetime) -> m.Accounting:
        self._ask("accounting")
        runs: list[m.RunRecord] = []
        for job in self.jobs.values():
            runs += job.runs
        for job, _ in fakejobs.listed(self.jobs.values()):
            if not job.ended:
                runs.append(fakejobs.run_record(job, self.now))
        around = [run for run in runs if _around(run, since, until)]
        return m.Accounting(tuple(around), (), len(around))

    def read_file(self, path: str, *, user: str, offset: int, max_bytes: int) -> m.FileChunk:
        self._ask("read-file")
        self._person(user)
        return self.files.read(user, m.ReadFileRequest(user, path, offset, max_bytes))

    def check_folder(self, path: str, *, user: str) -> m.FolderState:
        self._ask("check-folder")
        self._person(user)
        return self.files.look(user, path)

    def list_folder(self, path: str, *, user: str, most: int = m.MOST_ENTRIES) -> m.FolderList:
        self._ask("list-folder")
        self._person(user)
        return self.files.list(user, m.ListFolderRequest(user, path, most), now=self.now)

    def make_folder(self, path: str, files: Mapping[str, str], *, user: str) -> str:
        self._ask("make-folder")
        self._person(user)
        return self.files.make(user, path, files)

    def _submit(self, request: m.SubmitRequest) -> m.AcceptedJob:
        person = self._person(request.user)
        check_submit(request)
        known = self._by_token(request.token)
        if known is not None and known.uid == person.uid:
            return accepted(fakejobs.queue_job(known))
        self._check(request)
        folder = self.files.look(request.user, request.working_directory)
        if folder.problem or not folder.writable:
            code = f"folder_{folder.problem or 'not_permitted'}"
            raise BrokerRefused(request.working_directory, code=code)
        self._require_submit_room(request)
        if request.after_ok is not None and request.after_ok not in self.jobs:
            raise BrokerRefused(str(request.after_ok), code="invalid_dependency")
        tasks = fakejobs.tasks_of(self._new_job(request, job_id=self._next_id))
        self._next_id += len(tasks)
        back = accepted(fakejobs.queue_job(tasks[-1]))
        if request.array is not None:
            back = replace(back, array_tasks=len(tasks))
        if differences(asked_shape(request), shape_of(back)):
            raise BrokerRefused("differs", code="accepted_differs")
        self.jobs |= {job.job_id: job for job in tasks}
        return back

    def _new_job(self, request: m.SubmitRequest, *, job_id: int) -> FakeJob:
        return FakeJob(
            job_id=job_id,
            request=request,
            uid=self._person(request.user).uid,
            submit=self.now,
            eligible=self.now,
            time_limit_minutes=request.time_limit_minutes,
            waits_for=None if request.after_ok is None else "Dependency",
        )

    def _check(self, request: m.SubmitRequest) -> None:
        check_submit(request)
        partition = self._partition(request.partition)
        refusal = partition_refusal(
            nodes=request.nodes,
            minutes=request.time_limit_minutes,
            partition_nodes=partition.node_count,
            max_nodes=None,
            max_minutes=partition.max_minutes,
        )
        if refusal:
            raise BrokerRefused(request.partition, code=refusal)
        if request.array and parse_array(request.array).at_least > MAX_ARRAY_SIZE:
            raise BrokerRefused(request.array, code="invalid_array")
        member = self.policy.members.get((request.account, request.user))
        if member is None or not {"", request.partition} & set(member.partitions):
            raise BrokerRefused(request.account, code="invalid_account")
        if member.closed:
            raise BrokerRefused(request.user, code="association_submit_limit")
        if request.qos not in self.policy.usable(self.policy.accounts[request.account].policy):
            raise BrokerRefused(request.qos, code="invalid_qos")
        too_many = request.gpus_per_node > partition.gpus_per_node
        wrong_kind = request.gpu_type not in (None, partition.gpu_type)
        if too_many or wrong_kind or request.cpus_per_task > partition.cpus_per_node:
            raise BrokerRefused(request.partition, code="node_config_unavailable")

    def _last_seen(self, job: FakeJob) -> datetime:
        return self.now if fakejobs.is_in_queue(job, self.now) else job.end or self.now


def _node(partition: FakePartition, name: str, jobs: list[FakeJob], state: str | None) -> m.Node:
    gpus, cpus = fakejobs.used_gpus(name, jobs), fakejobs.used_cpus(name, jobs)
    full = cpus >= partition.cpus_per_node
    return m.Node(
        name=name,
        state=state or ("ALLOCATED" if full else "MIXED" if cpus else "IDLE"),
        reason=None,
        partitions=(partition.name,),
        cpus=partition.cpus_per_node,
        cpus_used=cpus,
        memory_mb=256_000,
        gpu_type=partition.gpu_type,
        gpus=partition.gpus_per_node,
        gpus_used=gpus,
        address="127.0.0.1",  # what a test starts beside itself stands for an application on it
    )


def _partition(partition: FakePartition) -> m.Partition:
    return m.Partition(
        name=partition.name,
        state="UP",
        is_default=partition.is_default,
        nodes=partition.node_count,
        max_time_minutes=partition.max_minutes,
        default_time_minutes=60,
        max_nodes=None,
        allow_accounts=(),
        deny_accounts=(),
        allow_qos=(),
        deny_qos=(),
        gpu_types=(partition.gpu_type,) if partition.gpu_type else (),
    )


def _around(run: m.RunRecord, since: datetime, until: datetime) -> bool:
    """sacct's meaning of its bounds: what was around between them, not what ended there."""
    begin = run.eligible_time or run.submit_time
    return begin <= until and (run.end_time is None or run.end_time >= since)
