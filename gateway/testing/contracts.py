"""The broker's promises, as tests that run on FakeBroker and on the real broker alike.

A subclass gives the fixture `site` (a `ContractSite`).
"""

import re
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

    def wait_for(self, site: ContractSite, job: m.AcceptedJob, *states: str) -> None:
        def reached() -> bool:
            return state_of(site.broker, job.job_id) in states

        site.until(reached, WAIT_SECONDS)

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


class SubmitContract(Steps):
    """Submitting, and finding again."""

    def test_the_accepted_job_is_the_one_that_was_asked_for(self, site: ContractSite) -> None:
        asked = request(site.cast, nodes=2, gpus_per_node=4, time_limit_minutes=7)
        job = site.broker.submit(asked)
        assert (job.account, job.partition, job.qos) == ("nlp", "a100", "normal")
        assert (job.nodes, job.gpus, job.time_limit_minutes) == (2, 8, 7)
        assert job.name == asked.name
        assert job.output == f"/home/nlp-1/contract-{job.job_id}.log"
        queued = find_job(site.broker, job.job_id)
        assert queued is not None
        assert (queued.user, queued.nodes, queued.gpus, queued.gpu_type) == ("nlp-1", 2, 8, "a100")
        assert queued.comment == f"sluice:{asked.token}"
        assert queued.submit_time == job.submit_time
        self.cancel(site, job)

    def test_one_token_is_one_job_however_often_it_is_sent(self, site: ContractSite) -> None:
        asked = request(site.cast)
        first = site.broker.submit(asked)
        assert site.broker.submit(asked).job_id == first.job_id
        same = [j for j in site.broker.queue().jobs if j.comment == f"sluice:{asked.token}"]
        assert len(same) == 1
        self.cancel(site, first)

    def test_a_token_finds_its_job_in_the_queue_and_no_other(self, site: ContractSite) -> None:
        asked = request(site.cast)
        job = site.broker.submit(asked)
        since = site.now() - timedelta(hours=1)
        found = site.broker.find(asked.token, user=asked.user, since=since)
        assert found is not None
        assert found.job_id == job.job_id
        unknown = site.broker.find(uuid.uuid4().hex, user=asked.user, since=since)
        assert unknown is None
        stranger = site.broker.find(asked.token, user=site.cast.other, since=since)
        assert stranger is None
        self.cancel(site, job)

    def test_what_slurm_would_not_run_is_refused_by_code(self, site: ContractSite) -> None:
        cast = site.cast
        refusals: list[tuple[str, dict[str, Any]]] = [
            ("invalid_partition", {"partition": "nowhere"}),
            ("invalid_account", {"account": cast.other_account}),
            ("invalid_qos", {"qos": "nosuch"}),
            ("invalid_node_count", {"nodes": cast.nodes + 1}),
            ("invalid_time_limit", {"time_limit_minutes": 60 * 24 * 365}),
            ("node_config_unavailable", {"gpus_per_node": cast.gpus_per_node + 1}),
            ("node_config_unavailable", {"gpu_type": "nosuch"}),
        ]
        for code, changes in refusals:
            with refused(code):
                site.broker.submit(request(cast, **changes))

    def test_text_that_could_be_more_than_text_is_refused(self, site: ContractSite) -> None:
        for code, changes in (
            ("bad_name", {"name": "a\nb"}),
            ("bad_name", {"name": "a\u2028b"}),
            ("bad_name", {"name": "n" * 300}),
            ("invalid_partition", {"partition": "a100,debug"}),
            ("invalid_account", {"account": "x'; touch pwned; '"}),
            ("script_without_shebang", {"script": "echo hello\n"}),
            ("script_with_carriage_return", {"script": "#!/bin/sh\r\n"}),
            ("script_with_nul", {"script": "#!/bin/sh\n\0"}),
            ("script_too_large", {"script": "#!/bin/sh\n" + "#" * 5_000_000}),
            ("bad_token", {"token": "short"}),
        ):
            with refused(code):
                site.broker.submit(request(site.cast, **changes))

    def test_root_and_system_and_unknown_accounts_are_refused(self, site: ContractSite) -> None:
        for code, user in (
            ("root_refused", "root"),
            ("system_account", "daemon"),
            ("unknown_user", "nosuchuser"),
            ("unknown_user", "-oProxy"),
        ):
            with refused(code):
                site.broker.submit(request(site.cast, user=user))
            with refused(code):
                site.broker.read_file("/home/x", user=user, offset=0, max_bytes=10)

    def test_a_folder_that_is_not_the_persons_is_refused(self, site: ContractSite) -> None:
        for code, folder in (
            ("folder_missing", "/home/nlp-1/nosuch"),
            ("folder_not_permitted", f"/home/{site.cast.other}"),
            ("folder_outside", "/etc"),
        ):
            with refused(code):
                site.broker.submit(request(site.cast, working_directory=folder))


