"""Messages about QoS, accounts, their people and their priority; `messages` has the rest.

A write carries what the caller believes Slurm has (`expected`): when Slurm has something else,
nothing is sent and the answer is a refusal (`policy_changed_meanwhile`). Each reply is what was
read back after the write.
"""

from dataclasses import dataclass
from datetime import datetime

from gateway.core.qos import GroupPolicy, Qos


@dataclass(frozen=True, slots=True)
class QosList:
    qos: tuple[Qos, ...]


@dataclass(frozen=True, slots=True)
class SetQos:
    """`expected` None: it does not exist yet and is made."""

    expected: Qos | None
    wanted: Qos


@dataclass(frozen=True, slots=True)
class Account:
    """A Slurm account, but for `root`. `parent` None: right below root.

    `policy` is what the account says itself; `usable_qos` is what its jobs may use, with what it
    inherits where it has no list of its own.
    """

    policy: GroupPolicy
    parent: str | None
    description: str
    organization: str
    coordinators: tuple[str, ...]
    usable_qos: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Accounts:
    accounts: tuple[Account, ...]


@dataclass(frozen=True, slots=True)
class SetGroupPolicy:
    expected: GroupPolicy
    wanted: GroupPolicy


@dataclass(frozen=True, slots=True)
class Shares:
    """Raw fair-share shares of an account; None: `parent`."""

    account: str
    shares: int | None


@dataclass(frozen=True, slots=True)
class SetShares:
    """At most MOST_SHARES accounts a call; each one's `expected` and `wanted` stand at the same
    place of both lists."""

    expected: tuple[Shares, ...]
    wanted: tuple[Shares, ...]


MOST_SHARES = 200


@dataclass(frozen=True, slots=True)
class SharesNow:
    """Those asked for, as read back. One that could not be written has what it had before."""

    shares: tuple[Shares, ...]


@dataclass(frozen=True, slots=True)
class FairShare:
    """A line of sshare. `user` None: the account's own. Fractions as Slurm prints them.

    `raw_usage` is in TRES-seconds that decay; `level` None: infinite (nothing used yet).
    `fair_share` is of users alone.
    """

    account: str
    user: str | None
    partition: str | None
    raw_shares: int | None  # None: parent
    norm_shares: float
    raw_usage: int
    effective_usage: float
    fair_share: float | None
    level: float | None


@dataclass(frozen=True, slots=True)
class FairShares:
    entries: tuple[FairShare, ...]


@dataclass(frozen=True, slots=True)
class PriorityFactors:
    """A line of sprio: what each factor, by its weight, gives a pending job's priority."""

    job_id: int
    user: str
    account: str
    partition: str
    qos: str
    priority: int
    site: int
    age: int
    association: int
    fair_share: int
    job_size: int
    of_partition: int
    of_qos: int
    nice: int  # taken off
    tres: str  # name=points pairs by comma


@dataclass(frozen=True, slots=True)
class PriorityWeights:
    age: int
    association: int
    fair_share: int
    job_size: int
    partition: int
    qos: int
    tres: str


@dataclass(frozen=True, slots=True)
class Priorities:
    weights: PriorityWeights
    jobs: tuple[PriorityFactors, ...]


@dataclass(frozen=True, slots=True)
class Reservation:
    """`nodes` are single names. `flags` in Slurm's words: MAINT, IGNORE_JOBS, FLEX …"""

    name: str
    start: datetime
    end: datetime
    nodes: tuple[str, ...]
    partition: str | None
    flags: tuple[str, ...]
    users: tuple[str, ...]
    accounts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reservations:
    reservations: tuple[Reservation, ...]


@dataclass(frozen=True, slots=True)
class MemberRequest:
    account: str
    user: str


@dataclass(frozen=True, slots=True)
class SetMember:
    """What is None stays. `is_default` can only be set, by making another account the default.
    `closed`: MaxSubmitJobs=0 on the person's associations here, or no limit of their own."""

    account: str
    user: str
    is_coordinator: bool | None = None
    is_default: bool | None = None
    closed: bool | None = None


@dataclass(frozen=True, slots=True)
class Membership:
    """A person in an account, as read back. `partitions` empty: there is no association at all;
    "" stands for the one that covers every partition."""

    account: str
    user: str
    partitions: tuple[str, ...]
    is_coordinator: bool
    is_default: bool
    closed: bool
