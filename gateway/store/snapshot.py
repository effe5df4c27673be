"""What Slurm offers, as the last poll saw it: nodes, partitions, QoS, associations."""

import json
from functools import lru_cache
from typing import Any, TypeVar, cast

from sqlalchemy import Select, Text, bindparam, delete, insert, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.orm import Session

from gateway.store.models import AssociationNow, Base, NodeNow, PartitionNow, QosNow, table_of
from gateway.store.upsert import chunks
from gateway.wire import codec
from gateway.wire import messages as m

T = TypeVar("T")

# Rows that were parsed before: two polls apart a thousand nodes are mostly the same text.
_REMEMBERED = 4096


def _facts(model: type[Base]) -> Any:
    """The column as text, whatever the database takes JSON for."""
    return sql_cast(table_of(model).c.facts, Text)


def _all(model: type[Base]) -> Select[Any]:
    return select(_facts(model)).order_by(table_of(model).c.name)


_NODES, _PARTITIONS, _QOS = _all(NodeNow), _all(PartitionNow), _all(QosNow)
_ASSOCIATIONS_OF = (
    select(_facts(AssociationNow))
    .where(table_of(AssociationNow).c.user == bindparam("user"))
    .order_by(table_of(AssociationNow).c.id)
)


def nodes(session: Session) -> tuple[m.Node, ...]:
    return _read(session, _NODES, m.Node)


def partitions(session: Session) -> tuple[m.Partition, ...]:
    return _read(session, _PARTITIONS, m.Partition)


def qos(session: Session) -> tuple[m.Qos, ...]:
    return _read(session, _QOS, m.Qos)


def associations_of(session: Session, user: str) -> tuple[m.Association, ...]:
    return _read(session, _ASSOCIATIONS_OF, m.Association, user=user)


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


def _read(session: Session, query: Select[Any], kind: type[T], **given: str) -> tuple[T, ...]:
    texts, hashable = session.execute(query, given).scalars(), cast(Any, kind)
    return tuple(cast(T, _parsed(hashable, text)) for text in texts)


@lru_cache(maxsize=_REMEMBERED)
def _parsed(kind: Any, text: str) -> object:
    """By the text itself, so that nothing remembered can be out of date. Messages are frozen."""
    return codec.parse(kind, json.loads(text))


def _replace(session: Session, model: Any, facts: dict[str, dict[str, Any]]) -> None:
    """Whole or not at all; when nothing has changed, nothing is written."""
    rows_now = session.execute(select(model.name, model.facts)).all()
    if {row.name: row.facts for row in rows_now} == facts:
        return
    session.execute(delete(model))
    rows = [{"name": name, "facts": kept} for name, kept in facts.items()]
    for part in chunks(rows):
        session.execute(insert(model), part)