class ActContract(Steps):
    """Acts on jobs that exist."""

    def test_a_waiting_job_is_held_and_released(self, site: ContractSite) -> None:
        first, second = self.waiting(site)
        site.broker.hold(second.job_id, user=site.cast.user)
        held = find_job(site.broker, second.job_id)
        assert held is not None
        # A hold by the person, which the person may lift; not an administrator's.
        assert (held.state, held.reason, held.priority) == ("PENDING", "JobHeldUser", 0)
        site.broker.release(second.job_id, user=site.cast.user)
        free = find_job(site.broker, second.job_id)
        assert free is not None
        assert free.reason != "JobHeldUser"
        self.cancel(site, second, first)

    def test_a_running_job_cannot_be_held(self, site: ContractSite) -> None:
        job = self.running(site)
        with refused("job_not_pending"):
            site.broker.hold(job.job_id, user=site.cast.user)
        self.cancel(site, job)

    def test_a_cancelled_job_says_so_and_cannot_be_cancelled_twice(
        self, site: ContractSite
    ) -> None:
        job = self.running(site)
        site.broker.cancel(job.job_id, user=site.cast.user)
        self.wait_for(site, job, "CANCELLED")
        for act in (site.broker.cancel, site.broker.hold):
            with refused("already_done"):
                act(job.job_id, user=site.cast.user)

    def test_a_requeued_job_waits_again_and_counts_it(self, site: ContractSite) -> None:
        job = self.running(site)
        site.broker.requeue(job.job_id, user=site.cast.user)

        def again() -> bool:
            queued = find_job(site.broker, job.job_id)
            return queued is not None and queued.restarts == 1 and queued.state == "PENDING"

        site.until(again, WAIT_SECONDS)
        with refused("job_pending"):
            site.broker.requeue(job.job_id, user=site.cast.user)
        self.cancel(site, job)

    def test_nobody_acts_on_a_job_of_someone_else(self, site: ContractSite) -> None:
        job = self.running(site)
        other = site.cast.other
        for act in (site.broker.cancel, site.broker.hold, site.broker.release, site.broker.requeue):
            with refused("not_owner"):
                act(job.job_id, user=other)
        with refused("not_owner"):
            site.broker.set_time_limit(job.job_id, user=other, minutes=1)
        assert state_of(site.broker, job.job_id) == "RUNNING"
        self.cancel(site, job)

    def test_a_job_that_is_not_there_is_refused(self, site: ContractSite) -> None:
        with refused("invalid_job_id"):
            site.broker.cancel(999_999, user=site.cast.user)

    def test_a_time_limit_goes_down_always_and_up_only_while_waiting(
        self, site: ContractSite
    ) -> None:
        user = site.cast.user
        first, second = self.waiting(site)
        site.broker.set_time_limit(first.job_id, user=user, minutes=3)
        with refused("time_limit_raise"):
            site.broker.set_time_limit(first.job_id, user=user, minutes=9)
        site.broker.set_time_limit(second.job_id, user=user, minutes=9)
        with refused("time_limit_raise"):
            site.broker.set_time_limit(second.job_id, user=user, minutes=60 * 24 * 365)
        limits = {job.job_id: job.time_limit_minutes for job in site.broker.queue().jobs}
        assert (limits[first.job_id], limits[second.job_id]) == (3, 9)
        self.cancel(site, second, first)


