"""What running jobs take of a limit or of a partition's nodes, whose they are, when they end.

Times of ends are what time limits promise: a job may end sooner, and none ends later.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf

from gateway.core.caps import CPU, JOBS, NODE, Cap, Holder, Shape, Way, Who
from gateway.core.tres import GPU

_MOST_REFS = 5


@dataclass(frozen=True, slots=True)
class Running:
    """A job on nodes. `ends` None: it has no time limit. `seen`: the reader may see it; `own`: it
    is the reader's. `completing`: its nodes are busy yet, its limits are free again."""

    id: int
    number: str
    user: str
    group: str
    qos: str
    gpus: int
    gpu_type: str | None
    cpus: int
    nodes: frozenset[str]
    ends: datetime | None
    seen: bool = True
    own: bool = False
    completing: bool = False


@dataclass(frozen=True, slots=True)
class Whose:
    """Of whom the job is that waits."""

    user: str
    group: str


@dataclass(frozen=True, slots=True)
class Ref:
    """A job with its part of what is counted. `id` None: the reader may not see it."""

    id: int | None
    number: str
    user: str
    own: bool
    amount: int
    ends: datetime | None


@dataclass(frozen=True, slots=True)
class Users:
    """One person's part, or with `user` None that of all whom the reader may not see. `refs` are
    some of the jobs, the first to end first."""

    user: str | None
    own: bool
    jobs: int
    amount: int
    refs: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class Freed:
    """At `at`, at the latest, `refs` and `others` more have ended, which is enough. `amount` is
    what they give back together."""

    at: datetime
    amount: int
    refs: tuple[Ref, ...]
    others: int


@dataclass(frozen=True, slots=True)
class FreeNode:
    """A node that may start something, and what of it is free."""

    name: str
    gpu_type: str | None
    gpus: int
    cpus: int


def counted(cap: Cap, whose: Whose, running: Iterable[Running]) -> list[Running]:
    """Those whose use counts against this limit together with the waiting job's."""
    return [one for one in running if _counts(cap, whose, one)]


def used(cap: Cap, whose: Whose, running: Iterable[Running], now: datetime) -> int | None:
    """What is taken of it, in its unit; None: not known here."""
    return _sum(cap, counted(cap, whose, running), now)


def users(cap: Cap, whose: Whose, running: Iterable[Running], now: datetime) -> tuple[Users, ...]:
    """By person, the reader first, then who takes most; the unseen together at the end."""
    found: dict[str | None, list[Running]] = {}
    for one in counted(cap, whose, running):
        found.setdefault(one.user if one.seen else None, []).append(one)
    lines = [
        Users(
            user=user,
            own=any(one.own for one in jobs),
            jobs=len(jobs),
            amount=_sum(cap, jobs, now) or 0,
            refs=_refs(cap, jobs, now)[0] if user is not None else (),
        )
        for user, jobs in found.items()
    ]
    return tuple(sorted(lines, key=lambda one: (one.user is None, not one.own, -one.amount)))


def freed(
    cap: Cap, whose: Whose, running: Iterable[Running], wanted: int, now: datetime
) -> Freed | None:
    """When enough is given back for `wanted` more; None: it is free now, or nobody can tell."""
    jobs = _by_end(counted(cap, whose, running))
    taken = _sum(cap, jobs, now)
    if taken is None or taken + wanted <= cap.limit or wanted > cap.limit:
        return None
    shared, left = Counter(name for one in jobs for name in one.nodes), taken
    for gone, one in enumerate(jobs, start=1):
        if cap.tres == NODE and cap.way is Way.SHARED:
            shared.subtract(one.nodes)
            left -= sum(not shared[name] for name in one.nodes)
        else:
            left -= _amount(cap, one, now) or 0
        if left + wanted <= cap.limit and one.ends is not None:
            refs, others = _refs(cap, jobs[:gone], now)
            return Freed(max(one.ends, now), taken - left, refs, others)
    return None


def nodes_that_fit(shape: Shape, nodes: Iterable[FreeNode]) -> int:
    """On how many nodes there is room now for one node's part of such a job."""
    return sum(_takes(shape, node) for node in nodes)


