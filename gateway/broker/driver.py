"""The only module that speaks to slurmctld, through pyslurm. What changes a job is done with
the person's own ids, so that Slurm checks the person's rights itself; but for the holds that the
person must not be able to lift.

`import pyslurm` ends the process where slurm.conf cannot be found, hence not at the top.
"""

import ctypes
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from gateway.broker import checks, reads
from gateway.broker.accounts import Account
from gateway.broker.failures import from_errno
from gateway.broker.files import Files
from gateway.broker.person import borrowed
from gateway.core.slurm_errors import known_numbers
from gateway.errors import BrokerRefused
from gateway.wire import messages as m

COMMENT_PREFIX = "sluice:"
_PARTITION_SECONDS = 10.0  # limits of a partition change by an administrator's hand only


@dataclass(frozen=True)
class Driver:
    """Keeps the promises of `gateway.broker.slurm.Slurm` on a real cluster."""

    files: Files
    _partitions: dict[str, tuple[float, m.Partition]] = field(default_factory=dict)

    @cached_property
    def _api(self) -> Any:
        import pyslurm  # noqa: PLC0415  # see the module's docstring

        return pyslurm

    def load(self) -> None:
        """Load libslurm and its configuration, or end the process with Slurm's own message."""
        _ = self._api

    def submit(self, account: Account, request: m.SubmitRequest) -> int:
        def work() -> int:
            state = self.files.look(request.working_directory)
            if state["problem"] or not state["writable"]:
                problem = state["problem"] or "not_permitted"
                raise BrokerRefused(request.working_directory, code=f"folder_{problem}")
            fields = description(account, request)
            return int(self._api.JobSubmitDescription(**fields).submit())

        return int(self._as(account, work))

    def job(self, job_id: int) -> m.QueueJob:
        with self._errors():
            found = self._api.Job.load(job_id)
        return reads.queue_job(found, reads.user_names())

    def jobs(self) -> tuple[m.QueueJob, ...]:
        with self._errors():
            found = self._api.Jobs.load()
        name = reads.user_names()
        return tuple(reads.queue_job(job, name) for job in found.values())

    def nodes(self) -> tuple[m.Node, ...]:
        with self._errors():
            found = self._api.Nodes.load()
        return tuple(reads.node(item) for item in found.values())

    def partitions(self) -> tuple[m.Partition, ...]:
        nodes = self.nodes()
        with self._errors():
            found = self._api.Partitions.load()
        return tuple(reads.partition(item, nodes) for item in found.values())

    def partition(self, name: str) -> m.Partition | None:
        """As it was some seconds ago at most; asked anew when it is not known."""
        known = self._partitions.get(name)
        if known is not None and time.monotonic() - known[0] < _PARTITION_SECONDS:
            return known[1]
        with self._errors():
            found = self._api.Partitions.load()
        now = time.monotonic()
        self._partitions.clear()
        for item in found.values():
            self._partitions[str(item.name)] = now, reads.partition(item, ())
        fresh = self._partitions.get(name)
        return fresh[1] if fresh else None

    def cancel(self, account: Account, job_id: int) -> None:
        def work() -> None:
            # pyslurm looks at errno after the call whether or not it failed.
            _forget_errno()
            self._api.Job(job_id).cancel()

        self._as(account, work)

    def hold(self, account: Account, job_id: int) -> None:
        # pyslurm's own hold(mode="user") follows a null pointer. From the job's owner Slurm
        # takes priority 0 as a hold that the owner may lift.
        self._modify(account, job_id, priority=0)

    def release(self, account: Account, job_id: int) -> None:
        self._as(account, lambda: self._api.Job(job_id).release())

    def requeue(self, account: Account, job_id: int) -> None:
        self._as(account, lambda: self._api.Job(job_id).requeue())

    def set_time_limit(self, account: Account, job_id: int, minutes: int) -> None:
        self._modify(account, job_id, time_limit=minutes)

    def extend(self, job_id: int, minutes: int) -> None:
        with self._errors():
            self._api.Job(job_id).modify(self._api.JobSubmitDescription(time_limit=minutes))

    def hold_admin(self, job_id: int) -> None:
        with self._errors():
            self._api.Job(job_id).hold()

    def release_admin(self, job_id: int) -> None:
        with self._errors():
            self._api.Job(job_id).release()

    def accounting_facts(self) -> m.AccountingFacts:
        return reads.accounting_facts(self._config())

    def keeps_comments(self) -> bool:
        config = self._config()
        flags = getattr(config, "accounting_store_flags", None) or ()
        return any("job_comment" in str(flag).lower() for flag in flags)

    def sentences(self) -> dict[str, int]:
        """Slurm's words for each number that has a code; its programs print words only."""
        say = self._api.core.error.slurm_strerror
        return {str(say(number)): number for number in known_numbers() if number >= 1000}

    def _config(self) -> Any:
        with self._errors():
            return self._api.slurmctld.Config.load()

    def _modify(self, account: Account, job_id: int, **changes: int) -> None:
        def work() -> None:
            self._api.Job(job_id).modify(self._api.JobSubmitDescription(**changes))

        self._as(account, work)

    def _as(self, account: Account, work: Callable[[], Any]) -> Any:
        with self._errors(), borrowed(account):
            return work()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """pyslurm's errors as ours; what libslurm prints names the limit that was met."""
        with _captured_stderr() as printed:
            try:
                yield
            except self._api.RPCError as error:
                raise from_errno(int(error.errno or 0), str(error), printed()) from error


