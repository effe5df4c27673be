"""The limits of QoS and groups that one job meets, each as one row, and what a job asks of it.

Precedence as Slurm has it: what a QoS limits goes before the same limit of the association, for
each resource by itself. Limits on memory, licences and the like are rows too, but what a job asks
of them is not known here: nothing is judged by them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from gateway.core.qos import GroupPolicy, Qos, Tres, TresLimit
from gateway.core.tres import GPU

if TYPE_CHECKING:
    from gateway.wire import messages as m

CPU, NODE = "cpu", "node"
JOBS = "jobs"  # not a resource of Slurm: what limits on the number of jobs count


class Holder(StrEnum):
    """Whose limit it is."""

    QOS = "qos"
    GROUP = "group"
    PARTITION = "partition"


class Way(StrEnum):
    """How what a job asks is compared with the limit."""

    AMOUNT = "amount"  # of this job alone
    NODE = "node"  # of this job on each node
    MINUTES = "minutes"  # amount × minutes of this job alone
    WALL = "wall"  # minutes of this job
    LEAST = "least"  # amount, from below
    SHARED = "shared"  # amount, with what runs already
    SHARED_MINUTES = "shared_minutes"  # amount × minutes left, with what runs already
    SPENT = "spent"  # with usage that Slurm counts and lets decay
    RUNNING = "running"  # jobs that run
    QUEUED = "queued"  # jobs that wait or run


class Who(StrEnum):
    """Whose jobs are counted together."""

    JOB = "job"
    PERSON = "person"
    GROUP = "group"
    ALL = "all"


# Each limit on jobs by its key in core.qos, how it is compared, and for whom it counts. `all` of a
# QoS is everybody, `all` of a group is that group and those below it.
KEYS: dict[str, tuple[Way, Who]] = {
    "max_tres_per_job": (Way.AMOUNT, Who.JOB),
    "max_tres_per_node": (Way.NODE, Who.JOB),
    "max_tres_minutes_per_job": (Way.MINUTES, Who.JOB),
    "max_wall_minutes": (Way.WALL, Who.JOB),
    "min_tres_per_job": (Way.LEAST, Who.JOB),
    "max_tres_per_user": (Way.SHARED, Who.PERSON),
    "max_tres_per_account": (Way.SHARED, Who.GROUP),
    "grp_tres": (Way.SHARED, Who.ALL),
    "max_tres_run_minutes_per_user": (Way.SHARED_MINUTES, Who.PERSON),
    "max_tres_run_minutes_per_account": (Way.SHARED_MINUTES, Who.GROUP),
    "grp_tres_run_minutes": (Way.SHARED_MINUTES, Who.ALL),
    "grp_tres_minutes": (Way.SPENT, Who.ALL),
    "grp_wall_minutes": (Way.SPENT, Who.ALL),
    "max_jobs_per_user": (Way.RUNNING, Who.PERSON),
    "max_jobs_per_account": (Way.RUNNING, Who.GROUP),
    "max_jobs": (Way.RUNNING, Who.PERSON),
    "grp_jobs": (Way.RUNNING, Who.ALL),
    "max_submit_per_user": (Way.QUEUED, Who.PERSON),
    "max_submit_per_account": (Way.QUEUED, Who.GROUP),
    "max_submit_jobs": (Way.QUEUED, Who.PERSON),
    "grp_submit_jobs": (Way.QUEUED, Who.ALL),
    # GrpTRES of a person's own association.
    "own_grp_tres": (Way.SHARED, Who.PERSON),
}
_GROUP_KEYS = ("grp_tres", "grp_tres_minutes", "grp_jobs", "grp_wall_minutes")
# The limits of a QoS that have another name than the association's they go before.
_REPLACES = {
    "max_jobs": "max_jobs_per_user",
    "max_submit_jobs": "max_submit_per_user",
    "own_grp_tres": "grp_tres",
}
# Compared with what the jobs of the same key hold together while they run.
TOGETHER = frozenset({Way.SHARED, Way.SHARED_MINUTES, Way.RUNNING})


@dataclass(frozen=True, slots=True)
class Shape:
    """What a job asks for. `cpus` is on each node; None: not known. `tasks` of an array, each of
    the whole size."""

    nodes: int
    gpus_per_node: int
    gpu_type: str | None
    cpus: int | None
    minutes: int | None
    tasks: int = 1

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_per_node


@dataclass(frozen=True, slots=True)
class Cap:
    """One limit: `key` as in KEYS, `tres` by Slurm's name or JOBS, minutes for a wall time.

    `name` is of the QoS or of the group. `accounts` are those whose jobs count together where a
    group's limit counts for all; empty for a QoS.
    """

    holder: Holder
    name: str
    key: str
    tres: str
    limit: int
    accounts: frozenset[str] = frozenset()

    @property
    def way(self) -> Way:
        return KEYS[self.key][0]

    @property
    def who(self) -> Who:
        return KEYS[self.key][1]


@dataclass(frozen=True, slots=True)
class Level:
    """A group on the way up to the root. `accounts`: it and all below it."""

    policy: GroupPolicy
    accounts: frozenset[str]


def caps_of(
    level: Qos, association: "m.Association | None", groups: Sequence[Level] = ()
) -> tuple[Cap, ...]:
    """All limits on a job of this QoS under this association, without the partition's.

    `groups`: the person's group first, then those above it. Without an association (any more) only
    the QoS and the groups limit.
    """
    own = _of_qos(level)
    taken = {(cap.key, cap.tres) for cap in own}
    found = [*own]
    for cap in (*_of_person(association), *_of_groups(association, groups)):
        if (qos_key(cap.key), cap.tres) not in taken:
            found.append(cap)
    return tuple(found)


def qos_key(key: str) -> str:
    """The limit of a QoS that goes before this one of an association or a group."""
    return _REPLACES.get(key, key)


def amount(tres: str, shape: Shape) -> int | None:
    """How much of a resource the whole job asks for; None: not known here.

    A job that names no type of GPU asks for none of a type: so Slurm counts it, and lets it pass.
    """
    of_node = amount_on_node(tres, shape)
    if tres == JOBS:
        return shape.tasks
    return None if of_node is None else of_node * shape.nodes


def amount_on_node(tres: str, shape: Shape) -> int | None:
    if tres == GPU:
        return shape.gpus_per_node
    if tres.startswith(f"{GPU}:"):
        return shape.gpus_per_node if tres == f"{GPU}:{shape.gpu_type}" else 0
    return {NODE: 1, CPU: shape.cpus}.get(tres)


def asked(cap: Cap, shape: Shape) -> int | None:
    """What the job asks of this limit, in the limit's unit; None: not known."""
    match cap.way:
        case Way.WALL:
            return shape.minutes
        case Way.NODE:
            return amount_on_node(cap.tres, shape)
        case Way.RUNNING:
            return 1
        case Way.AMOUNT | Way.LEAST | Way.SHARED | Way.QUEUED:
            return amount(cap.tres, shape)
        case Way.MINUTES | Way.SHARED_MINUTES:
            whole = amount(cap.tres, shape)
            return None if whole is None or shape.minutes is None else whole * shape.minutes
        case Way.SPENT:
            return None


