"""A small store with something of everything, for pages and for a look by hand."""

from datetime import timedelta
from typing import Any

from gateway.core.access import Role
from gateway.store.uow import Begin
from gateway.testing import builders as b

PEOPLE: dict[str, dict[str, Any]] = {
    "member": {},
    "colleague": {},
    "leader": {},
    "stranger": {},
    "operator": {"role": Role.OPERATOR.value},
    "admin": {"role": Role.ADMINISTRATOR.value},
}


def fill(begin: Begin) -> dict[str, int]:
    """Two groups, six people, the cluster, and a job in each of the common states.

    Answers the ids of what was made: people by login, jobs by the name of their state.
    """
    people = {login: b.add_person(begin, login, **values) for login, values in PEOPLE.items()}
    b.add_associations(
        begin,
        b.association("member"),
        b.association("colleague"),
        b.association("leader", is_coordinator=True),
        b.association("stranger", "vision"),
    )
    _cluster(begin)
    jobs = _jobs(begin)
    queued = b.add_submission(begin, people["member"])
    accepted = b.add_submission(
        begin, people["member"], state="accepted", job_id=jobs["RUNNING"], next_attempt_at=None
    )
    b.add_event(begin, "submitted", submission_id=accepted, job_id=jobs["RUNNING"])
    return people | jobs | {"queued": queued, "accepted": accepted}


def _cluster(begin: Begin) -> None:
    b.add_cluster(
        begin,
        nodes=(
            b.node("a100-1", state="MIXED", gpus_used=6),
            b.node("a100-2", state="MIXED+DRAIN", gpus_used=2, reason="bad fan"),
            b.node("a100-3"),
            b.node("rtx-1", state="DOWN", gpu_type="rtx4090", partitions=("rtx4090",)),
        ),
        partitions=(
            b.partition(),
            b.partition("rtx4090", nodes=1),
            b.partition("debug", max_time_minutes=30, gpu_types=("a100",)),
        ),
        qos_list=(b.qos(), b.qos("spot"), b.qos("urgent", priority=100)),
    )
    b.add_waiting(begin)
    b.add_waiting(begin, reason="QOSMaxGRESPerUser", group="vision", jobs=3, gpus=24)


def _jobs(begin: Begin) -> dict[str, int]:
    start, end = b.NOW - timedelta(minutes=50), b.NOW - timedelta(minutes=5)
    running = b.add_job(
        begin,
        state="RUNNING",
        start_time=start,
        node_list="a100-1",
        token="token-2",  # noqa: S106
    )
    ended: dict[str, Any] = {"start_time": start, "end_time": end, "exit_signal": 0}
    jobs = {
        "PENDING": b.add_job(begin, reason="Priority", name="waits"),
        "RUNNING": running,
        "COMPLETED": b.add_job(begin, state="COMPLETED", exit_code=0, **ended),
        "FAILED": b.add_job(begin, state="FAILED", exit_code=1, user="colleague", **ended),
        "TIMEOUT": b.add_job(begin, state="TIMEOUT", exit_code=0, **ended),
        "CANCELLED": b.add_job(begin, state="CANCELLED", end_time=end),
        "stranger's": b.add_job(begin, user="stranger", group="vision", partition="rtx4090"),
    }
    for name in ("COMPLETED", "FAILED", "TIMEOUT"):
        b.add_run(
            begin, jobs[name], state=name, start_time=start, end_time=end, elapsed_seconds=2700
        )
    return jobs
