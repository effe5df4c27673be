"""The gate with a real Slurm and the worker's own jobs: people at a login node, and their credit.

Each test lets the worker's clock run: what is promised is a minute.
"""

import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from gateway.core.credits import MILLION
from gateway.core.gate import Mode
from gateway.core.notices import ALARMS
from gateway.services import credit
from gateway.services.draft import InvalidAsk
from gateway.store import gate as gates
from gateway.store import ledger, notices
from gateway.store import money_models as mm
from gateway.store.uow import make_begin
from gateway.testing.contracts import find_job
from gateway.testing.database import database
from gateway.testing.money import one_credit_an_hour
from gateway.testing.portal import CLUSTER, ask, portal
from gateway.worker.jobs import JOBS, Context

pytestmark = pytest.mark.slurm

GROUP, OTHERS = "nlp", ("vision", "biolab")
SCRIPT = "#!/bin/sh\nexec sleep 600\n"
MINUTE = 60.0
QUICK = 0.25  # of the worker's own intervals, but for the test of what a minute holds
ONE_CARD = ("--partition=a100", "--gpus-per-node=1")
ALL_CARDS = ("--partition=a100", "--nodes=4", "--gpus-per-node=8", "--time=600")
PAID = ask(
    template="command",
    nodes="1",
    nproc_per_node="1",
    time_limit="60",
    name="paid",
    working_directory="/home/nlp-1",
    values={"command": "sleep 600", "gpus_per_node": "1"},
)
CHECKPOINT = """#!/bin/sh
trap 'echo warned >> told' USR1
trap 'echo ended >> told; exit 0' TERM
while true; do sleep 1; done
"""


def clock():
    return datetime.now(UTC)


class Site:
    """A portal and its worker in one thread; nlp has no credit, the others have plenty."""

    def __init__(self, begin, read, broker, cluster, hands, *, pace=QUICK):
        self.pace = pace
        self.begin, self.broker, self.cluster, self.hands = begin, broker, cluster, hands
        one_credit_an_hour(begin, starts=clock() - timedelta(seconds=1))
        for group in OTHERS:
            self.give(100_000, group)
        self.portal = portal(begin, broker=broker, clock=clock)
        self.context = Context(
            begin=begin,
            read=read,
            broker=broker,
            cluster=CLUSTER,
            poll_seconds=15 * pace,
            ingest_seconds=30 * pace,
            clock=clock,
        )
        began = time.monotonic()
        self.due = {job.name: began + job.seconds * pace for job in JOBS}

    def at_its_own_pace(self):
        """The intervals that the worker has in a real site."""
        self.pace, self.context.poll_seconds, self.context.ingest_seconds = 1.0, 15, 30

    def until(self, true, seconds=MINUTE):
        """Let the worker work, each job in its own time, until it is so; how long that took."""
        began = time.monotonic()
        while not true():
            assert time.monotonic() - began < seconds, f"still not so\n{self.hands.sight()}"
            for job in JOBS:
                if time.monotonic() >= self.due[job.name]:
                    self.due[job.name] = time.monotonic() + job.seconds * self.pace
                    job.run(self.context)
            time.sleep(0.2)
        return time.monotonic() - began

    def idle_until(self, true, seconds=MINUTE):
        """The worker does nothing meanwhile: the gate stays as open as it is."""
        began = time.monotonic()
        while not true():
            assert time.monotonic() - began < seconds, f"still not so\n{self.hands.sight()}"
            time.sleep(0.2)

    def give(self, amount, group=GROUP):
        credit.top_up(group, int(amount * MILLION), begin=self.begin, now=clock())

    def sbatch(self, user, *options, script=SCRIPT):
        status, printed = self.try_sbatch(user, *options, script=script)
        assert status == 0, printed
        return int(printed)

    def try_sbatch(self, user, *options, script=SCRIPT):
        words = ["sbatch", "--parsable", "--output=/dev/null", "--chdir=/tmp", *options]
        done = self.cluster.run(words, user=user, stdin=script)
        return done.returncode, (done.stdout or done.stderr).strip()

    def is_refused(self, user="nlp-1"):
        """A refusal leaves nothing behind; what slips in before it is cancelled."""
        status, printed = self.try_sbatch(user, *ONE_CARD, "--begin=now+1hour")
        if status == 0:
            self.cancel(int(printed))
        return "AssocGrpSubmitJobsLimit" in printed

    def submit(self, wanted):
        """As soon as what ended jobs of other tests might cost is settled: until then their worst
        case is kept back."""
        sent = []

        def is_taken():
            try:
                sent.append(self.portal.submit(wanted))
            except InvalidAsk:
                return False
            return True

        self.until(is_taken)
        return sent[0]

    def jobs_of(self, submission):
        comment = f"sluice:{self.portal.submission(submission).token}"
        return [job for job in self.broker.queue().jobs if job.comment == comment]

    def cancel(self, job_id):
        done = self.cluster.run(["scancel", str(job_id)])
        assert done.returncode == 0, done.stderr

    def limits(self, group=GROUP, user=None):
        found = [one for one in self.broker.group_limits() if one.account == group]
        one = next(one for one in found if one.user == user)
        return one.grp_submit_jobs, one.grp_gpu_run_minutes

    def is_so(self, job_id, state, reason=None):
        job = find_job(self.broker, job_id)
        return job is not None and job.state == state and reason in (None, job.reason)

    def rules(self, **values):
        with self.begin() as session:
            ledger.lock(session, [GROUP], now=clock())
            ledger.set_rules(session, GROUP, **values)

    def is_settled(self):
        """Every group's limits are those that were wanted."""
        with self.begin() as session:
            rows = gates.gates(session)
        return len(rows) >= 3 and all(row.confirmed_at for row in rows.values())

    def alarms(self):
        with self.begin() as session:
            return set(notices.open_keys(session, ALARMS))

    def turn_off(self):
        """What an administrator does who wants it gone."""
        self.context.gate = Mode.OFF

        def nothing_is_left():
            with self.begin() as session:
                return not gates.gates(session) and not gates.held_jobs(session)

        self.until(nothing_is_left, 150)


