"""What is not refused but would make a job wait: reservations ahead, nodes that are out."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.core.access import Viewer
from gateway.core.caps import Shape
from gateway.core.maintenance import Ahead, Clash, clash, reservations_ahead
from gateway.core.node_states import is_broken
from gateway.core.policy import Reading
from gateway.store import snapshot
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_SOON = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class TooFew:
    """So many nodes of the partition can hold it at all, and only `serving` of them start anything
    now."""

    fitting: int
    serving: int


@dataclass(frozen=True, slots=True)
class Warnings:
    clash: Clash | None = None
    too_few: TooFew | None = None


def warn(reading: Reading, *, viewer: Viewer, begin: Begin, now: datetime) -> Warnings:
    """Of a form that is read so far as to say its size; empty before that."""
    shape = shape_of(reading)
    if shape is None or reading.partition is None or reading.group is None:
        return Warnings()
    with begin() as session:
        nodes, reservations = snapshot.nodes(session), snapshot.reservations(session)
    found = clash(
        shape,
        partition=reading.partition,
        nodes=nodes,
        reservations=reservations,
        user=viewer.unix_user,
        group=reading.group,
        now=now,
    )
    types = {shape.gpu_type} if shape.gpu_type else {node.gpu_type for node in nodes}
    fit = [
        node
        for node in nodes
        if reading.partition in node.partitions
        and node.gpus >= shape.gpus_per_node
        and (not shape.gpus_per_node or node.gpu_type in types)
    ]
    serving = sum(not is_broken(node.state) for node in fit)
    few = TooFew(len(fit), serving) if serving < shape.nodes <= len(fit) else None
    return Warnings(found, few)


def shape_of(reading: Reading) -> Shape | None:
    if reading.nodes is None or reading.gpus_per_node is None:
        return None
    return Shape(
        nodes=reading.nodes,
        gpus_per_node=reading.gpus_per_node,
        gpu_type=reading.gpu_type,
        cpus=reading.cpus_per_task,
        minutes=reading.time_limit_minutes,
    )


def ahead(session: "Session", now: datetime) -> tuple[Ahead, ...]:
    """For the cluster's page: what begins within two weeks, or goes on."""
    return reservations_ahead(snapshot.reservations(session), now, within=_SOON)
