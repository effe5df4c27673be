"""What one answer of the queue changes: compared in memory, without the database."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from gateway.core.dataset_ahead import Planned
from gateway.core.hostlist import expand
from gateway.core.identity import Stint, is_requeue_of, token_in
from gateway.core.states import JobState, parse_state
from gateway.services import wait_looks
from gateway.services.requeues import Requeue, requeue_in
from gateway.services.wait_looks import Waiting
from gateway.store.jobs import FACTS, PLACE, KnownJob
from gateway.wire import messages as m

# A preempted job comes back within moments, or never (PreemptMode=CANCEL).
_RETURNS_WITHIN = timedelta(seconds=60)
# Both move at each scheduling cycle; small steps are not worth a write of 100,000 rows.
_SMALL_SHIFT = timedelta(seconds=60)
_SMALL_SHARE = 10  # a tenth


@dataclass(slots=True)
class Plan:
    """`added` are whole rows, `changed` are rows of id and what changed; `waiting`: who of the
    changed waits for something else than before, by id."""

    added: list[dict[str, Any]] = field(default_factory=list)
    changed: list[dict[str, Any]] = field(default_factory=list)
    missing: list[KnownJob] = field(default_factory=list)
    ended: int = 0
    requeues: list[Requeue] = field(default_factory=list)
    waiting: dict[int, Waiting] = field(default_factory=dict)

    def reasons(self) -> Iterator[str | None]:
        """Of all that is to be written."""
        yield from (row["reason"] for row in self.added)
        yield from (one.reason for one in self.waiting.values())


@dataclass(frozen=True, slots=True)
class Sighting:
    """A job of ours, seen in the queue or in accounting. `id_of_all` is the array's id."""

    token: str
    user: str
    slurm_id: int
    id_of_all: int
    submit_time: datetime
    started: bool
    open: bool


def make(queue: m.Queue, known: Sequence[KnownJob]) -> Plan:
    """Compare; a known open job that the answer lacks is missing, not ended."""
    by_id: dict[int, list[KnownJob]] = defaultdict(list)
    for job in known:
        by_id[job.slurm_id].append(job)
    plan = Plan()
    present: set[int] = set()
    for seen in queue.jobs:
        row = find(by_id.get(seen.job_id, ()), seen)
        facts = facts_of(seen, taken_at=queue.taken_at)
        if row is None:
            plan.added.append(dict(zip(FACTS, facts, strict=True)) | _identity(seen))
            continue
        present.add(row.id)
        if changes := differences(row, facts):
            plan.changed.append({"id": row.id, **changes})
            if requeue := requeue_in(row, changes, seen_at=queue.taken_at):
                plan.requeues.append(requeue)
            if waiting := wait_looks.of_changed(row, changes):
                plan.waiting[row.id] = waiting
            plan.ended += changes.get("active") is False
    plan.missing = [job for job in known if job.get("active") and job.id not in present]
    return plan


def find(rows: Sequence[KnownJob], seen: m.QueueJob) -> KnownJob | None:
    """The row of this job: the same submit time, or a requeue of its newest run."""
    for row in rows:
        if seen.submit_time in {row.submit_time, row.get("last_submit_time")}:
            return row
    later = _stint_of_queue(seen)
    earlier = [row for row in rows if is_requeue_of(stint_of_row(row), later)]
    return max(earlier, key=lambda row: _time(row.get("last_submit_time")), default=None)


def strangers(queue: m.Queue, known: Sequence[KnownJob]) -> list[m.QueueJob]:
    """Jobs whose id is known, but only as another job's: ended rows may hold theirs."""
    by_id: dict[int, list[KnownJob]] = defaultdict(list)
    for job in known:
        by_id[job.slurm_id].append(job)
    return [
        seen
        for seen in queue.jobs
        if (rows := by_id.get(seen.job_id)) is not None and find(rows, seen) is None
    ]


def facts_of(seen: m.QueueJob, *, taken_at: datetime) -> tuple[Any, ...]:
    """The row's values, in the order of FACTS."""
    state = _state(seen.state)
    over = _is_over(state, seen, taken_at)
    return (
        seen.array_job_id,
        seen.array_task,
        seen.array_tasks,
        seen.user,
        seen.uid,
        seen.name,
        seen.account,
        seen.partition,
        seen.qos,
        state.value if state is not JobState.UNKNOWN else seen.state,
        not over,
        seen.reason,
        seen.submit_time,
        seen.eligible_time,
        # A job cancelled while it waited is given its end as its start, but no node.
        None if over and seen.node_list is None else seen.start_time,
        # slurmctld gives running jobs the end that their limit allows.
        seen.end_time if over or state.ends_run else None,
        None if over else seen.estimated_start,
        seen.time_limit_minutes,
        seen.nodes,
        seen.cpus,
        seen.gpus,
        seen.gpu_type,
        seen.req_gpu_type,
        seen.node_list,
        seen.priority,
        seen.restarts,
        seen.exit_code,
        seen.exit_signal,
        seen.working_directory,
        seen.output,
        token_in(seen.comment),
    )