class FileContract(Steps):
    """Files, as their owner."""

    def test_a_file_is_read_and_followed(self, site: ContractSite) -> None:
        user, path = site.cast.user, f"/home/{site.cast.user}/follow.txt"
        site.write(path, user, "one\n两\n")
        first = site.broker.read_file(path, user=user, offset=0, max_bytes=6)
        # The third line's character is cut after two of its three bytes: left for later.
        assert (first.text, first.next_offset, first.size) == ("one\n", 4, 8)
        rest = site.broker.read_file(path, user=user, offset=4, max_bytes=100)
        assert (rest.text, rest.next_offset) == ("两\n", 8)
        end = site.broker.read_file(path, user=user, offset=8, max_bytes=100)
        assert (end.text, end.next_offset) == ("", 8)
        tail = site.broker.read_file(path, user=user, offset=-1, max_bytes=100)
        assert (tail.text, tail.offset) == ("\n", 7)

    def test_what_is_not_the_persons_is_not_read(self, site: ContractSite) -> None:
        user, other = site.cast.user, site.cast.other
        site.write(f"/home/{other}/secret", other, "secret")
        site.link(f"/home/{user}/to-shadow", user, "/etc/shadow")
        site.link(f"/home/{user}/to-secret", user, f"/home/{other}/secret")
        for code, path in (
            ("file_outside", "/etc/shadow"),
            ("file_outside", f"/home/{user}/to-shadow"),
            ("file_not_permitted", f"/home/{other}/secret"),
            ("file_not_permitted", f"/home/{user}/to-secret"),
            ("file_missing", f"/home/{user}/nosuch"),
            ("file_missing", "relative"),
            ("file_not_regular", f"/home/{user}"),
        ):
            with refused(code):
                site.broker.read_file(path, user=user, offset=0, max_bytes=100)

    def test_a_fifo_does_not_hang_the_reader(self, site: ContractSite) -> None:
        path = f"/home/{site.cast.user}/fifo"
        site.fifo(path, site.cast.user)
        with refused("file_not_regular"):
            site.broker.read_file(path, user=site.cast.user, offset=0, max_bytes=100)

    def test_a_folder_is_judged_with_the_persons_rights(self, site: ContractSite) -> None:
        user = site.cast.user
        own = site.broker.check_folder(f"/home/{user}", user=user)
        assert (own.problem, own.writable) == (None, True)
        site.write(f"/home/{user}/plain", user, "")
        site.link(f"/home/{user}/to-etc", user, "/etc")
        for problem, path in (
            ("missing", f"/home/{user}/nosuch"),
            ("not_a_folder", f"/home/{user}/plain"),
            ("not_permitted", f"/home/{site.cast.other}"),
            ("outside", "/etc"),
            ("outside", f"/home/{user}/to-etc"),
        ):
            found = site.broker.check_folder(path, user=user)
            assert (found.problem, found.writable) == (problem, False), path


class AccountingContract(Steps):
    """What remains of jobs."""

    def test_an_ended_run_is_in_accounting_with_its_times(self, site: ContractSite) -> None:
        job = self.running(site, nodes=2, gpus_per_node=2)
        site.end(job.job_id)
        self.wait_for(site, job, "COMPLETED")
        site.until(lambda: self._ended(site, job), WAIT_SECONDS)
        (run,) = self.runs_of(site, job)
        assert (run.user, run.account, run.state) == ("nlp-1", "nlp", "COMPLETED")
        assert run.uid is not None
        assert (run.nodes, run.exit_code, run.exit_signal) == (2, 0, None)
        assert {"gres/gpu=4", "gres/gpu:a100=4"} <= set(run.alloc_tres.split(","))
        assert run.start_time is not None
        assert run.end_time is not None
        assert run.eligible_time is not None
        # Queue wait is start minus eligible; nothing here made it wait by its own doing.
        assert run.submit_time <= run.eligible_time <= run.start_time <= run.end_time
        assert run.elapsed_seconds == int((run.end_time - run.start_time).total_seconds())

    def test_each_run_of_a_requeued_job_is_kept(self, site: ContractSite) -> None:
        job = self.running(site)
        site.broker.requeue(job.job_id, user=site.cast.user)
        self.wait_for(site, job, "PENDING")
        self.cancel(site, job)
        site.until(lambda: len(self.runs_of(site, job)) == 2, WAIT_SECONDS)
        site.until(lambda: self._ended(site, job), WAIT_SECONDS)
        first, second = sorted(self.runs_of(site, job), key=lambda run: run.submit_time)
        assert first.state == "REQUEUED", first
        assert first.start_time is not None
        assert (second.state, second.start_time, second.alloc_tres) == ("CANCELLED", None, "")
        assert second.restarts == 1

    def test_a_job_cancelled_while_held_is_not_missing(self, site: ContractSite) -> None:
        first, second = self.waiting(site)
        site.broker.hold(second.job_id, user=site.cast.user)
        self.cancel(site, second, first)
        site.until(lambda: self._ended(site, second), WAIT_SECONDS)
        (run,) = self.runs_of(site, second)
        assert (run.state, run.start_time, run.elapsed_seconds) == ("CANCELLED", None, 0)

    def test_a_job_that_slurmctld_forgot_is_found_by_token(self, site: ContractSite) -> None:
        asked = request(site.cast)
        job = site.broker.submit(asked)
        self.wait_for(site, job, "RUNNING")
        self.cancel(site, job)
        site.until(lambda: self._ended(site, job), WAIT_SECONDS)
        since = job.submit_time - timedelta(minutes=1)
        found = site.broker.find(asked.token, user=asked.user, since=since)
        assert found is not None
        assert (found.job_id, found.gpus) == (job.job_id, 1)

    def _ended(self, site: ContractSite, job: m.AcceptedJob) -> bool:
        runs = self.runs_of(site, job)
        return bool(runs) and all(run.end_time is not None for run in runs)


