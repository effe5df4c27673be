"""Who, where and how in the contract tests: shared by all of them."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from gateway.brokerclient.port import Broker
from gateway.errors import BrokerRefused
from gateway.wire import messages as m

ENDED = frozenset({"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT"})
WAIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Cast:
    """Who and what the tests speak of."""

    user: str = "nlp-1"
    other: str = "biolab-1"
    account: str = "nlp"
    other_account: str = "biolab"
    partition: str = "a100"
    gpu_type: str = "a100"
    gpus_per_node: int = 8
    nodes: int = 4
    qos: str = "normal"


class ContractSite(Protocol):
    """A broker and the hands that a test needs around it."""

    broker: Broker
    cast: Cast

    def now(self) -> datetime: ...

    def write(self, path: str, owner: str, text: str) -> None: ...

    def link(self, path: str, owner: str, target: str) -> None: ...

    def fifo(self, path: str, owner: str) -> None: ...

    def until(self, true: Callable[[], bool], seconds: float) -> None:
        """Let time pass until `true()`, or fail after `seconds`."""
        ...

    def end(self, job_id: int) -> None:
        """See to it that a running job ends by itself, soon and well."""
        ...


def request(cast: Cast, **changes: Any) -> m.SubmitRequest:
    """A small job that waits to be told to end."""
    base = m.SubmitRequest(
        token=uuid.uuid4().hex,
        user=cast.user,
        name="contract",
        account=cast.account,
        partition=cast.partition,
        qos=cast.qos,
        nodes=1,
        gpus_per_node=1,
        cpus_per_task=1,
        time_limit_minutes=5,
        working_directory=f"/home/{cast.user}",
        output=f"/home/{cast.user}/contract-%j.log",
        script=(
            "#!/bin/sh\necho began\n"
            'i=0; while [ ! -e "$HOME/end-$SLURM_JOB_ID" ] && [ $i -lt 300 ]; do\n'
            "  sleep 0.2 || exit 1; i=$((i+1)); done\n"  # a cancel ends the sleep, not the shell
        ),
        gpu_type=cast.gpu_type,
    )
    return replace(base, **changes)


def wide(cast: Cast, **changes: Any) -> m.SubmitRequest:
    """A job that takes every GPU of the partition, so that a second one must wait."""
    return request(cast, nodes=cast.nodes, gpus_per_node=cast.gpus_per_node, **changes)


@contextmanager
def refused(code: str) -> Iterator[None]:
    """The block must be refused with this code."""
    found = None
    try:
        yield
    except BrokerRefused as error:
        found = error
    assert found is not None, f"was not refused with {code}"
    assert found.code == code, f"{found.code} in place of {code}: {found}"


def find_job(broker: Broker, job_id: int) -> m.QueueJob | None:
    return next((job for job in broker.queue().jobs if job.job_id == job_id), None)


def state_of(broker: Broker, job_id: int) -> str:
    job = find_job(broker, job_id)
    return job.state if job else "GONE"


class Steps:
    """What several contract classes do."""

    def running(self, site: ContractSite, **changes: Any) -> m.AcceptedJob:
        job = site.broker.submit(request(site.cast, **changes))
        self.wait_for(site, job, "RUNNING")
        return job

    def waiting(self, site: ContractSite) -> tuple[m.AcceptedJob, m.AcceptedJob]:
        """One job that has all the GPUs, and one that waits for them."""
        first = site.broker.submit(wide(site.cast))
        self.wait_for(site, first, "RUNNING")
        return first, site.broker.submit(wide(site.cast))

    def wait_for(
        self,
        site: ContractSite,
        job: m.AcceptedJob,
        *states: str,
        seconds: float = WAIT_SECONDS,
    ) -> None:
        def reached() -> bool:
            return state_of(site.broker, job.job_id) in states

        site.until(reached, seconds)

    def cancel(self, site: ContractSite, *jobs: m.AcceptedJob) -> None:
        """Tidy up: leave the GPUs to the next test."""
        for job in jobs:
            if state_of(site.broker, job.job_id) not in {*ENDED, "GONE"}:
                site.broker.cancel(job.job_id, user=site.cast.user)
        for job in jobs:
            self.wait_for(site, job, *ENDED, "GONE")

    def runs_of(self, site: ContractSite, job: m.AcceptedJob) -> list[m.RunRecord]:
        found = site.broker.accounting(
            since=job.submit_time - timedelta(minutes=1), until=site.now() + timedelta(minutes=1)
        )
        assert found.counted == len(found.runs) + len(found.held)
        mine = [run for run in found.runs if run.job_id == job.job_id]
        return [run for run in mine if run.submit_time >= job.submit_time]
