"""From what accounting says of a run to what is charged for it, or why nobody can say yet.

A run that cannot be read for certain is held for review: never charged 0, never guessed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache

from gateway.core.pricing import Usage
from gateway.core.states import parse_state
from gateway.core.tres import gpu_count, parse_tres

# Slurm counts whole seconds at both ends.
_SLACK = timedelta(seconds=2)
# The queue is read every quarter of a minute: an end this long before the last sight of the
# running job was set by somebody's hand.
_SEEN_SLACK = timedelta(minutes=5)

TypeOfNodes = Callable[[str | None, str], str | None]  # node list, partition -> GPU type


class Doubt(StrEnum):
    """Why a run waits for a person. Each has a text that says what to do."""

    GPUS_UNKNOWN = "gpus_unknown"
    GPU_TYPE_UNKNOWN = "gpu_type_unknown"
    GPUS_NOT_TRACKED = "gpus_not_tracked"
    NO_PRICE = "no_price"
    TIMES_DIFFER = "times_differ"
    END_BEFORE_LAST_SEEN = "end_before_last_seen"
    NO_END = "no_end"
    NO_GROUP = "no_group"
    UNSETTLED = "unsettled"


class Suspended(StrEnum):
    """A suspended job does not give back its GPUs. Which time is billed is the site's choice."""

    RUNNING = "running"  # Slurm's elapsed: suspended time is taken out already
    HELD = "held"


class RefundReason(StrEnum):
    """Why a run's charge is given back by rule."""

    NODE_FAIL = "node_fail"
    BOOT_FAIL = "boot_fail"
    PREEMPTED = "preempted"
    ADMINISTRATOR_KILL = "administrator_kill"
    DATASET = "dataset"
    PORTAL_FAULT = "portal_fault"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run that ended, as accounting has it. `gpus` None: accounting cannot say."""

    state: str
    group: str
    partition: str
    start: datetime
    end: datetime
    elapsed_seconds: int
    suspended_seconds: int
    cpus: int
    gpus: int | None
    alloc_tres: str
    node_list: str | None
    seen_until: datetime | None = None


def usage_of(facts: RunFacts, *, type_of: TypeOfNodes, suspended: Suspended) -> Usage | Doubt:
    """The cards by type and the seconds to bill.

    A card whose type accounting does not name takes that of the run's nodes.
    """
    if not facts.group:
        return Doubt.NO_GROUP
    if doubt := _times(facts):
        return doubt
    if facts.gpus is None:
        return Doubt.GPUS_UNKNOWN
    gpus = _by_type(facts, type_of)
    if gpus is None:
        return Doubt.GPU_TYPE_UNKNOWN
    seconds = facts.elapsed_seconds
    if suspended is Suspended.HELD:
        seconds += facts.suspended_seconds
    return Usage(seconds, gpus, facts.cpus)


def decided(usage: Usage | Doubt, facts: RunFacts, decision: Mapping[str, object]) -> Usage | Doubt:
    """The same with what an administrator decided: `seconds`, `gpus` by type, or both."""
    seconds, gpus = decision.get("seconds"), decision.get("gpus")
    known = usage if isinstance(usage, Usage) else None
    if not isinstance(gpus, Mapping):
        gpus = known.gpus if known else None
    if gpus is None:
        return usage
    if not isinstance(seconds, int):
        seconds = known.seconds if known else facts.elapsed_seconds
    return Usage(seconds, {str(kind): int(count) for kind, count in gpus.items()}, facts.cpus)


def refund_reason(state: str, *, preempted_is_free: bool) -> RefundReason | None:
    """What Slurm's own state says about whose fault the end was. A person's error, the time
    limit, a deadline and running out of memory give nothing back."""
    match parse_state(state)[0].value:
        case "NODE_FAIL":
            return RefundReason.NODE_FAIL
        case "BOOT_FAIL":
            return RefundReason.BOOT_FAIL
        case "PREEMPTED" if preempted_is_free:
            return RefundReason.PREEMPTED
    return None


def _times(facts: RunFacts) -> Doubt | None:
    on_nodes = timedelta(seconds=facts.elapsed_seconds + facts.suspended_seconds)
    if facts.end < facts.start or abs((facts.end - facts.start) - on_nodes) > _SLACK:
        return Doubt.TIMES_DIFFER
    if facts.seen_until and facts.seen_until - facts.end > _SEEN_SLACK:
        return Doubt.END_BEFORE_LAST_SEEN
    return None


def _by_type(facts: RunFacts, type_of: TypeOfNodes) -> dict[str, int] | None:
    counted = _counted(facts.alloc_tres)
    if counted is None:
        return None
    total, named = counted
    if facts.gpus != total:
        total, named = facts.gpus or 0, {}
    by_type = {kind: count for kind, count in named.items() if count}
    unnamed = total - sum(by_type.values())
    if unnamed < 0:
        return None  # types are more than the total: nobody knows which is right
    if unnamed:
        kind = type_of(facts.node_list, facts.partition)
        if kind is None:
            return None
        by_type[kind] = by_type.get(kind, 0) + unnamed
    return by_type


@lru_cache(maxsize=4096)  # a hundred thousand runs share some hundred texts
def _counted(alloc_tres: str) -> tuple[int, dict[str, int]] | None:
    try:
        return gpu_count(parse_tres(alloc_tres))
    except ValueError:
        return None
