"""The smoke job of a form: the same job for some minutes, to see whether it would run at all."""

import hashlib
import json
from dataclasses import asdict, replace

from gateway.core.ask import Ask
from gateway.core.offer import Offer, PartitionChoice
from gateway.core.policy import Reading

PURPOSE = "smoke"
MINUTES = 5  # two passes of a step, with what a start and a save take
_SUFFIX, _LONGEST_NAME = "-smoke", 64
# Its run is one of its own, and nobody wants its checkpoint kept elsewhere.
_OWN_RUN = ("run_name", "upload_to", "checkpoint_dir")
# What does not change whether a job would run.
_NO_MATTER = {"name": "", "time_limit": "", "qos": ""}


def trial(ask: Ask, reading: Reading, offer: Offer, *, partition: str) -> Ask:
    """`ask` as its smoke job: on `partition` where that has room for the whole shape, else on its
    own. Never with fewer nodes or processes."""
    group = offer.find_group(reading.group or "")
    small = group.find_partition(partition) if group else None
    own = group.find_partition(reading.partition or "") if group else None
    here = small if small and own and takes(small, own, reading) else own
    caps = [MINUTES, reading.time_limit_minutes, _longest(here, reading.qos)]
    minutes = min(cap for cap in caps if cap)
    stem = (reading.name or ask.template)[: _LONGEST_NAME - len(_SUFFIX)]
    return replace(
        ask,
        name=f"{stem}{_SUFFIX}",
        partition=here.name if here else ask.partition,
        time_limit=str(minutes),
        values={name: "" if name in _OWN_RUN else value for name, value in ask.values.items()},
    )


def takes(small: PartitionChoice, own: PartitionChoice, reading: Reading) -> bool:
    """Whether the job as it is fits there: nodes, cards of the same type, CPUs, its QoS."""
    if not small.is_up or small.find_qos(reading.qos or "") is None:
        return False
    nodes, gpus = reading.nodes or 0, reading.gpus_per_node or 0
    if nodes > min(small.nodes, small.max_nodes or small.nodes):
        return False
    if (reading.cpus_per_task or 0) > (small.cpus_per_node or 0):
        return False
    if not gpus:
        return True
    # A trial on other cards proves nothing: there it must get what it would get at home.
    wanted, there = _kinds(own, reading), _kinds(small, reading)
    room = {kind.name for kind in small.gpus if kind.per_node >= gpus and kind.nodes >= nodes}
    return bool(wanted) and wanted == there and there <= room


def is_same(one: Ask, other: Ask) -> bool:
    """Whether the verdict on the one holds for the other."""
    return _counting(one) == _counting(other)


def key(form_key: str, ask: Ask, *, previous: int | None) -> str:
    """Of the smoke job's own submission: the same for two presses, another one for a changed
    form, or after the `previous` smoke job."""
    text = json.dumps([form_key, asdict(ask), previous], sort_keys=True)
    return f"smoke-{_digest(text)}"


def next_key(form_key: str, smoke_id: int) -> str:
    """For the form's job once the one that waited for this smoke job is over."""
    return f"after-{_digest(f'{form_key} {smoke_id}')}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:48]


def _counting(ask: Ask) -> Ask:
    values = {name: value for name, value in ask.values.items() if value}
    return replace(ask, values=values, **_NO_MATTER)


def _kinds(partition: PartitionChoice, reading: Reading) -> set[str]:
    """The types of cards that the job may get in it."""
    return {kind.name for kind in partition.gpus if reading.gpu_type in {None, kind.name}}


def _longest(here: PartitionChoice | None, qos: str | None) -> int | None:
    found = here.find_qos(qos or "") if here else None
    return found.limits.max_minutes if found else None
