"""What Slurm has, as far as the portal knows: the last poll, and what was written since."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core.policy_change import Item, Of, as_slurm_keeps, of
from gateway.core.qos import GroupPolicy, Policy, Qos
from gateway.services.poll import POLICY
from gateway.store import polls, snapshot
from gateway.store.queries import policy_changes as rows
from gateway.wire.policy import Account

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Present:
    """By name. `retired` QoS are still in `qos`; `polled_at`: when the last read began.

    `inherited`: the QoS of groups without a list of their own, from the account above.
    """

    qos: dict[str, Qos]
    groups: dict[str, GroupPolicy]
    retired: frozenset[str]
    polled_at: datetime | None
    inherited: dict[str, tuple[str, ...]]

    def policy(self, kind: Of, name: str) -> Policy | None:
        return self.qos.get(name) if kind is Of.QOS else self.groups.get(name)

    def items(self, wanted: Iterable[Policy]) -> tuple[Item, ...]:
        """What makes each of them so; what is so already is left out."""
        items = (as_slurm_keeps(Item(self.policy(of(one), one.name), one)) for one in wanted)
        return tuple(item for item in items if item.before is None or item.changes)

    def usable(self, group: GroupPolicy) -> tuple[str, ...]:
        """QoS that its jobs may use."""
        return group.qos or self.inherited.get(group.name, ())

    def groups_with(self, qos: str) -> tuple[GroupPolicy, ...]:
        """Groups that may use it, or fall back on it."""
        return tuple(
            one for one in self.groups.values() if qos in (*self.usable(one), one.default_qos)
        )


def present(session: "Session") -> Present:
    """Forms, differences and files show this. A change carries what was shown, and is refused
    where Slurm has something else by then."""
    polled_at = polls.get(session, POLICY).succeeded_at
    found = of_slurm(
        snapshot.qos(session),
        snapshot.accounts(session),
        retired=rows.retired(session),
        polled_at=polled_at,
    )
    for (kind, name), version in rows.newest(session, since=polled_at).items():
        if isinstance(version.policy, Qos):
            found.qos[name] = version.policy
        elif isinstance(version.policy, GroupPolicy):
            found.groups[name] = version.policy
        elif kind is Of.QOS:
            found.qos.pop(name, None)
        else:
            found.groups.pop(name, None)
    return found


def of_slurm(
    qos: Iterable[Qos],
    accounts: Iterable[Account],
    *,
    retired: frozenset[str],
    polled_at: datetime | None,
) -> Present:
    """As one read says, without what was written since."""
    accounts = tuple(accounts)
    return Present(
        {one.name: one for one in qos},
        {one.policy.name: one.policy for one in accounts},
        retired,
        polled_at,
        {one.policy.name: one.usable_qos for one in accounts if not one.policy.qos},
    )
