"""The ledger's tables: pots, entries, and the account whose row writers lock.

Entries are only ever added. `post` moves `Pot.left` in the same transaction, so a pot's rest is
the sum of its entries at every moment.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, insert, select, update
from sqlalchemy.orm import Session

from gateway.core.ledger import NewEntry
from gateway.core.pots import Pot, PotKind
from gateway.store import money_models as mm
from gateway.store.models import table_of
from gateway.store.upsert import chunks, insert_if_new, insert_ignoring

_POT, _ENTRY, _ACCOUNT = table_of(mm.Pot), table_of(mm.Entry), table_of(mm.Account)
_P = _POT.c
_POT_COLUMNS = (_P.id, _P.kind, _P.left, _P.starts, _P.expires, _P.resource, _P.per_hour)
# Old pots that are empty pay for nothing any more; what a hold lies on is asked for by its id.
_OF_USE = (_P.left != 0) | (_P.kind == "balance")
_POTS_OF = select(_P.group_name, *_POT_COLUMNS).where(
    _P.group_name.in_(bindparam("groups", expanding=True)), _OF_USE
)
_POTS_BY_ID = select(_P.group_name, *_POT_COLUMNS).where(
    _P.id.in_(bindparam("ids", expanding=True))
)
_ADD_ENTRIES = insert(_ENTRY)
_MOVE_POT = update(_POT).where(_P.id == bindparam("of")).values(left=_P.left + bindparam("amount"))
_LOCK = (
    select(_ACCOUNT.c.group_name)
    .where(_ACCOUNT.c.group_name.in_(bindparam("groups", expanding=True)))
    .order_by(_ACCOUNT.c.group_name)
    .with_for_update()
)


@dataclass(frozen=True, slots=True)
class AccountRow:
    group: str
    at_zero: str
    overdraft: int
    warning_minutes: int
    committed: int
    committed_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewPot:
    """`key` makes a repeat harmless."""

    group: str
    kind: PotKind
    key: str
    reason: str
    starts: datetime
    expires: datetime | None = None
    note: str = ""
    resource: str | None = None
    per_hour: int | None = None
    carry_over_millionths: int = 0
    campaign_id: int | None = None
    person_id: int | None = None


def lock(session: Session, groups: Iterable[str], *, now: datetime) -> dict[str, list[Pot]]:
    """The groups' pots, each group's balance among them, theirs alone until the transaction ends.

    SQLite's write lock is taken already; PostgreSQL locks the accounts' rows, in one order.
    """
    names = sorted(set(groups))
    found = _pots(session, names)
    missing = [name for name in names if not any(p.kind is PotKind.BALANCE for p in found[name])]
    if missing:
        _open(session, missing, now=now)
    if session.get_bind().dialect.name != "sqlite":
        for part in chunks(names):
            session.execute(_LOCK, {"groups": list(part)}).all()
        found = _pots(session, names)
    elif missing:
        found = _pots(session, names)
    return found


def pots(session: Session, group: str) -> list[Pot]:
    """As they are now, without a lock: for showing. Without a balance where none was opened."""
    return _pots(session, [group])[group]


def pots_by_id(session: Session, ids: Iterable[int]) -> list[tuple[str, Pot]]:
    """Each with its group, also those that are empty."""
    found: list[tuple[str, Pot]] = []
    for part in chunks(sorted(set(ids))):
        rows = session.execute(_POTS_BY_ID, {"ids": list(part)})
        found += [(row[0], Pot(row[1], PotKind(row[2]), *row[3:])) for row in rows]
    return found


def account(session: Session, group: str) -> AccountRow | None:
    columns = [getattr(mm.Account, name) for name in AccountRow.__slots__]
    found = session.execute(select(*columns).where(mm.Account.group == group)).one_or_none()
    return AccountRow(*found) if found else None


def add_pot(session: Session, new: NewPot, *, now: datetime) -> int | None:
    """The new pot's id, empty as yet; None when the key is there already."""
    row = {name: getattr(new, name) for name in NewPot.__slots__ if name != "group"}
    row |= {"kind": new.kind.value, "group_name": new.group, "left": 0, "created_at": now}
    return insert_if_new(session, _POT, row)


