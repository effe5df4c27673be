"""pyslurm's objects as messages. Every attribute is read once; pyslurm is typed nowhere."""

import pwd
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from gateway.core.arrays import parse_array
from gateway.wire import messages as m

ENDED = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
_UNREADABLE = "\ufffd"
_NO_TASK = str(0xFFFFFFFE)  # what Slurm puts for %a while the record stands for many tasks


def queue_job(job: Any, user_name: Callable[[int], str]) -> m.QueueJob:
    """One record of slurmctld. A name that is no UTF-8 is shown as a replacement character."""
    state = str(job.state)
    started = state not in ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")
    gpus, gpu_type = _gpus(_held_tres(job, state))
    array_id, task, tasks = _array(job)
    uid = int(job.user_id)
    return m.QueueJob(
        job_id=int(job.id),
        user=user_name(uid),
        uid=uid,
        name=_text(job, "name") or "",
        account=_text(job, "account") or "",
        partition=_text(job, "partition") or "",
        qos=_text(job, "qos") or "",
        state=state,
        reason=_reason(job),
        submit_time=datetime.fromtimestamp(job.submit_time, UTC),
        eligible_time=_time(job.eligible_time),
        # Before the start Slurm keeps its guess in the same field.
        start_time=_time(job.start_time) if started else None,
        end_time=_time(job.end_time) if started else None,
        estimated_start=None if started else _time(job.start_time),
        time_limit_minutes=_number(job.time_limit),
        nodes=_number(job.num_nodes) or 1,
        cpus=_number(job.cpus) or 0,
        gpus=gpus,
        gpu_type=gpu_type,
        node_list=_text(job, "allocated_nodes") or None,
        priority=_number(job.priority),
        restarts=_number(job.requeue_count) or 0,
        exit_code=int(job.exit_code) if state in ENDED else None,
        exit_signal=int(job.exit_code_signal) or None if state in ENDED else None,
        working_directory=_text(job, "working_directory") or "",
        output=_output(job, stands_for_many=array_id is not None and task is None),
        comment=_text(job, "comment"),
        array_job_id=array_id,
        array_task=task,
        array_tasks=tasks,
        req_gpu_type=_gpus(job.requested_tres)[1],
        planned_nodes=None if started else _text(job, "scheduled_nodes") or None,
    )


def node(found: Any) -> m.Node:
    gpus, gpu_type = _node_gpus(found.configured_gres)
    used, _ = _node_gpus(found.allocated_gres)
    return m.Node(
        name=str(found.name),
        state=str(found.state),
        reason=_text(found, "reason"),
        partitions=tuple(found.partitions or ()),
        cpus=_number(found.effective_cpus) or 0,
        cpus_used=_number(found.allocated_cpus) or 0,
        memory_mb=_number(found.real_memory) or 0,
        gpu_type=gpu_type,
        gpus=gpus,
        gpus_used=used,
        address=_text(found, "address") or None,
    )


def partition(found: Any, nodes: tuple[m.Node, ...]) -> m.Partition:
    name = str(found.name)
    kinds = {node.gpu_type for node in nodes if name in node.partitions and node.gpu_type}
    return m.Partition(
        name=name,
        state=str(found.state),
        is_default=bool(found.is_default),
        nodes=_number(found.total_nodes) or 0,
        max_time_minutes=_number(found.max_time),
        default_time_minutes=_number(found.default_time),
        max_nodes=_number(found.max_nodes),
        allow_accounts=_names(found.allowed_accounts),
        # pyslurm gives ["ALL"] for an empty list of either kind: here it means "nobody".
        deny_accounts=_names(found.denied_accounts),
        allow_qos=_names(found.allowed_qos),
        deny_qos=_names(found.denied_qos),
        gpu_types=tuple(sorted(kinds)),
    )


def accounting_facts(config: Any) -> m.AccountingFacts:
    return m.AccountingFacts(
        tracked=tuple(str(name) for name in config.accounting_storage_tres or ()),
        enforced=tuple(str(word).lower() for word in config.accounting_storage_enforce or ()),
        # 0 in slurm.conf, no decay, is None here.
        priority_decay_half_life_seconds=_number(config.priority_decay_half_life),
    )


def user_names() -> Callable[[int], str]:
    """Names by uid, each looked up once; an account that is gone keeps its number."""
    known: dict[int, str] = {}

    def name(uid: int) -> str:
        if uid not in known:
            try:
                known[uid] = pwd.getpwuid(uid).pw_name
            except KeyError:
                known[uid] = str(uid)
        return known[uid]

    return name


def _held_tres(job: Any, state: str) -> Any:
    """What it has, or once had; what it asked for while it waits."""
    waiting = state == "PENDING"
    return job.requested_tres if waiting else (job.allocated_tres or job.requested_tres)


def _gpus(tres: Any) -> tuple[int, str | None]:
    """Their number, and the type where it is one for all."""
    found = [gpu for key, gpu in (tres.gres if tres else {}).items() if key.startswith("gpu")]
    untyped = [int(gpu.count) for gpu in found if gpu.type is None]
    typed = {str(gpu.type): int(gpu.count) for gpu in found if gpu.type is not None}
    total = untyped[0] if untyped else sum(typed.values())
    only = next(iter(typed)) if len(typed) == 1 and sum(typed.values()) == total else None
    return total, only


def _array(job: Any) -> tuple[int | None, int | None, int | None]:
    array_id = _number(job.array_id)
    if not array_id:
        return None, None, None
    waiting = _text(job, "array_tasks_waiting")
    if not waiting:
        # pyslurm reads task 0 as "none".
        return array_id, _number(job.array_task_id) or 0, None
    try:
        return array_id, None, parse_array(waiting).count
    except ValueError:
        return array_id, None, None


def _output(job: Any, *, stands_for_many: bool) -> str | None:
    path = _text(job, "standard_output") or None
    if path is None or not stands_for_many:
        return path
    folder, slash, name = path.rpartition("/")
    return folder + slash + name.replace(_NO_TASK, "%a")


def _node_gpus(gres: Any) -> tuple[int, str | None]:
    counts: dict[str, int] = {}
    for name, count in (gres or {}).items():
        kind, _, model = str(name).removeprefix("gres/").partition(":")
        if kind == "gpu":
            counts[model] = int(count)
    named = {model: count for model, count in counts.items() if model}
    total = counts.get("", sum(named.values()))
    return total, next(iter(named)) if len(named) == 1 else None


def _reason(job: Any) -> str | None:
    reason = _text(job, "state_reason")
    return None if reason in (None, "None") else reason


def _text(found: Any, name: str) -> str | None:
    try:
        value = getattr(found, name)
    except UnicodeDecodeError:
        # One user's bad name must not hide everybody's queue.
        return _UNREADABLE
    return None if value is None else str(value)


def _time(seconds: Any) -> datetime | None:
    number = _number(seconds)
    return None if not number else datetime.fromtimestamp(number, UTC)


def _number(value: Any) -> int | None:
    """pyslurm says "UNLIMITED" in words, and None for what Slurm did not say."""
    return value if isinstance(value, int) else None


def _names(values: Any) -> tuple[str, ...]:
    names = tuple(str(value) for value in values or ())
    return () if names == ("ALL",) else names
