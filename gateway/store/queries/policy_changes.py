"""Changes of policy and versions of its objects, as frozen rows."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Select, Text, bindparam, case, cast, func, select
from sqlalchemy.orm import Session, aliased

from gateway.core.policy_change import ChangeState, Item, ItemState, Of, Source, object_name
from gateway.core.qos import GroupPolicy, Policy, Qos
from gateway.store import policy_models as pm
from gateway.store.models import Person, table_of
from gateway.wire import codec

_CLASS: dict[str, Any] = {Of.QOS: Qos, Of.GROUP: GroupPolicy}
_REMEMBERED = 4096
_FIRST_NAMES = 3


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One object of a change. `code`: why it was not done; `found`: what Slurm had after a write
    that took only some of it, or when the item was settled by reading."""

    id: int
    place: int
    item: Item
    state: ItemState
    sent_at: datetime | None
    settled_at: datetime | None
    code: str | None
    found: Policy | None
    tries: int

    @property
    def object(self) -> str:
        return self.item.object


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A change in a list. Logins are None where nobody signed in did it: a command, the worker.

    `about_id`: the change that this one undoes, or whose way back it is. `names`: the first of
    its objects.
    """

    id: int
    source: Source
    state: ChangeState
    reason: str
    author: str | None
    author_id: int | None
    proposed_at: datetime
    needs_approval: bool
    approved_by: str | None
    approved_at: datetime | None
    starts_at: datetime | None
    ends_at: datetime | None
    applied_by: str | None
    begun_at: datetime | None
    settled_at: datetime | None
    withdrawn_by: str | None
    withdrawn_at: datetime | None
    about_id: int | None
    claimed_until: datetime | None
    names: tuple[str, ...]
    total: int
    done: int
    refused: int


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A change with all its objects, in the order in which Slurm is told."""

    line: ChangeLine
    items: tuple[ItemRow, ...]

    @property
    def id(self) -> int:
        return self.line.id

    @property
    def state(self) -> ChangeState:
        return self.line.state


@dataclass(frozen=True, slots=True)
class VersionRow:
    """What an object was from `at` on. `policy` None: Slurm had it no more. `by`: a login."""

    of: Of
    name: str
    number: int
    policy: Policy | None
    before: Policy | None
    retired: bool
    source: Source
    change_id: int | None
    by: str | None
    at: datetime

    @property
    def object(self) -> str:
        return object_name(self.of, self.name)


def change(session: Session, change_id: int) -> ChangeRow | None:
    found = _lines(session, _changes().where(pm.PolicyChange.id == change_id))
    return ChangeRow(found[0], _items(session, change_id)) if found else None


def changes(
    session: Session,
    *,
    states: Collection[ChangeState] = (),
    of: tuple[Of, str] | None = None,
    before_id: int | None = None,
    limit: int = 50,
) -> tuple[ChangeLine, ...]:
    """The newest first; of these states, and of this object, where they are given."""
    query = _changes().order_by(pm.PolicyChange.id.desc()).limit(limit)
    if states:
        query = query.where(pm.PolicyChange.state.in_(sorted(states)))
    if before_id is not None:
        query = query.where(pm.PolicyChange.id < before_id)
    if of is not None:
        items = select(pm.PolicyItem.change_id).where(
            pm.PolicyItem.kind == of[0].value, pm.PolicyItem.name == of[1]
        )
        query = query.where(pm.PolicyChange.id.in_(items))
    return tuple(_lines(session, query))


def lines(session: Session, ids: Collection[int]) -> dict[int, ChangeLine]:
    """Of these changes, by id, without their objects."""
    found = _lines(session, _changes().where(pm.PolicyChange.id.in_(ids)))
    return {one.id: one for one in found}


def by_key(session: Session, key: str) -> int | None:
    return session.scalar(select(pm.PolicyChange.id).where(pm.PolicyChange.key == key))


def versions(session: Session, of: Of, name: str, *, limit: int = 100) -> tuple[VersionRow, ...]:
    """Of one object, the newest first."""
    query = (
        _versions()
        .where(pm.PolicyVersion.kind == of.value, pm.PolicyVersion.name == name)
        .order_by(pm.PolicyVersion.number.desc())
        .limit(limit)
    )
    return tuple(_version(row) for row in session.execute(query))


def version(session: Session, of: Of, name: str, number: int) -> VersionRow | None:
    query = _versions().where(
        pm.PolicyVersion.kind == of.value,
        pm.PolicyVersion.name == name,
        pm.PolicyVersion.number == number,
    )
    row = session.execute(query).one_or_none()
    return None if row is None else _version(row)


def newest(session: Session, *, since: datetime | None = None) -> dict[tuple[Of, str], VersionRow]:
    """The newest version of each object; those alone that are not older than `since`."""
    query = _NEWEST if since is None else _NEWEST_SINCE
    given = {} if since is None else {"since": since}
    rows = (_version(row) for row in session.execute(query, given))
    return {(row.of, row.name): row for row in rows}


def retired(session: Session) -> frozenset[str]:
    """QoS that the portal offers no more."""
    query = select(pm.PolicyObject.name).where(
        pm.PolicyObject.kind == Of.QOS.value, pm.PolicyObject.retired
    )
    return frozenset(session.scalars(query))


