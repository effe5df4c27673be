"""Promises of the gate: limits of associations, holds that the owner cannot lift, facts."""

from collections.abc import Iterator
from contextlib import contextmanager

from gateway.brokerclient.port import Broker
from gateway.testing.contract_steps import (
    WAIT_SECONDS,
    ContractSite,
    Steps,
    find_job,
    refused,
    request,
)
from gateway.wire import messages as m

OVER_MINUTES = "AssocGrpGRESRunMinutes"


def ask(
    account: str, user: str | None = None, *, submit: int | None = None, minutes: int | None = None
) -> m.SetGroupLimits:
    return m.SetGroupLimits(account, user, submit, minutes)


def limits_now(broker: Broker, account: str, user: str | None = None) -> m.GroupLimits:
    (found,) = [x for x in broker.group_limits() if (x.account, x.user) == (account, user)]
    return found


@contextmanager
def restored(broker: Broker, account: str, user: str | None = None) -> Iterator[None]:
    """Both limits are gone again after the block, whatever happens in it."""
    try:
        yield
    finally:
        broker.set_group_limits(ask(account, user))


class LimitContract(Steps):
    """What a group, and a member of it, may still put in and start."""

    def test_limits_are_listed_for_accounts_and_their_users(self, site: ContractSite) -> None:
        found = site.broker.group_limits()
        mine = {one.user for one in found if one.account == site.cast.account}
        assert {None, site.cast.user} <= mine
        (own,) = [x for x in found if (x.account, x.user) == (site.cast.account, None)]
        assert own == m.GroupLimits(site.cast.account, None, None, None, None, None, "")

    def test_a_write_answers_with_what_slurm_has_now(self, site: ContractSite) -> None:
        account = site.cast.account
        with restored(site.broker, account):
            for submit, minutes in ((0, 60), (5, 60), (5, None), (None, 0), (None, None)):
                got = site.broker.set_group_limits(ask(account, submit=submit, minutes=minutes))
                assert (got.account, got.user) == (account, None)
                assert (got.grp_submit_jobs, got.grp_gpu_run_minutes) == (submit, minutes)
                assert got == limits_now(site.broker, account)
            same = site.broker.set_group_limits(ask(account))
            assert same == limits_now(site.broker, account)

    def test_a_members_limits_are_the_members_alone(self, site: ContractSite) -> None:
        account, user = site.cast.account, site.cast.user
        with restored(site.broker, account, user):
            got = site.broker.set_group_limits(ask(account, user, submit=0, minutes=30))
            assert (got.user, got.grp_submit_jobs, got.grp_gpu_run_minutes) == (user, 0, 30)
            with refused("group_submit_limit"):
                site.broker.submit(request(site.cast))
            assert limits_now(site.broker, account).grp_submit_jobs is None
            colleague = limits_now(site.broker, account, "nlp-2")
            assert (colleague.grp_submit_jobs, colleague.grp_gpu_run_minutes) == (None, None)
        self.cancel(site, self.running(site))

    def test_names_that_are_none_are_refused_before_anything_is_sent(
        self, site: ContractSite
    ) -> None:
        before = site.broker.group_limits()
        account = site.cast.account
        for code, asked in (
            ("bad_account", ask("", submit=0)),
            ("bad_account", ask("nlp,vision", submit=0)),
            ("bad_account", ask("nlp-[1-2]", submit=0)),
            ("bad_account", ask("a'--", submit=0)),
            ("bad_account", ask("nlp\n", submit=0)),
            ("bad_user", ask(account, "", submit=0)),
            ("bad_user", ask(account, "nlp-1 account=vision", submit=0)),
            ("root_account_refused", ask("root", submit=0)),
            ("no_such_account", ask("nlp_gruop", submit=0)),
            ("no_such_account", ask(account.upper(), submit=0)),
            ("no_such_association", ask(account, site.cast.other, submit=0)),
            ("bad_limit", ask(account, submit=-1)),
            ("bad_limit", ask(account, minutes=-1)),
            ("bad_limit", ask(account, submit=2**32)),
        ):
            with refused(code):
                site.broker.set_group_limits(asked)
        assert site.broker.group_limits() == before

    def test_a_closed_group_puts_nothing_in_and_loses_nothing(self, site: ContractSite) -> None:
        account = site.cast.account
        first, second = self.waiting(site)
        with restored(site.broker, account):
            site.broker.set_group_limits(ask(account, submit=0))
            with refused("group_submit_limit"):
                site.broker.submit(request(site.cast))
            self.cancel(site, first)
            self.wait_for(site, second, "RUNNING")
            site.broker.set_group_limits(ask(account, submit=0, minutes=0))
            with refused("group_submit_limit"):
                site.broker.submit(request(site.cast))
        still = find_job(site.broker, second.job_id)
        assert still is not None
        assert still.state == "RUNNING"
        self.cancel(site, second)
        self.cancel(site, self.running(site))

    def test_without_minutes_a_job_waits_and_says_why(self, site: ContractSite) -> None:
        account = site.cast.account
        with restored(site.broker, account):
            site.broker.set_group_limits(ask(account, minutes=60))
            job = site.broker.submit(request(site.cast, gpus_per_node=2, time_limit_minutes=60))

            def says_why() -> bool:
                queued = find_job(site.broker, job.job_id)
                return queued is not None and queued.reason == OVER_MINUTES

            site.until(says_why, WAIT_SECONDS)
            fits = self.running(site, time_limit_minutes=30)
            self.cancel(site, fits)
        self.wait_for(site, job, "RUNNING")
        self.cancel(site, job)


