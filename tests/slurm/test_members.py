"""People of groups on a real Slurm: what the portal says, the commands say too."""

import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from broker_fixture import own_broker

from gateway.core.credits import MILLION
from gateway.errors import BrokerUnreachable
from gateway.services import credit, members
from gateway.services.submit import InvalidAsk
from gateway.store.uow import make_begin
from gateway.testing.contract_steps import Cast, refused, request
from gateway.testing.database import database
from gateway.testing.money import entries_of, set_price
from gateway.testing.portal import ask, portal
from gateway.wire import policy as p

pytestmark = pytest.mark.slurm

USER, GROUP = "biolab-1", "nlp"
CAST = Cast(user=USER, account=GROUP)


def now():
    return datetime.now(UTC)


class Slurm:
    """The portal's services, and the same cluster by its own commands."""

    def __init__(self, cluster, portal):
        self.cluster, self.portal = cluster, portal

    def run(self, *words, user=None, stdin=None):
        return self.cluster.run(list(words), user=user, stdin=stdin)

    def sacctmgr(self, *words):
        done = self.run("sacctmgr", "-i", *words)
        assert done.returncode == 0, done.stdout + done.stderr

    def associations(self, user=USER, account=GROUP):
        """Partition and MaxSubmitJobs of each."""
        where = ["show", "associations", f"user={user}", f"account={account}", "WOPLimits"]
        done = self.run("sacctmgr", "-nP", *where, "format=Partition,MaxSubmit")
        return sorted(tuple(line.split("|")) for line in done.stdout.splitlines())

    def default(self, user=USER):
        done = self.run("sacctmgr", "-nP", "show", "users", f"name={user}", "format=DefaultAccount")
        return done.stdout.strip()

    def leaders(self, account=GROUP):
        where = ["show", "accounts", f"name={account}", "withcoordinator", "format=Coordinators"]
        return self.run("sacctmgr", "-nP", *where).stdout.strip().split(",")

    def sbatch(self, *options, user=USER):
        script = "#!/bin/sh\nexec sleep 300\n"
        home = ("--chdir=/tmp", "--output=/dev/null", "--time=5")
        return self.run("sbatch", "--parsable", *home, *options, user=user, stdin=script)

    def act(self, name, *given, **more):
        have = {"begin": self.portal.begin, "broker": self.portal.broker, "now": now()}
        return getattr(members, name)(*given, **have, **more)

    def carry_on(self):
        have = self.portal
        return members.carry_on(begin=have.begin, read=have.begin, broker=have.broker, now=now())

    def until(self, true, seconds=30.0):
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, f"still not so after {seconds} s"
            time.sleep(0.2)


@pytest.fixture
def slurm(cluster, broker, cluster_site, tmp_path):
    """Whoever was added is gone again, whatever the test did."""
    with database(tmp_path) as engine:
        begin = make_begin(engine)
        made = Slurm(cluster, portal(begin, user=USER, broker=broker, clock=now))
        yield made
    made.run("scancel", f"--user={USER}")
    made.run("sacctmgr", "-i", "modify", "user", USER, "set", "DefaultAccount=biolab")
    made.run("sacctmgr", "-i", "remove", "coordinator", f"account={GROUP}", f"names={USER}")
    gone = ("sacctmgr", "-i", "remove", "user", USER, f"account={GROUP}")
    made.until(lambda: made.run(*gone) and not made.associations())


def test_who_is_added_may_submit_everywhere_and_who_is_removed_nowhere(slurm):
    assert not slurm.act("add", GROUP, USER).pending
    assert slurm.associations() == [("", "")]
    for partition in ("a100", "rtx4090", "debug"):
        done = slurm.sbatch("-A", GROUP, "-p", partition, "--hold")
        assert done.returncode == 0, done.stderr
    slurm.run("scancel", f"--user={USER}")
    slurm.until(lambda: not slurm.act("remove", GROUP, USER, cancel_waiting=False).pending)
    assert slurm.associations() == []
    assert slurm.sbatch("-A", GROUP).returncode != 0


def test_partitions_of_an_accounts_people_are_the_new_ones_too(slurm):
    slurm.sacctmgr("add", "account", "parts", "cluster=dev", "QOS=normal")
    try:
        slurm.sacctmgr("add", "user", "vision-1", "account=parts", "partition=a100,debug")
        made = slurm.portal.broker.add_member("parts", USER)
        assert made.partitions == ("a100", "debug")
        assert slurm.associations(account="parts") == [("a100", ""), ("debug", "")]
        shut = slurm.portal.broker.set_member(p.SetMember("parts", USER, closed=True))
        assert shut.closed
        assert slurm.associations(account="parts") == [("a100", "0"), ("debug", "0")]
        assert slurm.portal.broker.remove_member("parts", USER).partitions == ()
        assert slurm.associations(account="parts") == []
    finally:
        for user in ("vision-1", USER):
            slurm.run("sacctmgr", "-i", "remove", "user", user, "account=parts")
        slurm.sacctmgr("remove", "account", "parts")


