"""Reasons that Slurm gives for more than one thing, told apart by the nodes of that moment.

A drained node that a job asks for by name "may be reserved for other job", as one in a reservation
is; and nodes that are "DOWN, DRAINED or reserved for jobs in higher priority partitions" may be any
of these.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.core.node_states import is_broken

if TYPE_CHECKING:
    from gateway.wire import messages as m
    from gateway.wire import policy as p

# Slurm's words for what they turn out to be.
DOWN, RESERVED, BEHIND = "NodeDown", "Reservation", "Priority"

_SENTENCE = "nodes required for job are down"
_MAY_BE = "reqnodenotavail, may be reserved"


@dataclass(frozen=True, slots=True)
class Around:
    """The cluster at the moment of the look."""

    nodes: "tuple[m.Node, ...]"
    reservations: "tuple[p.Reservation, ...]"
    now: datetime


def is_in_doubt(reason: str | None) -> bool:
    return _plain(reason).startswith((_SENTENCE, _MAY_BE))


def told_apart(
    reason: str | None, *, partition: str, limit_minutes: int | None, around: Around
) -> str | None:
    """The word for what it is; the reason as it was where that does not show.

    `partition` and the time limit (None: none) are the job's. A reservation counts that the job
    would run into if it started now.
    """
    if not is_in_doubt(reason):
        return reason
    asked = set(partition.split(","))  # any of them
    mine = [node for node in around.nodes if asked & set(node.partitions)]
    broken = any(is_broken(node.state) for node in mine)
    if _plain(reason).startswith(_SENTENCE):
        return DOWN if broken else BEHIND
    if _is_reserved({node.name for node in mine}, limit_minutes, around):
        return RESERVED
    return DOWN if broken else reason


def _is_reserved(nodes: set[str], limit_minutes: int | None, around: Around) -> bool:
    last = None if limit_minutes is None else around.now + timedelta(minutes=limit_minutes)
    return any(
        one.end > around.now and (last is None or one.start < last) and nodes & set(one.nodes)
        for one in around.reservations
    )


def _plain(reason: str | None) -> str:
    return (reason or "").strip("()").replace("_", " ").lower()
