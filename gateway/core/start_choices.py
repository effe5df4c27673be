"""Other shapes of a request that may start sooner or cost less: fewer cards, a shorter limit,
other cards, another QoS. Each is judged by the rules of the form, so that it can be sent."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from gateway.core.ask import Ask, FieldProblem
from gateway.core.durations import format_time_limit
from gateway.core.forecast import Forecast
from gateway.core.manifest import GpuRule, Manifest
from gateway.core.offer import GroupChoice, Offer
from gateway.core.policy import Reading, judge

GPUS_FIELD = "gpus_per_node"  # the template's own, where one chooses them
MOST = 3
_SHAPE = frozenset(
    ("group", "partition", "qos", "gpu_type", "nodes", "nproc_per_node", "time_limit", GPUS_FIELD)
)
_EMPTY = frozenset(("required", "field_required", "time_limit_empty"))
# What is less than both sooner is not worth a change.
_LEAST_GAIN_S, _LEAST_PART = 300, 0.2


class Change(StrEnum):
    GPUS = "gpus"
    TIME_LIMIT = "time_limit"
    GPU_TYPE = "gpu_type"
    PARTITION = "partition"
    QOS = "qos"


@dataclass(frozen=True, slots=True)
class Other:
    """`sets` are the fields of the form that it changes, as somebody would type them."""

    change: Change
    sets: Mapping[str, str]
    reading: Reading


@dataclass(frozen=True, slots=True)
class Ranked:
    """What speaks for another shape. `costs` None: nobody knows."""

    start: Forecast
    costs: int | None
    change: Change


def others(
    ask: Ask,
    reading: Reading,
    offer: Offer,
    manifest: Manifest,
    *,
    problems: Sequence[FieldProblem],
    shorter_minutes: int | None,
) -> list[Other]:
    """Those that this person may send. `problems` are what the form has already, such as a field
    that is still empty; `shorter_minutes` is a limit that is still enough."""
    known = {(one.field, one.code) for one in problems}
    found = []
    for change, sets in _sets(reading, offer, manifest, shorter_minutes):
        judged = judge(_changed(ask, sets), offer, manifest)
        if all((one.field, one.code) in known for one in judged.problems):
            found.append(Other(change, sets, judged.reading))
    return found


def in_the_way(problems: Sequence[FieldProblem]) -> bool:
    """Whether one of them keeps the job from ever starting as it is asked for. A field that is
    still empty does not."""
    return any(one.field in _SHAPE and one.code not in _EMPTY for one in problems)


def best(own: Ranked, found: Sequence[Ranked]) -> list[int]:
    """Places of up to three of `found`: sooner, or cheaper and not later; of each kind the
    soonest before a second one of a kind."""
    worth = [place for place, one in enumerate(found) if _is_worth(own, one)]
    worth.sort(key=lambda place: (found[place].start.p50_s, found[place].costs or 0))
    first = [
        place
        for at, place in enumerate(worth)
        if all(found[place].change != found[earlier].change for earlier in worth[:at])
    ]
    rest = [place for place in worth if place not in first]
    return sorted([*first, *rest][:MOST], key=worth.index)


def _is_worth(own: Ranked, one: Ranked) -> bool:
    gain = own.start.p50_s - one.start.p50_s
    least = max(_LEAST_GAIN_S, own.start.p50_s * _LEAST_PART)
    if gain >= least:
        return True
    return own.costs is not None and one.costs is not None and one.costs < own.costs and gain >= 0


def _sets(
    reading: Reading, offer: Offer, manifest: Manifest, shorter_minutes: int | None
) -> Iterator[tuple[Change, dict[str, str]]]:
    yield from _fewer(reading, manifest)
    if shorter_minutes is not None:
        limit = format_time_limit(shorter_minutes).removeprefix("0-")
        yield Change.TIME_LIMIT, {"time_limit": limit}
    group = offer.find_group(reading.group or "")
    if group is None:
        return
    yield from _cards(reading, group)
    partition = group.find_partition(reading.partition or "")
    for qos in partition.qos if partition else ():
        if qos.name != reading.qos:
            yield Change.QOS, {"qos": qos.name}


def _fewer(reading: Reading, manifest: Manifest) -> Iterator[tuple[Change, dict[str, str]]]:
    """Half of the cards: by nodes where there are several."""
    gpus, nodes, processes = reading.gpus or 0, reading.nodes or 1, reading.nproc_per_node or 1
    if gpus < 2:
        return
    if nodes > 1:
        yield Change.GPUS, {"nodes": str((nodes + 1) // 2)}
    elif manifest.resources.gpus is GpuRule.PER_PROCESS:
        yield Change.GPUS, {"nproc_per_node": str((processes + 1) // 2)}
    else:
        yield Change.GPUS, {GPUS_FIELD: str((gpus + 1) // 2)}


def _cards(reading: Reading, group: GroupChoice) -> Iterator[tuple[Change, dict[str, str]]]:
    """Other types of card, and the same one in other partitions."""
    if not reading.gpus:
        return
    own = reading.partition, reading.gpu_type
    for partition in group.partitions:
        for kind in partition.gpus if partition.is_up else ():
            here = partition.name == reading.partition
            if (partition.name, kind.name) == own or (here and reading.gpu_type is None):
                continue
            same = kind.name == reading.gpu_type
            change = Change.PARTITION if same else Change.GPU_TYPE
            yield change, {"partition": partition.name, "gpu_type": kind.name}


def _changed(ask: Ask, sets: Mapping[str, str]) -> Ask:
    fixed = {name: value for name, value in sets.items() if name != GPUS_FIELD}
    values = {name: value for name, value in sets.items() if name == GPUS_FIELD}
    return replace(ask, values={**ask.values, **values}, **fixed)
