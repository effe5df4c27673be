"""What the form offers: lists for its selects, limits in words, the summary beside it."""

from dataclasses import dataclass, replace

from gateway.core.ask import Ask
from gateway.core.manifest import GpuRule, Manifest, Range, Resources, SbatchOptions, Text
from gateway.core.offer import GroupChoice, Limits, Offer, PartitionChoice, QosChoice
from gateway.core.policy import Reading
from gateway.services.draft import OWN_ENVIRONMENT
from gateway.services.environments import OWN_TITLE, Environment
from gateway.services.preview import Preview
from gateway.services.templates import Template
from gateway.web.i18n import language
from gateway.web.messages import whose
from gateway.web.show import limit_typed, minutes_words
from gateway.web.texts import gettext, ngettext
from gateway.web.views.cluster import free_by_type, free_words

_ONE = Range(1, 1, 1)
NO_MANIFEST = Manifest(
    "",
    Text("", ""),
    Text("", ""),
    Resources(_ONE, _ONE, GpuRule.NONE, _ONE, 1),
    SbatchOptions(),
    (),
)


@dataclass(frozen=True, slots=True)
class TemplateCard:
    name: str
    title: str
    summary: str
    is_app: bool  # is opened, not tried: a smoke job would say nothing of it


@dataclass(frozen=True, slots=True)
class NumberView:
    """A number of the form; a fixed one is not shown."""

    name: str
    input: str
    label: str
    value: str
    hint: str
    fixed: bool


