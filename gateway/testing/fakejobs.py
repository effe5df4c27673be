"""Jobs of FakeBroker: when they start, end, are requeued, and what accounting keeps of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from gateway.core.arrays import parse_array
from gateway.testing.fakesite import FakePartition, FakeSite
from gateway.wire import messages as m

LimitsTable = Mapping[tuple[str, str | None], m.GroupLimits]
ENDED = frozenset({"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"})
_KEPT = timedelta(seconds=300)  # slurmctld's MinJobAge


@dataclass(slots=True)
class FakeJob:
    """`eligible` None means held. `runs` are the rows that accounting already closed."""

    job_id: int
    request: m.SubmitRequest
    uid: int
    submit: datetime
    eligible: datetime | None
    time_limit_minutes: int
    state: str = "PENDING"
    start: datetime | None = None
    end: datetime | None = None
    nodes: tuple[str, ...] = ()
    restarts: int = 0
    exit_code: int = 0
    exit_signal: int | None = None
    array_job_id: int | None = None
    array_task: int | None = None
    held_by_admin: bool = False
    over_run_minutes: bool = False
    planned: tuple[str, datetime] | None = None  # nodes and start, as backfill would tell
    waits_for: str | None = None  # Dependency, or DependencyNeverSatisfied
    runs: list[m.RunRecord] = field(default_factory=list)

    @property
    def gpus(self) -> int:
        return self.request.nodes * self.request.gpus_per_node

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    def reason(self) -> str | None:
        if self.state != "PENDING":
            return None
        if self.eligible is None:
            return "JobHeldAdmin" if self.held_by_admin else "JobHeldUser"
        if self.waits_for is not None:
            return self.waits_for
        return "AssocGrpGRESRunMinutes" if self.over_run_minutes else "Resources"


def start_what_fits(
    site: FakeSite, jobs: list[FakeJob], now: datetime, *, limits: LimitsTable
) -> None:
    """By QoS priority, then age. A smaller one may pass a larger one, as with backfill."""
    waiting = [job for job in jobs if job.state == "PENDING" and job.eligible is not None]
    known = {job.job_id: job for job in jobs}
    for job in waiting:
        _look_at_dependency(job, known, now)
    waiting = [job for job in waiting if job.waits_for is None]
    waiting.sort(key=lambda job: (-site.priority(job.request.qos), job.submit, *_place(job)))
    for job in waiting:
        partition = site.partition(job.request.partition)
        if partition is None or job.eligible is None or job.eligible > now:
            continue
        job.over_run_minutes = not _group_has_minutes(limits, job, jobs, now)
        if job.over_run_minutes:
            continue
        free = [name for name in _may_have(partition, job) if _fits(partition, name, job, jobs)]
        room = _group_has_room(site, job, jobs) and _array_has_room(job, jobs)
        if len(free) >= job.request.nodes and room:
            job.state, job.start = "RUNNING", now
            job.nodes = tuple(free[: job.request.nodes])


def _may_have(partition: FakePartition, job: FakeJob) -> list[str]:
    names = list(partition.node_names())
    pinned = job.request.on_nodes
    return names if pinned is None else [name for name in pinned.split(",") if name in names]


def _look_at_dependency(job: FakeJob, known: Mapping[int, FakeJob], now: datetime) -> None:
    """Eligible from when the other has ended well; never, when it has ended otherwise."""
    if job.request.after_ok is None:
        return
    other = known.get(job.request.after_ok)
    waited = job.waits_for is not None
    ended_well = other is None or other.state == "COMPLETED"
    never = other is not None and other.ended and not ended_well
    job.waits_for = None if ended_well else f"Dependency{'NeverSatisfied' if never else ''}"
    if waited and ended_well:
        job.eligible = now


def tasks_of(job: FakeJob) -> list[FakeJob]:
    """The tasks of an array, each a job; the last one has the array's own id."""
    if job.request.array is None:
        return [job]
    count = parse_array(job.request.array).at_least
    first = job.job_id + 1
    own_ids = [*range(first, first + count - 1), job.job_id]
    return [
        replace(job, job_id=own, array_job_id=job.job_id, array_task=task, runs=[])
        for task, own in enumerate(own_ids)
    ]