@pytest.fixture
def site(tmp_path, broker, cluster, cluster_site):
    before = broker.group_limits()
    with database(tmp_path) as engine:
        begin = make_begin(engine)
        made = Site(begin, make_begin(engine, read_only=True), broker, cluster, cluster_site)
        try:
            yield made
        finally:
            made.turn_off()
        assert broker.group_limits() == before


def test_within_a_minute_a_group_without_credit_cannot_sbatch_and_nobody_else_notices(site):
    site.at_its_own_pace()
    running = site.sbatch("nlp-1", *ONE_CARD, "--time=60")
    site.until(lambda: site.is_so(running, "RUNNING"))
    took = site.until(site.is_refused)
    print(f"shut after {took:.1f} s")
    site.until(site.is_settled)
    assert site.limits()[0] == 0
    assert site.is_refused("nlp-lead")
    assert site.is_so(running, "RUNNING")  # nothing is killed
    for group, user in (("vision", "vision-1"), ("biolab", "biolab-1"), ("vision", "nlp-2")):
        assert site.limits(group)[0] is None
        job = site.sbatch(user, f"--account={group}", *ONE_CARD, "--time=60")
        site.until(lambda job=job: site.is_so(job, "RUNNING"))
    others = [one for one in site.broker.group_limits() if one.user is not None]
    assert {(one.grp_submit_jobs, one.grp_gpu_run_minutes) for one in others} == {(None, None)}
    site.give(100)
    took = site.until(lambda: not site.is_refused())
    print(f"open after {took:.1f} s")


