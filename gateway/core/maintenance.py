"""Which reservation stands before a job that would start now, and how long a job still fits.

Slurm starts no job that its time limit would carry into a reservation of the nodes, unless the job
belongs to it. A job of the portal names no reservation, so it belongs only to one that draws in
whoever may use it (MAGNETIC).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.core.node_states import is_broken

if TYPE_CHECKING:
    from gateway.core.caps import Shape
    from gateway.wire import messages as m
    from gateway.wire import policy as p

# Between the page and the start some moments pass: a limit that fits to the second fits no more.
_SPARE_MINUTES = 2
_ROUND_FROM, _ROUND_TO = 30, 5


@dataclass(frozen=True, slots=True)
class Clash:
    """`start` and `end` of the reservation that comes first. `fits_minutes`: the longest time limit
    with which a job of this shape may start now; None: none does before `end`."""

    name: str
    start: datetime
    end: datetime
    is_maintenance: bool
    fits_minutes: int | None


@dataclass(frozen=True, slots=True)
class Ahead:
    """A reservation that everybody should know of. `nodes` of how many of the cluster's;
    `fits_minutes`: what still ends before it, 0 once it has begun."""

    name: str
    start: datetime
    end: datetime
    nodes: tuple[str, ...]
    is_maintenance: bool
    fits_minutes: int


def clash(
    shape: "Shape",
    *,
    partition: str,
    nodes: "Iterable[m.Node]",
    reservations: "Iterable[p.Reservation]",
    user: str,
    group: str,
    now: datetime,
) -> Clash | None:
    """The reservation that would make such a job wait; None: it finds nodes without."""
    if shape.minutes is None:
        return None
    fit = [node for node in nodes if _fits(node, partition, shape)]
    closed = [one for one in reservations if one.end > now and not _draws_in(one, user, group)]
    ends = now + timedelta(minutes=shape.minutes)
    free_until: list[tuple[datetime, p.Reservation]] = []
    open_nodes = 0
    for node in fit:
        first = _first(node.name, closed)
        if first is None or first.start >= ends:
            open_nodes += 1
        else:
            free_until.append((first.start, first))
    if open_nodes >= shape.nodes or open_nodes + len(free_until) < shape.nodes:
        return None  # or there are too few nodes at all, which others say
    free_until.sort(key=lambda entry: entry[0], reverse=True)
    last, blocking = free_until[shape.nodes - open_nodes - 1]
    return Clash(
        name=blocking.name,
        start=blocking.start,
        end=blocking.end,
        is_maintenance="MAINT" in blocking.flags,
        fits_minutes=fitting_minutes(last, now) or None,
    )


def reservations_ahead(
    reservations: "Sequence[p.Reservation]", now: datetime, *, within: timedelta
) -> tuple[Ahead, ...]:
    """What begins soon or goes on, the first first; those without nodes are of no concern."""
    soon = [one for one in reservations if one.nodes and now < one.end and one.start < now + within]
    return tuple(
        Ahead(
            name=one.name,
            start=one.start,
            end=one.end,
            nodes=one.nodes,
            is_maintenance="MAINT" in one.flags,
            fits_minutes=fitting_minutes(one.start, now),
        )
        for one in sorted(soon, key=lambda one: (one.start, one.name))
    )


def fitting_minutes(start: datetime, now: datetime) -> int:
    """The longest time limit, in whole minutes, of a job that starts about now and ends before
    `start`; a round number where that costs little. 0: none."""
    minutes = max(0, int((start - now).total_seconds() // 60) - _SPARE_MINUTES)
    return minutes - minutes % _ROUND_TO if minutes > _ROUND_FROM else minutes


def _fits(node: "m.Node", partition: str, shape: "Shape") -> bool:
    if partition not in node.partitions or is_broken(node.state):
        return False
    if shape.gpus_per_node and shape.gpu_type and node.gpu_type != shape.gpu_type:
        return False
    return node.gpus >= shape.gpus_per_node and (shape.cpus or 0) <= node.cpus


def _first(node: str, reservations: "Iterable[p.Reservation]") -> "p.Reservation | None":
    mine = (one for one in reservations if node in one.nodes)
    return min(mine, key=lambda one: one.start, default=None)


def _draws_in(one: "p.Reservation", user: str, group: str) -> bool:
    if "MAGNETIC" not in one.flags:
        return False
    return _listed(user, one.users) and _listed(group, one.accounts)


def _listed(name: str, names: Sequence[str]) -> bool:
    """An empty list is everybody; -name takes one out."""
    if f"-{name}" in names:
        return False
    wanted = [one for one in names if not one.startswith("-")]
    return not wanted or name in wanted