def in_flight(session: Session) -> frozenset[tuple[Of, str]]:
    """Objects that were sent to Slurm and are not settled."""
    query = select(pm.PolicyItem.kind, pm.PolicyItem.name).where(
        pm.PolicyItem.state == ItemState.SENT.value
    )
    return frozenset((Of(kind), name) for kind, name in session.execute(query))


def load(kind: str, text: str | None) -> Policy | None:
    return None if text is None or text == "null" else _parsed(kind, text)


@lru_cache(maxsize=_REMEMBERED)
def _parsed(kind: str, text: str) -> Policy:
    found: Policy = codec.parse(_CLASS[kind], json.loads(text))
    return found


_CHANGE = table_of(pm.PolicyChange)
_AUTHOR, _APPROVER, _APPLIER, _WITHDRAWER = (aliased(Person) for _ in range(4))
_SETTLED = (ItemState.REFUSED.value, ItemState.HALF.value)


def _changes() -> Select[Any]:
    model = pm.PolicyChange
    logins = {
        "author": (_AUTHOR, model.person_id),
        "approved_by": (_APPROVER, model.approved_by),
        "applied_by": (_APPLIER, model.applied_by),
        "withdrawn_by": (_WITHDRAWER, model.withdrawn_by),
    }
    columns = [
        logins[name][0].login.label(name)
        if name in logins
        else model.person_id.label(name)
        if name == "author_id"
        else getattr(model, name)
        for name in ChangeLine.__slots__[:-4]
    ]
    query = select(*columns)
    for person, column in logins.values():
        query = query.outerjoin(person, person.id == column)
    return query


def _lines(session: Session, query: Select[Any]) -> list[ChangeLine]:
    rows = [row._asdict() for row in session.execute(query)]
    counts = _counts(session, [row["id"] for row in rows])
    for row in rows:
        row["source"], row["state"] = Source(row["source"]), ChangeState(row["state"])
    return [ChangeLine(**row, **counts[row["id"]]) for row in rows]


def _counts(session: Session, ids: Sequence[int]) -> dict[int, dict[str, Any]]:
    item = pm.PolicyItem
    sums = select(
        item.change_id,
        func.count(),
        func.sum(case((item.state == ItemState.DONE.value, 1), else_=0)),
        func.sum(case((item.state.in_(_SETTLED), 1), else_=0)),
    ).where(item.change_id.in_(ids))
    empty = {"names": (), "total": 0, "done": 0, "refused": 0}
    found: dict[int, dict[str, Any]] = {one: dict(empty) for one in ids}
    for change_id, total, done, refused in session.execute(sums.group_by(item.change_id)):
        found[change_id] |= {"total": total, "done": done, "refused": refused}
    names = select(item.change_id, item.kind, item.name).where(
        item.change_id.in_(ids), item.place < _FIRST_NAMES
    )
    for change_id, kind, name in session.execute(names.order_by(item.change_id, item.place)):
        found[change_id]["names"] += (object_name(Of(kind), name),)
    return found


def _text(column: Any) -> Any:
    """The column as text, whatever the database takes JSON for."""
    return cast(column, Text)


def _items(session: Session, change_id: int) -> tuple[ItemRow, ...]:
    item = pm.PolicyItem
    query = select(
        item.id,
        item.place,
        item.kind,
        _text(item.before),
        _text(item.after),
        item.retires,
        item.state,
        item.sent_at,
        item.settled_at,
        item.code,
        _text(item.found),
        item.tries,
    ).where(item.change_id == change_id)
    return tuple(_item(row) for row in session.execute(query.order_by(item.place)))


def _item(row: Any) -> ItemRow:
    kind, after = row[2], load(row[2], row[4])
    assert after is not None  # the column is never null
    return ItemRow(
        id=row[0],
        place=row[1],
        item=Item(load(kind, row[3]), after, row[5]),
        state=ItemState(row[6]),
        sent_at=row[7],
        settled_at=row[8],
        code=row[9],
        found=load(kind, row[10]),
        tries=row[11],
    )


_V, _OBJECT, _PERSON = table_of(pm.PolicyVersion), table_of(pm.PolicyObject), table_of(Person)


def _versions() -> Select[Any]:
    column = _V.c
    return select(
        column.kind,
        column.name,
        column.number,
        _text(column.policy),
        _text(column.before),
        column.retired,
        column.source,
        column.change_id,
        _PERSON.c.login,
        column.at,
    ).outerjoin(_PERSON, _PERSON.c.id == column.person_id)


# Built once: pages ask it each time.
_NEWEST = _versions().join(_OBJECT, _OBJECT.c.version_id == _V.c.id)
_NEWEST_SINCE = _NEWEST.where(_V.c.at >= bindparam("since", type_=_V.c.at.type))


def _version(row: Any) -> VersionRow:
    kind = Of(row[0])
    policy, before = load(kind, row[3]), load(kind, row[4])
    return VersionRow(kind, row[1], row[2], policy, before, row[5], Source(row[6]), *row[7:])
