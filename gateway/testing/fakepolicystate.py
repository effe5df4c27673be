"""What a made-up Slurm keeps of QoS, accounts and people."""

from gateway.core.qos import GroupPolicy, tres
from gateway.core.tres import GPU
from gateway.testing.fakesite import FakeSite
from gateway.wire import policy as p

_ROOT_QOS = ("normal",)


class PolicyState:
    """What sacctmgr would keep; `reservations` and `fair_share` are a test's to fill."""

    def __init__(self, site: FakeSite) -> None:
        self.qos = {one.name: one for one in site.qos}
        self.accounts = {
            name: p.Account(
                policy=GroupPolicy(
                    name=name,
                    qos=tuple(sorted(site.group_qos[name])),
                    default_qos=site.group_qos[name][0],
                    grp_tres=tres({GPU: limit} if (limit := site.group_gpus.get(name)) else {}),
                ),
                parent=None,
                description=name,
                organization="fake",
                coordinators=tuple(one.name for one in site.people if name in one.leads),
            )
            for name in site.group_qos
        }
        self.members = {
            (group, one.name): p.Membership(
                group, one.name, ("",), group in one.leads, group == one.groups[0], closed=False
            )
            for one in site.people
            for group in one.groups
        }
        self.fair_share: tuple[p.FairShare, ...] = ()
        self.reservations: tuple[p.Reservation, ...] = ()
        self.refuse_qos_fields: frozenset[str] = frozenset()  # written without taking effect

    def usable(self, policy: GroupPolicy) -> tuple[str, ...]:
        """QoS that jobs of an account may use: root's, where it has no list of its own."""
        return policy.qos or _ROOT_QOS
