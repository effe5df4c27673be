"""Why real jobs wait on a real Slurm: the answer names the right limit, its use and the job; and
what the form refuses Slurm would never start.

One cluster's queue, read by the real broker; each cause costs some seconds of Slurm's own rounds.
"""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from gateway.core.access import Role, Viewer
from gateway.core.caps import Holder
from gateway.services import ahead, poll
from gateway.services.offer import offer
from gateway.services.preview import preview
from gateway.services.standing import standing
from gateway.services.why_not import why_not
from gateway.store.queries.job import job_by_slurm_id
from gateway.testing.portal import Portal, ask, portal

pytestmark = pytest.mark.slurm

CARD = ask(
    template="command",
    nodes="1",
    nproc_per_node="1",
    time_limit="30",
    name="waits",
    working_directory="/home/nlp-1",
    values={"command": "sleep 300", "gpus_per_node": "8"},
)


@pytest.fixture
def site(begin, broker, cluster_site):
    return portal(begin, broker=broker, clock=lambda: datetime.now(UTC))


def sbatch(cluster, *options, user="nlp-1", wrap="sleep 300"):
    words = ["sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", "--time=30"]
    done = cluster.run([*words, *options, f"--wrap={wrap}"], user=user)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split(";")[0])


def sacctmgr(cluster, *words):
    done = cluster.run(["sacctmgr", "-i", *words])
    assert done.returncode == 0, done.stdout + done.stderr


def answer(site: Portal, slurm_id, reason, seconds=30.0):
    """The answer once Slurm gives this reason, as the page would have it."""
    end = time.monotonic() + seconds
    while True:
        site.poll()
        site.poll_policy()
        with site.begin() as session:
            found = job_by_slurm_id(session, slurm_id)
            if found is not None and (found.row.reason or "").startswith(reason):
                return why_not(session, found, viewer=site.viewer, now=site.now)
        assert time.monotonic() < end, found.row.reason if found else "no such job"
        time.sleep(0.5)


def helps(found):
    return {one.code for one in found.helps}


def test_limits_of_a_person_and_of_a_group(cluster, site):
    running = sbatch(cluster, "--qos=urgent", "--gpus-per-node=8")
    first = sbatch(cluster, "--qos=urgent", "--gpus-per-node=4")
    found = answer(site, first, "QOSMaxGRESPerUser")
    assert (found.use.holder, found.use.name, found.use.key) == (
        Holder.QOS,
        "urgent",
        "max_tres_per_user",
    )
    assert (found.use.limit, found.use.used, found.use.asked) == (8, 8, 4)
    (mine,) = found.users
    assert [ref.number for ref in mine.refs] == [str(running)]
    assert found.freed.at - datetime.now(UTC) < timedelta(minutes=31)
    other = next(one for one in found.helps if one.code == "other_qos" and one.name == "normal")
    assert other.free_now  # and it does start there, at once
    cluster.run(["scontrol", "update", f"jobid={first}", "qos=normal"])
    until_state(site, first, "RUNNING")

    sbatch(cluster, "--nodes=2", "--gpus-per-node=8", "--time=20", user="biolab-1")
    over = sbatch(cluster, "--gpus-per-node=2", user="biolab-1")
    found = answer(site, over, "AssocGrpGRES")
    assert (found.use.holder, found.use.name, found.use.key) == (Holder.GROUP, "biolab", "grp_tres")
    assert (found.use.limit, found.use.used, found.use.asked) == (16, 16, 2)
    # A member of nlp sees nobody's name there.
    assert [(one.user, one.jobs, one.amount, one.refs) for one in found.users] == [
        (None, 1, 16, ())
    ]
    assert "raise_group_limit" in helps(found)


def until_state(site, slurm_id, state, seconds=30.0):
    end = time.monotonic() + seconds
    while True:
        jobs = {job.job_id: job.state for job in site.broker.queue().jobs}
        if jobs.get(slurm_id) == state:
            return
        assert time.monotonic() < end, jobs.get(slurm_id)
        time.sleep(0.3)


