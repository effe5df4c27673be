"""The part of FakeBroker that keeps groups without credit from starting jobs."""

from dataclasses import replace

from gateway.broker.limits import check
from gateway.core.arrays import parse_array
from gateway.errors import BrokerRefused
from gateway.testing import fakejobs
from gateway.testing.fakecluster import FakeCluster
from gateway.testing.fakejobs import FakeJob
from gateway.wire import messages as m


class FakeGate(FakeCluster):
    """Limits of associations, holds that the owner cannot lift, and what is counted."""

    def group_limits(self) -> tuple[m.GroupLimits, ...]:
        self._ask("group-limits")
        return tuple(self.limits.values())

    def set_group_limits(self, request: m.SetGroupLimits) -> m.GroupLimits:
        return self._act("set-group-limits", lambda: self._set_limits(request))

    def hold_admin(self, job_id: int, *, user: str) -> None:
        def act() -> None:
            job = self._pending(job_id, user)
            if job.eligible is None:
                code = "held_by_admin" if job.held_by_admin else "held_by_owner"
                raise BrokerRefused(str(job_id), code=code)
            for one in self._alike(job):
                one.eligible, one.held_by_admin = None, True

        self._act("hold-admin", act)

    def release_admin(self, job_id: int, *, user: str) -> None:
        def act() -> None:
            job = self._own(job_id, user)
            if job.ended:
                raise BrokerRefused(job.state, code="already_done")
            if not job.held_by_admin:
                raise BrokerRefused(str(job_id), code="not_held_by_admin")
            for one in self._alike(job):
                one.eligible, one.held_by_admin = self.now, False
            self._tick()

        self._act("release-admin", act)

    def accounting_facts(self) -> m.AccountingFacts:
        self._ask("accounting-facts")
        return self.facts

    # --- inside ---

    def _pending(self, job_id: int, user: str) -> FakeJob:
        job = self._own(job_id, user)
        if job.state != "PENDING":
            code = "already_done" if job.ended else "job_not_pending"
            raise BrokerRefused(job.state, code=code)
        return job

    def _set_limits(self, asked: m.SetGroupLimits) -> m.GroupLimits:
        check(asked, cluster="fake")
        if (asked.account, None) not in self.limits:
            raise BrokerRefused(asked.account, code="no_such_account")
        before = self.limits.get((asked.account, asked.user))
        if before is None:
            raise BrokerRefused(str(asked.user), code="no_such_association")
        kept = [
            pair
            for pair in before.grp_run_minutes_text.split(",")
            if pair and not pair.startswith("gres/gpu=")
        ]
        if asked.grp_gpu_run_minutes is not None:
            kept.append(f"gres/gpu={asked.grp_gpu_run_minutes}")
        after = replace(
            before,
            grp_submit_jobs=asked.grp_submit_jobs,
            grp_gpu_run_minutes=asked.grp_gpu_run_minutes,
            grp_run_minutes_text=",".join(kept),
        )
        self.limits[(asked.account, asked.user)] = after
        self._tick()
        return after

    def _require_submit_room(self, request: m.SubmitRequest) -> None:
        for limits in fakejobs.limits_of(self.limits, request):
            most = limits.grp_submit_jobs
            there = [
                job
                for job in self.jobs.values()
                if not job.ended and fakejobs.is_below(job.request, limits)
            ]
            tasks = parse_array(request.array).at_least if request.array else 1
            if most is not None and len(there) + tasks > most:
                raise BrokerRefused("AssocGrpSubmitJobsLimit", code="group_submit_limit")
