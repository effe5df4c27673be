"""The cluster as the last poll saw it: free cards, nodes, partitions, who waits."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Select, func, select
from sqlalchemy.orm import Session

from gateway.core.node_states import in_service
from gateway.core.states import JobState
from gateway.store import snapshot
from gateway.store.models import QueueNow, table_of
from gateway.store.queries.health import PollRow, poll
from gateway.wire.messages import Node, Partition

MOST_SUMS = 100
_PENDING = tuple(state.value for state in JobState if state.is_pending)


@dataclass(frozen=True, slots=True)
class NodeCard:
    """A node in the grid. `down` GPUs are those that are not used and cannot be had."""

    node: Node
    used: int
    free: int
    down: int

    @property
    def in_service(self) -> bool:
        return in_service(self.node.state)


@dataclass(frozen=True, slots=True)
class TypeUse:
    """The cards of one type; `total` = used + free + down."""

    gpu_type: str
    total: int
    used: int
    free: int
    down: int
    waiting_jobs: int
    waiting_gpus: int


@dataclass(frozen=True, slots=True)
class WaitSum:
    """Who waits, by one word: a partition, a GPU type, a group or a reason."""

    word: str | None
    jobs: int
    gpus: int
    oldest_eligible: datetime | None


@dataclass(frozen=True, slots=True)
class Cluster:
    types: tuple[TypeUse, ...]
    nodes: tuple[NodeCard, ...]
    partitions: tuple[Partition, ...]
    waiting_by_partition: tuple[WaitSum, ...]
    waiting_by_type: tuple[WaitSum, ...]
    waiting_by_group: tuple[WaitSum, ...]
    waiting_by_reason: tuple[WaitSum, ...]
    queue_poll: PollRow | None
    cluster_poll: PollRow | None


def _sums(by: Column[Any]) -> Select[Any]:
    jobs, gpus = func.sum(_QUEUE.jobs), func.sum(_QUEUE.gpus)
    return (
        select(by, jobs, gpus, func.min(_QUEUE.oldest_eligible))
        .where(_QUEUE.state.in_(_PENDING))
        .group_by(by)
        .order_by(gpus.desc(), jobs.desc(), by)
        .limit(MOST_SUMS)
    )


_QUEUE = table_of(QueueNow).c
_BY_PARTITION, _BY_TYPE = _sums(_QUEUE.partition), _sums(_QUEUE.gpu_type)
_BY_GROUP, _BY_REASON = _sums(_QUEUE.group_name), _sums(_QUEUE.reason)


def cluster(session: Session) -> Cluster:
    """All of the cluster page. It reads sums, never the jobs."""
    cards = nodes(session)
    by_type = _waiting(session, _BY_TYPE)
    return Cluster(
        types=_types(cards, by_type),
        nodes=cards,
        partitions=snapshot.partitions(session),
        waiting_by_partition=_waiting(session, _BY_PARTITION),
        waiting_by_type=by_type,
        waiting_by_group=_waiting(session, _BY_GROUP),
        waiting_by_reason=_waiting(session, _BY_REASON),
        queue_poll=poll(session, "queue"),
        cluster_poll=poll(session, "cluster"),
    )


def nodes(session: Session) -> tuple[NodeCard, ...]:
    return tuple(_card(one) for one in snapshot.nodes(session))


def _card(node: Node) -> NodeCard:
    used = min(node.gpus_used, node.gpus)
    unused = node.gpus - used
    if in_service(node.state):
        return NodeCard(node, used, unused, 0)
    return NodeCard(node, used, 0, unused)


def _types(cards: Iterable[NodeCard], waiting: Iterable[WaitSum]) -> tuple[TypeUse, ...]:
    queued = {one.word: one for one in waiting}
    by_type: dict[str, list[NodeCard]] = {}
    for card in cards:
        if card.node.gpus:
            by_type.setdefault(card.node.gpu_type or "gpu", []).append(card)
    return tuple(_use(name, by_type[name], queued.get(name)) for name in sorted(by_type))


def _use(name: str, cards: list[NodeCard], waiting: WaitSum | None) -> TypeUse:
    return TypeUse(
        gpu_type=name,
        total=sum(card.node.gpus for card in cards),
        used=sum(card.used for card in cards),
        free=sum(card.free for card in cards),
        down=sum(card.down for card in cards),
        waiting_jobs=waiting.jobs if waiting else 0,
        waiting_gpus=waiting.gpus if waiting else 0,
    )


def _waiting(session: Session, query: Select[Any]) -> tuple[WaitSum, ...]:
    return tuple(
        WaitSum(found, int(jobs), int(gpus), oldest)
        for found, jobs, gpus, oldest in session.execute(query)
    )
