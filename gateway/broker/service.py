"""The verbs: what the broker allows, over what Slurm can do."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from gateway.broker.accounts import Account
from gateway.broker.checks import check_submit
from gateway.broker.driver import COMMENT_PREFIX
from gateway.broker.files import Files
from gateway.broker.groups import Groups
from gateway.broker.limits import Limits
from gateway.broker.members import Members
from gateway.broker.priority import Priority
from gateway.broker.qos import QosPolicy
from gateway.broker.reads import ENDED
from gateway.broker.sacct import Sacct
from gateway.broker.sacctmgr import Sacctmgr
from gateway.broker.sbatch import Estimator
from gateway.broker.slurm import Accounts, Slurm
from gateway.broker.tokens import Tokens
from gateway.broker.volumes import VolumeStore
from gateway.core.limits import extension_refusal, partition_refusal, time_limit_refusal
from gateway.core.readback import differences
from gateway.core.tres import gpu_count, parse_tres
from gateway.errors import BrokerRefused, BrokerSilent, GatewayError
from gateway.wire import messages as m
from gateway.wire.shapes import asked_shape, shape_of

Handler = Callable[[Any], object]
HELD_BY_ADMIN = "JobHeldAdmin"
_HOLDERS = {  # whose the hold is: who may lift it
    "JobHeldUser": "held_by_owner",
    "JobHoldMaxRequeue": "held_by_owner",
    HELD_BY_ADMIN: "held_by_admin",
}
_EARLIER = timedelta(minutes=10)  # clocks of two hosts differ


@dataclass(frozen=True, slots=True)
class Service:
    """One method a verb; each takes the request and returns the reply, or raises."""

    slurm: Slurm
    accounts: Accounts
    tokens: Tokens
    sacct: Sacct
    sacctmgr: Sacctmgr
    estimator: Estimator
    files: Files
    limits: Limits
    qos: QosPolicy
    priority: Priority
    members: Members
    groups: Groups
    volumes: VolumeStore

    def handlers(self) -> dict[str, Handler]:
        """The same closed list as `gateway.wire.verbs`; a test compares them."""
        return {
            "submit": self.submit,
            "find": self.find,
            "cancel": self.cancel,
            "cancel-array": self.cancel_array,
            "hold": self.hold,
            "release": self.release,
            "requeue": self.requeue,
            "set-time-limit": self.set_time_limit,
            "extend": self.extend,
            "queue": lambda _: m.Queue(self.slurm.jobs(), datetime.now(UTC)),
            "nodes": lambda _: m.Nodes(self.slurm.nodes()),
            "partitions": lambda _: m.Partitions(self.slurm.partitions()),
            "associations": lambda _: self.sacctmgr.associations(),
            "qos": lambda _: self.qos.read(),
            "estimate": self.estimate,
            "accounting": lambda asked: self.sacct.window(asked.since, asked.until),
            "read-file": lambda asked: self.files.read(self.accounts(asked.user), asked),
            "check-folder": lambda asked: self.files.folder(self.accounts(asked.user), asked.path),
            "list-folder": lambda asked: self.files.list(self.accounts(asked.user), asked),
            "make-folder": lambda asked: self.files.make(self.accounts(asked.user), asked),
            "group-limits": lambda _: self.limits.read(),
            "set-group-limits": self.set_group_limits,
            "hold-admin": self.hold_admin,
            "release-admin": self.release_admin,
            "accounting-facts": self.accounting_facts,
            "set-qos": self.qos.write,
            "accounts": lambda _: self.groups.read(),
            "set-group-policy": self.groups.write,
            "set-shares": self.groups.write_shares,
            "fair-shares": lambda _: self.priority.fair_shares(),
            "priorities": lambda _: self.priority.priorities(),
            "reservations": lambda _: self.priority.reservations(),
            "add-member": self.members.add,
            "remove-member": self.members.remove,
            "set-member": self.members.set,
            "volumes": lambda _: self.volumes.read(),
            "make-volume": self.volumes.make,
            "set-volume-limit": self.volumes.set_limit,
        }

    def submit(self, request: m.SubmitRequest) -> m.AcceptedJob:
        """Exactly one job for a token, however often it is asked for."""
        account = self.accounts(request.user)
        check_submit(request)
        with self.tokens.claimed(request.token) as claim:
            if claim.seen_before:
                since = datetime.fromtimestamp(claim.began, UTC) - _EARLIER
                earlier = self._find(account, request.token, since)
                if earlier is not None:
                    return earlier
            self._require_room(request)
            job_id = self.slurm.submit(account, request)
            return self._read_back(account, request, job_id)

    def find(self, request: m.FindRequest) -> m.Found:
        """None only when the queue and accounting both answered, and no submit is under way."""
        account = self.accounts(request.user)
        with self.tokens.at_rest(request.token):
            return m.Found(self._find(account, request.token, request.since))

    def cancel(self, request: m.JobRequest) -> m.Done:
        account, job = self._own(request.job_id, request.user)
        if job.state in ENDED:
            raise BrokerRefused(f"job {job.job_id} is {job.state}", code="already_done")
        self.slurm.cancel(account, request.job_id)
        return m.Done()

    def cancel_array(self, request: m.JobRequest) -> m.Done:
        account = self.accounts(request.user)
        records = self._of_array(request.job_id)
        if not records:
            raise BrokerRefused(f"no array {request.job_id}", code="invalid_job_id")
        if any(job.uid != account.uid for job in records):
            raise BrokerRefused(
                f"array {request.job_id} is not of {request.user}", code="not_owner"
            )
        live = [job.job_id for job in records if job.state not in ENDED]
        if not live:
            raise BrokerRefused(f"array {request.job_id} is over", code="already_done")
        # The array's own id first: those that wait, so that none starts meanwhile.
        for one in sorted(live, key=lambda job_id: job_id != request.job_id):
            try:
                self.slurm.cancel(account, one)
            except BrokerRefused as error:
                if error.code != "already_done":
                    raise
        return m.Done()

    def hold(self, request: m.JobRequest) -> m.Done:
        account, job = self._own(request.job_id, request.user)
        _require_pending(job)
        self.slurm.hold(account, request.job_id)
        return m.Done()

    def release(self, request: m.JobRequest) -> m.Done:
        account, job = self._own(request.job_id, request.user)
        try:
            self.slurm.release(account, request.job_id)
        except BrokerRefused as error:
            if job.reason != HELD_BY_ADMIN or error.code != "access_denied":
                raise
            raise BrokerRefused(str(error), code="held_by_admin") from error
        return m.Done()

    def hold_admin(self, request: m.JobRequest) -> m.Done:
        _, job = self._own(request.job_id, request.user)
        _require_pending(job)
        # Slurm would make an owner's hold ours, and the release would lift both.
        if job.reason in _HOLDERS:
            raise BrokerRefused(f"job {job.job_id} is held", code=_HOLDERS[job.reason])
        self.slurm.hold_admin(request.job_id)
        return m.Done()

    def release_admin(self, request: m.JobRequest) -> m.Done:
        _, job = self._own(request.job_id, request.user)
        if job.state in ENDED:
            raise BrokerRefused(f"job {job.job_id} is {job.state}", code="already_done")
        if job.reason != HELD_BY_ADMIN:
            raise BrokerRefused(f"job {job.job_id}: {job.reason}", code="not_held_by_admin")
        self.slurm.release_admin(request.job_id)
        return m.Done()

    def requeue(self, request: m.JobRequest) -> m.Done:
        account, _ = self._own(request.job_id, request.user)
        self.slurm.requeue(account, request.job_id)
        return m.Done()

    def set_time_limit(self, request: m.TimeLimitRequest) -> m.Done:
        account, job = self._own(request.job_id, request.user)
        if job.state in ENDED:
            raise BrokerRefused(f"job {job.job_id} is {job.state}", code="already_done")
        partition = self.slurm.partition(job.partition)
        refusal = time_limit_refusal(
            current=job.time_limit_minutes,
            wanted=request.time_limit_minutes,
            pending=job.state == "PENDING",
            partition_max=partition.max_time_minutes if partition else None,
        )
        if refusal:
            raise BrokerRefused(f"job {job.job_id}", code=refusal)
        self.slurm.set_time_limit(account, request.job_id, request.time_limit_minutes)
        return m.Done()

    def extend(self, request: m.TimeLimitRequest) -> m.Done:
        """By the broker's own rights, so only what the portal itself has submitted."""
        _, job = self._own(request.job_id, request.user)
        if not (job.comment or "").startswith(COMMENT_PREFIX):
            raise BrokerRefused(f"job {job.job_id} is not the portal's", code="time_limit_raise")
        partition = self.slurm.partition(job.partition)
        refusal = extension_refusal(
            current=job.time_limit_minutes,
            wanted=request.time_limit_minutes,
            running=job.state == "RUNNING",
            partition_max=partition.max_time_minutes if partition else None,
        )
        if refusal:
            raise BrokerRefused(f"job {job.job_id}", code=refusal)
        self.slurm.extend(request.job_id, request.time_limit_minutes)
        return m.Done()

    def set_group_limits(self, request: m.SetGroupLimits) -> m.GroupLimits:
        return self.limits.write(request)

    def accounting_facts(self, _: m.Nothing) -> m.AccountingFacts:
        return replace(self.slurm.accounting_facts(), overriding_qos=self.limits.overriding_qos())

    def estimate(self, request: m.SubmitRequest) -> m.Estimate:
        account = self.accounts(request.user)
        check_submit(request)
        self._require_room(request)
        return self.estimator.estimate(account, request)

    def _own(self, job_id: int, user: str) -> tuple[Account, m.QueueJob]:
        account = self.accounts(user)
        job = self.slurm.job(job_id)
        if job.uid != account.uid:
            raise BrokerRefused(f"job {job_id} is not of {user}", code="not_owner")
        return account, job

    def _require_room(self, request: m.SubmitRequest) -> None:
        partition = self.slurm.partition(request.partition)
        if partition is None:
            raise BrokerRefused(request.partition, code="invalid_partition")
        refusal = partition_refusal(
            nodes=request.nodes,
            minutes=request.time_limit_minutes,
            partition_nodes=partition.nodes,
            max_nodes=partition.max_nodes,
            max_minutes=partition.max_time_minutes,
        )
        if refusal:
            raise BrokerRefused(request.partition, code=refusal)

    def _read_back(self, account: Account, request: m.SubmitRequest, job_id: int) -> m.AcceptedJob:
        try:
            job = self.slurm.job(job_id)
            records = self._of_array(job_id) if request.array else []
        except GatewayError as error:
            raise BrokerSilent(f"job {job_id} was accepted, then: {error}") from error
        back = replace(accepted(job), array_tasks=_tasks(records) if request.array else None)
        found = differences(asked_shape(request), shape_of(back))
        if found:
            self._stop(account, job_id, records)
            text = f"job {job_id} differs in {', '.join(found)} and was cancelled"
            raise BrokerRefused(text, code="accepted_differs")
        return back

    def _of_array(self, job_id: int) -> list[m.QueueJob]:
        """The tasks that have started, one by one, and a record for all that wait."""
        return [job for job in self.slurm.jobs() if job.array_job_id == job_id]

    def _stop(self, account: Account, job_id: int, records: list[m.QueueJob]) -> None:
        """A job that cannot be stopped is there all the same: no error here is a no."""
        try:
            for one in {job_id, *(job.job_id for job in records if job.state not in ENDED)}:
                self.slurm.cancel(account, one)
        except GatewayError as error:
            raise BrokerSilent(f"job {job_id} differs, and goes on: {error}") from error

    def _find(self, account: Account, token: str, since: datetime) -> m.AcceptedJob | None:
        comment = COMMENT_PREFIX + token
        mine = [j for j in self.slurm.jobs() if j.comment == comment and j.uid == account.uid]
        if mine:
            # A task of an array that was requeued has a submit time of its own, a later one.
            return accepted(min(mine, key=lambda job: job.submit_time))
        if not self.slurm.keeps_comments():
            raise BrokerSilent("accounting keeps no comments: AccountingStoreFlags=job_comment")
        window = self.sacct.window(since, datetime.now(UTC) + _EARLIER, user=account.name)
        runs = [run for run in window.runs if run.comment == comment]
        # A requeue sets the submit time anew: the first row has the person's own.
        first = min(runs, key=lambda run: run.submit_time, default=None)
        return None if first is None else _accepted_run(first)


