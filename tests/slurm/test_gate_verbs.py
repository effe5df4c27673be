"""The gate on a real Slurm: a group that is shut starts nothing, also past the portal."""

import re
import time
from collections.abc import Iterator

import pytest
from broker_fixture import ClusterSite

from contrib.devcluster.instance import Instance
from gateway.brokerclient.client import SocketBroker
from gateway.testing.contract_gate import ask, limits_now
from gateway.testing.contracts import find_job
from gateway.wire import messages as m

pytestmark = pytest.mark.slurm

GROUP = "nlp"
SCRIPT = "#!/bin/sh\nexec sleep 300\n"
WHOLE = ("--nodes=4", "--gpus-per-node=8")  # all of the partition a100
WAIT_SECONDS = 30.0
ROUNDS_SECONDS = 7.0  # of the scheduler, main and backfill: what it would start, it has started


class Shell:
    """People at a login node, and the group's two limits."""

    def __init__(self, cluster: Instance, site: ClusterSite, broker: SocketBroker) -> None:
        self.cluster, self.site, self.broker = cluster, site, broker

    def sbatch(self, user: str, *options: str) -> int:
        done = self._sbatch(user, options)
        assert done[0] == 0, done
        return int(done[1])

    def refusal(self, user: str, *options: str) -> str:
        status, _, printed = self._sbatch(user, options)
        assert status != 0
        return printed

    def limit(self, *, submit: int | None = None, minutes: int | None = None) -> m.GroupLimits:
        got = self.broker.set_group_limits(ask(GROUP, submit=submit, minutes=minutes))
        assert (got.grp_submit_jobs, got.grp_gpu_run_minutes) == (submit, minutes)
        self._until_enforced(got)
        return got

    def job(self, job_id: int) -> m.QueueJob:
        found = find_job(self.broker, job_id)
        assert found is not None
        return found

    def until(self, job_id: int, *, state: str, reason: str | None = None) -> None:
        def so() -> bool:
            job = self.job(job_id)
            return job.state == state and reason in (None, job.reason)

        self.site.until(so, WAIT_SECONDS)

    def sacctmgr(self, *words: str) -> None:
        done = self.cluster.run(["sacctmgr", "--immediate", "modify", *words])
        assert done.returncode == 0, done.stdout + done.stderr

    def _sbatch(self, user: str, options: tuple[str, ...]) -> tuple[int, str, str]:
        words = ["sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", *options]
        done = self.cluster.run(words, user=user, stdin=SCRIPT)
        return done.returncode, done.stdout.strip(), done.stderr

    def _until_enforced(self, wanted: m.GroupLimits) -> None:
        """slurmdbd answers the write; slurmctld, which enforces, is told by it."""

        def enforced() -> bool:
            words = ["scontrol", "-o", "show", "assoc_mgr", f"accounts={GROUP}", "flags=assoc"]
            (line,) = [
                line
                for line in self.cluster.run(words).stdout.splitlines()
                if f"Account={GROUP} UserName= " in line
            ]
            submit = re.search(r"GrpSubmitJobs=(N|\d+)", line)
            minutes = re.search(r"GrpTRESRunMins=\S*gres/gpu=(N|\d+)", line)
            assert submit, line
            assert minutes, line
            pairs = (
                (submit.group(1), wanted.grp_submit_jobs),
                (minutes.group(1), wanted.grp_gpu_run_minutes),
            )
            return all(text == ("N" if limit is None else str(limit)) for text, limit in pairs)

        self.site.until(enforced, WAIT_SECONDS)


@pytest.fixture
def shell(cluster: Instance, cluster_site: ClusterSite, broker: SocketBroker) -> Iterator[Shell]:
    before = broker.group_limits()
    try:
        yield Shell(cluster, cluster_site, broker)
    finally:
        broker.set_group_limits(ask(GROUP))
        assert broker.group_limits() == before


def test_a_shut_group_cannot_sbatch_and_others_can(shell: Shell) -> None:
    shell.limit(submit=0)
    assert "AssocGrpSubmitJobsLimit" in shell.refusal("nlp-1")
    # A member of two groups is refused in one of them only; nor does a job move in later.
    assert "AssocGrpSubmitJobsLimit" in shell.refusal("nlp-2", "--account=nlp")
    moved = shell.sbatch("nlp-2", "--account=vision", "--begin=now+1hour")
    move = ["scontrol", "update", f"jobid={moved}", "account=nlp"]
    assert shell.cluster.run(move, user="nlp-2").returncode != 0
    shell.until(shell.sbatch("vision-1"), state="RUNNING")
    shell.limit()
    shell.until(shell.sbatch("nlp-1"), state="RUNNING")


