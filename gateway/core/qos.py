"""A QoS with all that Slurm lets one limit, and what each field is called by sacctmgr.

`FIELDS` is the one table: the broker reads and writes by it, forms, files and differences walk it.
Units are in the names; memory of a resource is in MiB. None, or no row for a resource, means no
limit; 0 means that nothing is allowed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from gateway.core.tres import GPU


@dataclass(frozen=True, slots=True, order=True)
class TresLimit:
    """So much of one resource, by Slurm's name: cpu, mem (MiB), node, gres/gpu, gres/gpu:a100."""

    tres: str
    limit: int


Tres = tuple[TresLimit, ...]  # sorted by name, each name once
# What a QoS can be flagged with in 26.05: sacctmgr's own list.
FLAGS = (
    "DenyOnLimit",
    "EnforceUsageThreshold",
    "PartitionMinNodes",
    "PartitionMaxNodes",
    "PartitionTimeLimit",
    "RequiresReservation",
    "OverPartQOS",
    "NoReserve",
    "NoDecay",
    "Relative",
    "UsageFactorSafe",
)
# `cluster` (Slurm's word for "as slurm.conf says") and one of the others; sacctmgr reads "off" as
# `cluster`.
PREEMPT_MODES = ("cluster", "requeue", "cancel", "suspend", "gang", "within")


@dataclass(frozen=True, slots=True, kw_only=True)
class Qos:
    """One QoS. `grp_` is for all jobs of the QoS together."""

    name: str
    description: str = ""
    priority: int = 0
    flags: tuple[str, ...] = ()
    usage_factor_millionths: int = 1_000_000  # 1.0; a float never enters
    limit_factor_millionths: int | None = None
    usage_threshold_millionths: int | None = None
    preempts: tuple[str, ...] = ()  # QoS whose jobs this one's may push off their nodes
    preempt_mode: tuple[str, ...] = ("cluster",)
    preempt_exempt_seconds: int | None = None
    grace_seconds: int = 0

    grp_tres: Tres = ()
    grp_tres_minutes: Tres = ()  # compared with usage that decays; running jobs are killed at it
    grp_tres_run_minutes: Tres = ()
    grp_jobs: int | None = None
    grp_jobs_accrue: int | None = None
    grp_submit_jobs: int | None = None
    grp_wall_minutes: int | None = None  # decays and kills as well

    max_tres_per_account: Tres = ()
    max_tres_run_minutes_per_account: Tres = ()
    max_jobs_per_account: int | None = None
    max_jobs_accrue_per_account: int | None = None
    max_submit_per_account: int | None = None

    max_tres_per_user: Tres = ()
    max_tres_run_minutes_per_user: Tres = ()
    max_jobs_per_user: int | None = None
    max_jobs_accrue_per_user: int | None = None
    max_submit_per_user: int | None = None

    max_tres_per_job: Tres = ()
    max_tres_per_node: Tres = ()
    max_tres_minutes_per_job: Tres = ()  # running jobs are killed at it
    max_wall_minutes: int | None = None
    min_tres_per_job: Tres = ()
    min_priority: int | None = None

    @property
    def max_gpus_per_job(self) -> int | None:
        return gpu_limit(self.max_tres_per_job)

    @property
    def max_gpus_per_user(self) -> int | None:
        return gpu_limit(self.max_tres_per_user)

    @property
    def max_gpus_per_group(self) -> int | None:
        return gpu_limit(self.max_tres_per_account)


class Kind(StrEnum):
    """What a field holds, and so how it is typed, shown, sent and compared."""

    TEXT = "text"
    COUNT = "count"  # int or None
    NUMBER = "number"  # int, always there
    MINUTES = "minutes"  # int or None
    SECONDS = "seconds"  # int or None; `grace_seconds` is 0, never None
    MILLIONTHS = "millionths"  # int or None; `usage_factor_millionths` is never None
    TRES = "tres"
    NAMES = "names"  # of QoS
    FLAGS = "flags"
    NAME = "name"  # of a QoS, or None
    SHARES = "shares"  # int, or None for `parent`
    MODES = "modes"


class Scope(StrEnum):
    """For whom a limit counts; fields that limit nothing are GENERAL."""

    GENERAL = "general"
    ALL = "all"  # all jobs of the QoS together
    GROUP = "group"  # the jobs of one account
    PERSON = "person"
    JOB = "job"


