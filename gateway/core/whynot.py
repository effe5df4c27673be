"""Why a job does not start yet: the limit or the lack, who stands in its way, what would help.

What is not known is said to be unknown, never guessed. `facts` are what the last polls saw.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from gateway.core.caps import TOGETHER, Cap, Holder, Way, asked, breaks
from gateway.core.maintenance import Clash
from gateway.core.reason_limits import LimitOf, limit_of
from gateway.core.reasons import reason_key, reason_word
from gateway.core.usage import Freed, Users, freed, nodes_that_fit, room_at, users
from gateway.core.whyhelp import Help, Trial, for_key, for_limit

# What can be unknown about an answer, for the texts.
UNKNOWN = (
    "limit",  # which one it is: Slurm does not say, or it stands where nobody reads it
    "usage",  # what is taken of it
    "asked",  # what the job asks of it
    "end",  # when enough ends: a job has no time limit
    "licences",
    "other_job",  # the one that it depends on
)


@dataclass(frozen=True, slots=True)
class Job:
    """The one that waits; of whom it is and what it asks for is in the facts' trial."""

    id: int
    partition: str


@dataclass(frozen=True, slots=True)
class Out:
    """A node of the partition that starts nothing now."""

    name: str
    state: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """`trial` has the limits, what runs, what is free. `queued` are jobs that wait or run where the
    limit counts those. `begins`: the time that the job asked for; `after`: the number of the job
    that it depends on; `at_once`: tasks of its array. None: not known."""

    trial: Trial
    state: str | None = None  # of the partition
    queued: int | None = None
    out: tuple[Out, ...] = ()
    clash: Clash | None = None
    begins: datetime | None = None
    after: str | None = None
    at_once: int | None = None


@dataclass(frozen=True, slots=True)
class Use:
    """A limit and how much of it is taken, in its unit. `key` is of core.caps.KEYS, or max_nodes
    or max_time_minutes of a partition. None: not known."""

    holder: Holder
    name: str
    key: str
    tres: str
    limit: int
    used: int | None
    asked: int | None


@dataclass(frozen=True, slots=True)
class Space:
    """Of the partition: nodes that have room for one node's part of the job, and GPUs that are
    free on all of them."""

    fitting: int
    needed: int
    free_gpus: int


@dataclass(frozen=True, slots=True)
class Why:
    """`key` is of core.reasons, `word` Slurm's own. `never`: the limit does not allow such a job
    even when nothing else runs. `users` share what the limit counts; `freed` says when there is
    enough for the job, of the limit or else of the partition's nodes."""

    key: str
    word: str
    never: bool = False
    use: Use | None = None
    users: tuple[Users, ...] = ()
    freed: Freed | None = None
    space: Space | None = None
    out: tuple[Out, ...] = ()
    clash: Clash | None = None
    state: str | None = None
    begins: datetime | None = None
    after: str | None = None
    at_once: int | None = None
    gated: bool = False
    helps: tuple[Help, ...] = ()
    unknown: tuple[str, ...] = ()


def why(job: Job, reason: str | None, facts: Facts) -> Why:
    """The answer to one pending reason, as Slurm prints it."""
    named = limit_of(reason)
    found = Why(reason_key(reason), reason_word(reason), gated=facts.trial.gated)
    if named is None:
        return _without_limit(found, facts)
    if named.holder is Holder.PARTITION:
        return _of_partition(job, named, facts, found)
    cap = _cap(named, facts)
    if cap is None:
        return replace(found, unknown=("limit",))
    return _of_limit(cap, facts, found)


