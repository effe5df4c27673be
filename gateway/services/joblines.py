"""A job's row at the moment when Slurm accepts it, before any poll has seen it."""

from typing import Any

from gateway.core.arrays import parse_array
from gateway.core.states import JobState
from gateway.wire import messages as m

_UNKNOWN_YET = (
    "array_job_id",
    "array_task",
    "array_tasks",
    "uid",
    "reason",
    "eligible_time",
    "start_time",
    "end_time",
    "estimated_start",
    "node_list",
    "priority",
    "exit_code",
    "exit_signal",
    "left_queue_at",
)


def accepted_row(
    accepted: m.AcceptedJob,
    request: m.SubmitRequest,
    *,
    cluster: str,
    template: str,
    purpose: str | None,
) -> dict[str, Any]:
    """The columns of a fresh job; what only the queue knows is None."""
    return dict.fromkeys(_UNKNOWN_YET) | {
        "cluster": cluster,
        "slurm_id": accepted.job_id,
        "user": request.user,
        "name": accepted.name,
        "group": accepted.account,
        "partition": accepted.partition,
        "qos": accepted.qos,
        "template": template,
        "purpose": purpose,
        "state": JobState.PENDING.value,
        "active": True,
        "submit_time": accepted.submit_time,
        "last_submit_time": accepted.submit_time,
        "time_limit_minutes": accepted.time_limit_minutes,
        "nodes": accepted.nodes,
        "cpus": accepted.nodes * request.cpus_per_task,
        "gpus": accepted.gpus,
        "gpu_type": request.gpu_type,
        "restarts": 0,
        "working_directory": request.working_directory,
        "output": output_path(_output(accepted, request), accepted.job_id, request),
        "token": request.token,
        **_of_array(accepted, request),
    }


def _of_array(accepted: m.AcceptedJob, request: m.SubmitRequest) -> dict[str, Any]:
    if request.array is None:
        return {}
    tasks = parse_array(request.array).at_least
    return {"array_job_id": accepted.job_id, "array_tasks": tasks}


def _output(accepted: m.AcceptedJob, request: m.SubmitRequest) -> str:
    """Of an array the answer may be one task's path; the row stands for all of them."""
    return request.output if request.array is not None else accepted.output or request.output


def output_path(pattern: str, job_id: int, request: m.SubmitRequest) -> str:
    """sbatch's patterns that the portal uses, filled in."""
    filled = {"%j": str(job_id), "%A": str(job_id), "%x": request.name, "%u": request.user}
    for mark, value in filled.items():
        pattern = pattern.replace(mark, value)
    return pattern if pattern.startswith("/") else f"{request.working_directory}/{pattern}"
