"""The part of FakeBroker that keeps QoS, accounts and their people."""

from dataclasses import replace

from gateway.core.qos import Policy
from gateway.core.qos_checks import problems
from gateway.core.tres import GPU
from gateway.errors import BrokerRefused
from gateway.testing.fakegate import FakeGate
from gateway.wire import messages as m
from gateway.wire import policy as p

_WEIGHTS = p.PriorityWeights(1000, 0, 10000, 0, 0, 100000, "")


class FakePolicy(FakeGate):
    """QoS, group policies, shares, people, priorities and reservations."""

    def associations(self) -> tuple[m.Association, ...]:
        self._ask("associations")
        return tuple(self._association(one) for one in self.policy.members.values())

    def qos(self) -> tuple[m.Qos, ...]:
        self._ask("qos")
        return tuple(self.policy.qos.values())

    def set_qos(self, request: p.SetQos) -> m.Qos:
        return self._act("set-qos", lambda: self._set_qos(request))

    def accounts(self) -> tuple[p.Account, ...]:
        self._ask("accounts")
        return tuple(self.policy.accounts.values())

    def set_group_policy(self, request: p.SetGroupPolicy) -> p.Account:
        return self._act("set-group-policy", lambda: self._set_group(request))

    def set_shares(self, request: p.SetShares) -> tuple[p.Shares, ...]:
        return self._act("set-shares", lambda: self._set_shares(request))

    def fair_shares(self) -> tuple[p.FairShare, ...]:
        self._ask("fair-shares")
        return self.policy.fair_share

    def priorities(self) -> p.Priorities:
        self._ask("priorities")
        waiting = [job for job in self.queue().jobs if job.state == "PENDING"]
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

    def queue(self) -> m.Queue:
        raise NotImplementedError  # FakeBroker's

    def _association(self, one: p.Membership) -> m.Association:
        policy = self.policy.accounts[one.account].policy
        return m.Association(
            user=one.user,
            account=one.account,
            partition=None,
            qos=policy.qos,
            default_qos=policy.default_qos,
            is_default_account=one.is_default,
            is_coordinator=one.is_coordinator,
            max_jobs=policy.max_jobs,
            max_submit_jobs=0 if one.closed else policy.max_submit_jobs,
            max_wall_minutes=policy.max_wall_minutes,
            max_gpus_per_job=next(
                (row.limit for row in policy.max_tres_per_job if row.tres == GPU), None
            ),
            group_max_gpus=next((row.limit for row in policy.grp_tres if row.tres == GPU), None),
        )

    def _set_qos(self, asked: p.SetQos) -> m.Qos:
        _check(asked.wanted)
        name, known = asked.wanted.name, self.policy.qos
        now = known.get(name)
        if asked.expected is not None and asked.expected.name != name:
            raise BrokerRefused(name, code="policy_bad_name")
        if asked.expected is None and now is not None:
            raise BrokerRefused(name, code="qos_exists")
        if asked.expected is not None and now is None:
            raise BrokerRefused(name, code="no_such_qos")
        if now != asked.expected:
            raise BrokerRefused(name, code="policy_changed_meanwhile")
        if unknown := set(asked.wanted.preempts) - known.keys():
            raise BrokerRefused(min(unknown), code="no_such_qos")
        kept = {key: getattr(now or m.Qos(name=name), key) for key in self.policy.refuse_qos_fields}
        known[name] = replace(asked.wanted, **kept)
        return known[name]

    def _set_group(self, asked: p.SetGroupPolicy) -> p.Account:
        _check(asked.wanted)
        before = self._account(asked.wanted.name)
        if before.policy != asked.expected:
            raise BrokerRefused(asked.wanted.name, code="policy_changed_meanwhile")
        if unknown := set(asked.wanted.qos) - self.policy.qos.keys():
            raise BrokerRefused(min(unknown), code="no_such_qos")
        after = replace(before, policy=asked.wanted)
        self.policy.accounts[asked.wanted.name] = after
        return after

    def _set_shares(self, asked: p.SetShares) -> tuple[p.Shares, ...]:
        now = [self._account(one.account).policy for one in asked.expected]
        if [policy.shares for policy in now] != [one.shares for one in asked.expected]:
            raise BrokerRefused("shares", code="policy_changed_meanwhile")
        for one in asked.wanted:
            before = self.policy.accounts[one.account]
            policy = replace(before.policy, shares=one.shares)
            self.policy.accounts[one.account] = replace(before, policy=policy)
        return asked.wanted

    def _account(self, name: str) -> p.Account:
        if name not in self.policy.accounts:
            raise BrokerRefused(name, code="no_such_account")
        return self.policy.accounts[name]

    def _add(self, account: str, user: str) -> p.Membership:
        self._account(account)
        self._person(user)
        key = (account, user)
        if key not in self.policy.members:
            first = all(one.user != user for one in self.policy.members.values())
            self.policy.members[key] = p.Membership(
                account, user, ("",), is_coordinator=False, is_default=first, closed=False
            )
        return self.policy.members[key]

    def _remove(self, account: str, user: str) -> p.Membership:
        one = self._member(account, user)
        open_jobs = [job for job in self.jobs.values() if not job.ended]
        if any((job.request.account, job.request.user) == (account, user) for job in open_jobs):
            raise BrokerRefused(user, code="member_has_jobs")
        others = [o for o in self.policy.members.values() if o.user == user and o != one]
        if one.is_default and others:
            raise BrokerRefused(user, code="member_default_account")
        del self.policy.members[(account, user)]
        return p.Membership(account, user, (), is_coordinator=False, is_default=False, closed=False)

    def _set_member(self, asked: p.SetMember) -> p.Membership:
        one = self._member(asked.account, asked.user)
        if asked.is_coordinator is not None:
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
        self._account(account)
        if (account, user) not in self.policy.members:
            raise BrokerRefused(user, code="no_such_association")
        return self.policy.members[(account, user)]

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


def _check(wanted: Policy) -> None:
    for problem in problems(wanted):
        raise BrokerRefused(f"{problem.key}: {wanted.name!r}", code=problem.code)