def test_who_leaves_with_a_job_that_runs_is_shut_at_once_and_the_group_pays(slurm):
    site = slurm.portal
    set_price(site.begin, "a100", "3600", starts=now().replace(microsecond=0))
    credit.top_up(GROUP, 5000 * MILLION, begin=site.begin, now=now())
    slurm.act("add", GROUP, USER)
    site.poll_policy()
    job = site.broker.submit(request(CAST, working_directory=f"/home/{USER}", gpus_per_node=2))

    def state():
        site.poll()
        return {one.slurm_id: one.state for one in site.jobs()}[job.job_id]

    slurm.until(lambda: state() == "RUNNING")
    waits = slurm.sbatch("-A", GROUP, "--begin=now+1hour")
    assert waits.returncode == 0, waits.stderr
    site.poll()

    gone = slurm.act("remove", GROUP, USER, cancel_waiting=True)
    assert (gone.pending, gone.code, gone.cancelled) == (True, "member_has_jobs", 1)
    assert slurm.associations() == [("", "0")]
    by_hand = slurm.sbatch("-A", GROUP)
    assert "AssocMaxSubmitJobLimit" in by_hand.stderr
    with refused("association_submit_limit"):
        site.broker.submit(request(CAST, working_directory=f"/home/{USER}"))
    with pytest.raises(InvalidAsk) as invalid:
        site.submit(replace(ask(), group=GROUP))
    assert "group_leaving" in {one.code for one in invalid.value.problems}
    assert slurm.carry_on() == 0

    time.sleep(1.1)  # a run of no second costs nothing
    slurm.run("touch", f"/home/{USER}/end-{job.job_id}", user=USER)

    def left():
        site.work()
        return slurm.carry_on() == 1

    slurm.until(left)
    assert slurm.associations() == []
    slurm.until(lambda: site.work() or "charge" in dict(entries_of(site.begin, GROUP)))
    (run,) = [one for one in site.runs() if one.slurm_id == job.job_id]
    assert dict(entries_of(site.begin, GROUP))["charge"] == -2 * run.elapsed_seconds * MILLION


def test_a_default_group_and_a_leader_are_made_and_left(slurm):
    slurm.act("add", GROUP, USER)
    slurm.act("set_leader", GROUP, USER, leads=True)
    assert USER in slurm.leaders()
    slurm.act("set_default", GROUP, USER)
    assert slurm.default() == GROUP
    slurm.portal.poll_policy()
    slurm.until(lambda: not slurm.act("remove", GROUP, USER, cancel_waiting=False).pending)
    assert slurm.default() == "biolab"
    assert USER not in slurm.leaders()
    assert slurm.associations() == []


def test_letter_case_is_slurms(slurm):
    """slurmdbd keeps small letters here: nobody is to become somebody else."""
    broker = slurm.portal.broker
    with refused("unknown_user"):
        broker.add_member(GROUP, USER.upper())
    made = slurm.run("useradd", "--badname", "--create-home", "Biolab-1")
    assert made.returncode == 0, made.stderr
    try:
        with refused("member_letter_case"):
            broker.add_member(GROUP, "Biolab-1")
    finally:
        slurm.run("userdel", "--remove", "Biolab-1")
    assert slurm.associations() == []
    assert slurm.act("add", GROUP, USER.upper()).user == USER  # a login is typed in any case


def test_slurmdbd_that_goes_and_comes_back_loses_nothing(slurm, cluster):
    cluster.daemon("slurmdbd", "stop")
    try:
        with own_broker(cluster, SLUICE_BROKER_KILL_TIMEOUT_SECONDS="6") as own:
            slurm.portal.broker = own.client(20.0)
            asked = slurm.act("add", GROUP, USER)
            assert asked.pending
            assert asked.code in {"slurm_unreachable", "slurm_unknown"}
            with pytest.raises(BrokerUnreachable):
                slurm.portal.broker.associations()
            cluster.daemon("slurmdbd", "start")
            slurm.until(lambda: slurm.carry_on() == 1, 40)
    finally:
        cluster.daemon("slurmdbd", "start")
    assert slurm.associations() == [("", "")]


def test_reservations_are_read_with_their_nodes(slurm):
    words = ["scontrol", "create", "reservation", "reservationname=maint", "starttime=now+10hour"]
    made = slurm.run(*words, "duration=60", "nodes=a100-[1-2]", "flags=maint", "users=root")
    assert made.returncode == 0, made.stderr
    try:
        (one,) = slurm.portal.broker.reservations()
        assert (one.name, one.nodes, one.users) == ("maint", ("a100-1", "a100-2"), ("root",))
        assert "MAINT" in one.flags
        assert 3590 <= (one.end - one.start).total_seconds() <= 3610
        assert 9.5 * 3600 < (one.start - now()).total_seconds() < 10.5 * 3600
    finally:
        slurm.run("scontrol", "delete", "reservation=maint")


def test_shares_are_those_of_sshare(slurm):
    found = slurm.portal.broker.fair_shares()
    accounts = {one.account for one in found if one.user is None}
    assert accounts == {"nlp", "vision", "biolab"}
    (mine,) = [one for one in found if (one.account, one.user) == ("nlp", "nlp-1")]
    assert mine.raw_shares == 1
    assert mine.fair_share is not None
    assert 0 <= mine.fair_share <= 1
