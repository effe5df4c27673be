"""The part of FakeBroker that keeps QoS, accounts and their people."""

from dataclasses import replace

from gateway.broker.groups import check_shares
from gateway.broker.qos import checked
from gateway.core.qos import Kind, Policy, TresLimit, fields_of, value
from gateway.core.tres import GPU, STATIC_IDS
from gateway.errors import BrokerRefused
from gateway.testing.fakemembers import FakeMembers
from gateway.wire import messages as m
from gateway.wire import policy as p


class FakePolicy(FakeMembers):
    """QoS, group policies, shares, people, priorities and reservations."""

    def associations(self) -> tuple[m.Association, ...]:
        self._ask("associations")
        return tuple(
            self._association(one, place)
            for one in self.policy.members.values()
            for place in one.partitions
        )

    def qos(self) -> tuple[m.Qos, ...]:
        self._ask("qos")
        return tuple(self.policy.qos.values())

    def set_qos(self, request: p.SetQos) -> m.Qos:
        return self._act("set-qos", lambda: self._set_qos(request))

    def accounts(self) -> tuple[p.Account, ...]:
        self._ask("accounts")
        return tuple(self._shown(one) for one in self.policy.accounts.values())

    def set_group_policy(self, request: p.SetGroupPolicy) -> p.Account:
        return self._act("set-group-policy", lambda: self._set_group(request))

    def set_shares(self, request: p.SetShares) -> tuple[p.Shares, ...]:
        return self._act("set-shares", lambda: self._set_shares(request))

    # --- inside ---

    def _association(self, one: p.Membership, place: str) -> m.Association:
        policy = self.policy.accounts[one.account].policy
        return m.Association(
            user=one.user,
            account=one.account,
            partition=place or None,
            qos=self.policy.usable(policy),
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
        wanted = checked(asked.wanted, asked.expected)
        name, known = wanted.name, self.policy.qos
        now = known.get(name)
        if asked.expected is not None and asked.expected.name != name:
            raise BrokerRefused(name, code="policy_bad_name")
        if asked.expected is None and now is not None:
            raise BrokerRefused(name, code="qos_exists")
        if asked.expected is not None and now is None:
            raise BrokerRefused(name, code="no_such_qos")
        if now != asked.expected:
            raise BrokerRefused(name, code="policy_changed_meanwhile")
        if unknown := set(wanted.preempts) - known.keys():
            raise BrokerRefused(min(unknown), code="no_such_qos")
        if name in self._pushed_off(wanted):
            raise BrokerRefused(name, code="policy_preemption_loop")
        self._require_tracked(wanted)
        kept = {key: getattr(now or m.Qos(name=name), key) for key in self.policy.refuse_qos_fields}
        known[name] = replace(wanted, **kept)
        return known[name]

    def _set_group(self, asked: p.SetGroupPolicy) -> p.Account:
        wanted = checked(asked.wanted, asked.expected)
        if asked.expected.name != wanted.name:
            raise BrokerRefused(wanted.name, code="policy_bad_name")
        before = self._account(wanted.name)
        if before.policy != asked.expected:
            raise BrokerRefused(wanted.name, code="policy_changed_meanwhile")
        named = {*wanted.qos, *([wanted.default_qos] if wanted.default_qos else [])}
        if unknown := named - self.policy.qos.keys():
            raise BrokerRefused(min(unknown), code="no_such_qos")
        if wanted.default_qos not in (None, *self.policy.usable(wanted)):
            raise BrokerRefused(wanted.name, code="policy_default_not_listed")
        self._require_tracked(wanted)
        self.policy.accounts[wanted.name] = replace(before, policy=wanted)
        return self._shown(self.policy.accounts[wanted.name])

    def _shown(self, account: p.Account) -> p.Account:
        return replace(account, usable_qos=self.policy.usable(account.policy))

    def _pushed_off(self, wanted: m.Qos) -> set[str]:
        """Whom its jobs may push off, and whom those may, and so on."""
        found: set[str] = set()
        left = list(wanted.preempts)
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += self.policy.qos[name].preempts
        return found

    def _require_tracked(self, wanted: Policy) -> None:
        known = {*STATIC_IDS.values(), *self.facts.tracked, *self._card_types()}
        for field in fields_of(wanted):
            rows = value(wanted, field) if field.kind is Kind.TRES else ()
            for row in rows if isinstance(rows, tuple) else ():
                if isinstance(row, TresLimit) and row.tres not in known:
                    raise BrokerRefused(row.tres, code="policy_unknown_tres")

    def _card_types(self) -> set[str]:
        return {f"{GPU}:{one.gpu_type}" for one in self.site.partitions if one.gpu_type}

    def _set_shares(self, asked: p.SetShares) -> tuple[p.Shares, ...]:
        check_shares(asked)
        now = [self._account(one.account).policy for one in asked.expected]
        if [policy.shares for policy in now] != [one.shares for one in asked.expected]:
            raise BrokerRefused("shares", code="policy_changed_meanwhile")
        for one in asked.wanted:
            before = self.policy.accounts[one.account]
            policy = replace(before.policy, shares=one.shares)
            self.policy.accounts[one.account] = replace(before, policy=policy)
        return asked.wanted
