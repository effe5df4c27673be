"""The rules behind the form: each field that cannot work, why, and the nearest that does.

Nothing that a person typed is trusted to name a group, partition or QoS: what goes to Slurm is
the name in the person's own offer.
"""

from dataclasses import dataclass
from dataclasses import field as _field
from typing import TypeVar

from gateway.core.answers import Value, clean_all
from gateway.core.arrays import array_text
from gateway.core.ask import Ask, FieldProblem
from gateway.core.capfit import CODES as CAP_CODES
from gateway.core.capfit import Sizes, problems
from gateway.core.durations import BadTimeLimit, format_time_limit, parse_time_limit
from gateway.core.manifest import FieldKind, GpuRule, Manifest, Range
from gateway.core.offer import (
    GpuKind,
    GroupChoice,
    Limits,
    Offer,
    PartitionChoice,
    QosChoice,
    build_offer,
)
from gateway.core.typed import folder, job_name, number

__all__ = [
    "GpuKind",
    "GroupChoice",
    "Judged",
    "Limits",
    "Offer",
    "PartitionChoice",
    "QosChoice",
    "Reading",
    "build_offer",
    "judge",
]

# Each code that `judge` can put at a field, for the texts and for the guard that compares them.
CODES = (
    "required",
    "not_an_integer",
    "too_small",
    "too_big",
    "unknown_choice",
    "group_not_yours",
    "group_leaving",
    "partition_not_allowed",
    "partition_down",
    "partition_without_gpus",
    "qos_not_allowed",
    "gpu_type_not_there",
    "time_limit_above_cap",
    "gpus_per_node_above_node",
    "cpus_above_node",
    "nodes_above_partition",
    *CAP_CODES,
    "name_too_long",
    "name_characters",
    "folder_too_long",
    "folder_not_absolute",
    "folder_characters",
    "folder_parent",
)

T = TypeVar("T", int, str)
_LONGEST_GROUP = 64


@dataclass(slots=True)
class Reading:
    """The form as it was understood, canonical names and numbers; None where it was not.

    `array` is what sbatch takes for it, None for a single job; `tasks` of it, each of the job's
    whole size, and `at_once` of them at a time, None: no limit."""

    group: str | None = None
    partition: str | None = None
    qos: str | None = None
    gpu_type: str | None = None
    nodes: int | None = None
    nproc_per_node: int | None = None
    gpus_per_node: int | None = None
    cpus_per_task: int | None = None
    time_limit_minutes: int | None = None
    name: str | None = None
    working_directory: str | None = None
    limits: Limits | None = None
    array: str | None = None
    tasks: int = 1
    at_once: int | None = None
    values: dict[str, Value] = _field(default_factory=dict)

    @property
    def gpus(self) -> int | None:
        """GPUs of the whole job, of an array those of one task."""
        if self.nodes is None or self.gpus_per_node is None:
            return None
        return self.nodes * self.gpus_per_node


@dataclass(frozen=True, slots=True)
class Judged:
    problems: tuple[FieldProblem, ...]
    reading: Reading

    @property
    def works(self) -> bool:
        return not self.problems


def judge(ask: Ask, offer: Offer, manifest: Manifest) -> Judged:
    """Judge every field, so that nobody mends a form one message at a time."""
    judging = _Judging(ask, manifest)
    judging.numbers()
    judging.texts()
    judging.template_fields()
    group = judging.group(offer)
    partition = judging.partition(group) if group else None
    qos = judging.qos(partition) if partition else None
    if partition is not None:
        judging.node_shape(partition, qos.limits if qos else None)
    if partition is not None and qos is not None:
        judging.time_cap(qos.limits)
        judging.caps(partition, qos.limits)
    return Judged(tuple(judging.problems), judging.reading)


