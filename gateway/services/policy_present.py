"""What Slurm has, as far as the portal knows: the last poll, and what was written since."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core.policy_change import Of
from gateway.core.qos import GroupPolicy, Policy, Qos
from gateway.services.poll import POLICY
from gateway.store import polls, snapshot
from gateway.store.queries import policy_changes as rows

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Present:
    """By name. `retired` QoS are still in `qos`; `polled_at`: when the last read began."""

    qos: dict[str, Qos]
    groups: dict[str, GroupPolicy]
    retired: frozenset[str]
    polled_at: datetime | None

    def policy(self, of: Of, name: str) -> Policy | None:
        return self.qos.get(name) if of is Of.QOS else self.groups.get(name)

    def groups_with(self, qos: str) -> tuple[GroupPolicy, ...]:
        """Groups that may use it, or fall back on it."""
        return tuple(
            one for one in self.groups.values() if qos in one.qos or one.default_qos == qos
        )


def present(session: "Session") -> Present:
    """Forms, differences and files show this. A change carries what was shown, and is refused
    where Slurm has something else by then."""
    polled_at = polls.get(session, POLICY).succeeded_at
    found = Present(polled_qos(session), polled_groups(session), rows.retired(session), polled_at)
    for (of, name), version in rows.newest(session).items():
        if polled_at is not None and version.at < polled_at:
            continue
        if isinstance(version.policy, Qos):
            found.qos[name] = version.policy
        elif isinstance(version.policy, GroupPolicy):
            found.groups[name] = version.policy
        elif of is Of.QOS:
            found.qos.pop(name, None)
        else:
            found.groups.pop(name, None)
    return found


def polled_qos(session: "Session") -> dict[str, Qos]:
    return {one.name: one for one in snapshot.qos(session)}


def polled_groups(session: "Session") -> dict[str, GroupPolicy]:
    return {one.policy.name: one.policy for one in snapshot.accounts(session)}