def post(session: Session, entries: Sequence[NewEntry]) -> None:
    """Add the lines and move the pots. Raises IntegrityError for a key that is there already:
    the callers look first, under the group's lock."""
    if not entries:
        return
    connection = session.connection()
    connection.execute(_ADD_ENTRIES, [_row(entry) for entry in entries])
    moved: dict[int, int] = defaultdict(int)
    for entry in entries:
        moved[entry.pot_id] += entry.amount
    changes = [{"of": pot, "amount": amount} for pot, amount in sorted(moved.items()) if amount]
    if changes:
        connection.execute(_MOVE_POT, changes)


def has_entry(session: Session, key: str) -> bool:
    return session.scalar(select(mm.Entry.id).where(mm.Entry.key == key).limit(1)) is not None


def expired(session: Session, *, now: datetime, limit: int = 500) -> list[int]:
    """Pots past their end that still hold credit, oldest first."""
    query = (
        select(_P.id)
        .where(_P.expires.is_not(None), _P.expires <= now, _P.left > 0)
        .order_by(_P.expires, _P.id)
        .limit(limit)
    )
    return list(session.scalars(query))


def pot_by_key(session: Session, key: str, *, group: str) -> int | None:
    """The group's pot that was made under this key; not another group's."""
    return session.scalar(select(_P.id).where(_P.key == key, _P.group_name == group))


def amount_of(session: Session, pot_id: int, key: str) -> int | None:
    """What the line with this key put into the pot."""
    query = select(_ENTRY.c.amount).where(_ENTRY.c.pot_id == pot_id, _ENTRY.c.key == key)
    return session.scalar(query)


def entries_in(session: Session, pot_id: int) -> int:
    """How many lines the pot has: makes the next key."""
    query = select(func.count()).where(_ENTRY.c.pot_id == pot_id)
    return int(session.scalar(query) or 0)


def set_rules(session: Session, group: str, **values: Any) -> None:
    """Change an account's rules; the account is opened by `lock` first."""
    session.execute(update(mm.Account).where(mm.Account.group == group).values(**values))


def spent(session: Session, group: str, user: str, *, since: datetime) -> int:
    """What a member's runs cost since then, refunds taken off, and what is held for them now."""
    charged = select(func.coalesce(func.sum(mm.Charge.amount), 0)).where(
        mm.Charge.group == group, mm.Charge.user == user, mm.Charge.at >= since
    )
    refunded = (
        select(func.coalesce(func.sum(mm.Refund.amount), 0))
        .join(mm.Charge, mm.Charge.id == mm.Refund.charge_id)
        .where(mm.Charge.group == group, mm.Charge.user == user, mm.Charge.at >= since)
        .where(mm.Refund.undone_at.is_(None))
    )
    held = select(func.coalesce(func.sum(mm.Hold.amount), 0)).where(
        mm.Hold.group == group, mm.Hold.user == user, mm.Hold.closed_at.is_(None)
    )
    parts = [int(session.scalar(query) or 0) for query in (charged, refunded, held)]
    return parts[0] - parts[1] + parts[2]


def cap(session: Session, group: str, user: str) -> int | None:
    query = select(mm.MemberCap.per_month).where(
        mm.MemberCap.group == group, mm.MemberCap.user == user
    )
    return session.scalar(query)


def _pots(session: Session, groups: Sequence[str]) -> dict[str, list[Pot]]:
    found: dict[str, list[Pot]] = {group: [] for group in groups}
    for part in chunks(groups):
        for row in session.execute(_POTS_OF, {"groups": list(part)}):
            found[row[0]].append(Pot(row[1], PotKind(row[2]), *row[3:]))
    return found


def _open(session: Session, groups: Sequence[str], *, now: datetime) -> None:
    connection = session.connection()
    accounts = [{"group_name": name, "committed": 0} for name in groups]
    connection.execute(
        insert_ignoring(session, _ACCOUNT),
        [row | {"at_zero": "hold", "overdraft": 0, "warning_minutes": 30} for row in accounts],
    )
    for name in groups:
        new = NewPot(name, PotKind.BALANCE, f"balance:{name}", "balance", now)
        add_pot(session, new, now=now)


def _row(entry: NewEntry) -> dict[str, Any]:
    return {
        "at": entry.at,
        "pot_id": entry.pot_id,
        "group_name": entry.group,
        "kind": entry.kind.value,
        "amount": entry.amount,
        "key": entry.key,
        "hold_id": entry.hold_id,
        "charge_id": entry.charge_id,
        "person_id": entry.person_id,
        "note": entry.note,
    }