class AdminHoldContract(Steps):
    """Holds that the owner cannot lift."""

    def test_its_owner_cannot_lift_it_and_a_repeat_says_so(self, site: ContractSite) -> None:
        user = site.cast.user
        first, second = self.waiting(site)
        site.broker.hold_admin(second.job_id, user=user)
        held = find_job(site.broker, second.job_id)
        assert held is not None
        assert (held.state, held.reason, held.priority) == ("PENDING", "JobHeldAdmin", 0)
        for act in (site.broker.release, site.broker.hold_admin):
            with refused("held_by_admin"):
                act(second.job_id, user=user)
        site.broker.release_admin(second.job_id, user=user)
        free = find_job(site.broker, second.job_id)
        assert free is not None
        assert free.reason not in ("JobHeldAdmin", "JobHeldUser")
        with refused("not_held_by_admin"):
            site.broker.release_admin(second.job_id, user=user)
        self.cancel(site, second, first)

    def test_the_owners_own_hold_stays_the_owners(self, site: ContractSite) -> None:
        user = site.cast.user
        first, second = self.waiting(site)
        site.broker.hold(second.job_id, user=user)
        with refused("held_by_owner"):
            site.broker.hold_admin(second.job_id, user=user)
        with refused("not_held_by_admin"):
            site.broker.release_admin(second.job_id, user=user)
        held = find_job(site.broker, second.job_id)
        assert held is not None
        assert held.reason == "JobHeldUser"
        site.broker.release(second.job_id, user=user)
        self.cancel(site, second, first)

    def test_only_waiting_jobs_of_the_named_owner(self, site: ContractSite) -> None:
        job = self.running(site)
        for act in (site.broker.hold_admin, site.broker.release_admin):
            with refused("not_owner"):
                act(job.job_id, user=site.cast.other)
            with refused("invalid_job_id"):
                act(999_999, user=site.cast.user)
        with refused("job_not_pending"):
            site.broker.hold_admin(job.job_id, user=site.cast.user)
        with refused("not_held_by_admin"):
            site.broker.release_admin(job.job_id, user=site.cast.user)
        self.cancel(site, job)
        for act in (site.broker.hold_admin, site.broker.release_admin):
            with refused("already_done"):
                act(job.job_id, user=site.cast.user)


class FactsContract(Steps):
    def test_the_facts_tell_what_is_counted_and_enforced(self, site: ContractSite) -> None:
        facts = site.broker.accounting_facts()
        assert {"gres/gpu", "gres/gpu:a100"} <= set(facts.tracked)
        assert {"associations", "limits", "qos"} <= set(facts.enforced)
        assert facts.priority_decay_half_life_seconds == 7 * 86400
        assert facts.overriding_qos == ()


class GateContract(LimitContract, AdminHoldContract, FactsContract):
    """All of it."""
