"""Promises about people of accounts, and about who stands before whom."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gateway.brokerclient.port import Broker
from gateway.errors import BrokerRefused
from gateway.testing.contract_steps import ContractSite, Steps, refused, request
from gateway.wire import messages as m
from gateway.wire import policy as p


def associations_of(broker: Broker, account: str, user: str) -> list[m.Association]:
    found = broker.associations()
    return [one for one in found if (one.account, one.user) == (account, user)]


@contextmanager
def guest(site: ContractSite) -> Iterator[tuple[str, str]]:
    """Somebody of another account, in this one for the block: (account, user)."""
    account, user = site.cast.account, site.cast.other
    site.broker.add_member(account, user)
    try:
        yield account, user
    finally:
        site.broker.set_member(p.SetMember(site.cast.other_account, user, is_default=True))
        with suppress(BrokerRefused):  # the test may have removed them
            site.broker.remove_member(account, user)


class MemberContract(Steps):
    """Who is in which account, leads it, has it as the default, and may put jobs in."""

    def test_who_is_added_may_use_the_account_and_is_added_once(self, site: ContractSite) -> None:
        with guest(site) as (account, user):
            again = site.broker.add_member(account, user)
            assert again == p.Membership(account, user, ("",), False, False, closed=False)
            (mine,) = associations_of(site.broker, account, user)
            (other,) = associations_of(site.broker, account, site.cast.user)
            assert (mine.partition, mine.qos) == (None, other.qos)
            assert not mine.is_default_account
            assert not mine.is_coordinator
        assert associations_of(site.broker, account, user) == []
        with refused("invalid_account"):
            site.broker.submit(request(site.cast, user=user, working_directory=f"/home/{user}"))

    def test_who_is_closed_puts_nothing_in(self, site: ContractSite) -> None:
        with guest(site) as (account, user):
            shut = site.broker.set_member(p.SetMember(account, user, closed=True))
            assert shut.closed
            mine = request(site.cast, user=user, working_directory=f"/home/{user}")
            with refused("association_submit_limit"):
                site.broker.submit(mine)
            assert site.broker.add_member(account, user).closed
            again = site.broker.set_member(p.SetMember(account, user, closed=False))
            assert not again.closed
        colleague = associations_of(site.broker, account, site.cast.user)
        assert [one.max_submit_jobs for one in colleague] == [None]

    def test_who_has_jobs_is_not_removed(self, site: ContractSite) -> None:
        with guest(site) as (account, user):
            asked = request(site.cast, user=user, working_directory=f"/home/{user}")
            job = site.broker.submit(asked)
            with refused("member_has_jobs"):
                site.broker.remove_member(account, user)
            site.broker.cancel(job.job_id, user=user)
            self.wait_for(site, job, "CANCELLED", "GONE")

            def removed() -> bool:
                with suppress(BrokerRefused):
                    return site.broker.remove_member(account, user).partitions == ()
                return False

            # Accounting hears of an end a moment later.
            site.until(removed, 30)

    def test_the_default_account_stays_until_another_is_it(self, site: ContractSite) -> None:
        home = site.cast.other_account
        with guest(site) as (account, user):
            chosen = site.broker.set_member(p.SetMember(account, user, is_default=True))
            assert chosen.is_default
            assert not associations_of(site.broker, home, user)[0].is_default_account
            with refused("member_default_account"):
                site.broker.remove_member(account, user)
            assert site.broker.set_member(p.SetMember(home, user, is_default=True)).is_default
            gone = site.broker.remove_member(account, user)
            assert gone == p.Membership(account, user, (), False, False, closed=False)

    def test_who_leaves_leads_no_more(self, site: ContractSite) -> None:
        """Slurm would keep a coordinator who has no association any more."""
        with guest(site) as (account, user):
            leads = site.broker.set_member(p.SetMember(account, user, is_coordinator=True))
            assert leads.is_coordinator
            assert associations_of(site.broker, account, user)[0].is_coordinator
            assert not site.broker.remove_member(account, user).is_coordinator
            assert not site.broker.add_member(account, user).is_coordinator
            site.broker.set_member(p.SetMember(account, user, is_coordinator=True))
            not_any_more = p.SetMember(account, user, is_coordinator=False)
            assert not site.broker.set_member(not_any_more).is_coordinator

    def test_whom_there_is_not_is_refused_and_nothing_is_sent(self, site: ContractSite) -> None:
        before, account = site.broker.associations(), site.cast.account
        for code, group, user in (
            ("bad_account", "", site.cast.other),
            ("bad_account", f"{account},biolab", site.cast.other),
            ("bad_account", account.upper(), site.cast.other),
            ("bad_account", "a'--", site.cast.other),
            ("root_account_refused", "root", site.cast.other),
            ("bad_user", account, ""),
            ("bad_user", account, f"{site.cast.other},nlp-2"),
            ("bad_user", account, "nlp-[1-2]"),
            ("bad_user", account, "x partition=debug"),
        ):
            with refused(code):
                site.broker.add_member(group, user)
            with refused(code):
                site.broker.remove_member(group, user)
            with refused(code):
                site.broker.set_member(p.SetMember(group, user, closed=True))
        for code, group, user in (
            ("unknown_user", account, "nobody-here"),
            ("unknown_user", account, site.cast.other.upper()),
            ("system_account", account, "daemon"),
            ("root_refused", account, "root"),
            ("no_such_account", "nlp_gruop", site.cast.other),
        ):
            with refused(code):
                site.broker.add_member(group, user)
        for user in (site.cast.other, "nobody-here"):
            with refused("no_such_association"):
                site.broker.remove_member(account, user)
            with refused("no_such_association"):
                site.broker.set_member(p.SetMember(account, user, is_default=True))
        assert site.broker.associations() == before


class PriorityContract(Steps):
    """What each factor gives a waiting job."""

    def test_a_job_that_waits_has_factors_and_a_held_one_has_none(self, site: ContractSite) -> None:
        first, second = self.waiting(site)
        held = site.broker.submit(request(site.cast))
        site.broker.hold(held.job_id, user=site.cast.user)
        found: list[p.PriorityFactors] = []

        def seen() -> bool:
            found[:] = site.broker.priorities().jobs
            return {one.job_id for one in found} == {second.job_id}

        site.until(seen, 30)
        (one,) = found
        assert (one.user, one.account) == (site.cast.user, site.cast.account)
        assert (one.partition, one.qos) == (site.cast.partition, site.cast.qos)
        weights = site.broker.priorities().weights
        assert weights.qos > 0
        assert 0 < one.of_qos <= weights.qos
        parts = one.site + one.age + one.association + one.fair_share + one.job_size
        assert abs(parts + one.of_partition + one.of_qos - one.nice - one.priority) <= 3
        self.cancel(site, first, second, held)