def room_at(
    shape: Shape, nodes: Sequence[FreeNode], running: Sequence[Running], now: datetime
) -> Freed | None:
    """When so many nodes have room for it, should nobody else take it; None: now, or unknown.

    A job's cards lie evenly on its nodes, as the portal's own do."""
    free = {node.name: node for node in nodes}
    fitting = {node.name for node in nodes if _takes(shape, node)}
    if len(fitting) >= shape.nodes:
        return None
    gone: list[Running] = []
    for one in _by_end([job for job in running if job.nodes & free.keys()]):
        gone.append(one)
        for name in one.nodes & free.keys():
            node = free[name]
            parts = max(1, len(one.nodes))
            free[name] = replace(
                node, gpus=node.gpus + one.gpus // parts, cpus=node.cpus + one.cpus // parts
            )
            if _takes(shape, free[name]):
                fitting.add(name)
        if len(fitting) >= shape.nodes and one.ends is not None:
            cards = Cap(Holder.PARTITION, "", "grp_tres", GPU, 0)
            refs, others = _refs(cards, gone, now)
            return Freed(max(one.ends, now), sum(job.gpus for job in gone), refs, others)
    return None


def _counts(cap: Cap, whose: Whose, one: Running) -> bool:
    if one.completing:
        return False
    if cap.holder is Holder.QOS:
        if one.qos.casefold() != cap.name.casefold():
            return False
    elif one.group not in (cap.accounts or {cap.name}):
        return False
    match cap.who:
        case Who.PERSON:
            return one.user == whose.user
        case Who.GROUP:
            return one.group == whose.group
        case Who.ALL:
            return True
        case Who.JOB:
            return False


def _sum(cap: Cap, jobs: Sequence[Running], now: datetime) -> int | None:
    if cap.way is Way.SHARED and cap.tres == NODE:  # a node counts once, however many share it
        return len(frozenset[str]().union(*(one.nodes for one in jobs)))
    amounts = [_amount(cap, one, now) for one in jobs]
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(amounts) or (not jobs and not _is_known(cap)):
        return None
    return sum(known)


def _amount(cap: Cap, one: Running, now: datetime) -> int | None:
    match cap.way:
        case Way.RUNNING:
            return 1
        case Way.SHARED:
            return _of(cap.tres, one)
        case Way.SHARED_MINUTES:
            whole = _of(cap.tres, one)
            if whole is None or one.ends is None:
                return None
            return whole * max(0, int((one.ends - now).total_seconds()) // 60)
        case _:
            return None


def _is_known(cap: Cap) -> bool:
    resource = cap.tres in {GPU, CPU, NODE, JOBS} or cap.tres.startswith(f"{GPU}:")
    return resource and cap.way in {Way.RUNNING, Way.SHARED, Way.SHARED_MINUTES}


def _of(tres: str, one: Running) -> int | None:
    if tres.startswith(f"{GPU}:"):
        return one.gpus if tres == f"{GPU}:{one.gpu_type}" else 0
    return {GPU: one.gpus, CPU: one.cpus, NODE: len(one.nodes)}.get(tres)


def _takes(shape: Shape, node: FreeNode) -> bool:
    if shape.gpus_per_node and shape.gpu_type not in {None, node.gpu_type}:
        return False
    return node.gpus >= shape.gpus_per_node and node.cpus >= (shape.cpus or 0)


def _by_end(jobs: Iterable[Running]) -> list[Running]:
    """Those that may run for ever come last."""
    return sorted(jobs, key=lambda one: inf if one.ends is None else one.ends.timestamp())


def _refs(cap: Cap, jobs: Sequence[Running], now: datetime) -> tuple[tuple[Ref, ...], int]:
    """The seen ones, a few, and how many more there are."""
    seen = [one for one in _by_end(jobs) if one.seen][:_MOST_REFS]
    refs = tuple(
        Ref(one.id, one.number, one.user, one.own, _amount(cap, one, now) or 0, one.ends)
        for one in seen
    )
    return refs, len(jobs) - len(refs)