def _require_pending(job: m.QueueJob) -> None:
    """Slurm would say yes to a hold, and hold the job's next run: not what the button says."""
    if job.state != "PENDING":
        code = "already_done" if job.state in ENDED else "job_not_pending"
        raise BrokerRefused(f"job {job.job_id} is {job.state}", code=code)


def _tasks(records: list[m.QueueJob]) -> int | None:
    """Tasks of an array; None where Slurm shows none, or cut its list of those that wait."""
    counts = [job.array_tasks if job.array_task is None else 1 for job in records]
    known = [count for count in counts if count is not None]
    return sum(known) or None if len(known) == len(counts) else None


def accepted(job: m.QueueJob) -> m.AcceptedJob:
    return m.AcceptedJob(
        job_id=job.array_job_id or job.job_id,
        submit_time=job.submit_time,
        name=job.name,
        account=job.account,
        partition=job.partition,
        qos=job.qos,
        nodes=job.nodes,
        gpus=job.gpus,
        time_limit_minutes=job.time_limit_minutes,
        output=job.output,
    )


def _accepted_run(run: m.RunRecord) -> m.AcceptedJob:
    gpus, _ = gpu_count(parse_tres(run.req_tres))
    return m.AcceptedJob(
        job_id=run.array_job_id or run.job_id,
        submit_time=run.submit_time,
        name=run.name,
        account=run.account,
        partition=run.partition,
        qos=run.qos or "",
        nodes=run.nodes,
        gpus=gpus,
        time_limit_minutes=run.time_limit_minutes,
        output=None,
    )