def test_the_sites_own_limit_comes_back_with_the_credit(site):
    own = ["sacctmgr", "-i", "modify", "account", "where", "name=nlp", "cluster=dev", "set"]
    assert site.cluster.run([*own, "GrpSubmitJobs=5"]).returncode == 0
    try:
        site.until(lambda: site.limits()[0] == 0)
        site.give(2)
        site.until(lambda: site.limits() == (5, 120))
        # By hand, as when somebody wants to help a friend.
        assert site.cluster.run([*own, "GrpTRESRunMins=gres/gpu=-1"]).returncode == 0
        took = site.until(lambda: site.limits() == (5, 120), 120)
        print(f"set again after {took:.1f} s")
        site.turn_off()
        assert site.limits() == (5, None)
    finally:
        assert site.cluster.run([*own, "GrpSubmitJobs=-1"]).returncode == 0


def test_a_waiting_job_that_nobody_can_pay_is_held_and_runs_when_credit_arrives(site):
    full = site.sbatch("vision-1", *ALL_CARDS)
    site.idle_until(lambda: site.is_so(full, "RUNNING"))
    job = site.sbatch("nlp-1", *ONE_CARD, "--time=120")
    took = site.until(lambda: site.is_so(job, "PENDING", "JobHeldAdmin"))
    print(f"held after {took:.1f} s")
    assert site.cluster.run(["scontrol", "release", str(job)], user="nlp-1").returncode != 0
    site.cancel(full)
    site.until(lambda: not site.is_so(full, "RUNNING"))
    site.give(2)
    took = site.until(lambda: site.is_so(job, "RUNNING"))
    print(f"released and running after {took:.1f} s")
    assert site.until(site.is_refused)  # it has taken all there was


def test_an_array_waits_whole_and_runs_whole(site):
    full = site.sbatch("vision-1", *ALL_CARDS)
    site.idle_until(lambda: site.is_so(full, "RUNNING"))
    array = site.sbatch("nlp-1", *ONE_CARD, "--time=60", "--array=0-3")
    site.give(3)  # of 4
    site.until(lambda: site.is_so(array, "PENDING", "JobHeldAdmin"))
    site.cancel(full)
    site.until(lambda: not site.is_so(full, "RUNNING"))
    site.give(1)

    def tasks_run():
        tasks = [job for job in site.broker.queue().jobs if job.array_job_id == array]
        return [job.state for job in tasks] == ["RUNNING"] * 4

    site.until(tasks_run)


def test_a_member_above_the_cap_is_shut_alone(site):
    site.give(100)
    with site.begin() as session:
        session.add(mm.MemberCap(group=GROUP, user="nlp-1", per_month=MILLION))
    site.until(lambda: site.limits(user="nlp-1") == (None, 60))
    job = site.sbatch("nlp-1", *ONE_CARD, "--time=60")
    site.until(lambda: site.is_so(job, "RUNNING"))
    site.until(site.is_refused)
    assert not site.is_refused("nlp-2")
    assert site.limits()[0] is None


def test_with_slurmdbd_away_an_alarm_is_told_and_goes_when_it_is_back(site):
    site.until(site.is_refused)
    site.give(5)
    site.cluster.daemon("slurmdbd", "stop")
    try:
        took = site.until(lambda: site.alarms() == {"gate_unread"})
        print(f"alarm after {took:.1f} s")
        assert site.is_refused()  # what was set holds on
    finally:
        site.cluster.daemon("slurmdbd", "start")
    took = site.until(lambda: not site.is_refused() and not site.alarms(), 120)
    print(f"open after {took:.1f} s")


