"""Which GPU type a run's nodes have, where accounting names none."""

from functools import cache
from typing import TYPE_CHECKING

from gateway.core.billing import TypeOfNodes
from gateway.core.hostlist import expand
from gateway.store import snapshot

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def reader(session: "Session") -> TypeOfNodes:
    """A function of node list and partition: the one type, or None where it is not one."""
    nodes = snapshot.nodes(session)
    by_node = {node.name: node.gpu_type for node in nodes}
    by_partition = {
        partition.name: partition.gpu_types for partition in snapshot.partitions(session)
    }

    @cache
    def type_of(node_list: str | None, partition: str) -> str | None:
        names = expand(node_list) if node_list else []
        kinds = {by_node.get(name) for name in names} if names else {None}
        if len(kinds) == 1 and (kind := kinds.pop()) is not None:
            return kind
        if names and any(name in by_node for name in names):
            return None  # known nodes of several types
        of_partition = by_partition.get(partition, ())
        return of_partition[0] if len(of_partition) == 1 else None

    return type_of