def test_what_waited_before_may_start_and_what_runs_is_not_killed(shell: Shell) -> None:
    first = shell.sbatch("nlp-1", *WHOLE, "--time=60")
    shell.until(first, state="RUNNING")
    second = shell.sbatch("nlp-1", *WHOLE, "--time=60")
    shell.limit(submit=0)
    time.sleep(ROUNDS_SECONDS)
    assert shell.job(first).state == "RUNNING"
    assert shell.cluster.run(["scancel", str(first)]).returncode == 0
    shell.until(second, state="RUNNING")
    # Far below what it uses: 32 GPUs for an hour.
    shell.limit(submit=0, minutes=0)
    time.sleep(ROUNDS_SECONDS)
    assert (shell.job(second).state, shell.job(second).restarts) == ("RUNNING", 0)


def test_over_its_gpu_minutes_a_group_waits_and_then_starts(shell: Shell) -> None:
    shell.limit(minutes=60)
    over = shell.sbatch("nlp-1", "--gpus-per-node=2", "--time=60")
    shell.until(over, state="PENDING", reason="AssocGrpGRESRunMinutes")
    # One GPU for an hour is just within, and no GPU is no matter of this limit.
    within = shell.sbatch("nlp-1", "--gpus-per-node=1", "--time=60")
    shell.until(within, state="RUNNING")
    shell.until(shell.sbatch("nlp-1", "--time=60"), state="RUNNING")
    shell.until(shell.sbatch("vision-1", "--gpus-per-node=2", "--time=60"), state="RUNNING")
    assert shell.job(over).state == "PENDING"
    shell.limit()
    shell.until(over, state="RUNNING")
    assert shell.job(within).state == "RUNNING"


def test_another_resource_keeps_the_limit_that_a_person_gave_it(shell: Shell) -> None:
    where = ("account", "where", f"name={GROUP}", "cluster=dev", "set")
    shell.sacctmgr(*where, "GrpTRESRunMins=cpu=500000")
    try:
        assert shell.limit(minutes=60).grp_run_minutes_text == "cpu=500000,gres/gpu=60"
        assert shell.limit(minutes=30).grp_run_minutes_text == "cpu=500000,gres/gpu=30"
        assert shell.limit().grp_run_minutes_text == "cpu=500000"
    finally:
        shell.sacctmgr(*where, "GrpTRESRunMins=cpu=-1")
    assert limits_now(shell.broker, GROUP).grp_run_minutes_text == ""


def test_a_requeued_job_of_a_shut_group_comes_back(shell: Shell) -> None:
    """Shut by the number of jobs alone, what is in the queue goes on as long as it lives."""
    job = shell.sbatch("nlp-1", "--gpus-per-node=1", "--time=60")
    shell.until(job, state="RUNNING")
    shell.limit(submit=0)
    assert shell.cluster.run(["scontrol", "requeue", str(job)]).returncode == 0
    shell.until(job, state="PENDING")
    shell.until(job, state="RUNNING")
    assert shell.job(job).restarts == 1


def test_a_qos_with_limits_of_its_own_passes_the_gate_and_is_named(shell: Shell) -> None:
    """Slurm looks at the QoS first and at the group only for what the QoS leaves open."""
    shell.sacctmgr("qos", "where", "name=spot", "set", "GrpSubmitJobs=100")
    try:
        assert shell.broker.accounting_facts().overriding_qos == ("spot",)
        shell.limit(submit=0)
        shell.sbatch("nlp-1", "--qos=spot")
        assert "AssocGrpSubmitJobsLimit" in shell.refusal("nlp-1", "--qos=normal")
    finally:
        shell.sacctmgr("qos", "where", "name=spot", "set", "GrpSubmitJobs=-1")
    assert "AssocGrpSubmitJobsLimit" in shell.refusal("nlp-1", "--qos=spot")
    assert shell.broker.accounting_facts().overriding_qos == ()


def test_neither_owner_nor_leader_undoes_what_the_portal_did(shell: Shell) -> None:
    job = shell.sbatch("nlp-1", "--begin=now+1hour")
    shell.broker.hold_admin(job, user="nlp-1")
    for user in ("nlp-1", "nlp-lead"):
        done = shell.cluster.run(["scontrol", "release", str(job)], user=user)
        assert done.returncode != 0
    # Slurm says yes to the owner's own hold, and it stays the administrator's.
    shell.cluster.run(["scontrol", "uhold", str(job)], user="nlp-1")
    assert shell.job(job).reason == "JobHeldAdmin"
    shell.limit(submit=0)
    words = ["sacctmgr", "-i", "modify", "account", "where", f"name={GROUP}", "set"]
    done = shell.cluster.run([*words, "GrpSubmitJobs=-1"], user="nlp-lead")
    assert done.returncode != 0
    assert limits_now(shell.broker, GROUP).grp_submit_jobs == 0