def alike(job: FakeJob, jobs: Iterable[FakeJob]) -> list[FakeJob]:
    """What an act on the job reaches: the array's own id means all tasks that never started."""
    if not _never_started(job) or job.job_id != job.array_job_id:
        return [job]
    return [one for one in jobs if one.array_job_id == job.job_id and _never_started(one)]


def listed(jobs: Iterable[FakeJob]) -> list[tuple[FakeJob, int | None]]:
    """Each record of the queue with the tasks that it stands for, None: it is one task or no
    array. Tasks that never started are one record, that of the array's own id."""
    all_jobs = list(jobs)
    found: list[tuple[FakeJob, int | None]] = []
    for job in all_jobs:
        waiting = _never_started(job) and job.array_job_id is not None
        if not waiting:
            found.append((job, None))
        elif job.job_id == job.array_job_id:
            found.append((job, len(alike(job, all_jobs))))
    return found


def end_run(job: FakeJob, state: str, now: datetime, *, code: int = 0, signal: int = 0) -> None:
    """Close the run, or the wait of a job that never started."""
    job.state, job.end = state, now
    job.exit_code, job.exit_signal = code, signal or None
    job.runs.append(run_record(job, now))


def put_back(job: FakeJob, state: str, now: datetime) -> None:
    """Requeue: Slurm closes the run under `state`, and sets the submit time anew."""
    end_run(job, state, now)
    job.state, job.submit, job.eligible = "PENDING", now, now
    job.start = job.end = None
    job.nodes, job.restarts, job.held_by_admin = (), job.restarts + 1, False


def _never_started(job: FakeJob) -> bool:
    return job.state == "PENDING" and not job.restarts


def _place(job: FakeJob) -> tuple[int, int]:
    return job.array_job_id or job.job_id, job.array_task or 0


def _array_has_room(job: FakeJob, jobs: list[FakeJob]) -> bool:
    most = parse_array(job.request.array).throttle if job.request.array else None
    beside = [one for one in jobs if one.array_job_id == job.array_job_id]
    return most is None or sum(one.state == "RUNNING" for one in beside) < most


def is_in_queue(job: FakeJob, now: datetime) -> bool:
    """slurmctld forgets what ended some minutes ago."""
    return job.end is None or now - job.end < _KEPT


def used_gpus(name: str, jobs: list[FakeJob]) -> int:
    return sum(job.request.gpus_per_node for job in jobs if _holds(job, name))


def used_cpus(name: str, jobs: list[FakeJob]) -> int:
    return sum(job.request.cpus_per_task for job in jobs if _holds(job, name))


def run_record(job: FakeJob, now: datetime) -> m.RunRecord:
    started = job.start is not None
    elapsed = int(((job.end or now) - job.start).total_seconds()) if job.start else 0
    wanted = job.request
    tres = _tres(job)
    return m.RunRecord(
        job_id=job.job_id,
        user=wanted.user,
        uid=job.uid,
        name=wanted.name,
        account=wanted.account,
        partition=wanted.partition,
        qos=wanted.qos,
        state=job.state,
        submit_time=job.submit,
        eligible_time=job.eligible,
        start_time=job.start,
        end_time=job.end,
        elapsed_seconds=elapsed,
        suspended_seconds=0,
        time_limit_minutes=job.time_limit_minutes,
        nodes=len(job.nodes),
        cpus=wanted.nodes * wanted.cpus_per_task,
        alloc_tres=tres if started else "",
        req_tres=tres,
        node_list=",".join(job.nodes) or None,
        exit_code=job.exit_code,
        exit_signal=job.exit_signal,
        restarts=job.restarts,
        reason=job.reason(),
        working_directory=wanted.working_directory,
        comment=f"sluice:{wanted.token}",
        array_job_id=job.array_job_id,
        array_task=None if _never_started(job) else job.array_task,
    )