@dataclass(frozen=True, slots=True)
class Field:
    """`option` is sacctmgr's word in `set`, `column` its word in `format=`."""

    key: str
    option: str
    column: str
    kind: Kind
    scope: Scope


def _field(key: str, option: str, kind: Kind, scope: Scope, column: str | None = None) -> Field:
    return Field(key, option, column or option, kind, scope)


FIELDS: tuple[Field, ...] = (
    _field("description", "Description", Kind.TEXT, Scope.GENERAL),
    _field("priority", "Priority", Kind.NUMBER, Scope.GENERAL),
    _field("flags", "Flags", Kind.FLAGS, Scope.GENERAL),
    _field("usage_factor_millionths", "UsageFactor", Kind.MILLIONTHS, Scope.GENERAL),
    _field("limit_factor_millionths", "LimitFactor", Kind.MILLIONTHS, Scope.GENERAL),
    _field(
        "usage_threshold_millionths",
        "UsageThreshold",
        Kind.MILLIONTHS,
        Scope.GENERAL,
        "UsageThres",
    ),
    _field("preempts", "Preempt", Kind.NAMES, Scope.GENERAL),
    _field("preempt_mode", "PreemptMode", Kind.MODES, Scope.GENERAL),
    _field("preempt_exempt_seconds", "PreemptExemptTime", Kind.SECONDS, Scope.GENERAL),
    _field("grace_seconds", "GraceTime", Kind.SECONDS, Scope.GENERAL),
    _field("grp_tres", "GrpTRES", Kind.TRES, Scope.ALL),
    _field("grp_tres_minutes", "GrpTRESMins", Kind.TRES, Scope.ALL),
    _field("grp_tres_run_minutes", "GrpTRESRunMins", Kind.TRES, Scope.ALL),
    _field("grp_jobs", "GrpJobs", Kind.COUNT, Scope.ALL),
    _field("grp_jobs_accrue", "GrpJobsAccrue", Kind.COUNT, Scope.ALL),
    _field("grp_submit_jobs", "GrpSubmitJobs", Kind.COUNT, Scope.ALL, "GrpSubmit"),
    _field("grp_wall_minutes", "GrpWall", Kind.MINUTES, Scope.ALL),
    _field("max_tres_per_account", "MaxTRESPerAccount", Kind.TRES, Scope.GROUP, "MaxTRESPA"),
    _field(
        "max_tres_run_minutes_per_account",
        "MaxTRESRunMinsPerAccount",
        Kind.TRES,
        Scope.GROUP,
        "MaxTRESRunMinsPA",
    ),
    _field("max_jobs_per_account", "MaxJobsPerAccount", Kind.COUNT, Scope.GROUP, "MaxJobsPA"),
    _field(
        "max_jobs_accrue_per_account",
        "MaxJobsAccruePerAccount",
        Kind.COUNT,
        Scope.GROUP,
        "MaxJobsAccruePA",
    ),
    _field(
        "max_submit_per_account", "MaxSubmitJobsPerAccount", Kind.COUNT, Scope.GROUP, "MaxSubmitPA"
    ),
    _field("max_tres_per_user", "MaxTRESPerUser", Kind.TRES, Scope.PERSON, "MaxTRESPU"),
    _field(
        "max_tres_run_minutes_per_user",
        "MaxTRESRunMinsPerUser",
        Kind.TRES,
        Scope.PERSON,
        "MaxTRESRunMinsPU",
    ),
    _field("max_jobs_per_user", "MaxJobsPerUser", Kind.COUNT, Scope.PERSON, "MaxJobsPU"),
    _field(
        "max_jobs_accrue_per_user",
        "MaxJobsAccruePerUser",
        Kind.COUNT,
        Scope.PERSON,
        "MaxJobsAccruePU",
    ),
    _field("max_submit_per_user", "MaxSubmitJobsPerUser", Kind.COUNT, Scope.PERSON, "MaxSubmitPU"),
    _field("max_tres_per_job", "MaxTRESPerJob", Kind.TRES, Scope.JOB, "MaxTRES"),
    _field("max_tres_per_node", "MaxTRESPerNode", Kind.TRES, Scope.JOB, "MaxTRESPN"),
    _field("max_tres_minutes_per_job", "MaxTRESMinsPerJob", Kind.TRES, Scope.JOB, "MaxTRESMins"),
    _field("max_wall_minutes", "MaxWall", Kind.MINUTES, Scope.JOB),
    _field("min_tres_per_job", "MinTRESPerJob", Kind.TRES, Scope.JOB, "MinTRES"),
    _field("min_priority", "MinPrioThres", Kind.COUNT, Scope.JOB),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPolicy:
    """What policy says of a Slurm account: QoS it may use, the default, shares, own limits.

    `shares` None: `parent`, its people share with those of the account above. `default_qos` None:
    Slurm's own. `max_` limits count for each person or job below it that has none of their own.
    GrpSubmitJobs and the GPUs of GrpTRESRunMins are the gate's, and not here.
    """

    name: str
    qos: tuple[str, ...] = ()
    default_qos: str | None = None
    shares: int | None = 1
    grp_tres: Tres = ()
    grp_tres_minutes: Tres = ()  # compared with usage that decays; running jobs are killed at it
    grp_jobs: int | None = None
    grp_wall_minutes: int | None = None  # decays and kills as well
    max_jobs: int | None = None  # of each person
    max_submit_jobs: int | None = None  # of each person
    max_tres_per_job: Tres = ()
    max_tres_minutes_per_job: Tres = ()  # running jobs are killed at it
    max_wall_minutes: int | None = None


GROUP_FIELDS: tuple[Field, ...] = (
    _field("qos", "QosLevel", Kind.NAMES, Scope.GENERAL, "QOS"),
    _field("default_qos", "DefaultQOS", Kind.NAME, Scope.GENERAL),
    _field("shares", "Fairshare", Kind.SHARES, Scope.GENERAL),
    _field("grp_tres", "GrpTRES", Kind.TRES, Scope.GROUP),
    _field("grp_tres_minutes", "GrpTRESMins", Kind.TRES, Scope.GROUP),
    _field("grp_jobs", "GrpJobs", Kind.COUNT, Scope.GROUP),
    _field("grp_wall_minutes", "GrpWall", Kind.MINUTES, Scope.GROUP),
    _field("max_jobs", "MaxJobs", Kind.COUNT, Scope.PERSON),
    _field("max_submit_jobs", "MaxSubmitJobs", Kind.COUNT, Scope.PERSON, "MaxSubmit"),
    _field("max_tres_per_job", "MaxTRESPerJob", Kind.TRES, Scope.JOB, "MaxTRES"),
    _field("max_tres_minutes_per_job", "MaxTRESMinsPerJob", Kind.TRES, Scope.JOB, "MaxTRESMins"),
    _field("max_wall_minutes", "MaxWall", Kind.MINUTES, Scope.JOB),
)
Policy = Qos | GroupPolicy


def fields_of(policy: Policy) -> tuple[Field, ...]:
    return FIELDS if isinstance(policy, Qos) else GROUP_FIELDS


Value = int | str | None | tuple[str, ...] | Tres


@dataclass(frozen=True, slots=True)
class Change:
    """One field before and after, each whole."""

    field: Field
    before: Value
    after: Value


def value(policy: Policy, field: Field) -> Value:
    found: Value = getattr(policy, field.key)
    return found


def changes(before: Policy, after: Policy) -> tuple[Change, ...]:
    """What differs between two of a kind, in the order of the table; names are not compared."""
    return tuple(
        Change(field, value(before, field), value(after, field))
        for field in fields_of(before)
        if value(before, field) != value(after, field)
    )


def gpu_limit(tres: Tres) -> int | None:
    """GPUs of any type that a limit leaves; None: it does not speak of GPUs as a whole.

    A limit of one type alone bounds that type: it is not a limit of all cards.
    """
    return limit_of(tres, GPU)


def tres(counts: dict[str, int]) -> Tres:
    """Rows by name, sorted, so that two equal limits compare equal."""
    return tuple(sorted(TresLimit(name, limit) for name, limit in counts.items()))


def limit_of(rows: Sequence[TresLimit], name: str) -> int | None:
    for row in rows:  # a generator costs three times as much, and forms ask for hundreds
        if row.tres == name:
            return row.limit
    return None
