"""What a change of policy does to the jobs that are there: who would wait, be ended, be let go.

The rules are Slurm's (docs/engineering/policy.md, "as seen"): a lower limit holds what waits and
lets run what runs, but for GrpTRESMins, GrpWall and MaxTRESMinsPerJob: these end running jobs where
AccountingStorageEnforce lacks `safe`.
What the job table does not hold is said as not known, never taken for nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from gateway.core.qos import Field, Qos


class Effect(StrEnum):
    WAITS = "waits"  # pending: held at Slurm's next look
    WAITS_LATER = "waits_later"  # pending: held once those before it in the queue have started
    LET_GO = "let_go"  # pending: waits now for a limit that would be lifted far enough
    ENDED = "ended"  # running: ended at Slurm's next look
    MAY_END = "may_end"  # running: ended if Slurm's own count has reached the limit, or reaches it
    ABOVE = "above"  # running: above the limit, runs on


class Doubt(StrEnum):
    TRES = "tres"  # the job table does not hold how much of this resource a job has
    USAGE = "usage"  # only Slurm has the decayed usage that the limit is compared with
    UNJUDGED = "unjudged"  # no rule here says what the field does to jobs


@dataclass(frozen=True, slots=True)
class ActiveJob:
    """An open job. `blocked`: it waits for something of its own (held, dependency, begin time).
    `tasks`: a pending array stands as one record for so many jobs."""

    id: int
    slurm_id: int
    user: str
    group: str
    qos: str
    partition: str
    priority: int
    submit_time: datetime
    start_time: datetime | None
    time_limit_minutes: int | None
    nodes: int
    cpus: int
    gpus: int
    gpu_type: str | None
    running: bool
    blocked: bool
    reason: str | None
    tasks: int = 1


@dataclass(frozen=True, slots=True)
class Affected:
    """`reason`: Slurm's word where it waits. `whose`: the user or group whose limit it is, None
    for one of the whole QoS or of the job itself. `used` counts with this job (pending) or is
    what is compared now (running), in the unit of the field."""

    effect: Effect
    job: ActiveJob
    reason: str | None
    whose: str | None
    used: int | None
    limit: int | None


@dataclass(frozen=True, slots=True)
class FieldImpact:
    """One changed field, or one resource of it. `before`, `after` None: no limit (or a field
    that is no number, as a group's list of QoS: `lost` names those that it loses)."""

    kind: str  # qos, group
    name: str
    field: Field
    tres: str | None
    before: int | None
    after: int | None
    jobs: tuple[Affected, ...] = ()
    lost: tuple[str, ...] = ()

    def of(self, *effects: Effect) -> tuple[Affected, ...]:
        return tuple(found for found in self.jobs if found.effect in effects)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A changed field of which not everything can be said. `most`: an upper bound of the usage."""

    kind: str
    name: str
    field: Field
    tres: str | None
    doubt: Doubt
    most: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Preemption:
    """Jobs of QoS `by` could now push off those of `of`: so many run, on so many GPUs, and so
    many jobs of `by` wait."""

    by: str
    of: str
    running: int
    gpus: int
    waiting: int


@dataclass(frozen=True, slots=True)
class Impact:
    fields: tuple[FieldImpact, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    preemption: tuple[Preemption, ...] = ()

    def count(self, *effects: Effect) -> int:
        """Jobs (an array's tasks each) with one of these effects, each once."""
        jobs = {found.job.id: found.job.tasks for one in self.fields for found in one.of(*effects)}
        return sum(jobs.values())

    @property
    def ends_jobs(self) -> bool:
        """Whether applying asks first: running jobs are or may be ended."""
        return self.count(Effect.ENDED, Effect.MAY_END) > 0


@dataclass(frozen=True, slots=True)
class PastUsage:
    """An upper bound, from the runs that ended, of what Slurm counts for GrpTRESMins and GrpWall.

    By resource, in resource-minutes; `wall` in minutes. Decay makes Slurm's number smaller, never
    larger.
    """

    minutes: Mapping[str, int] = field(default_factory=dict)
    wall: int = 0


@dataclass(frozen=True, slots=True)
class QosLists:
    """The QoS that a group's people may use, before and after, also where it takes the list of the
    group above; `groups` are it and those below it that take its list."""

    before: frozenset[str]
    after: frozenset[str]
    groups: frozenset[str]

    @property
    def lost(self) -> frozenset[str]:
        return self.before - self.after


@dataclass(frozen=True, slots=True)
class Site:
    """What the rules look at besides the jobs. Names are in small letters, as Slurm has them.

    `qos`: each as it will be. `lists`: by group that a change names. `inside`: by group, it and
    the groups below it. `own`: (group, person) whose association has a limit of its own, by (group
    of the item, key of the field). `usage`: by `qos:NAME` and `group:NAME`; `never_decays` are
    those whose usage Slurm lets stand. `ends_running`: whether Slurm ends running jobs at a limit
    on minutes (not with `safe`); None: it has not said.
    """

    qos: Mapping[str, Qos] = field(default_factory=dict)
    lists: Mapping[str, QosLists] = field(default_factory=dict)
    inside: Mapping[str, frozenset[str]] = field(default_factory=dict)
    own: Mapping[tuple[str, str], frozenset[tuple[str, str]]] = field(default_factory=dict)
    usage: Mapping[str, PastUsage] = field(default_factory=dict)
    never_decays: frozenset[str] = frozenset()
    ends_running: bool | None = None