def queue_job(job: FakeJob, tasks: int | None = None) -> m.QueueJob:
    """`tasks` of an array that the record stands for."""
    wanted = job.request
    return m.QueueJob(
        job_id=job.job_id,
        user=wanted.user,
        uid=job.uid,
        name=wanted.name,
        account=wanted.account,
        partition=wanted.partition,
        qos=wanted.qos,
        state=job.state,
        reason=job.reason(),
        submit_time=job.submit,
        eligible_time=job.eligible,
        start_time=job.start,
        end_time=job.end,
        estimated_start=job.planned[1] if job.planned and job.start is None else None,
        time_limit_minutes=job.time_limit_minutes,
        nodes=wanted.nodes,
        cpus=wanted.nodes * wanted.cpus_per_task,
        gpus=job.gpus,
        gpu_type=wanted.gpu_type if job.gpus else None,
        node_list=",".join(job.nodes) or None,
        priority=0 if job.eligible is None else 1,
        restarts=job.restarts,
        exit_code=job.exit_code if job.ended else None,
        exit_signal=job.exit_signal if job.ended else None,
        working_directory=wanted.working_directory,
        output=output_path(job, stands_for_many=tasks is not None),
        comment=f"sluice:{wanted.token}",
        array_job_id=job.array_job_id,
        array_task=job.array_task if tasks is None else None,
        array_tasks=tasks,
        req_gpu_type=wanted.gpu_type if job.gpus else None,
        planned_nodes=job.planned[0] if job.planned and job.start is None else None,
    )


def output_path(job: FakeJob, *, stands_for_many: bool = False) -> str:
    path = job.request.output.replace("%j", str(job.job_id)).replace("%x", job.request.name)
    if job.array_job_id is not None:
        path = path.replace("%A", str(job.array_job_id))
        path = path if stands_for_many else path.replace("%a", str(job.array_task))
    return path if path.startswith("/") else f"{job.request.working_directory}/{path}"


def _fits(partition: FakePartition, name: str, job: FakeJob, jobs: list[FakeJob]) -> bool:
    gpus = partition.gpus_per_node - used_gpus(name, jobs)
    cpus = partition.cpus_per_node - used_cpus(name, jobs)
    return gpus >= job.request.gpus_per_node and cpus >= job.request.cpus_per_task


def _group_has_room(site: FakeSite, job: FakeJob, jobs: list[FakeJob]) -> bool:
    limit = site.group_gpus.get(job.request.account)
    used = sum(
        other.gpus
        for other in jobs
        if other.state == "RUNNING" and other.request.account == job.request.account
    )
    return limit is None or used + job.gpus <= limit


def limits_of(table: LimitsTable, request: m.SubmitRequest) -> tuple[m.GroupLimits, ...]:
    """Those that a job meets: its account's and its owner's there."""
    return tuple(limits for limits in table.values() if is_below(request, limits))


def is_below(request: m.SubmitRequest, limits: m.GroupLimits) -> bool:
    return request.account == limits.account and limits.user in (None, request.user)


def _group_has_minutes(
    table: LimitsTable, job: FakeJob, jobs: list[FakeJob], now: datetime
) -> bool:
    """GrpTRESRunMins: what running jobs could still use, and this one with them."""
    for limits in limits_of(table, job.request):
        most = limits.grp_gpu_run_minutes
        beside = [other for other in jobs if is_below(other.request, limits)]
        used = sum(other.gpus * _minutes_left(other, now) for other in beside)
        if most is not None and job.gpus and used + job.gpus * job.time_limit_minutes > most:
            return False
    return True


def _minutes_left(job: FakeJob, now: datetime) -> int:
    if job.state != "RUNNING" or job.start is None:
        return 0
    return max(0, job.time_limit_minutes - int((now - job.start).total_seconds() // 60))


def _holds(job: FakeJob, name: str) -> bool:
    return job.state == "RUNNING" and name in job.nodes


def _tres(job: FakeJob) -> str:
    wanted = job.request
    pairs = [f"cpu={wanted.nodes * wanted.cpus_per_task}", f"node={wanted.nodes}"]
    if job.gpus:
        pairs.append(f"gres/gpu={job.gpus}")
        if wanted.gpu_type:
            pairs.append(f"gres/gpu:{wanted.gpu_type}={job.gpus}")
    return ",".join(pairs)
