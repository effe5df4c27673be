"""200 short jobs whose cause of waiting is known, on a real Slurm: the split finds it.

Real broker, the worker's own poll and ingest, the columnar history. It takes two minutes because
waits have to be long against a poll.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from gateway.core.wait_causes import Cause
from gateway.history import reading
from gateway.services import keep_history
from gateway.testing.portal import portal

pytestmark = pytest.mark.slurm

POLL_SECONDS = 2.0
WAIT_SECONDS = 40
SUBMIT_SECONDS = 20  # it takes so long to submit them all
# Slurm lets a job that was sent back wait for two minutes more before it may start again.
LONGEST_SECONDS = 300.0
JOBS = 205  # with those that stand before others


@dataclass
class Truth:
    """Slurm ids of jobs, of whole arrays too, by what they wait for."""

    cluster: object
    jobs: dict[int, Cause] = field(default_factory=dict)
    blocking: dict[int, tuple[Cause, ...]] = field(default_factory=dict)
    held: list[int] = field(default_factory=list)

    def blocks(self, user, *options, causes):
        """A job that stands before others, and waits for nothing."""
        (job,) = self._sbatch(user, 1, f"sleep {WAIT_SECONDS + SUBMIT_SECONDS}", options)
        self.blocking[job] = causes
        return job

    def until_blocked(self):
        """What stands before others has started: until then they would wait for it, not for what
        it takes."""
        ids = ",".join(map(str, self.blocking))
        end = time.monotonic() + LONGEST_SECONDS
        while True:
            states = self.cluster.run(["squeue", "--noheader", "--format=%T", f"--jobs={ids}"])
            if states.stdout.split() == ["RUNNING"] * len(self.blocking):
                return
            assert time.monotonic() < end, states.stdout
            time.sleep(0.3)

    def wait(self, cause, user, number, *options, command="true"):
        found = self._sbatch(user, number, command, options)
        self.jobs |= dict.fromkeys(found, cause)
        return found

    def _sbatch(self, user, number, command, options):
        words = "sbatch --parsable --chdir=/tmp --output=/dev/null --time=30"
        script = f'for i in $(seq {number}); do {words} "$@" --wrap="{command}" || exit 1; done'
        done = self.cluster.run(["sh", "-c", script, "sh", *options], user=user)
        assert done.returncode == 0, done.stderr
        return [int(line.split(";")[0]) for line in done.stdout.split()]


@pytest.fixture
def site(begin, broker, cluster_site):
    return portal(begin, broker=broker, clock=lambda: datetime.now(UTC))


@pytest.fixture
def narrow_spot(sacctmgr, site):
    """A QoS of which all together may hold four cards."""
    sacctmgr("modify", "qos", "where", "name=spot", "set", "GrpTRES=gres/gpu=4")
    yield
    sacctmgr("modify", "qos", "where", "name=spot", "set", "GrpTRES=gres/gpu=-1")


def scontrol(cluster, *words):
    done = cluster.run(["scontrol", *words])
    assert done.returncode == 0, done.stderr


@pytest.fixture
def node_down(cluster):
    scontrol(cluster, "update", "nodename=a100-4", "state=drain", "reason=fan")
    yield
    cluster.run(["scontrol", "update", "nodename=a100-4", "state=resume"])


@pytest.fixture
def maintenance(cluster):
    words = ["reservationname=upkeep", "flags=maint", "starttime=now", "duration=60", "users=root"]
    scontrol(cluster, "create", "reservation", *words, "nodes=debug-1")
    yield
    cluster.run(["scontrol", "delete", "reservationname=upkeep"])


def submitted(cluster):
    """Each partition and each limit stands for one cause alone."""
    truth = Truth(cluster)
    card, cards8 = "--gpus-per-node=1", "--gpus-per-node=8"
    throttled = ("--array=0-24%2", "--partition=a100")
    truth.wait(Cause.ARRAY_THROTTLE, "vision-1", 1, *throttled, command="sleep 2")
    group, shared = ("--nodelist=a100-[1-2]", "--nodes=2", cards8), "--nodelist=a100-3"
    half = (shared, "--gpus-per-node=4")
    truth.blocks("biolab-1", *group, causes=(Cause.GROUP_LIMIT,))
    urgent = truth.blocks("nlp-1", "--qos=urgent", *half, causes=(Cause.USER_LIMIT,))
    # An urgent job may take its cards; sent back, it would hold the others up for minutes.
    spot = ("--qos=spot", "--no-requeue")
    truth.blocks("vision-1", *spot, *half, causes=(Cause.QOS_LIMIT,))
    full = (Cause.NO_GPUS, Cause.PRIORITY)
    truth.blocks("nlp-2", "--partition=rtx4090", "--nodes=2", cards8, causes=full)
    truth.until_blocked()
    truth.wait(Cause.NODES_DOWN, "vision-1", 15, "--nodelist=a100-4")
    truth.wait(Cause.RESERVATION, "nlp-1", 15, "--partition=debug")
    truth.wait(Cause.GROUP_LIMIT, "biolab-1", 25, card)
    truth.wait(Cause.USER_LIMIT, "nlp-1", 20, "--qos=urgent", "--gpus-per-node=5")
    truth.wait(Cause.QOS_LIMIT, "vision-1", 20, *spot, card)
    truth.wait(Cause.NO_GPUS, "nlp-1", 1, "--partition=rtx4090", "--nodes=2", cards8)
    truth.wait(Cause.PRIORITY, "nlp-2", 30, "--partition=rtx4090", card, "--nice=1000")
    truth.held = truth.wait(Cause.DEFERRAL, "nlp-1", 15, "--hold")
    truth.wait(Cause.DEFERRAL, "nlp-1", 20, f"--dependency=afterany:{urgent}")
    truth.wait(Cause.DEFERRAL, "vision-1", 15, f"--begin=now+{WAIT_SECONDS}")
    return truth


def poll_until(site, true, seconds=LONGEST_SECONDS):
    """The worker's steps, as often as a worker with a short interval takes them. Returns the
    longest time from one poll to the next."""
    polls = [time.monotonic()]
    while True:
        site.poll()
        if true():
            return max((later - one for one, later in pairwise(polls)), default=POLL_SECONDS)
        left = [(job.slurm_id, job.state, job.reason) for job in site.jobs() if job.active]
        assert polls[-1] < polls[0] + seconds, (len(site.runs()), left)
        time.sleep(max(0.0, POLL_SECONDS - (time.monotonic() - polls[-1])))
        polls.append(time.monotonic())


def all_over(site):
    """Slurm keeps jobs that ended in its queue for a while."""
    return all(job.state not in ("PENDING", "RUNNING") for job in site.broker.queue().jobs)


def is_told(site):
    """Whether accounting has told of the end of every job; it is read as a worker reads it."""
    site.ingest()
    site.reconcile()
    runs = site.runs()
    # A job that was sent back into the queue has several runs.
    told = len({run.job_id for run in runs}) >= JOBS and all(run.end_time for run in runs)
    return told and not any(job.active for job in site.jobs())


@dataclass(frozen=True)
class Past:
    """A row of the history; times are seconds since 1970. `of`: the job, or its array."""

    of: int
    submit: int
    eligible: int
    start: int
    end: int
    seconds: dict[Cause, int]


def history(site, folder):
    keep_history.rebuild(folder, begin=site.begin, read=site.begin, now=site.now)
    arrays = {job.slurm_id: job.array_job_id for job in site.jobs()}
    # Of a job that is sent back Slurm may forget when it was eligible.
    became = "coalesce(eligible_time, start_time)"
    times = ", ".join(f"epoch({at})" for at in ("submit_time", became, "start_time", "end_time"))
    causes = ", ".join(f"cause_{cause}" for cause in Cause)
    # The first waits: jobs of urgent QoS may send those of spot back into the queue.
    query = f"SELECT slurm_id, {times}, {causes} FROM waits"
    query += " WHERE restarts = 0 AND start_time IS NOT NULL AND end_time IS NOT NULL"
    with reading.runs(folder) as connection:
        return [
            Past(
                arrays[slurm_id] or slurm_id,
                *map(int, row[:4]),
                dict(zip(Cause, row[4:], strict=True)),
            )
            for slurm_id, *row in connection.execute(query).fetchall()
        ]


def test_the_split_finds_what_200_jobs_waited_for(
    cluster, site, narrow_spot, node_down, maintenance, tmp_path
):
    with ThreadPoolExecutor(1) as pool:  # polls go on while people submit
        submitting = pool.submit(submitted, cluster)
        early = poll_until(site, submitting.done)
    truth, began = submitting.result(), time.monotonic()
    late = poll_until(site, lambda: time.monotonic() > began + WAIT_SECONDS)
    lifted = time.time()
    scontrol(cluster, "release", ",".join(map(str, truth.held)))
    scontrol(cluster, "update", "nodename=a100-4", "state=resume")
    scontrol(cluster, "delete", "reservationname=upkeep")
    pace = max(early, late, poll_until(site, lambda: all_over(site)))
    poll_until(site, lambda: is_told(site))
    rows = history(site, tmp_path / "history")

    ends = {Cause.NODES_DOWN: lifted, Cause.RESERVATION: lifted}
    for row in rows:
        ends |= dict.fromkeys(truth.blocking.get(row.of, ()), row.end)
    waited = [row for row in rows if row.of in truth.jobs and is_long(row)]
    for row in waited:
        if truth.jobs[row.of] is not Cause.ARRAY_THROTTLE:
            check(row, truth.jobs[row.of], ends, two_polls=2 * pace)
    # Slurm tells one reason at a time: elements of an array also wait behind other people's jobs.
    elements = [row for row in waited if truth.jobs[row.of] is Cause.ARRAY_THROTTLE]
    throttled = [row for row in elements if row.seconds[Cause.ARRAY_THROTTLE]]
    assert 2 * len(throttled) >= len(elements) > 0
    assert len(waited) >= 195  # all but what the throttled array began with
    assert {truth.jobs[row.of] for row in waited} == set(Cause) - {Cause.UNKNOWN}


def is_long(row):
    return row.start - row.submit > 2 * POLL_SECONDS


def check(row, cause, ends, *, two_polls):
    """The known cause lasted until it was lifted, within two polls, and is the largest part, unless
    Slurm's own rounds took as long again to start the job."""
    assert sum(row.seconds.values()) == row.start - row.submit
    if cause is Cause.DEFERRAL:
        # A poll sees Slurm's next reason only a little after the job has become eligible.
        assert 0 <= row.seconds[cause] - (row.eligible - row.submit) <= two_polls, row
        end = row.eligible
    else:
        end = ends[cause]
        assert row.seconds[cause] >= end - row.submit - two_polls, (row, end)
    if row.start - end < end - row.submit - two_polls:
        assert max(row.seconds, key=row.seconds.__getitem__) is cause, (row, end)
