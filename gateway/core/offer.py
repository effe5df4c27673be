"""What one person's associations allow: groups, their partitions, the QoS in each, the limits.

Letter case as Slurm treats it: accounts and QoS are stored in lower case and compared without
regard to it; partition names are exact.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gateway.core.caps import Cap, Level, caps_of
from gateway.core.datasets import Offered

if TYPE_CHECKING:
    from gateway.wire import messages as m
    from gateway.wire import policy as p


@dataclass(frozen=True, slots=True)
class Limits:
    """The effective ones of this group, partition and QoS together. None: no limit.

    `max_minutes_by` says whose cap it is: partition, qos or group. `sources` are what `caps` are
    read from when they are asked: of dozens of QoS in an offer one is chosen.
    """

    max_minutes: int | None
    max_minutes_by: str
    max_nodes: int | None
    max_gpus_per_job: int | None
    max_gpus_per_user: int | None
    max_gpus_per_group: int | None
    max_jobs: int | None
    max_submit_jobs: int | None
    sources: "tuple[m.Qos, m.Association, tuple[Level, ...]] | None" = None

    @property
    def caps(self) -> tuple[Cap, ...]:
        """Every limit of the QoS and the group, these among them."""
        return caps_of(*self.sources) if self.sources else ()


@dataclass(frozen=True, slots=True)
class QosChoice:
    """`preemptible`: jobs of another QoS may push this one's off their nodes."""

    name: str
    description: str
    priority: int
    preemptible: bool
    is_default: bool
    usage_factor_millionths: int
    limits: Limits


@dataclass(frozen=True, slots=True)
class GpuKind:
    """`per_node` is the most that a node has; `nodes` counts all nodes with this type."""

    name: str
    per_node: int
    nodes: int


@dataclass(frozen=True, slots=True)
class PartitionChoice:
    name: str
    state: str
    is_default: bool
    nodes: int
    max_nodes: int | None
    max_minutes: int | None
    default_minutes: int | None
    cpus_per_node: int | None
    gpus: tuple[GpuKind, ...]
    qos: tuple[QosChoice, ...]

    @property
    def is_up(self) -> bool:
        return self.state.upper() == "UP"

    @property
    def gpus_per_node(self) -> int:
        return max((kind.per_node for kind in self.gpus), default=0)

    def find_qos(self, name: str) -> QosChoice | None:
        return next((q for q in self.qos if q.name.casefold() == name.casefold()), None)

    @property
    def default_qos(self) -> QosChoice | None:
        chosen = next((q for q in self.qos if q.is_default), None)
        return chosen or (self.qos[0] if self.qos else None)


@dataclass(frozen=True, slots=True)
class GroupChoice:
    """`on_stall`: the group's rule for training runs that stall. `leaving`: this person is being
    removed from the group, so it takes no new jobs of theirs."""

    name: str
    is_default: bool
    leads: bool
    partitions: tuple[PartitionChoice, ...]
    on_stall: str = "nothing"
    leaving: bool = False

    def find_partition(self, name: str) -> PartitionChoice | None:
        return next((p for p in self.partitions if p.name == name), None)

    @property
    def default_partition(self) -> PartitionChoice | None:
        chosen = next((p for p in self.partitions if p.is_default), None)
        return chosen or (self.partitions[0] if self.partitions else None)


@dataclass(frozen=True, slots=True)
class Offer:
    """Everything this person may choose from. Empty groups: no association at all.
    `free_when_preempted` are QoS whose preempted runs are given back; `datasets` are published
    versions of the catalogue."""

    user: str
    groups: tuple[GroupChoice, ...]
    free_when_preempted: frozenset[str] = frozenset()
    datasets: tuple[Offered, ...] = ()

    def find_group(self, name: str) -> GroupChoice | None:
        return next((g for g in self.groups if g.name.casefold() == name.casefold()), None)

    @property
    def default_group(self) -> GroupChoice | None:
        chosen = next((g for g in self.groups if g.is_default), None)
        return chosen or (self.groups[0] if self.groups else None)


def build_offer(
    user: str,
    associations: "Iterable[m.Association]",
    partitions: "Sequence[m.Partition]",
    qos: "Sequence[m.Qos]",
    nodes: "Sequence[m.Node]",
    *,
    accounts: "Sequence[p.Account]" = (),
    retired: frozenset[str] = frozenset(),
) -> Offer:
    """The offer from what Slurm said last. Others' associations are left out, and `retired` QoS:
    a person's own list in Slurm may still have one when all groups have let go of it."""
    by_account: dict[str, list[m.Association]] = defaultdict(list)
    for association in associations:
        if association.user.casefold() == user.casefold():
            by_account[association.account.casefold()].append(association)
    levels = _levels(by_account, accounts)
    groups = [
        _group(_without(found, retired), partitions, qos, nodes, levels[name])
        for name, found in by_account.items()
    ]
    return Offer(user, tuple(sorted(groups, key=lambda g: (not g.is_default, g.name))))


def levels_of(group: str, accounts: "Iterable[p.Account]") -> tuple[Level, ...]:
    """The group, then those above it, each with all the accounts whose use counts there."""
    return _levels([group], accounts)[group]


def _levels(groups: Iterable[str], accounts: "Iterable[p.Account]") -> dict[str, tuple[Level, ...]]:
    by_name = {one.policy.name: one for one in accounts}
    up = {group: (group, *_above(group, by_name)) for group in groups if group in by_name}
    below = {name: {name} for names in up.values() for name in names}
    for name in by_name:
        for above in _above(name, by_name):
            if above in below:
                below[above].add(name)
    return {
        group: tuple(
            Level(by_name[name].policy, frozenset(below[name])) for name in up.get(group, ())
        )
        for group in groups
    }


