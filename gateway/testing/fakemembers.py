"""The part of FakeBroker that keeps people of accounts, priorities and reservations."""

from dataclasses import replace

from gateway.broker.members import check
from gateway.errors import BrokerRefused
from gateway.testing import fakejobs
from gateway.testing.fakegate import FakeGate
from gateway.wire import messages as m
from gateway.wire import policy as p

_WEIGHTS = p.PriorityWeights(1000, 0, 10000, 0, 0, 100000, "")
_NOT_YET = frozenset({"JobHeldUser", "JobHeldAdmin", "BeginTime", "Dependency"})


class FakeMembers(FakeGate):
    """Who is in which account, and who stands before whom."""

    def fair_shares(self) -> tuple[p.FairShare, ...]:
        self._ask("fair-shares")
        return self.policy.fair_share

    def priorities(self) -> p.Priorities:
        self._ask("priorities")
        kept = [job for job in self.jobs.values() if fakejobs.is_in_queue(job, self.now)]
        seen = [fakejobs.queue_job(*record) for record in fakejobs.listed(kept)]
        waiting = [job for job in seen if job.state == "PENDING" and job.reason not in _NOT_YET]
        return p.Priorities(_WEIGHTS, tuple(self._factors(job) for job in waiting))

    def reservations(self) -> tuple[p.Reservation, ...]:
        self._ask("reservations")
        return self.policy.reservations

    def add_member(self, account: str, user: str) -> p.Membership:
        return self._act("add-member", lambda: self._add(account, user))

    def remove_member(self, account: str, user: str) -> p.Membership:
        return self._act("remove-member", lambda: self._remove(account, user))

    def set_member(self, request: p.SetMember) -> p.Membership:
        return self._act("set-member", lambda: self._set_member(request))

    # --- inside ---

    def _account(self, name: str) -> p.Account:
        if name not in self.policy.accounts:
            raise BrokerRefused(name, code="no_such_account")
        return self.policy.accounts[name]

    def _add(self, account: str, user: str) -> p.Membership:
        check(account, user, cluster="fake")
        self._person(user)
        self._account(account)
        key = (account, user)
        if key not in self.policy.members:
            first = all(one.user != user for one in self.policy.members.values())
            leads = user in self.policy.accounts[account].coordinators
            self.policy.members[key] = p.Membership(account, user, (), leads, first, closed=False)
            self.limits[key] = m.GroupLimits(account, user, None, None, None, None, "")
        one = self.policy.members[key]
        if "" not in one.partitions:
            places = sorted({*one.partitions, *self._places(account, user)})
            one = self.policy.members[key] = replace(one, partitions=tuple(places))
        return one

    def _places(self, account: str, user: str) -> set[str]:
        others = [one for one in self.policy.members.values() if one.account == account]
        taken = {place for one in others if one.user != user for place in one.partitions}
        return {""} if "" in taken or not taken else taken

    def _remove(self, account: str, user: str) -> p.Membership:
        one = self._member(account, user)
        open_jobs = [job for job in self.jobs.values() if not job.ended]
        if any((job.request.account, job.request.user) == (account, user) for job in open_jobs):
            raise BrokerRefused(user, code="member_has_jobs")
        others = [o for o in self.policy.members.values() if o.user == user and o != one]
        if one.is_default and others:
            raise BrokerRefused(user, code="member_default_account")
        self._set_leads(account, user, leads=False)
        del self.policy.members[(account, user)], self.limits[(account, user)]
        return p.Membership(account, user, (), is_coordinator=False, is_default=False, closed=False)

    def _set_member(self, asked: p.SetMember) -> p.Membership:
        one = self._member(asked.account, asked.user)
        if asked.is_coordinator is not None:
            self._set_leads(asked.account, asked.user, leads=asked.is_coordinator)
            one = replace(one, is_coordinator=asked.is_coordinator)
        if asked.closed is not None:
            one = replace(one, closed=asked.closed)
        if asked.is_default:
            for key, other in list(self.policy.members.items()):
                if other.user == asked.user:
                    self.policy.members[key] = replace(other, is_default=False)
            one = replace(one, is_default=True)
        self.policy.members[(asked.account, asked.user)] = one
        return one

    def _member(self, account: str, user: str) -> p.Membership:
        check(account, user, cluster="fake")
        self._account(account)
        if (account, user) not in self.policy.members:
            raise BrokerRefused(user, code="no_such_association")
        return self.policy.members[(account, user)]

    def _set_leads(self, account: str, user: str, *, leads: bool) -> None:
        before = self.policy.accounts[account]
        others = tuple(name for name in before.coordinators if name != user)
        now = tuple(sorted((*others, user))) if leads else others
        self.policy.accounts[account] = replace(before, coordinators=now)

    def _factors(self, job: m.QueueJob) -> p.PriorityFactors:
        top = max((one.priority for one in self.policy.qos.values()), default=1) or 1
        level = self.policy.qos.get(job.qos)
        of_qos = _WEIGHTS.qos * (level.priority if level else 0) // top
        return p.PriorityFactors(
            job_id=job.job_id,
            user=job.user,
            account=job.account,
            partition=job.partition,
            qos=job.qos,
            priority=of_qos,
            site=0,
            age=0,
            association=0,
            fair_share=0,
            job_size=0,
            of_partition=0,
            of_qos=of_qos,
            nice=0,
            tres="",
        )
