"""Changes of policy, their items and versions: what is written of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import insert, or_, select, text, update
from sqlalchemy.orm import Session

from gateway.core.policy_change import (
    FOLLOWS,
    OPEN,
    ChangeState,
    Item,
    ItemState,
    Of,
    Source,
    of,
)
from gateway.core.qos import Policy
from gateway.store import policy_models as pm
from gateway.store.models import table_of
from gateway.store.upsert import chunks, insert_if_new, insert_ignoring
from gateway.wire import codec

_CHANGE, _ITEM = table_of(pm.PolicyChange), table_of(pm.PolicyItem)
_VERSION, _OBJECT = table_of(pm.PolicyVersion), table_of(pm.PolicyObject)
_ONE_AT_A_TIME = text("select pg_advisory_xact_lock(7102)")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChange:
    """A change as it is proposed. `key` makes a repeat harmless."""

    key: str
    source: Source
    state: ChangeState
    reason: str
    person_id: int | None
    proposed_at: datetime
    needs_approval: bool
    starts_at: datetime | None
    ends_at: datetime | None
    about_id: int | None


def add(session: Session, new: NewChange, items: Sequence[Item]) -> int | None:
    """The new change's id; None when its key is there already."""
    row = {name: getattr(new, name) for name in NewChange.__slots__}
    change_id = insert_if_new(session, _CHANGE, row)
    if change_id is None:
        return None
    rows = [_item_row(change_id, place, item) for place, item in enumerate(items)]
    for part in chunks(rows):
        session.execute(insert(_ITEM), part)
    return change_id


def move(
    session: Session, change_id: int, to: ChangeState, values: dict[str, Any] | None = None
) -> bool:
    """Into a state that may follow; False when another one was faster."""
    before = [state for state, after in FOLLOWS.items() if to in after]
    return _moved(session, change_id, before, to, values or {})


def decide(session: Session, change_id: int, values: dict[str, Any]) -> bool:
    """The yes to what is proposed; False when it is not any more. Not `move`: what is being applied
    may become approved again, and a second yes would take it from who applies it."""
    return _moved(session, change_id, [ChangeState.PROPOSED], ChangeState.APPROVED, values)


def _moved(
    session: Session,
    change_id: int,
    before: Sequence[ChangeState],
    to: ChangeState,
    values: dict[str, Any],
) -> bool:
    done = session.execute(
        update(_CHANGE)
        .where(_CHANGE.c.id == change_id, _CHANGE.c.state.in_([one.value for one in before]))
        .values(state=to.value, **values)
    )
    return bool(getattr(done, "rowcount", 0))


def set_times(
    session: Session, change_id: int, *, starts_at: datetime | None, ends_at: datetime | None
) -> bool:
    """Of a change that is only proposed; False when it is not any more."""
    proposed = _CHANGE.c.id == change_id, _CHANGE.c.state == ChangeState.PROPOSED.value
    times = {"starts_at": starts_at, "ends_at": ends_at}
    done = session.execute(update(_CHANGE).where(*proposed).values(**times))
    return bool(getattr(done, "rowcount", 0))


def claim(
    session: Session, change_id: int, *, until: datetime, now: datetime, person_id: int | None
) -> bool:
    """Whether it is this caller's to apply: it is open and due, and nobody works at it."""
    done = session.execute(
        update(_CHANGE)
        .where(_CHANGE.c.id == change_id, *_due(now))
        .values(state=ChangeState.APPLYING.value, claimed_until=until)
    )
    if not getattr(done, "rowcount", 0):
        return False
    first = _CHANGE.c.id == change_id, _CHANGE.c.begun_at.is_(None)
    session.execute(update(_CHANGE).where(*first).values(begun_at=now, applied_by=person_id))
    return True


def hold_claim(session: Session, change_id: int, *, until: datetime | None) -> None:
    session.execute(update(_CHANGE).where(_CHANGE.c.id == change_id).values(claimed_until=until))


def due(session: Session, *, now: datetime) -> list[int]:
    """Open changes that nobody works at, the oldest first."""
    return list(session.scalars(select(_CHANGE.c.id).where(*_due(now)).order_by(_CHANGE.c.id)))


def lapse(session: Session, *, now: datetime) -> None:
    """What has done nothing by its end never will: it would only go back at once."""
    values = {"state": ChangeState.WITHDRAWN.value, "withdrawn_at": now}
    session.execute(update(_CHANGE).where(*_late(now)).values(**values))


def are_late(session: Session, *, now: datetime) -> bool:
    return session.execute(select(_CHANGE.c.id).where(*_late(now)).limit(1)).first() is not None