def test_resources_priority_and_the_persons_own_doing(cluster, site):
    full = sbatch(cluster, "--partition=rtx4090", "--nodes=2", "--gpus-per-node=8", "--time=10")
    until_state(site, full, "RUNNING")
    head = sbatch(cluster, "--partition=rtx4090", "--gpus-per-node=8", "--qos=urgent")
    behind = sbatch(cluster, "--partition=rtx4090", "--gpus-per-node=8", user="nlp-2")
    found = answer(site, head, "Resources")
    assert (found.space.needed, found.space.fitting, found.space.free_gpus) == (1, 0, 0)
    assert [ref.number for ref in found.freed.refs] == [str(full)]
    assert "higher_qos" in helps(answer(site, behind, "Priority"))
    poll.poll_priority(begin=site.begin, broker=site.broker, now=site.now)
    with site.begin() as session:
        row = job_by_slurm_id(session, behind).row
        place = standing(session, row, viewer=site.viewer, compare=head)
    assert (place.before, place.waiting) == (1, 2)
    assert (place.next.number, place.next.qos) == (str(head), "urgent")
    assert place.next.differences[0].key == "of_qos"
    assert place.next.differences[0].other == 100_000
    assert place.compared.id == place.next.id

    held = sbatch(cluster, "--hold")
    assert helps(answer(site, held, "JobHeldUser")) == {"release"}
    later = sbatch(cluster, "--begin=now+2hours")
    begins = answer(site, later, "BeginTime").begins
    assert timedelta(minutes=118) < begins - datetime.now(UTC) < timedelta(minutes=121)
    depends = sbatch(cluster, f"--dependency=afterok:{full}")
    assert answer(site, depends, "Dependency").unknown == ("other_job",)


def test_a_time_limit_of_the_qos_that_came_later(cluster, site):
    """Held while it was set, so that it does not start before Slurm looks at the limit."""
    job = sbatch(cluster, "--hold", "--time=30")
    sacctmgr(cluster, "modify", "qos", "where", "name=normal", "set", "MaxWall=20")
    try:
        cluster.run(["scontrol", "release", str(job)])
        found = answer(site, job, "QOSMaxWallDurationPerJobLimit")
        assert (found.use.key, found.use.limit, found.use.asked) == ("max_wall_minutes", 20, 30)
        assert ("shorter", 20) in {(one.code, one.minutes) for one in found.helps}
        cluster.run(["scontrol", "update", f"jobid={job}", "timelimit=20"], user="nlp-1")
        until_state(site, job, "RUNNING")
    finally:
        sacctmgr(cluster, "modify", "qos", "where", "name=normal", "set", "MaxWall=-1")


@pytest.fixture
def maintenance(cluster):
    words = ["scontrol", "create", "reservation", "reservationname=upkeep", "flags=maint"]
    words += ["starttime=now+40minutes", "duration=60", "users=root"]
    done = cluster.run([*words, "nodes=a100-1,a100-2,a100-3,a100-4"])
    assert done.returncode == 0, done.stderr
    yield
    cluster.run(["scontrol", "delete", "reservationname=upkeep"])


def test_maintenance_ahead(cluster, site, maintenance):
    late = sbatch(cluster, "--partition=a100", "--time=120")
    found = answer(site, late, "ReqNodeNotAvail")
    assert found.clash.is_maintenance
    assert 30 <= found.clash.fits_minutes < 40
    assert ("shorter", found.clash.fits_minutes) in {(h.code, h.minutes) for h in found.helps}
    reading = read(site, replace(CARD, time_limit="120")).reading
    warned = ahead.warn(reading, viewer=site.viewer, begin=site.begin, now=site.now).clash
    assert (warned.name, warned.fits_minutes) == ("upkeep", found.clash.fits_minutes)
    fits = replace(CARD, time_limit=str(warned.fits_minutes))
    assert (
        ahead.warn(
            read(site, fits).reading, viewer=site.viewer, begin=site.begin, now=site.now
        ).clash
        is None
    )
    # The limit that was named starts at once, before the maintenance.
    wanted = f"timelimit={warned.fits_minutes}"
    cluster.run(["scontrol", "update", f"jobid={late}", wanted], user="nlp-1")
    until_state(site, late, "RUNNING")