def breaks(cap: Cap, shape: Shape, used: int = 0) -> bool:
    """Whether the job cannot start while so much is `used`; with nothing used, whether it never
    can. What is not known breaks nothing."""
    wanted = asked(cap, shape)
    if cap.way is Way.SPENT:
        return cap.limit == 0
    if wanted is None:
        return False
    if cap.way is Way.LEAST:
        return wanted < cap.limit
    return wanted > 0 and used + wanted > cap.limit


def never(caps: Iterable[Cap], shape: Shape) -> tuple[Cap, ...]:
    """The limits because of which such a job can never start."""
    return tuple(cap for cap in caps if breaks(cap, shape))


def _of_qos(level: Qos) -> list[Cap]:
    return _rows(Holder.QOS, level.name, {key: getattr(level, key, None) for key in KEYS})


def _of_person(association: "m.Association | None") -> list[Cap]:
    """What Slurm shows at the person is theirs or lent by the group: the nearest counts."""
    if association is None:
        return []
    gpus = association.max_gpus_per_job
    values = {
        "max_tres_per_job": association.max_tres_per_job or _gpus(gpus),
        "max_tres_per_node": association.max_tres_per_node,
        "max_tres_minutes_per_job": association.max_tres_minutes_per_job,
        "max_jobs": association.max_jobs,
        "max_submit_jobs": association.max_submit_jobs,
        "max_wall_minutes": association.max_wall_minutes,
    }
    return _rows(Holder.GROUP, association.account, values)


def _of_groups(association: "m.Association | None", groups: Sequence[Level]) -> list[Cap]:
    """The person's own share of the group counts their jobs alone, the group's all of it."""
    found: list[Cap] = []
    if association is not None:
        name = association.account
        found += _rows(Holder.GROUP, name, {"own_grp_tres": association.grp_tres})
        if not groups:  # not read yet: what the association itself says of them
            whole = {"grp_tres": _gpus(association.group_max_gpus)}
            found += _rows(Holder.GROUP, name, whole, frozenset({name}))
    for one in groups:
        values = {key: getattr(one.policy, key) for key in _GROUP_KEYS}
        found += _rows(Holder.GROUP, one.policy.name, values, one.accounts)
    return found


def _gpus(limit: int | None) -> Tres:
    return () if limit is None else (TresLimit(GPU, limit),)


def _rows(
    holder: Holder,
    name: str,
    values: "Mapping[str, int | Tres | None]",
    accounts: frozenset[str] = frozenset(),
) -> list[Cap]:
    found = []
    for key, value in values.items():
        if isinstance(value, tuple):
            found += [Cap(holder, name, key, row.tres, row.limit, accounts) for row in value]
        elif value is not None:
            found.append(Cap(holder, name, key, JOBS, value, accounts))
    return found
