"""Which field of the form makes a job too large for a limit, and the nearest value that fits.

Nearest values are found by trying: each one that is offered breaks none of the limits.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gateway.core.ask import FieldProblem
from gateway.core.caps import NODE, Cap, Holder, Shape, Way, Who, asked, breaks, never
from gateway.core.manifest import GpuRule, Resources
from gateway.core.tres import GPU

_SIZES = frozenset({Way.AMOUNT, Way.NODE, Way.SHARED})
_TIMES = frozenset({Way.MINUTES, Way.SHARED_MINUTES})
_ANY = frozenset({Way.RUNNING, Way.QUEUED, Way.SPENT})
# Each code that `problems` can put at a field.
CODES = (
    *(f"{what}_above_{whose}_limit" for what in ("gpus", "size") for whose in
      ("job", "node", "user", "group", "qos")),
    "size_below_least",
    "time_above_job_minutes",
    "tasks_above_submit_limit",
    "nothing_may_start",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of a form that scale a job. `per` is what the person chooses for a node: GPUs
    where they are chosen, else processes; `cpus` of a node where `per` does not move them."""

    resources: Resources
    nodes: int
    per: int
    minutes: int
    gpu_type: str | None
    cpus: int | None
    tasks: int = 1

    @property
    def field(self) -> str:
        return "gpus_per_node" if self.resources.gpus is GpuRule.CHOSEN else "nproc_per_node"

    def shape(self, *, nodes: int | None = None, per: int | None = None) -> Shape:
        own, wanted = self.resources, self.per if per is None else per
        chosen = own.gpus is GpuRule.CHOSEN
        return Shape(
            nodes=self.nodes if nodes is None else nodes,
            gpus_per_node=wanted if chosen else own.gpus_for(wanted, 0),
            gpu_type=self.gpu_type,
            cpus=self.cpus if chosen else own.cpus_for(wanted),
            minutes=self.minutes,
            tasks=self.tasks,
        )


def problems(
    caps: Sequence[Cap], sizes: Sizes, other_qos: Mapping[str, Sequence[Cap]]
) -> tuple[FieldProblem, ...]:
    """What can never start, at the field that would mend it; empty when all is well.

    `other_qos`: what else may be chosen here, with its limits."""
    broken = never(caps, sizes.shape())
    too_large = [cap for cap in broken if cap.way in _SIZES]
    too_long = [cap for cap in broken if cap.way in _TIMES]
    found: list[FieldProblem] = []
    for cap in _narrowest(too_large):
        found += _too_large(cap, caps, sizes)
    for cap in broken:
        if cap.way is Way.LEAST:
            found.append(_too_small(cap, caps, sizes))
        elif cap.way in _ANY:
            found.append(_nothing(cap, sizes, other_qos))
    if too_long:
        found.append(_too_long(too_long, sizes))
    return tuple(found)


def _narrowest(broken: Iterable[Cap]) -> list[Cap]:
    """Of each resource the limit that leaves least: the others are kept with it."""
    found: dict[tuple[str, bool], Cap] = {}
    for cap in broken:
        key = (cap.tres, cap.way is Way.NODE)
        if key not in found or cap.limit < found[key].limit:
            found[key] = cap
    return list(found.values())


def _too_large(cap: Cap, caps: Sequence[Cap], sizes: Sizes) -> list[FieldProblem]:
    code, facts = _code(cap), _facts(cap, sizes.shape())
    alike = [one for one in caps if one.way in _SIZES]
    own = sizes.resources
    if cap.way is not Way.NODE and not own.nodes.is_fixed:
        nodes = _fitting(alike, [sizes.shape(nodes=n) for n in _down(sizes.nodes, own.nodes.min)])
        if nodes is not None:
            return [FieldProblem("nodes", code, facts, str(nodes.nodes))]
    if cap.tres == NODE:
        return [FieldProblem("nodes", code, facts)]
    lowest = own.gpus_per_node.min if own.gpus is GpuRule.CHOSEN else own.nproc_per_node.min
    steps = _down(sizes.per, max(lowest, 1))
    per = next((p for p in steps if not _any(alike, sizes.shape(per=p))), None)
    if per is not None:
        return [FieldProblem(sizes.field, code, facts, str(per))]
    both = next(
        (p for p in (sizes.per, *steps) if not _any(alike, sizes.shape(nodes=1, per=p))), None
    )
    nearest = None if both is None else str(both)
    found = [FieldProblem(sizes.field, code, facts, nearest)]
    if both is not None and sizes.nodes > 1:  # within it only together: each says its part
        found.append(FieldProblem("nodes", code, facts, "1"))
    return found