class _Judging:
    """One form under judgement: collects problems instead of raising."""

    def __init__(self, ask: Ask, manifest: Manifest) -> None:
        self._ask = ask
        self._manifest = manifest
        self._resources = manifest.resources
        self.reading = Reading()
        self.problems: list[FieldProblem] = []

    def numbers(self) -> None:
        ask, own, read = self._ask, self._resources, self.reading
        read.nodes = self._number("nodes", ask.nodes, own.nodes)
        read.nproc_per_node = self._number("nproc_per_node", ask.nproc_per_node, own.nproc_per_node)
        chosen = 0
        if own.gpus is GpuRule.CHOSEN:
            typed = ask.values.get("gpus_per_node", str(own.gpus_per_node.default))
            number = self._number("gpus_per_node", typed, own.gpus_per_node)
            if number is None:
                return
            chosen = number
        if read.nproc_per_node is not None:
            read.gpus_per_node = own.gpus_for(read.nproc_per_node, chosen)
            read.cpus_per_task = own.cpus_for(read.nproc_per_node)

    def texts(self) -> None:
        try:
            self.reading.time_limit_minutes = parse_time_limit(self._ask.time_limit)
        except BadTimeLimit as bad:
            self._problem("time_limit", bad.code)
        self.reading.name = self._kept(job_name(self._ask.name))
        self.reading.working_directory = self._kept(folder(self._ask.working_directory))

    def template_fields(self) -> None:
        raw: dict[str, str | bool | None] = dict(self._ask.values)
        for own in self._manifest.fields:
            if own.kind is FieldKind.ENVIRONMENT:
                raw[own.name] = self._ask.environment
        self.reading.values, refused = clean_all(self._manifest, raw)
        for bad in refused:
            self.problems.append(FieldProblem(bad.field or "", bad.code, dict(bad.facts)))
        self._array()

    def group(self, offer: Offer) -> GroupChoice | None:
        found, default = offer.find_group(self._ask.group), offer.default_group
        if found is None:
            code = "group_not_yours" if self._ask.group else "required"
            nearest, typed = default.name if default else None, self._ask.group[:_LONGEST_GROUP]
            self._problem("group", code, nearest=nearest, group=typed)
            return None
        if found.leaving:
            other = next((one.name for one in offer.groups if not one.leaving), None)
            self._problem("group", "group_leaving", nearest=other, group=found.name)
        self.reading.group = found.name
        return found

    def partition(self, group: GroupChoice) -> PartitionChoice | None:
        found = group.find_partition(self._ask.partition)
        if found is None:
            default = group.default_partition
            nearest = default.name if default else None
            self._problem("partition", "partition_not_allowed", nearest=nearest, group=group.name)
            return None
        if not found.is_up:
            up = next((p.name for p in group.partitions if p.is_up), None)
            self._problem("partition", "partition_down", nearest=up, state=found.state)
        self.reading.partition = found.name
        return found

    def qos(self, partition: PartitionChoice) -> QosChoice | None:
        found = partition.find_qos(self._ask.qos)
        if found is None:
            default = partition.default_qos
            nearest = default.name if default else None
            self._problem("qos", "qos_not_allowed", nearest=nearest, partition=partition.name)
            return None
        self.reading.qos = found.name
        self.reading.limits = found.limits
        return found

    def node_shape(self, partition: PartitionChoice, limits: Limits | None) -> None:
        kinds = self._kinds(partition)
        wanted = self.reading.gpus_per_node
        if wanted and not kinds:
            if partition.gpus:
                return  # the type is the problem, and said already
            self._problem("partition", "partition_without_gpus")
            return
        per_node = max((kind.per_node for kind in kinds), default=0)
        if wanted and wanted > per_node:
            nearest = str(per_node)
            self._problem(
                self._gpu_field, "gpus_per_node_above_node", nearest=nearest, max=per_node
            )
        self._cpus(partition)
        self._nodes(partition, limits, kinds)

    def time_cap(self, limits: Limits) -> None:
        minutes, cap = self.reading.time_limit_minutes, limits.max_minutes
        if minutes is None or cap is None or minutes <= cap:
            return
        self._problem(
            "time_limit",
            "time_limit_above_cap",
            nearest=format_time_limit(cap) if cap else None,
            max=cap,
            minutes=minutes,
            by=limits.max_minutes_by,
        )

    def caps(self, partition: PartitionChoice, limits: Limits) -> None:
        """What can never start for a limit; a form that is not whole is not judged yet."""
        read, own = self.reading, self._resources
        if read.nodes is None or read.gpus_per_node is None or read.nproc_per_node is None:
            return
        chosen = own.gpus is GpuRule.CHOSEN
        sizes = Sizes(
            resources=own,
            nodes=read.nodes,
            per=read.gpus_per_node if chosen else read.nproc_per_node,
            minutes=read.time_limit_minutes or 1,
            gpu_type=read.gpu_type,
            cpus=read.cpus_per_task,
            tasks=read.tasks,
        )
        others = {one.name: one.limits.caps for one in partition.qos if one.name != read.qos}
        self.problems += problems(limits.caps, sizes, others)

    def _array(self) -> None:
        rule, read = self._resources.array, self.reading
        rows = read.values.get(rule.rows) if rule else None
        if rule is None or not isinstance(rows, tuple):
            return  # no array, or the table is the problem
        at_once = read.values.get(rule.at_once) if rule.at_once else None
        read.tasks = len(rows)
        read.at_once = min(at_once, read.tasks) if isinstance(at_once, int) and at_once else None
        read.array = array_text(read.tasks, read.at_once)

    @property
    def _gpu_field(self) -> str:
        return "gpus_per_node" if self._resources.gpus is GpuRule.CHOSEN else "nproc_per_node"

    def _kinds(self, partition: PartitionChoice) -> tuple[GpuKind, ...]:
        if not self._ask.gpu_type or not self.reading.gpus_per_node:
            return partition.gpus
        found = tuple(kind for kind in partition.gpus if kind.name == self._ask.gpu_type)
        if found:
            self.reading.gpu_type = found[0].name
        elif partition.gpus:
            nearest = partition.gpus[0].name
            self._problem("gpu_type", "gpu_type_not_there", nearest=nearest)
        return found

    def _cpus(self, partition: PartitionChoice) -> None:
        cpus, most = self.reading.cpus_per_task, partition.cpus_per_node
        if cpus is None or most is None or cpus <= most:
            return
        fits = most // max(1, self._resources.cpus_per_process)
        nearest = str(fits) if fits else None
        self._problem("nproc_per_node", "cpus_above_node", nearest=nearest, max=most, cpus=cpus)

    def _nodes(
        self, partition: PartitionChoice, limits: Limits | None, kinds: tuple[GpuKind, ...]
    ) -> None:
        nodes = self.reading.nodes
        if nodes is None:
            return
        most = [partition.nodes, limits.max_nodes if limits else partition.max_nodes]
        if wanted := self.reading.gpus_per_node:
            most.append(sum(kind.nodes for kind in kinds if kind.per_node >= wanted) or None)
        cap = min((limit for limit in most if limit is not None), default=nodes)
        if nodes > cap:
            nearest = str(cap) if cap else None
            self._problem("nodes", "nodes_above_partition", nearest=nearest, max=cap)

    def _number(self, field: str, typed: str, allowed: Range) -> int | None:
        return self._kept(number(field, typed, allowed))

    def _kept(self, value: T | FieldProblem) -> T | None:
        if isinstance(value, FieldProblem):
            self.problems.append(value)
            return None
        return value

    def _problem(
        self, name: str, code: str, *, nearest: str | None = None, **facts: str | int
    ) -> None:
        self.problems.append(FieldProblem(name, code, dict(facts), nearest))
