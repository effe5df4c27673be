"""One batch of accounting rows into the store: whose run it is, and what it says of its job."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gateway.core.identity import Stint, is_requeue_of, token_in
from gateway.core.states import JobState, parse_state, used_nodes
from gateway.services import ingest_new, link, requeues
from gateway.services.poll_plan import Sighting, stint_of_row
from gateway.store import jobs, new_jobs, squeezed
from gateway.store.jobs import FACTS, PLACE, KnownJob
from gateway.store.squeezed import Squeezed
from gateway.wire import messages as m

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# What accounting may say of a job's newest run; the rest is slurmctld's, which is fresher.
_ENDING = ("state", "start_time", "end_time", "exit_code", "exit_signal", "node_list")
_FILLED = (
    *("uid", "qos", "gpu_type", "req_gpu_type", "token", "eligible_time"),
    *("array_job_id", "array_task", "array_tasks"),
)


def apply(
    session: "Session", records: Sequence[m.RunRecord], *, cluster: str, now: datetime
) -> int:
    """Store the rows of whole jobs; answers how many rows of the database changed."""
    times = Counter(record.job_id for record in records)
    known = new_jobs.known_ids(session, cluster, sorted(times))
    fresh = [r for r in records if times[r.job_id] == 1 and r.job_id not in known]
    rest = [r for r in records if times[r.job_id] > 1 or r.job_id in known]
    made = ingest_new.prepare(map(ingest_new.values_of, fresh), cluster=cluster, now=now)
    new_jobs.put(session, made.jobs, made.runs)
    changed = len(made.jobs) + len(made.runs)
    changed += apply_one_by_one(session, rest, cluster=cluster, now=now)
    link.link(session, _sightings(records), cluster=cluster, now=now)
    return changed


def apply_prepared(
    session: "Session",
    jobs_of: Squeezed,
    runs_of: Squeezed,
    *,
    several: Collection[int],
    cluster: str,
    now: datetime,
) -> int:
    """The same for rows that came prepared; `several` are ids that have more than one."""
    if not jobs_of.rows:
        return 0
    ids = [job[0] for job in jobs_of.rows]
    known = new_jobs.known_ids(session, cluster, ids) | set(several)
    if not known and (ingest_new.TOKEN, new_jobs.NONE) in jobs_of.alike:
        squeezed.put(session, jobs_of, runs_of)
        return len(ids) + len(runs_of.rows)
    made = ingest_new.Prepared(squeezed.expand_jobs(jobs_of), squeezed.expand_runs(runs_of))
    ours = [job for job in made.jobs if job[ingest_new.TOKEN] != new_jobs.NONE]
    rest: list[m.RunRecord] = []
    if known:
        rest = [ingest_new.record_of(job) for job in made.jobs if job[0] in known]
        made = ingest_new.Prepared(
            [job for job in made.jobs if job[0] not in known],
            [run for run in made.runs if run[0] not in known],
        )
    new_jobs.put(session, made.jobs, made.runs)
    changed = len(made.jobs) + len(made.runs)
    changed += apply_one_by_one(session, rest, cluster=cluster, now=now)
    if ours:
        seen = _sightings([ingest_new.record_of(job) for job in ours])
        link.link(session, seen, cluster=cluster, now=now)
    return changed


def apply_one_by_one(
    session: "Session", records: Sequence[m.RunRecord], *, cluster: str, now: datetime
) -> int:
    """Whatever the store knows of these jobs. Does not look for their submissions."""
    if not records:
        return 0
    ids = sorted({record.job_id for record in records})
    known: dict[int, list[KnownJob]] = defaultdict(list)
    for job in jobs.by_slurm_ids(session, cluster, ids):
        known[job.slurm_id].append(job)
    runs = jobs.runs_by_slurm_ids(session, cluster, ids)
    by_id = {job.id: job for found in known.values() for job in found}
    changed = 0
    for record in records:
        before = runs.get((record.job_id, record.submit_time))
        found = by_id[before["job_id"]] if before else find(known[record.job_id], record)
        job = found or _add(session, record, cluster=cluster, now=now)
        if found is None:
            known[record.job_id].append(job)
            by_id[job.id] = job
            changed += 1
        seen_until = _seen_running(job, record) if found else None
        changed += _tell(session, job, record)
        if used_nodes(_state(record), record.start_time):
            row = _run_row(job, record, cluster) | {"seen_until": seen_until}
            changed += jobs.put_run(session, row, before=before)
    return changed


def find(rows: Sequence[KnownJob], record: m.RunRecord) -> KnownJob | None:
    """The job that this run belongs to, whichever of its runs was stored first."""
    for row in rows:
        if record.submit_time in {row.submit_time, row.get("last_submit_time")}:
            return row
    stint = _stint(record)
    for row in rows:
        last = row.get("last_submit_time")
        if row.get("user") == record.user and row.submit_time < record.submit_time < last:
            return row
    earlier = [row for row in rows if is_requeue_of(stint_of_row(row), stint)]
    if earlier:
        return max(earlier, key=lambda row: row.submit_time)
    later = [row for row in rows if is_requeue_of(stint, stint_of_row(row))]
    return min(later, key=lambda row: row.submit_time, default=None)


def _state(record: m.RunRecord) -> JobState:
    return parse_state(record.state)[0]


def _seen_running(job: KnownJob, record: m.RunRecord) -> datetime | None:
    """Until when the queue showed this run on its nodes: evidence against an end that somebody
    set by hand, long before that."""
    is_this = job.get("last_submit_time") == record.submit_time
    if is_this and record.end_time and parse_state(job.get("state"))[0].is_active:
        return job.seen_at
    return None


def _tell(session: "Session", job: KnownJob, record: m.RunRecord) -> int:
    """Bring the job up to date with what this run says of it."""
    changes: dict[str, Any] = {}
    if record.submit_time < job.submit_time:
        changes["submit_time"] = job.submit_time = record.submit_time
    if record.submit_time >= job.get("last_submit_time"):
        changes |= _newest(job, record)
    if not changes:
        return 0
    requeue = requeues.requeue_in(job, changes, seen_at=record.submit_time)
    facts = list(job.facts)
    for name, value in changes.items():
        if name in PLACE:
            facts[PLACE[name]] = value
    job.facts = tuple(facts)
    jobs.change(session, [{"id": job.id, **changes}])
    if requeue is not None:
        requeues.tell(session, [requeue])
    return 1


def _newest(job: KnownJob, record: m.RunRecord) -> dict[str, Any]:
    fresh = dict(zip(FACTS, _facts(record), strict=True))
    changes = {name: fresh[name] for name in _FILLED if job.get(name) is None}
    if record.submit_time > job.get("last_submit_time"):
        changes |= {"last_submit_time": record.submit_time, "restarts": record.restarts}
        changes |= {name: fresh[name] for name in (*_ENDING, "eligible_time")}
        changes["active"] = fresh["active"] or (job.get("active") and not _ends(job, record))
    elif _ends(job, record):
        changes |= {name: fresh[name] for name in _ENDING} | {"active": False}
        if job.left_queue_at is not None:
            changes["left_queue_at"] = job.left_queue_at = None
    newer = "last_submit_time" in changes
    accounted = _state(record).ends_run or (job.accounted and not newer)
    if accounted != job.accounted:
        changes["accounted"] = job.accounted = accounted
    return {
        name: value
        for name, value in changes.items()
        if name not in PLACE or value != job.get(name)
    }


def _ends(job: KnownJob, record: m.RunRecord) -> bool:
    """Does this positive statement end the job?

    PREEMPTED and the like end a run, and Slurm may queue the job again under the same id:
    they end the job only once the queue no longer has it.
    """
    state = _state(record)
    if not state.may_return:
        return state.is_ended
    if job.get("active"):
        return job.left_queue_at is not None
    # Cancelled in the middle of a requeue, accounting's last word is REQUEUED: the queue's holds.
    return job.get("state") == state.value or not parse_state(job.get("state"))[0].is_ended


def _add(session: "Session", record: m.RunRecord, *, cluster: str, now: datetime) -> KnownJob:
    """A job that the queue never showed us; the portal's or anybody's."""
    facts = _facts(record)
    row = dict(zip(FACTS, facts, strict=True)) | {
        "cluster": cluster,
        "slurm_id": record.job_id,
        "submit_time": record.submit_time,
        "template": None,
        # What accounting says of an open job is no sight of it: only the queue shows it.
        "seen_at": now if _state(record).ends_run else record.start_time or record.submit_time,
        "left_queue_at": None,
        "accounted": _state(record).ends_run,
    }
    job_id = jobs.add(session, row)
    if job_id is None:
        # Only a process beside this one can have made it since the select, on PostgreSQL.
        job_id = jobs.id_of(
            session, cluster=cluster, slurm_id=record.job_id, submit_time=record.submit_time
        )
    assert job_id is not None
    return KnownJob(
        job_id,
        record.job_id,
        record.submit_time,
        row["seen_at"],
        None,
        facts,
        row["accounted"],
    )


def _facts(record: m.RunRecord) -> tuple[Any, ...]:
    state = _state(record)
    gpus, kind = ingest_new.requested_gpus(record.alloc_tres, record.req_tres)
    return (
        record.array_job_id,
        record.array_task,
        record.array_tasks,
        record.user,
        record.uid,
        record.name,
        record.account,
        record.partition,
        record.qos,
        state.value if state is not JobState.UNKNOWN else record.state,
        not (state.is_ended or state is JobState.PREEMPTED),
        record.reason,
        record.submit_time,
        record.eligible_time,
        record.start_time,
        record.end_time,
        None,
        record.time_limit_minutes,
        record.nodes,
        record.cpus,
        gpus,
        kind,
        ingest_new.asked_gpu_type(record.req_tres),
        record.node_list,
        None,
        record.restarts,
        record.exit_code,
        record.exit_signal,
        record.working_directory,
        None,
        token_in(record.comment),
    )


def _run_row(job: KnownJob, record: m.RunRecord, cluster: str) -> dict[str, Any]:
    over = _state(record).ends_run
    return {
        "job_id": job.id,
        "cluster": cluster,
        "slurm_id": record.job_id,
        "submit_time": record.submit_time,
        "user": record.user,
        "group": record.account,
        "partition": record.partition,
        "qos": record.qos,
        "state": record.state if _state(record) is JobState.UNKNOWN else _state(record).value,
        "eligible_time": record.eligible_time,
        "start_time": record.start_time,
        "end_time": record.end_time if over else None,
        "elapsed_seconds": max(0, record.elapsed_seconds),
        "suspended_seconds": max(0, record.suspended_seconds),
        "nodes": record.nodes,
        "cpus": record.cpus,
        "gpus": ingest_new.held_gpus(record.alloc_tres, record.req_tres),
        "alloc_tres": record.alloc_tres,
        "node_list": record.node_list,
        "exit_code": record.exit_code,
        "exit_signal": record.exit_signal,
        "restarts": record.restarts,
        "cancelled_by": record.cancelled_by,
    }


def _stint(record: m.RunRecord) -> Stint:
    return Stint(
        user=record.user,
        name=record.name,
        submit=record.submit_time,
        end=record.end_time,
        restarts=record.restarts,
        may_return=_state(record).may_return,
        token=token_in(record.comment),
    )


def _sightings(records: Sequence[m.RunRecord]) -> dict[str, list[Sighting]]:
    found: dict[str, list[Sighting]] = defaultdict(list)
    for record in records:
        token = token_in(record.comment)
        if token is None:
            continue
        sighting = Sighting(
            token=token,
            user=record.user,
            slurm_id=record.job_id,
            id_of_all=record.array_job_id or record.job_id,
            submit_time=record.submit_time,
            started=record.start_time is not None,
            open=False,
        )
        found[token].append(sighting)
    return found