def _above(name: str, by_name: "dict[str, p.Account]") -> list[str]:
    found: list[str] = []
    parent = by_name[name].parent
    while parent in by_name and parent not in found and parent != name:
        found.append(parent)
        parent = by_name[parent].parent
    return found


def _group(
    associations: "list[m.Association]",
    partitions: "Sequence[m.Partition]",
    qos: "Sequence[m.Qos]",
    nodes: "Sequence[m.Node]",
    levels: tuple[Level, ...],
) -> GroupChoice:
    choices = []
    for partition in partitions:
        association = _association_for(associations, partition.name)
        if association is None or not _account_allowed(partition, association.account):
            continue
        if offered := _qos_choices(association, partition, qos, levels):
            choices.append(_partition(partition, offered, nodes))
    return GroupChoice(
        name=associations[0].account,
        is_default=any(a.is_default_account for a in associations),
        leads=any(a.is_coordinator for a in associations),
        partitions=tuple(sorted(choices, key=lambda p: (not p.is_default, p.name))),
    )


def _without(associations: "list[m.Association]", retired: frozenset[str]) -> "list[m.Association]":
    if not retired:
        return associations
    return [
        replace(one, qos=tuple(name for name in one.qos if name.casefold() not in retired))
        for one in associations
    ]


def _association_for(associations: "list[m.Association]", partition: str) -> "m.Association | None":
    """An association for just this partition goes before one for all of them."""
    for association in associations:
        if association.partition and association.partition.casefold() == partition.casefold():
            return association
    return next((a for a in associations if not a.partition), None)


def _account_allowed(partition: "m.Partition", account: str) -> bool:
    return _allowed(account, partition.allow_accounts, partition.deny_accounts)


def _allowed(name: str, allow: Iterable[str], deny: Iterable[str]) -> bool:
    """Where a list of the allowed is set, Slurm does not look at that of the denied."""
    allowed = {entry.casefold() for entry in allow}
    if allowed:
        return name.casefold() in allowed
    return name.casefold() not in {entry.casefold() for entry in deny}


def _qos_choices(
    association: "m.Association",
    partition: "m.Partition",
    qos: "Sequence[m.Qos]",
    levels: tuple[Level, ...],
) -> list[QosChoice]:
    mine = {name.casefold() for name in association.qos}
    # Where nobody set a default, Slurm's own is the QoS that it makes itself.
    default = (association.default_qos or "normal").casefold()
    preempted = {name.casefold() for level in qos for name in level.preempts}
    found = [
        QosChoice(
            name=level.name,
            description=level.description,
            priority=level.priority,
            preemptible=level.name.casefold() in preempted,
            is_default=level.name.casefold() == default,
            usage_factor_millionths=level.usage_factor_millionths,
            limits=_limits(association, partition, level, levels),
        )
        for level in qos
        if level.name.casefold() in mine
        and _allowed(level.name, partition.allow_qos, partition.deny_qos)
    ]
    return sorted(found, key=lambda q: (not q.is_default, -q.priority, q.name))


def _limits(
    association: "m.Association",
    partition: "m.Partition",
    level: "m.Qos",
    levels: tuple[Level, ...],
) -> Limits:
    """A limit of the QoS goes before the association's; the partition's holds besides, unless
    the QoS has the flag that lifts it."""
    flags = {flag.casefold() for flag in level.flags}
    wall, wall_by = level.max_wall_minutes, "qos"
    if wall is None:
        wall, wall_by = association.max_wall_minutes, "group"
    time = partition.max_time_minutes
    lifted = "partitiontimelimit" in flags and level.max_wall_minutes is not None
    if time is not None and not lifted and (wall is None or time <= wall):
        wall, wall_by = time, "partition"
    nodes = None if "partitionmaxnodes" in flags else partition.max_nodes
    return Limits(
        max_minutes=wall,
        max_minutes_by=wall_by,
        max_nodes=nodes,
        max_gpus_per_job=_first(level.max_gpus_per_job, association.max_gpus_per_job),
        max_gpus_per_user=level.max_gpus_per_user,
        max_gpus_per_group=_least(level.max_gpus_per_group, association.group_max_gpus),
        max_jobs=_first(level.max_jobs_per_user, association.max_jobs),
        max_submit_jobs=_first(level.max_submit_per_user, association.max_submit_jobs),
        sources=(level, association, levels),
    )


def _partition(
    partition: "m.Partition", offered: list[QosChoice], nodes: "Sequence[m.Node]"
) -> PartitionChoice:
    own = [node for node in nodes if partition.name in node.partitions]
    return PartitionChoice(
        name=partition.name,
        state=partition.state,
        is_default=partition.is_default,
        nodes=partition.nodes or len(own),
        max_nodes=partition.max_nodes,
        max_minutes=partition.max_time_minutes,
        default_minutes=partition.default_time_minutes,
        cpus_per_node=max((node.cpus for node in own), default=None),
        gpus=_kinds(own),
        qos=tuple(offered),
    )


def _kinds(nodes: "list[m.Node]") -> tuple[GpuKind, ...]:
    counts: dict[str, list[int]] = defaultdict(list)
    for node in nodes:
        if node.gpus:
            counts[node.gpu_type or "gpu"].append(node.gpus)
    return tuple(GpuKind(name, max(found), len(found)) for name, found in sorted(counts.items()))


def _first(one: int | None, other: int | None) -> int | None:
    return other if one is None else one


def _least(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)