def _too_small(cap: Cap, caps: Sequence[Cap], sizes: Sizes) -> FieldProblem:
    own, facts = sizes.resources, _facts(cap, sizes.shape())
    most = own.gpus_per_node.max if own.gpus is GpuRule.CHOSEN else own.nproc_per_node.max
    alike = [one for one in caps if one.way in _SIZES or one.way is Way.LEAST]
    if cap.tres != NODE:
        for per in range(sizes.per + 1, most + 1):
            if not _any(alike, sizes.shape(per=per)):
                return FieldProblem(sizes.field, "size_below_least", facts, str(per))
    larger = [sizes.shape(nodes=n) for n in range(sizes.nodes + 1, own.nodes.max + 1)]
    nodes = _fitting(alike, larger)
    field = sizes.field if own.nodes.is_fixed else "nodes"
    nearest = None if nodes is None else str(nodes.nodes)
    return FieldProblem(field, "size_below_least", facts, nearest)


def _too_long(broken: Sequence[Cap], sizes: Sizes) -> FieldProblem:
    """At the time limit: the size may be needed, the time is the easier one to give."""
    shape = sizes.shape()
    fits = {cap: cap.limit // max(1, (asked(cap, shape) or 1) // sizes.minutes) for cap in broken}
    cap = min(broken, key=lambda one: fits[one])
    facts = _facts(cap, shape)
    nearest = str(fits[cap]) if fits[cap] else None
    return FieldProblem("time_limit", "time_above_job_minutes", facts, nearest)


def _nothing(cap: Cap, sizes: Sizes, other_qos: Mapping[str, Sequence[Cap]]) -> FieldProblem:
    array = sizes.resources.array
    if cap.limit and array is not None:
        facts: dict[str, str | int] = {"max": cap.limit, "tasks": sizes.tasks}
        return FieldProblem(array.rows, "tasks_above_submit_limit", facts)
    field = "qos" if cap.holder is Holder.QOS else "group"
    shape = sizes.shape()
    works = (name for name, limits in other_qos.items() if not never(limits, shape))
    nearest = next(works, None) if cap.holder is Holder.QOS else None
    told: dict[str, str | int] = {"name": cap.name, "by": cap.holder.value}
    return FieldProblem(field, "nothing_may_start", told, nearest)


def _code(cap: Cap) -> str:
    what = "gpus" if cap.tres == GPU else "size"
    if cap.way is Way.NODE:
        return f"{what}_above_node_limit"
    if cap.who is Who.ALL:
        return f"{what}_above_{cap.holder.value}_limit"
    whose = {Who.JOB: "job", Who.PERSON: "user", Who.GROUP: "group"}[cap.who]
    return f"{what}_above_{whose}_limit"


def _facts(cap: Cap, shape: Shape) -> dict[str, str | int]:
    wanted = asked(cap, shape) or 0
    return {
        "max": cap.limit,
        "gpus": shape.gpus,
        "asked": wanted,
        "resource": cap.tres,
        "name": cap.name,
    }


def _down(start: int, least: int) -> list[int]:
    return list(range(start - 1, least - 1, -1))


def _fitting(caps: Sequence[Cap], shapes: Iterable[Shape]) -> Shape | None:
    return next((shape for shape in shapes if not _any(caps, shape)), None)


def _any(caps: Sequence[Cap], shape: Shape) -> bool:
    return any(breaks(cap, shape) for cap in caps)