class SiteContract(Steps):
    """What the cluster is."""

    def test_nodes_count_gpus_free_and_used(self, site: ContractSite) -> None:
        job = self.running(site, nodes=1, gpus_per_node=2)
        nodes = [n for n in site.broker.nodes() if site.cast.partition in n.partitions]
        assert len(nodes) == site.cast.nodes
        assert {(n.gpus, n.gpu_type) for n in nodes} == {(8, "a100")}
        assert sum(n.gpus_used for n in nodes) == 2
        assert {re.split(r"[+*]", n.state)[0] for n in nodes} <= {"IDLE", "MIXED"}
        self.cancel(site, job)

    def test_partitions_tell_their_limits(self, site: ContractSite) -> None:
        found = {partition.name: partition for partition in site.broker.partitions()}
        assert found["a100"].is_default
        assert found["a100"].gpu_types == ("a100",)
        assert found["a100"].nodes == 4
        assert found["debug"].max_time_minutes == 30
        assert all(partition.state == "UP" for partition in found.values())

    def test_associations_tell_who_may_charge_what(self, site: ContractSite) -> None:
        found = site.broker.associations()
        mine = [a for a in found if a.user == site.cast.user]
        assert [a.account for a in mine] == ["nlp"]
        assert {"normal", "spot"} <= set(mine[0].qos)
        assert mine[0].is_default_account
        assert not mine[0].is_coordinator
        (leader,) = [a for a in found if a.user == "nlp-lead"]
        assert leader.is_coordinator
        (limited,) = [a for a in found if a.user == site.cast.other]
        assert limited.group_max_gpus == 16

    def test_qos_tell_their_priority_and_price_factor(self, site: ContractSite) -> None:
        found = {qos.name: qos for qos in site.broker.qos()}
        assert found["spot"].usage_factor_millionths == 820_000
        assert found["normal"].usage_factor_millionths == 1_000_000
        assert found["urgent"].priority > found["normal"].priority > found["spot"].priority
        assert "spot" in found["normal"].preempts
        assert found["urgent"].max_gpus_per_user == 8

    def test_an_estimate_says_when_or_why_not(self, site: ContractSite) -> None:
        found = site.broker.estimate(request(site.cast))
        assert found.start_time is not None
        assert abs(found.start_time - site.now()) < timedelta(minutes=10)
        with refused("invalid_qos"):
            site.broker.estimate(request(site.cast, qos="nosuch"))
        with refused("invalid_account"):
            site.broker.estimate(request(site.cast, account=site.cast.other_account))
        before = len(site.broker.queue().jobs)
        site.broker.estimate(request(site.cast))
        assert len(site.broker.queue().jobs) == before


class BrokerContract(SubmitContract, ActContract, FileContract, AccountingContract, SiteContract):
    """All of it."""