def description(account: Account, request: m.SubmitRequest) -> dict[str, Any]:
    """The job as pyslurm takes it. Each default of pyslurm that would leak the broker's own
    environment, folder or group is overruled here."""
    fields: dict[str, Any] = {
        "user_id": account.uid,
        "group_id": account.gid,
        "environment": account.environment(),
        "get_user_environment": False,
        "working_directory": request.working_directory,
        "name": request.name,
        "account": request.account,
        "partitions": request.partition,
        "qos": request.qos,
        "nodes": request.nodes,
        "ntasks": request.nodes,
        "ntasks_per_node": 1,
        "cpus_per_task": request.cpus_per_task,
        "time_limit": request.time_limit_minutes,
        "script": request.script,
        "standard_output": request.output,
        "log_files_open_mode": "append" if request.append_output else "truncate",
        "is_requeueable": request.requeue,
        "comment": COMMENT_PREFIX + request.token,
    }
    if request.gpus_per_node:
        kind = f"gpu:{request.gpu_type}" if request.gpu_type else "gpu"
        fields["gres_per_node"] = {kind: request.gpus_per_node}
    if request.memory_mb_per_node is not None:
        fields["memory_per_node"] = request.memory_mb_per_node
    if request.array is not None:
        fields["array"] = request.array
    if request.on_nodes is not None:
        fields["required_nodes"] = request.on_nodes
    if request.signal is not None:
        fields["signal"] = checks.parse_signal(request.signal)
    if request.after_ok is not None:
        fields["dependencies"] = f"afterok:{request.after_ok}"
    return fields


def _forget_errno() -> None:
    location = ctypes.CDLL(None).__errno_location
    location.restype = ctypes.POINTER(ctypes.c_int)
    location()[0] = 0


@contextmanager
def _captured_stderr() -> Iterator[Callable[[], str]]:
    """Descriptor 2 itself: libslurm writes past Python. Passed on afterwards."""
    kept, memory = os.dup(2), os.memfd_create("slurm-stderr", os.MFD_CLOEXEC)
    os.dup2(memory, 2)

    def printed() -> str:
        return os.pread(memory, 1 << 16, 0).decode("utf-8", "replace")

    try:
        yield printed
    finally:
        os.dup2(kept, 2)
        os.write(2, printed().encode())
        os.close(kept)
        os.close(memory)
