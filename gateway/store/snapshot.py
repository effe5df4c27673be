"""What Slurm offers, as the last poll saw it: nodes, partitions, QoS, associations."""

from typing import Any, TypeVar

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from gateway.store.models import AssociationNow, NodeNow, PartitionNow, QosNow
from gateway.store.upsert import chunks
from gateway.wire import codec
from gateway.wire import messages as m

T = TypeVar("T")


def nodes(session: Session) -> tuple[m.Node, ...]:
    return _read(session, NodeNow, m.Node)


def partitions(session: Session) -> tuple[m.Partition, ...]:
    return _read(session, PartitionNow, m.Partition)


def qos(session: Session) -> tuple[m.Qos, ...]:
    return _read(session, QosNow, m.Qos)


def associations_of(session: Session, user: str) -> tuple[m.Association, ...]:
    query = select(AssociationNow.facts).where(AssociationNow.user == user)
    facts = session.execute(query.order_by(AssociationNow.id)).scalars()
    return tuple(codec.parse(m.Association, entry) for entry in facts)


def replace_cluster(
    session: Session, *, nodes: tuple[m.Node, ...], partitions: tuple[m.Partition, ...]
) -> None:
    _replace(session, NodeNow, {node.name: codec.dump(node) for node in nodes})
    _replace(session, PartitionNow, {part.name: codec.dump(part) for part in partitions})


def replace_policy(
    session: Session, *, associations: tuple[m.Association, ...], qos: tuple[m.Qos, ...]
) -> None:
    _replace(session, QosNow, {level.name: codec.dump(level) for level in qos})
    facts = [codec.dump(association) for association in associations]
    query = select(AssociationNow.facts).order_by(AssociationNow.id)
    if list(session.execute(query).scalars()) == facts:
        return
    session.execute(delete(AssociationNow))
    rows = [{"user": f["user"], "account": f["account"], "facts": f} for f in facts]
    for part in chunks(rows):
        session.execute(insert(AssociationNow), part)


def _read(session: Session, model: Any, kind: type[T]) -> tuple[T, ...]:
    query = select(model.facts).order_by(model.name)
    return tuple(codec.parse(kind, facts) for facts in session.execute(query).scalars())


def _replace(session: Session, model: Any, facts: dict[str, dict[str, Any]]) -> None:
    """Whole or not at all; when nothing has changed, nothing is written."""
    rows_now = session.execute(select(model.name, model.facts)).all()
    if {row.name: row.facts for row in rows_now} == facts:
        return
    session.execute(delete(model))
    rows = [{"name": name, "facts": kept} for name, kept in facts.items()]
    for part in chunks(rows):
        session.execute(insert(model), part)