def _of_limit(cap: Cap, facts: Facts, found: Why) -> Why:
    trial = facts.trial
    taken, wanted = _taken(cap, facts), asked(cap, trial.shape)
    shared = cap.way in TOGETHER and taken is not None
    unknown = [] if taken is not None or not _is_counted(cap) else ["usage"]
    unknown += [] if wanted is not None or cap.way is Way.SPENT else ["asked"]
    ends = None
    if shared and wanted is not None:
        ends = freed(cap, trial.whose, trial.running, wanted, trial.now)
        late = ends is None and breaks(cap, trial.shape, taken or 0) and wanted <= cap.limit
        unknown += ["end"] if late else []
    return replace(
        found,
        never=breaks(cap, trial.shape),
        use=Use(cap.holder, cap.name, cap.key, cap.tres, cap.limit, taken, wanted),
        users=users(cap, trial.whose, trial.running, trial.now) if shared else (),
        freed=ends,
        helps=for_limit(cap, trial),
        unknown=tuple(unknown),
    )


def _cap(named: LimitOf, facts: Facts) -> Cap | None:
    """The row that Slurm means: of several (types of GPU, groups above) one that the job breaks
    now, else the tightest."""
    keys = {named.key, "own_grp_tres"} if named.key == "grp_tres" else {named.key}
    rows = [
        cap
        for cap in facts.trial.caps
        if cap.holder is named.holder
        and cap.key in keys
        and (named.tres is None or cap.tres.partition(":")[0] == named.tres)
    ]
    broken = [cap for cap in rows if breaks(cap, facts.trial.shape, _taken(cap, facts) or 0)]
    return min(broken or rows, key=lambda cap: cap.limit, default=None)


def _taken(cap: Cap, facts: Facts) -> int | None:
    if cap.way is Way.QUEUED:
        return facts.queued
    return facts.trial.taken(cap)


def _is_counted(cap: Cap) -> bool:
    return cap.way in TOGETHER or cap.way in {Way.QUEUED, Way.SPENT}


def _of_partition(job: Job, named: LimitOf, facts: Facts, found: Why) -> Why:
    trial, key = facts.trial, named.key or ""
    limit, wanted = {
        "max_nodes": (trial.max_nodes, trial.shape.nodes),
        "max_time_minutes": (trial.max_minutes, trial.shape.minutes),
    }[key]
    found = replace(found, helps=for_key(found.key, trial))
    if limit is None:
        return replace(found, unknown=("limit",))
    return replace(found, use=Use(named.holder, job.partition, key, "", limit, None, wanted))


def _without_limit(found: Why, facts: Facts) -> Why:
    fits = facts.clash.fits_minutes if facts.clash else None
    found = replace(found, helps=for_key(found.key, facts.trial, fits_minutes=fits))
    if facts.clash is not None:  # nodes that are kept for something else: no QoS stands before that
        found = replace(found, helps=tuple(one for one in found.helps if one.code == "shorter"))
    match found.key:
        case "priority" | "resources" | "nodes_unavailable" | "none":
            return _of_nodes(found, facts)
        case "dependency" | "dependency_never":
            unknown = () if facts.after else ("other_job",)
            return replace(found, after=facts.after, unknown=unknown)
        case "begin_time":
            return replace(found, begins=facts.begins)
        case "array_limit":
            return replace(
                found, at_once=facts.at_once, unknown=() if facts.at_once else ("limit",)
            )
        case "partition_down":
            return replace(found, state=facts.state)
        case "licenses":
            return replace(found, unknown=("licences",))
        case "accounting_policy" | "memory_limit":
            return replace(found, unknown=("limit",))
        case _:
            return found


def _of_nodes(found: Why, facts: Facts) -> Why:
    """What is free, and when enough is, whoever takes it then."""
    trial = facts.trial
    space = Space(
        fitting=nodes_that_fit(trial.shape, trial.nodes),
        needed=trial.shape.nodes,
        free_gpus=sum(node.gpus for node in trial.nodes),
    )
    # Before a reservation the jobs that end make no room for one that would reach into it.
    blocked = facts.clash is not None
    ends = None if blocked else room_at(trial.shape, trial.nodes, trial.running, trial.now)
    return replace(found, space=space, freed=ends, out=facts.out, clash=facts.clash)