def _late(now: datetime) -> tuple[Any, ...]:
    return (
        _CHANGE.c.state.in_([ChangeState.PROPOSED.value, ChangeState.APPROVED.value]),
        _CHANGE.c.ends_at <= now,
    )


def _due(now: datetime) -> tuple[Any, ...]:
    column = _CHANGE.c
    has_done_something = column.state != ChangeState.APPROVED.value
    return (
        column.state.in_([state.value for state in OPEN]),
        or_(column.starts_at.is_(None), column.starts_at <= now),
        or_(column.ends_at.is_(None), column.ends_at > now, has_done_something),
        or_(column.claimed_until.is_(None), column.claimed_until <= now),
    )


def past_their_end(session: Session, *, now: datetime) -> list[int]:
    """Changes that were applied, shall go back now, and whose way back was not begun."""
    back = table_of(pm.PolicyChange).alias("back")
    begun = select(back.c.id).where(
        back.c.about_id == _CHANGE.c.id, back.c.source == Source.SCHEDULE.value
    )
    query = select(_CHANGE.c.id).where(
        _CHANGE.c.ends_at <= now,
        _CHANGE.c.state.in_([ChangeState.APPLIED.value, ChangeState.PARTLY.value]),
        ~begun.exists(),
    )
    return list(session.scalars(query.order_by(_CHANGE.c.id)))


def lock(session: Session) -> None:
    """One at a time marks what it sends, also on PostgreSQL: two could both see an object free."""
    if session.get_bind().dialect.name != "sqlite":
        session.execute(_ONE_AT_A_TIME)


def mark_sent(session: Session, item_ids: Sequence[int], *, at: datetime) -> frozenset[int]:
    """Those that were waiting: they are the caller's to send."""
    marked = session.scalars(
        update(_ITEM)
        .where(_ITEM.c.id.in_(item_ids), _ITEM.c.state == ItemState.WAITING.value)
        .values(state=ItemState.SENT.value, sent_at=at, tries=_ITEM.c.tries + 1)
        .returning(_ITEM.c.id)
    )
    return frozenset(marked)


def mark_waiting(session: Session, item_ids: Sequence[int]) -> None:
    """They did not reach Slurm."""
    sent = _ITEM.c.id.in_(item_ids), _ITEM.c.state == ItemState.SENT.value
    session.execute(update(_ITEM).where(*sent).values(state=ItemState.WAITING.value))


def settle_item(
    session: Session,
    item_id: int,
    state: ItemState,
    *,
    at: datetime,
    code: str | None = None,
    found: Policy | None = None,
) -> bool:
    """False: it is settled already, by one who took the change over."""
    values = {"state": state.value, "settled_at": at, "code": code, "found": _dump(found)}
    is_open = _ITEM.c.state.in_([ItemState.WAITING.value, ItemState.SENT.value])
    done = session.execute(update(_ITEM).where(_ITEM.c.id == item_id, is_open).values(**values))
    return bool(getattr(done, "rowcount", 0))


def add_version(
    session: Session,
    kind: Of,
    name: str,
    policy: Policy | None,
    *,
    before: Policy | None,
    source: Source,
    at: datetime,
    change_id: int | None = None,
    person_id: int | None = None,
    retired: bool | None = None,
) -> int:
    """Its number. `retired` None: as the version before. Locks the object until the commit."""
    key = {"kind": kind.value, "name": name}
    where = (_OBJECT.c.kind == kind.value, _OBJECT.c.name == name)
    empty = key | {"number": 0, "retired": False, "version_id": None}
    session.execute(insert_ignoring(session, _OBJECT), empty)
    session.execute(update(_OBJECT).where(*where).values(number=_OBJECT.c.number + 1))
    number, was = session.execute(select(_OBJECT.c.number, _OBJECT.c.retired).where(*where)).one()
    row = key | {
        "number": number,
        "policy": _dump(policy),
        "before": _dump(before),
        "retired": was if retired is None else retired,
        "source": source.value,
        "change_id": change_id,
        "person_id": person_id,
        "at": at,
    }
    made = session.execute(insert(_VERSION).returning(_VERSION.c.id), row).scalar_one()
    newest = {"version_id": made, "retired": row["retired"]}
    session.execute(update(_OBJECT).where(*where).values(**newest))
    return int(number)


def _item_row(change_id: int, place: int, item: Item) -> dict[str, Any]:
    return {
        "change_id": change_id,
        "place": place,
        "kind": of(item.after).value,
        "name": item.name,
        "before": _dump(item.before),
        "after": _dump(item.after),
        "retires": item.retires,
        "state": ItemState.WAITING.value,
        "tries": 0,
    }


def _dump(policy: Policy | None) -> dict[str, Any] | None:
    return None if policy is None else codec.dump(policy)
