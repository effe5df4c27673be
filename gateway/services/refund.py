"""Credit given back for a charge: once, with evidence, undoable by an administrator.

Most refunds are made by rule when a run is settled; here are those that a person makes.
"""

from datetime import datetime

from gateway.core.billing import RefundReason
from gateway.core.ledger import EntryKind, NewEntry
from gateway.errors import NotFound, Refused
from gateway.services.settle_books import back_into, taken_back
from gateway.store import charges, ledger
from gateway.store.charges import ChargeRow
from gateway.store.uow import Begin

_LONGEST_NOTE = 2000


def refund(
    charge_id: int,
    *,
    note: str,
    begin: Begin,
    now: datetime,
    person_id: int | None,
    reason: RefundReason = RefundReason.PORTAL_FAULT,
) -> None:
    """Give all of a charge back, with what it was for in words. Refused: note_missing,
    nothing_charged, refunded_before."""
    if not note.strip():
        raise Refused("note_missing", field="note")
    with begin() as session:
        row = charges.get(session, charge_id)
        if row is None:
            raise NotFound("charge")
        pots = {pot.id: pot for pot in ledger.lock(session, [row.group], now=now)[row.group]}
        drawn = charges.drawn(session, [charge_id]).get(charge_id, {})
        pots |= {pot.id: pot for _, pot in ledger.pots_by_id(session, drawn)}
        amount = sum(drawn.values())
        if amount <= 0:
            raise Refused("nothing_charged")
        fresh = {
            "charge_id": charge_id,
            "reason": reason.value,
            "evidence": {"note": note.strip()[:_LONGEST_NOTE], "run_id": row.run_id},
            "amount": amount,
            "at": now,
            "person_id": person_id,
        }
        if charges.add_refund(session, fresh) is None:
            raise Refused("refunded_before")
        back = back_into(pots, drawn, now=now)
        key = f"refund:{charge_id}:1"
        entries = _entries(EntryKind.REFUND, back, row, key=key, now=now, person_id=person_id)
        ledger.post(session, entries)


def undo(charge_id: int, *, begin: Begin, now: datetime, person_id: int | None) -> None:
    """Take a refund back. It stays on record, so that no rule gives it again. NotFound, Refused
    refund_undone_before."""
    with begin() as session:
        row = charges.get(session, charge_id)
        found = charges.refunds(session, [charge_id]).get(charge_id)
        if row is None or found is None:
            raise NotFound("refund")
        pots = ledger.lock(session, [row.group], now=now)[row.group]
        if charges.refunds(session, [charge_id])[charge_id].undone_at is not None:
            raise Refused("refund_undone_before")
        given = charges.given_back(session, charge_id, group=row.group)
        by_id = {pot.id: pot for pot in pots}
        by_id |= {pot.id: pot for _, pot in ledger.pots_by_id(session, given)}
        again = {pot: -amount for pot, amount in taken_back(by_id, given).items()}
        charges.change_refund(session, found.id, undone_at=now, undone_by=person_id)
        key, kind = f"refund:{charge_id}:undone", EntryKind.REFUND_UNDONE
        ledger.post(session, _entries(kind, again, row, key=key, now=now, person_id=person_id))


def _entries(
    kind: EntryKind,
    amounts: dict[int, int],
    row: ChargeRow,
    *,
    key: str,
    now: datetime,
    person_id: int | None,
) -> list[NewEntry]:
    return [
        NewEntry(now, pot, row.group, kind, amount, key, charge_id=row.id, person_id=person_id)
        for pot, amount in amounts.items()
        if amount
    ]
