"""What Slurm offers, as the last poll saw it: nodes, partitions, QoS, associations, accounts, and
who stands before whom."""

import json
from functools import lru_cache
from typing import Any, TypeVar, cast

from sqlalchemy import Select, Text, bindparam, delete, insert, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.orm import Session

from gateway.store.models import AssociationNow, Base, NodeNow, PartitionNow, QosNow, table_of
from gateway.store.people_models import (
    AccountNow,
    FairShareNow,
    PriorityNow,
    PriorityWeightsNow,
    ReservationNow,
)
from gateway.store.upsert import chunks
from gateway.wire import codec
from gateway.wire import messages as m
from gateway.wire import policy as p

T = TypeVar("T")

# Rows that were parsed before: two polls apart a thousand nodes are mostly the same text.
_REMEMBERED = 4096
_ROWS = 5000  # of points a statement


def _facts(model: type[Base]) -> Any:
    """The column as text, whatever the database takes JSON for."""
    return sql_cast(table_of(model).c.facts, Text)


def _all(model: type[Base]) -> Select[Any]:
    return select(_facts(model)).order_by(table_of(model).c.name)


_NODES, _PARTITIONS, _QOS = _all(NodeNow), _all(PartitionNow), _all(QosNow)
_ACCOUNTS, _RESERVATIONS, _WEIGHTS = (
    _all(AccountNow),
    _all(ReservationNow),
    _all(PriorityWeightsNow),
)
_FAIR_SHARES = select(_facts(FairShareNow)).order_by(table_of(FairShareNow).c.id)
# In the order of wire PriorityFactors: rows become messages by their place.
_POINTS = table_of(PriorityNow)
_SAME = tuple(name for name in p.PriorityFactors.__slots__ if name != "job_id")
_OF_JOB = _POINTS.select().where(_POINTS.c.slurm_id == bindparam("slurm_id"))
_NO_WEIGHTS = p.PriorityWeights(0, 0, 0, 0, 0, 0, "")
_ALL_ASSOCIATIONS = select(_facts(AssociationNow)).order_by(table_of(AssociationNow).c.id)
_ASSOCIATIONS_OF = (
    select(_facts(AssociationNow))
    .where(table_of(AssociationNow).c.user == bindparam("user"))
    .order_by(table_of(AssociationNow).c.id)
)
_ASSOCIATIONS_IN = (
    select(_facts(AssociationNow))
    .where(table_of(AssociationNow).c.account == bindparam("account"))
    .order_by(table_of(AssociationNow).c.user, table_of(AssociationNow).c.id)
)


def nodes(session: Session) -> tuple[m.Node, ...]:
    return _read(session, _NODES, m.Node)


def partitions(session: Session) -> tuple[m.Partition, ...]:
    return _read(session, _PARTITIONS, m.Partition)


def qos(session: Session) -> tuple[m.Qos, ...]:
    return _read(session, _QOS, m.Qos)


def associations_of(session: Session, user: str) -> tuple[m.Association, ...]:
    return _read(session, _ASSOCIATIONS_OF, m.Association, user=user)


def associations_in(session: Session, account: str) -> tuple[m.Association, ...]:
    return _read(session, _ASSOCIATIONS_IN, m.Association, account=account)


def associations_with_qos(session: Session, qos: str) -> tuple[m.Association, ...]:
    """Of all people whose list has the QoS, whosever list it is."""
    found = _read(session, _ALL_ASSOCIATIONS, m.Association)
    return tuple(one for one in found if qos in one.qos)


def accounts(session: Session) -> tuple[p.Account, ...]:
    return _read(session, _ACCOUNTS, p.Account)


def reservations(session: Session) -> tuple[p.Reservation, ...]:
    return _read(session, _RESERVATIONS, p.Reservation)


def fair_shares(session: Session) -> tuple[p.FairShare, ...]:
    """Of accounts. What people's own lines say is in the points of their jobs."""
    return _read(session, _FAIR_SHARES, p.FairShare)


def priorities(session: Session) -> p.Priorities:
    """Of every job that waits for resources, the first to start first."""
    rows = session.execute(_POINTS.select().order_by(_POINTS.c.priority.desc()))
    return p.Priorities(weights(session), tuple(p.PriorityFactors(*row) for row in rows))


def priority_of(session: Session, slurm_id: int) -> tuple[p.PriorityFactors, ...]:
    """One for each of the job's partitions; none while it is held or not eligible yet, and of a
    task of an array only that of the array."""
    return tuple(
        p.PriorityFactors(*row) for row in session.execute(_OF_JOB, {"slurm_id": slurm_id})
    )


def weights(session: Session) -> p.PriorityWeights:
    """All 0: nobody has told them yet, or the site does not work by factors."""
    return next(iter(_read(session, _WEIGHTS, p.PriorityWeights)), _NO_WEIGHTS)


def replace_cluster(
    session: Session,
    *,
    nodes: tuple[m.Node, ...],
    partitions: tuple[m.Partition, ...],
    reservations: tuple[p.Reservation, ...],
) -> None:
    _replace(session, NodeNow, {node.name: codec.dump(node) for node in nodes})
    _replace(session, PartitionNow, {part.name: codec.dump(part) for part in partitions})
    _replace(session, ReservationNow, {one.name: codec.dump(one) for one in reservations})


def replace_priorities(session: Session, found: p.Priorities) -> None:
    """A job that a partition has twice is kept once, as it came last."""
    _replace(session, PriorityWeightsNow, {"slurm": codec.dump(found.weights)})
    rows = {(one.job_id, one.partition): _flat(one) for one in found.jobs}
    session.execute(delete(PriorityNow))
    for part in chunks(list(rows.values()), _ROWS):
        session.execute(_POINTS.insert(), part)


def replace_policy(
    session: Session,
    *,
    associations: tuple[m.Association, ...],
    qos: tuple[m.Qos, ...],
    accounts: tuple[p.Account, ...],
    fair_shares: tuple[p.FairShare, ...],
) -> None:
    _replace(session, QosNow, {level.name: codec.dump(level) for level in qos})
    _replace(session, AccountNow, {one.policy.name: codec.dump(one) for one in accounts})
    _replace_fair_shares(session, fair_shares)
    _replace_associations(session, associations)


def _replace_fair_shares(session: Session, found: tuple[p.FairShare, ...]) -> None:
    session.execute(delete(FairShareNow))
    rows = [{"account": one.account, "facts": codec.dump(one)} for one in found if one.user is None]
    for part in chunks(rows):
        session.execute(insert(FairShareNow), part)


def _replace_associations(session: Session, associations: tuple[m.Association, ...]) -> None:
    facts = [codec.dump(association) for association in associations]
    query = select(AssociationNow.facts).order_by(AssociationNow.id)
    if list(session.execute(query).scalars()) == facts:
        return
    session.execute(delete(AssociationNow))
    rows = [{"user": f["user"], "account": f["account"], "facts": f} for f in facts]
    for part in chunks(rows):
        session.execute(insert(AssociationNow), part)


def _flat(one: p.PriorityFactors) -> dict[str, Any]:
    row = {name: getattr(one, name) for name in _SAME}
    return row | {"slurm_id": one.job_id}


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
