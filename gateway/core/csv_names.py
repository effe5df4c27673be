"""The names that columns of job histories usually have, and the words for states.

Names: `sacct` and slurmdbd's tables (manual of sacct; table `job_table`), and what public traces
of GPU clusters call the same things. All are compared in small letters.
"""

from collections.abc import Iterator, Mapping

from gateway.core.states import JobState, parse_state

# What a column may be taken for, and its usual names, the best first.
NAMES: Mapping[str, tuple[str, ...]] = {
    "id": (
        *("jobidraw", "job_unique_id", "id_job", "jobid", "job_id", "job", "id", "instance_sn"),
        *("pod_name", "pod", "name"),
    ),
    "array": (),  # a task's number, where it is told apart only together with `id`
    "tasks": ("jobid",),  # `900_[60-89]`: how many tasks of an array a row stands for
    "submit": (
        *("submit", "submit_time", "time_submit", "submitted", "submission_time", "submittime"),
        *("submitted_time", "submission", "creation_time", "create_time", "created", "queued_at"),
        *("submitted_at", "submit_ts", "qtime", "arrival_time"),
    ),
    "eligible": ("eligible", "eligible_time", "time_eligible", "eligibletime", "etime"),
    "start": (
        *("start", "start_time", "time_start", "started", "starttime", "scheduled_time"),
        *("started_at", "start_ts", "stime"),
    ),
    "end": (
        *("end", "end_time", "time_end", "ended", "endtime", "deletion_time", "finish_time"),
        *("finished", "finished_at", "completion_time", "end_ts"),
    ),
    "elapsed": (
        *("elapsedraw", "elapsed", "elapsed_time", "run_time_sec", "run_time", "runtime"),
        *("duration", "run_seconds", "elapsed_seconds", "walltime_used", "wall_time"),
    ),
    "wait": ("submit_wait_sec", "wait_time", "wait", "queue_time", "wait_seconds", "waiting_time"),
    "suspended": ("suspendedraw", "suspended", "time_suspended"),
    "limit": (
        *("time_limit_sec", "timelimitraw", "timelimit", "time_limit", "limit", "walltime"),
        *("time_limit_minutes", "limit_minutes", "requested_time", "wallclock_limit"),
    ),
    "state": ("state", "status", "job_state", "pod_phase", "final_state", "jobstate"),
    "user": ("user", "user_name", "username", "id_user", "user_id", "userid", "owner", "uid"),
    "group": (
        *("account", "account_id", "account_name", "group", "project", "project_id", "job_type"),
        *("app_name", "vc", "virtual_cluster", "group_id", "team", "qos"),
    ),
    "partition": (
        *("partition", "partition_name", "partition_id", "partition_id_x", "queue", "queue_name"),
        *("role", "pool", "qos"),
    ),
    "qos": ("qos", "qos_name", "id_qos", "qos_id"),
    "gpus": (
        *("num_gpu", "gpus", "gpu_request", "gpu_num", "num_gpus", "ngpus", "gpu", "alloc_gpus"),
        *("gpu_count", "req_gpus", "reqgpus", "allocgpus"),
    ),
    "req_gpu_type": ("req_gpu_type", "requested_gpu_type", "gpu_type_requested", "reqgputype"),
    "gpu_type": ("gpu_type", "gpu_spec", "gpu_model", "gputype"),
    "tres": ("alloctres", "tres_alloc", "alloc_tres"),
    "req_tres": ("reqtres", "tres_req", "req_tres"),
    "cpus": (
        *("alloccpus", "ncpus", "alloc_cpus", "cpus", "cpus_req", "req_cpus", "reqcpus"),
        *("num_cpus", "cores"),
    ),
    "nodes": ("nnodes", "allocnodes", "alloc_nodes", "nodes_alloc", "nodes", "num_nodes"),
    "node_list": ("nodelist", "node_list"),
    "restarts": ("restarts", "restartcnt", "restart_cnt"),
    "template": ("template",),
    "cluster": ("cluster", "cluster_id", "cluster_name"),
}
# Bare numbers in these columns are minutes, or milliseconds; in any other, seconds.
MINUTES = frozenset(
    {"timelimitraw", "timelimit", "time_limit", "time_limit_minutes", "limit_minutes"}
)
# Slurm's enum job_states, as slurmdbd stores it.
NUMBERS = tuple(list(JobState)[:12])
# States of other systems. Their rows' times say what is over: they print no end that has not come.
FOREIGN: Mapping[str, JobState | None] = {
    **dict.fromkeys(
        ("succeeded", "success", "successful", "complete", "done", "finished", "ok", "pass"),
        JobState.COMPLETED,
    ),
    **dict.fromkeys(("passed", "terminated"), JobState.COMPLETED),
    **dict.fromkeys(("fail", "error", "exit", "exited", "crashed"), JobState.FAILED),
    **dict.fromkeys(("killed", "canceled", "aborted", "evicted", "deleted"), JobState.CANCELLED),
    **dict.fromkeys(("queued", "waiting", "held"), JobState.PENDING),
    **dict.fromkeys(("out-of-memory", "oom", "oomkilled"), JobState.OUT_OF_MEMORY),
    **dict.fromkeys(("timedout", "timed_out", "timelimit"), JobState.TIMEOUT),
    "unknown": None,
}
_LETTERS = (  # sacct --format=State%2 and the compact codes of squeue
    ("BF", JobState.BOOT_FAIL),
    ("CA", JobState.CANCELLED),
    ("CD", JobState.COMPLETED),
    ("DL", JobState.DEADLINE),
    ("F", JobState.FAILED),
    ("NF", JobState.NODE_FAIL),
    ("OOM", JobState.OUT_OF_MEMORY),
    ("PD", JobState.PENDING),
    ("PR", JobState.PREEMPTED),
    ("R", JobState.RUNNING),
    ("RQ", JobState.REQUEUED),
    ("S", JobState.SUSPENDED),
    ("TO", JobState.TIMEOUT),
)


def state_words() -> Iterator[tuple[str, JobState | None, bool]]:
    """Each word for a state as it is written, the state, and whether Slurm wrote it. Then a
    waiting job's start, and the end of one that runs, are nothing but fill."""
    seen: set[str] = set()
    slurm = [(state.value, state) for state in JobState if state is not JobState.UNKNOWN]
    cut = [
        (f"{state[:length]}+", parse_state(f"{state[:length]}+")[0])
        for state in JobState
        for length in range(3, len(state))
    ]
    for word, state in (*slurm, *cut, *_LETTERS):
        if word not in seen and state is not JobState.UNKNOWN:
            seen.add(word)
            yield word, state, True
    foreign = {state.lower(): state for _, state in slurm} | dict(FOREIGN)
    for word, known in foreign.items():
        for written in (word, word.capitalize(), word.upper()):
            if written not in seen:
                seen.add(written)
                yield written, known, False