def read(site, wanted):
    return preview(
        wanted,
        viewer=site.viewer,
        begin=site.begin,
        catalogue=site.catalogue,
        environments=(),
        offer=offer(site.viewer, begin=site.begin),
    )


def codes(site, wanted):
    return {one.code for one in read(site, wanted).problems} - {"unknown_environment"}


def test_what_the_form_refuses_would_never_start(cluster, site):
    """Each is sent past the form with sbatch: Slurm refuses it, or gives a reason of that kind."""
    cases = [
        (
            {"values": CARD.values | {"gpus_per_node": "8"}, "qos": "urgent", "nodes": "2"},
            ("--qos=urgent", "--nodes=2", "--gpus-per-node=8"),
            "gpus_above_user_limit",
            "QOSMaxGRESPerUser",
        ),
        (
            {"partition": "debug", "values": CARD.values | {"gpus_per_node": "4"}},
            ("--partition=debug", "--gpus-per-node=4", "--time=20"),
            "gpus_per_node_above_node",
            "",
        ),
    ]
    for changes, options, code, reason in cases:
        assert code in codes(site, replace(CARD, **changes))
        done = cluster.run(
            ["sbatch", "--parsable", "--chdir=/tmp", "--time=30", *options, "--wrap=true"],
            user="nlp-1",
        )
        if done.returncode == 0:
            answer(site, int(done.stdout), reason)
        else:
            assert not reason, done.stderr
    # And what it lets through Slurm takes: the largest that is allowed.
    fits = replace(CARD, qos="urgent")
    assert codes(site, fits) == set()
    state = site.submission(site.submit(fits)).state
    assert state == "accepted"


def test_what_a_limit_of_minutes_refuses(cluster, site):
    words = ["modify", "qos", "where", "name=spot", "set"]
    sacctmgr(cluster, *words, "MaxTRESMinsPerJob=gres/gpu=60", "MinTRESPerJob=gres/gpu=2")
    try:
        site.poll_policy()
        spot = replace(CARD, qos="spot", time_limit="30")
        assert "time_above_job_minutes" in codes(site, spot)
        small = replace(spot, values=CARD.values | {"gpus_per_node": "1"})
        assert "size_below_least" in codes(site, small)
        over = sbatch(cluster, "--qos=spot", "--gpus-per-node=8", "--time=30")
        found = answer(site, over, "QOSMaxGRESMinutesPerJob")
        assert (found.use.limit, found.use.asked) == (60, 240)
        under = sbatch(cluster, "--qos=spot", "--gpus-per-node=1", "--time=30")
        assert answer(site, under, "QOSMinGRES").use.limit == 2
        fits = replace(spot, values=CARD.values | {"gpus_per_node": "2"})
        assert codes(site, fits) == set()
        job = site.submission(site.submit(fits)).job_id
        assert job is not None
    finally:
        sacctmgr(cluster, *words, "MaxTRESMinsPerJob=gres/gpu=-1", "MinTRESPerJob=gres/gpu=-1")


def test_an_operator_sees_whose_jobs_they_are(cluster, site):
    sbatch(cluster, "--nodes=2", "--gpus-per-node=8", user="biolab-1")
    over = sbatch(cluster, "--gpus-per-node=2", user="biolab-1")
    operator = Viewer(9, 9, "op", "op", "Op", Role.OPERATOR, (), ())
    found = answer(replace(site, viewer=operator), over, "AssocGrpGRES")
    assert [(one.user, one.amount) for one in found.users] == [("biolab-1", 16)]