def test_a_paid_submission_starts_though_its_hold_took_the_last_credit(site):
    site.give(1)
    site.until(lambda: site.limits() == (None, 60))
    submission = site.submit(PAID)
    assert site.portal.submission(submission).state == "accepted"
    (paid,) = site.jobs_of(submission)
    site.until(lambda: site.is_so(paid.job_id, "RUNNING"))
    took = site.until(site.is_refused)
    print(f"shut behind it after {took:.1f} s")
    site.until(lambda: site.limits()[1] is not None and site.limits()[1] >= 60)
    assert site.is_so(paid.job_id, "RUNNING")
    # Requeued, it needs its minutes again, and the little that its first run cost.
    site.give(0.5)
    job = str(paid.job_id)
    assert site.cluster.run(["scontrol", "requeue", job]).returncode == 0
    site.until(lambda: site.is_so(paid.job_id, "PENDING"))
    begin_now = ["scontrol", "update", f"JobId={job}", "StartTime=now"]
    site.cluster.run(begin_now)  # Slurm itself waits two minutes after a requeue
    site.until(lambda: site.is_so(paid.job_id, "RUNNING"))


def test_a_paid_job_that_is_given_more_cards_while_it_waits_is_held(site):
    """Plain scontrol lets a member raise a waiting job's cards."""
    site.give(1.5)
    everything = site.sbatch("vision-1", *ALL_CARDS)
    site.until(lambda: site.is_so(everything, "RUNNING"))
    (paid,) = site.jobs_of(site.submit(PAID))
    more = ["scontrol", "update", f"JobId={paid.job_id}", "Gres=gpu:a100:8"]
    assert site.cluster.run(more, user="nlp-1").returncode == 0
    site.until(lambda: find_job(site.broker, paid.job_id).reason == "JobHeldAdmin")
    site.cancel(everything)


def test_a_paid_submission_that_meets_a_shut_gate_is_let_through(site):
    site.until(site.is_refused)
    site.give(1)
    submission = site.submit(PAID)  # at once, before the gate has had its turn
    row = site.portal.submission(submission)
    assert (row.state, row.error_code) == ("queued", "group_submit_limit")

    def runs():
        return [job.state for job in site.jobs_of(submission)] == ["RUNNING"]

    took = site.until(runs)
    print(f"through the gate after {took:.1f} s")
    site.until(site.is_refused)


def test_a_burst_of_plain_jobs_runs_no_more_than_is_paid(site):
    site.give(2)
    site.until(lambda: site.limits() == (None, 120))
    jobs = [site.sbatch("nlp-1", *ONE_CARD, "--time=60") for _ in range(6)]
    site.until(lambda: sum(site.is_so(job, "PENDING", "JobHeldAdmin") for job in jobs) == 4)
    assert sum(site.is_so(job, "RUNNING") for job in jobs) == 2
    assert site.is_refused()


def test_at_zero_a_running_job_is_warned_and_stopped_by_the_groups_rule(site):
    site.give(20)
    site.rules(at_zero="stop", warning_minutes=1)
    site.until(lambda: site.limits()[1] == 1200)
    folder = "/home/nlp-1/stop"
    made = site.cluster.run(["sh", "-c", f"mkdir -p {folder}; rm -f {folder}/told"], user="nlp-1")
    assert made.returncode == 0
    signal = "--signal=B:USR1@30"
    words = (*ONE_CARD, "--time=600", signal, f"--chdir={folder}")
    job = site.sbatch("nlp-1", *words, script=CHECKPOINT)
    other = site.sbatch("vision-1", *ONE_CARD, "--time=600")
    site.until(lambda: site.is_so(job, "RUNNING") and site.is_so(other, "RUNNING"))
    site.give(-25)  # paid back: what runs is not covered any more
    took = site.until(lambda: (find_job(site.broker, job).time_limit_minutes or 0) < 10)
    print(
        f"stopped by a limit of {find_job(site.broker, job).time_limit_minutes} min, {took:.1f} s"
    )
    took = site.until(lambda: not site.is_so(job, "RUNNING"), 300)
    told = site.cluster.run(["cat", f"{folder}/told"]).stdout.split()
    print(f"ended {took:.1f} s later, told {told}")
    assert told[:2] == ["warned", "ended"]
    assert site.is_so(other, "RUNNING")
    assert find_job(site.broker, other).time_limit_minutes == 600
    assert re.fullmatch(r"COMPLETED|TIMEOUT|COMPLETING", find_job(site.broker, job).state)