@dataclass(frozen=True, slots=True)
class Offered:
    """Pairs of value and label for each select, hints, and what is chosen now."""

    groups: list[tuple[str, str]]
    partitions: list[tuple[str, str]]
    gpu_types: list[tuple[str, str]]
    qos: list[tuple[str, str]]
    hints: dict[str, str]
    partition: PartitionChoice | None


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands beside the form: the job in words, room and limits, the script."""

    summary: str
    room: list[tuple[str, str]]
    limits: list[tuple[str, str]]
    script: str | None


def beside(seen: Preview, partition: PartitionChoice | None) -> Beside:
    return Beside(
        summary(seen.reading),
        room(seen.reading, partition),
        limits(seen.reading.limits),
        seen.script,
    )


def templates(found: tuple[Template, ...]) -> list[TemplateCard]:
    where = language()
    return [
        TemplateCard(
            one.name,
            one.manifest.title.get(where),
            one.manifest.summary.get(where),
            one.manifest.app is not None,
        )
        for one in found
    ]


def environments(found: tuple[Environment, ...]) -> list[tuple[str, str]]:
    """The site's, and one's own by its path."""
    where = language()
    own = (OWN_ENVIRONMENT, OWN_TITLE.get(where))
    return [*((one.name, one.title.get(where)) for one in found), own]


def with_defaults(ask: Ask, offer: Offer) -> Ask:
    """What no longer fits the group or the partition goes to the default there."""
    group, partition, qos = chosen(offer, ask)
    kinds = [kind.name for kind in partition.gpus] if partition else []
    minutes = partition.default_minutes if partition else None
    return replace(
        ask,
        group=group.name if group else ask.group,
        partition=partition.name if partition else ask.partition,
        qos=qos.name if qos else ask.qos,
        gpu_type=ask.gpu_type if ask.gpu_type in kinds else "",
        time_limit=ask.time_limit or limit_typed(minutes or 60),
        working_directory=ask.working_directory or "~",
        environment=ask.environment or "none",
    )


def _usual_qos(partition: PartitionChoice) -> QosChoice | None:
    """Where no default is set, what Slurm itself falls back to; never the most urgent."""
    if any(one.is_default for one in partition.qos):
        return partition.default_qos
    return partition.find_qos("normal") or partition.default_qos


def chosen(
    offer: Offer, ask: Ask
) -> tuple[GroupChoice | None, PartitionChoice | None, QosChoice | None]:
    """What is chosen, or the default in its place."""
    group = offer.find_group(ask.group) or offer.default_group
    partition = (group.find_partition(ask.partition) or group.default_partition) if group else None
    qos = (partition.find_qos(ask.qos) or _usual_qos(partition)) if partition else None
    return group, partition, qos


def offered(offer: Offer, ask: Ask) -> Offered:
    group, partition, qos = chosen(offer, ask)
    return Offered(
        groups=[(one.name, one.name) for one in offer.groups],
        partitions=[(one.name, _partition_label(one)) for one in group.partitions] if group else [],
        gpu_types=_gpu_types(partition),
        qos=[(one.name, _qos_label(one)) for one in partition.qos] if partition else [],
        hints={
            "partition": _partition_hint(partition) if partition else "",
            "qos": _qos_hint(qos) if qos else "",
            "time_limit": _time_hint(qos.limits) if qos else "",
        },
        partition=partition,
    )


def numbers(
    manifest: Manifest, ask: Ask, reading: Reading, partition: PartitionChoice | None
) -> list[NumberView]:
    own = manifest.resources
    found = [
        _number("nodes", gettext("Nodes"), ask.nodes, own.nodes, _most_nodes(partition, reading)),
        _number(
            "nproc_per_node",
            gettext("Processes on each node"),
            ask.nproc_per_node,
            own.nproc_per_node,
            _most_gpus(partition) if own.gpus is GpuRule.PER_PROCESS else None,
        ),
    ]
    if own.gpus is GpuRule.CHOSEN:
        chosen_gpus = ask.values.get("gpus_per_node", "")
        allowed, most = own.gpus_per_node, _most_gpus(partition)
        label = gettext("GPUs on each node")
        number = _number("gpus_per_node", label, chosen_gpus, allowed, most)
        found.append(replace(number, input="v-gpus_per_node"))
    return found


def array_words(reading: Reading) -> str:
    """10 tasks, 2 at a time; empty where there is no array."""
    if reading.array is None:
        return ""
    tasks = ngettext("%(num)d task", "%(num)d tasks", reading.tasks)
    if reading.at_once is None or reading.at_once >= reading.tasks:
        return tasks
    return gettext("%(tasks)s, %(at_once)s at a time", tasks=tasks, at_once=reading.at_once)


def summary(reading: Reading) -> str:
    """2 nodes × 4 = 8 a100 GPUs; 10 tasks, 2 at a time, each: …"""
    tasks = array_words(reading)
    if not tasks:
        return _one(reading)
    return gettext("%(tasks)s; each: %(job)s", tasks=tasks, job=_one(reading))


def _one(reading: Reading) -> str:
    nodes, each, gpus = reading.nodes, reading.gpus_per_node, reading.gpus
    if nodes is None or each is None or gpus is None:
        return gettext("Fill in the numbers")
    words = ngettext("%(num)d node", "%(num)d nodes", nodes)
    if gpus == 0:
        return gettext("%(nodes)s, no GPU", nodes=words)
    kind = reading.gpu_type or reading.partition or ""
    cards = ngettext("%(num)d GPU", "%(num)d GPUs", gpus)
    return gettext("%(nodes)s × %(each)s = %(cards)s", nodes=words, each=each, cards=cards) + (
        f" ({kind})" if kind else ""
    )


def limits(found: Limits | None) -> list[tuple[str, str]]:
    """The limits that this group, partition and QoS have together."""
    if found is None:
        return []
    longest = minutes_words(found.max_minutes)
    if found.max_minutes is not None:
        longest = f"{longest} ({whose(found.max_minutes_by)})"
    counts = [
        (gettext("Nodes of one job"), found.max_nodes),
        (gettext("GPUs of one job"), found.max_gpus_per_job),
        (gettext("GPUs of one person at once"), found.max_gpus_per_user),
        (gettext("GPUs of the group at once"), found.max_gpus_per_group),
        (gettext("Your running jobs"), found.max_jobs),
        (gettext("Your jobs in the queue"), found.max_submit_jobs),
    ]
    return [(gettext("Longest time"), longest)] + [
        (label, str(count)) for label, count in counts if count is not None
    ]


def room(reading: Reading, partition: PartitionChoice | None) -> list[tuple[str, str]]:
    """Free cards of this partition, of the chosen type or of each."""
    if partition is None:
        return []
    return [
        (gettext("%(type)s free now", type=kind), free_words(free, total))
        for kind, (free, total) in sorted(free_by_type(partition.name).items())
        if reading.gpu_type in {None, kind}
    ]


def _number(name: str, label: str, value: str, allowed: Range, most: int | None) -> NumberView:
    top = min(allowed.max, most) if most else allowed.max
    hint = gettext("%(min)s to %(max)s", min=allowed.min, max=max(top, allowed.min))
    return NumberView(
        name, name, label, value or str(allowed.default), hint, fixed=allowed.is_fixed
    )


def _most_nodes(partition: PartitionChoice | None, reading: Reading) -> int | None:
    caps = [partition.nodes, partition.max_nodes] if partition else []
    if reading.limits is not None:
        caps.append(reading.limits.max_nodes)
    return min((cap for cap in caps if cap), default=None)


def _most_gpus(partition: PartitionChoice | None) -> int | None:
    return partition.gpus_per_node or None if partition else None


def _partition_label(one: PartitionChoice) -> str:
    kinds = ", ".join(kind.name for kind in one.gpus if kind.name != one.name)
    label = f"{one.name} ({kinds})" if kinds else one.name
    return label if one.is_up else gettext("%(name)s – closed", name=label)


def _partition_hint(one: PartitionChoice) -> str:
    nodes = ngettext("%(num)d node", "%(num)d nodes", one.nodes)
    if not one.gpus_per_node:
        return gettext("%(nodes)s, no GPU", nodes=nodes)
    return gettext("%(nodes)s with up to %(gpus)s GPUs each", nodes=nodes, gpus=one.gpus_per_node)


def _gpu_types(partition: PartitionChoice | None) -> list[tuple[str, str]]:
    kinds = [(kind.name, kind.name) for kind in partition.gpus] if partition else []
    return [("", gettext("any")), *kinds] if len(kinds) > 1 else kinds


def _qos_label(one: QosChoice) -> str:
    return gettext("%(name)s – may be interrupted", name=one.name) if one.preemptible else one.name


def _qos_hint(one: QosChoice) -> str:
    if one.preemptible:
        return gettext("A more urgent job may push it off its nodes; it is then requeued.")
    return one.description if one.description != one.name else ""


def _time_hint(found: Limits) -> str:
    if found.max_minutes is None:
        return gettext("No limit here. Minutes, hours:minutes:seconds or days-hours.")
    return gettext(
        "At most %(time)s (%(whose)s).",
        time=minutes_words(found.max_minutes),
        whose=whose(found.max_minutes_by),
    )