def differences(row: KnownJob, facts: tuple[Any, ...]) -> dict[str, Any]:
    """What to write. Empty when nothing worth a write has changed."""
    submit = PLACE["last_submit_time"]
    if facts[submit] < row.facts[submit]:
        return {}  # an answer from before the requeue
    open_again = facts[PLACE["active"]] and not row.get("active")
    if open_again and facts[submit] == row.facts[submit]:
        return {}  # a run that ended stays ended; the answer is older than the end
    if facts == row.facts and row.left_queue_at is None:
        return {}
    changed = {
        name: new
        for name, new, old in zip(FACTS, facts, row.facts, strict=True)
        if new != old and not _keep(name, new, old)
    }
    if row.left_queue_at is not None:
        changed["left_queue_at"] = None
    if set(changed) <= {"priority", "estimated_start"} and _is_small(changed, row):
        return {}
    return changed


def sums(queue: m.Queue) -> list[dict[str, Any]]:
    """The open jobs by partition, GPU type, group, state and reason; an array counts its tasks."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for seen in queue.jobs:
        state = _state(seen.state)
        if _is_over(state, seen, queue.taken_at):
            continue
        reason = seen.reason if state.is_pending else None
        key = (seen.partition, seen.gpu_type, seen.account, state.value, reason)
        names = ("partition", "gpu_type", "group", "state", "reason")
        start = {"jobs": 0, "gpus": 0, "oldest_eligible": None}
        row = found.setdefault(key, dict(zip(names, key, strict=True)) | start)
        tasks = seen.array_tasks or 1
        row["jobs"] += tasks
        row["gpus"] += seen.gpus * tasks
        row["oldest_eligible"] = _earlier(row["oldest_eligible"], seen.eligible_time)
    return list(found.values())


def sightings(queue: m.Queue) -> dict[str, list[Sighting]]:
    """The jobs that carry a token, by it."""
    found: dict[str, list[Sighting]] = defaultdict(list)
    for seen in queue.jobs:
        token = token_in(seen.comment)
        if token is None:
            continue
        state = _state(seen.state)
        sighting = Sighting(
            token=token,
            user=seen.user,
            slurm_id=seen.job_id,
            id_of_all=seen.array_job_id or seen.job_id,
            submit_time=seen.submit_time,
            started=seen.start_time is not None or seen.restarts > 0,
            open=state.is_pending or state.is_active,
        )
        found[token].append(sighting)
    return found


def planned(queue: m.Queue) -> tuple[Planned, ...]:
    """Jobs of ours that wait, and of which backfill has told where it means to start them."""
    found = []
    for seen in queue.jobs:
        token = token_in(seen.comment) if seen.planned_nodes and seen.estimated_start else None
        if token is None or seen.array_job_id is not None:
            continue
        nodes = tuple(expand(seen.planned_nodes or ""))
        start = seen.estimated_start
        if nodes and start is not None and start > queue.taken_at:
            found.append(Planned(token, seen.job_id, nodes, start))
    return tuple(found)


def stint_of_row(row: KnownJob) -> Stint:
    return Stint(
        user=row.get("user"),
        name=row.get("name"),
        submit=row.get("last_submit_time"),
        end=row.get("end_time"),
        restarts=row.get("restarts"),
        may_return=_state(row.get("state")).may_return,
        token=row.get("token"),
    )


@lru_cache(maxsize=1000)
def _state(printed: str) -> JobState:
    """A hundred thousand jobs share a dozen states."""
    return parse_state(printed)[0]


def _stint_of_queue(seen: m.QueueJob) -> Stint:
    return Stint(
        user=seen.user,
        name=seen.name,
        submit=seen.submit_time,
        end=seen.end_time,
        restarts=seen.restarts,
        may_return=False,
        token=token_in(seen.comment),
    )


def _identity(seen: m.QueueJob) -> dict[str, Any]:
    return {"slurm_id": seen.job_id, "submit_time": seen.submit_time, "left_queue_at": None}


def _is_over(state: JobState, seen: m.QueueJob, taken_at: datetime) -> bool:
    if state.is_ended:
        return True
    gone = seen.end_time is not None and taken_at - seen.end_time > _RETURNS_WITHIN
    return state is JobState.PREEMPTED and gone


def _keep(name: str, new: Any, old: Any) -> bool:
    """slurmctld drops these of a job that is over; what was known is kept."""
    return (
        new is None and old is not None and name in {"token", "output", "gpu_type", "req_gpu_type"}
    )


def _is_small(changed: dict[str, Any], row: KnownJob) -> bool:
    old_rank, new_rank = row.get("priority"), changed.get("priority", row.get("priority"))
    old_start = row.get("estimated_start")
    new_start = changed.get("estimated_start", old_start)
    if (old_rank is None) != (new_rank is None) or (old_start is None) != (new_start is None):
        return False
    moved = old_start is not None and abs(new_start - old_start) > _SMALL_SHIFT
    ranked = old_rank is not None and abs(new_rank - old_rank) * _SMALL_SHARE > old_rank
    return not moved and not ranked


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    times: Iterable[datetime] = [time for time in (one, other) if time is not None]
    return min(times, default=None)


def _time(value: Any) -> datetime:
    assert isinstance(value, datetime)
    return value
