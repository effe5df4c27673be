"""What the preview of a change says is what Slurm does."""

import contextlib
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import delete

from gateway.core.impact import Effect
from gateway.core.policy_change import Item, Of
from gateway.core.qos import tres
from gateway.services import gate_checks, poll
from gateway.services.policy_impact import preview
from gateway.store.models import Poll
from gateway.store.uow import make_begin
from gateway.testing.database import database
from gateway.testing.portal import CLUSTER
from gateway.wire import policy as p

pytestmark = pytest.mark.slurm

GPU = "gres/gpu"
SECONDS = 20.0
LOOK_SECONDS = 70.0  # slurmctld looks for what is to be ended every 30 s, by whole minutes
CONF = "/etc/slurm/slurm.conf"
SCRIPT = "#!/bin/sh\nexec sleep 900\n"


@contextlib.contextmanager
def unsafe(cluster):
    """AccountingStorageEnforce without `safe`: slurmctld has to start again to read it."""

    def change(old, new):
        done = cluster.run(["sed", "-i", f"/^AccountingStorageEnforce/s/{old}/{new}/", CONF])
        assert done.returncode == 0, done.stderr
        cluster.daemon("slurmctld", "stop")
        cluster.daemon("slurmctld", "start")

    change(",safe", "")
    try:
        yield
    finally:
        change("$", ",safe")


class Policies:
    """The portal's sight of the cluster, and the broker's hands; what was written is undone."""

    def __init__(self, begin, broker, cluster):
        self.begin, self.broker, self.cluster = begin, broker, cluster
        self.first = {}

    def look(self):
        now = datetime.now(UTC)
        gate_checks.check(begin=self.begin, read=self.begin, broker=self.broker, now=now)
        policy = poll.poll_policy(begin=self.begin, broker=self.broker, now=now)
        queue = poll.poll_queue(
            begin=self.begin, broker=self.broker, cluster=CLUSTER, now=datetime.now(UTC)
        )
        assert (policy.error_code, queue.error_code) == (None, None)

    def forget_facts(self):
        """As ten minutes later: what the cluster enforces is asked again."""
        with self.begin() as session:
            session.execute(delete(Poll).where(Poll.name == gate_checks.FACTS))

    def of(self, kind, name):
        if kind is Of.QOS:
            return next(one for one in self.broker.qos() if one.name == name)
        accounts = self.broker.accounts()
        return next(one.policy for one in accounts if one.policy.name == name)

    def item(self, kind, name, **changed):
        before = self.of(kind, name)
        return Item(before, replace(before, **changed))

    def preview(self, *items):
        self.look()
        return preview(items, read=self.begin, now=datetime.now(UTC))

    def write(self, *items):
        for item in items:
            self.first.setdefault((item.of, item.name), item.before)
            self._set(item.before, item.after)

    def undo(self):
        for (kind, name), before in self.first.items():
            self._set(self.of(kind, name), before)

    def _set(self, expected, wanted):
        if hasattr(wanted, "shares"):
            self.broker.set_group_policy(p.SetGroupPolicy(expected, wanted))
        else:
            self.broker.set_qos(p.SetQos(expected, wanted))

    def sbatch(self, user, *options):
        words = ["sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", *options]
        done = self.cluster.run(words, user=user, stdin=SCRIPT)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    def queue(self):
        """State and reason by job."""
        printed = self.cluster.run(["squeue", "--noheader", "--format=%A|%T|%r"]).stdout
        rows = [line.split("|") for line in printed.splitlines()]
        return {int(job): (state, reason) for job, state, reason in rows}

    def end_of(self, job):
        words = ["sacct", "-X", "-n", "-P", "-j", str(job), "--format=State"]
        return self.cluster.run(words).stdout.strip()


@pytest.fixture
def policies(tmp_path, broker, cluster, cluster_site):
    with database(tmp_path) as engine:
        found = Policies(make_begin(engine), broker, cluster)
        yield found
        found.undo()


def told(impact, *effects):
    """Slurm's reason by job."""
    return {found.job.slurm_id: found.reason for one in impact.fields for found in one.of(*effects)}


def test_what_would_wait_waits_and_what_would_be_let_go_starts(policies, cluster_site):
    wide = policies.sbatch("vision-1", "--partition=a100", "--nodes=3", "--gpus-per-node=8")
    own = policies.sbatch("nlp-1", "--partition=a100", "--gpus-per-node=8", "--account=nlp")

    def runs():
        return {policies.queue()[job][0] for job in (wide, own)} == {"RUNNING"}

    cluster_site.until(runs, SECONDS)
    one_card = ("--partition=a100", "--gpus-per-node=1", "--account=nlp")
    above_own = policies.sbatch("nlp-1", *one_card, "--time=60")
    too_long = policies.sbatch("nlp-2", *one_card, "--time=300")
    fits = policies.sbatch("nlp-lead", *one_card, "--time=60")
    spot = policies.sbatch("nlp-2", *one_card, "--qos=spot", "--time=60")
    group = policies.of(Of.GROUP, "nlp")
    items = (
        policies.item(Of.QOS, "normal", max_tres_per_user=tres({GPU: 8}), max_wall_minutes=120),
        policies.item(Of.GROUP, "vision", grp_tres=tres({GPU: 16})),
        policies.item(Of.GROUP, "nlp", qos=tuple(q for q in group.qos if q != "spot")),
    )

    before = policies.preview(*items)
    policies.write(*items)

    waits = told(before, Effect.WAITS)
    assert waits == {
        above_own: "QOSMaxGRESPerUser",
        too_long: "QOSMaxWallDurationPerJobLimit",
        spot: "InvalidQOS",
    }
    # The default time limit of the running ones is above 120 minutes too.
    assert wide in told(before, Effect.ABOVE)
    assert not before.ends_jobs

    def as_told():
        queue = policies.queue()
        return {job: queue[job][1] for job in waits} == waits

    cluster_site.until(as_told, SECONDS)
    queue = policies.queue()
    assert queue[wide][0] == queue[own][0] == "RUNNING"
    assert queue[fits][1] in {"Resources", "Priority"}

    back = [Item(item.after, item.before) for item in items]
    again = policies.preview(*back)
    policies.cluster.run(["scancel", str(wide)])
    policies.write(*back)

    assert set(told(again, Effect.LET_GO)) == set(waits)
    cluster_site.until(lambda: {policies.queue()[job][0] for job in waits} == {"RUNNING"}, SECONDS)


def test_a_limit_on_minutes_ends_running_jobs_unless_slurm_enforces_safely(policies, cluster_site):
    job = policies.sbatch("nlp-1", "--partition=a100", "--gpus-per-node=1", "--qos=urgent")
    cluster_site.until(lambda: policies.queue()[job][0] == "RUNNING", SECONDS)
    item = policies.item(Of.QOS, "urgent", grp_tres_minutes=tres({GPU: 0}))
    safely = policies.preview(item)

    assert told(safely, Effect.ABOVE).keys() == {job}
    assert not safely.ends_jobs

    with unsafe(policies.cluster):
        policies.forget_facts()
        ends = policies.preview(item)
        assert told(ends, Effect.ENDED).keys() == {job}
        policies.write(item)
        cluster_site.until(lambda: job not in policies.queue(), LOOK_SECONDS)
    assert policies.end_of(job) == "TIMEOUT"
