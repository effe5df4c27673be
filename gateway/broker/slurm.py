"""What the broker needs of Slurm, so that its rules can be tried without one."""

from typing import Protocol

from gateway.broker.accounts import Account
from gateway.wire import messages as m


class Slurm(Protocol):
    """Each call raises SlurmRefused, BrokerUnreachable or BrokerSilent."""

    def submit(self, account: Account, request: m.SubmitRequest) -> int:
        """Submit as the person; the job id. `missing_folder` when the person cannot work there."""
        ...

    def job(self, job_id: int) -> m.QueueJob:
        """One job as slurmctld knows it; refused with invalid_job_id when it does not."""
        ...

    def jobs(self) -> tuple[m.QueueJob, ...]: ...

    def nodes(self) -> tuple[m.Node, ...]: ...

    def partitions(self) -> tuple[m.Partition, ...]: ...

    def partition(self, name: str) -> m.Partition | None: ...

    def cancel(self, account: Account, job_id: int) -> None: ...

    def hold(self, account: Account, job_id: int) -> None: ...

    def release(self, account: Account, job_id: int) -> None: ...

    def requeue(self, account: Account, job_id: int) -> None: ...

    def set_time_limit(self, account: Account, job_id: int, minutes: int) -> None: ...

    def extend(self, job_id: int, minutes: int) -> None: ...

    def hold_admin(self, job_id: int) -> None:
        """With the broker's own rights, so that the owner cannot release it."""
        ...

    def release_admin(self, job_id: int) -> None:
        """Lifts a hold of either kind: look first whose it is."""
        ...

    def accounting_facts(self) -> m.AccountingFacts:
        """What slurmctld knows of them: no QoS, these are slurmdbd's."""
        ...

    def keeps_comments(self) -> bool:
        """Whether accounting stores job comments: without them a token cannot be denied."""
        ...


class Accounts(Protocol):
    def __call__(self, name: str) -> Account: ...
