"""Promises about jobs: submitting, acting on them, and what remains in accounting."""

import uuid
from datetime import timedelta
from typing import Any

from gateway.testing.contract_steps import (
    WAIT_SECONDS,
    ContractSite,
    Steps,
    find_job,
    refused,
    request,
    state_of,
)
from gateway.wire import messages as m


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

    def test_an_array_is_as_many_tasks_as_were_asked_for(self, site: ContractSite) -> None:
        output = f"/home/{site.cast.user}/contract-%A_%a.log"
        asked = request(site.cast, array="0-2%2", output=output)
        job = site.broker.submit(asked)
        assert (job.array_tasks, job.nodes, job.gpus) == (3, 1, 1)
        site.until(lambda: len(self._running(site, job)) == 2, WAIT_SECONDS)
        # Two at a time, though the nodes have room for all; the third waits in the array's record.
        waiting = find_job(site.broker, job.job_id)
        assert waiting is not None
        assert (waiting.state, waiting.array_tasks, waiting.array_task) == ("PENDING", 1, None)
        assert waiting.output == output.replace("%A", str(job.job_id))  # no task's number yet
        running = self._running(site, job)
        assert sorted(one.array_task or 0 for one in running) == [0, 1]
        assert {one.output for one in running} == {
            f"/home/{site.cast.user}/contract-{job.job_id}_{task}.log" for task in (0, 1)
        }
        assert {one.comment for one in running} == {f"sluice:{asked.token}"}
        found = site.broker.find(asked.token, user=asked.user, since=job.submit_time)
        assert found is not None
        assert found.job_id == job.job_id
        assert site.broker.submit(asked).job_id == job.job_id
        for one in [*running, waiting]:
            site.broker.cancel(one.job_id, user=asked.user)
        site.until(lambda: not self._running(site, job), WAIT_SECONDS)
        self.cancel(site, job)

    def _running(self, site: ContractSite, job: m.AcceptedJob) -> list[m.QueueJob]:
        jobs = site.broker.queue().jobs
        return [one for one in jobs if one.array_job_id == job.job_id and one.state == "RUNNING"]

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
            ("invalid_array", {"array": "0-99999"}),
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


class AfterContract(Steps):
    """A job that may start only when another has ended well."""

    def test_it_waits_for_the_other_and_then_runs(self, site: ContractSite) -> None:
        first = self.running(site)
        second = site.broker.submit(request(site.cast, after_ok=first.job_id))
        site.until(lambda: self._reason(site, second) == "Dependency", WAIT_SECONDS)
        site.end(first.job_id)
        self.wait_for(site, first, "COMPLETED")
        self.wait_for(site, second, "RUNNING", seconds=2 * WAIT_SECONDS)
        self.cancel(site, second)

    def test_it_never_runs_when_the_other_has_failed(self, site: ContractSite) -> None:
        first = self.running(site)
        second = site.broker.submit(request(site.cast, after_ok=first.job_id))
        site.broker.cancel(first.job_id, user=site.cast.user)
        self.wait_for(site, first, "CANCELLED")
        site.until(
            lambda: self._reason(site, second) == "DependencyNeverSatisfied", 2 * WAIT_SECONDS
        )
        self.cancel(site, second)

    def test_a_job_that_is_not_there_cannot_be_waited_for(self, site: ContractSite) -> None:
        with refused("invalid_dependency"):
            site.broker.submit(request(site.cast, after_ok=999_999))

    def _reason(self, site: ContractSite, job: m.AcceptedJob) -> str | None:
        found = find_job(site.broker, job.job_id)
        return found.reason if found is not None and found.state == "PENDING" else None


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

    def test_an_array_is_cancelled_whole_by_its_owner_alone(self, site: ContractSite) -> None:
        output = f"/home/{site.cast.user}/contract-%A_%a.log"
        array = site.broker.submit(request(site.cast, array="0-2%2", output=output))

        def states() -> list[str]:
            jobs = site.broker.queue().jobs
            return sorted(one.state for one in jobs if one.array_job_id == array.job_id)

        site.until(lambda: states() == ["PENDING", "RUNNING", "RUNNING"], WAIT_SECONDS)
        with refused("not_owner"):
            site.broker.cancel_array(array.job_id, user=site.cast.other)
        site.broker.cancel_array(array.job_id, user=site.cast.user)
        site.until(lambda: set(states()) == {"CANCELLED"}, WAIT_SECONDS)
        with refused("already_done"):
            site.broker.cancel_array(array.job_id, user=site.cast.user)
        alone = self.running(site)
        with refused("invalid_job_id"):
            site.broker.cancel_array(alone.job_id, user=site.cast.user)
        self.cancel(site, alone)

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

    def test_a_running_job_is_extended_by_the_broker_up_to_the_partitions_limit(
        self, site: ContractSite
    ) -> None:
        user = site.cast.user
        first, second = self.waiting(site)
        site.broker.extend(first.job_id, user=user, minutes=9)
        with refused("invalid_time_limit"):
            site.broker.extend(first.job_id, user=user, minutes=8)
        with refused("time_limit_raise"):
            site.broker.extend(first.job_id, user=user, minutes=60 * 24 * 365)
        with refused("job_not_running"):
            site.broker.extend(second.job_id, user=user, minutes=9)
        with refused("not_owner"):
            site.broker.extend(first.job_id, user=site.cast.other, minutes=10)
        limits = {job.job_id: job.time_limit_minutes for job in site.broker.queue().jobs}
        assert (limits[first.job_id], limits[second.job_id]) == (9, 5)
        self.cancel(site, second, first)


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
