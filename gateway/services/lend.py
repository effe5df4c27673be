"""Credit lent by one group to another, and returned.

The lender's balance goes down, the borrower gets a pot that lapses on the due day: what is left
in it then goes back by itself. What the borrower used stays owed, and is returned from its
balance.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core.ledger import EntryKind, NewEntry
from gateway.core.pots import PotKind, the_balance
from gateway.errors import NotFound, Refused
from gateway.store import credit, ledger
from gateway.store.credit import LoanRow
from gateway.store.ledger import NewPot
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


def lend(
    lender: str,
    borrower: str,
    amount: int,
    *,
    due: datetime | None,
    begin: Begin,
    now: datetime,
    key: str,
    person_id: int | None = None,
) -> int:
    """The loan's id. Refused: amount_not_positive, same_group, expires_before_start,
    not_enough_credit."""
    if amount <= 0:
        raise Refused("amount_not_positive", field="amount")
    if lender == borrower:
        raise Refused("same_group", field="group")
    if due is not None and due <= now:
        raise Refused("expires_before_start", field="due")
    with begin() as session:
        pots = ledger.lock(session, [lender, borrower], now=now)
        there = credit.loan_by_key(session, key)
        if there is not None:
            if (there.lender, there.borrower, there.amount) != (lender, borrower, amount):
                raise Refused("key_used")
            return there.id
        balance = the_balance(pots[lender])
        account = ledger.account(session, lender)
        free = balance.left - (account.committed if account else 0)
        if amount > free:
            raise Refused("not_enough_credit", field="amount", need=amount, free=free)
        new = NewPot(borrower, PotKind.LOAN, f"loan:{key}", lender, now, due, person_id=person_id)
        pot_id = ledger.add_pot(session, new, now=now)
        assert pot_id is not None, "a loan and its pot are made together"
        row = {"key": key, "lender": lender, "borrower": borrower, "amount": amount, "returned": 0}
        row |= {"pot_id": pot_id, "at": now, "due": due, "person_id": person_id}
        loan_id = credit.add_loan(session, row)
        assert loan_id is not None, "the key was looked for under the lock"
        _move(
            session,
            EntryKind.LEND,
            amount,
            (balance.id, lender),
            (pot_id, borrower),
            key=f"lend:{loan_id}",
            now=now,
            person_id=person_id,
        )
        return loan_id


def give_back(
    loan_id: int,
    amount: int,
    *,
    begin: Begin,
    now: datetime,
    key: str,
    person_id: int | None = None,
) -> None:
    """Return a part: what is left of the loan first, then from the borrower's balance.

    Refused: amount_not_positive, more_than_owed, not_enough_credit.
    """
    if amount <= 0:
        raise Refused("amount_not_positive", field="amount")
    with begin() as session:
        row = _locked(session, loan_id, now=now)
        if ledger.has_entry(session, f"return:{key}:a") or ledger.has_entry(
            session, f"return:{key}:b"
        ):
            return
        if amount > row.owed:
            raise Refused("more_than_owed", field="amount", owed=row.owed)
        pots = ledger.lock(session, [row.borrower], now=now)[row.borrower]
        left = next((pot.left for pot in pots if pot.id == row.pot_id), 0)
        from_pot = min(amount, max(0, left))
        balance = the_balance(pots)
        account = ledger.account(session, row.borrower)
        free = balance.left - (account.committed if account else 0)
        if amount - from_pot > max(0, free):
            need = amount - from_pot
            raise Refused("not_enough_credit", field="amount", need=need, free=free)
        sources = ((row.pot_id, from_pot, "a"), (balance.id, amount - from_pot, "b"))
        for pot_id, part, mark in sources:
            if part:
                _return(session, row, pot_id, part, key=f"{key}:{mark}", now=now, by=person_id)


def give_back_rest(session: "Session", pot_id: int, left: int, *, now: datetime) -> None:
    """The due day has come: what was not used goes back. The caller looked under a lock."""
    found = credit.loan_of_pot(session, pot_id)
    if found is None:
        return
    row = _locked(session, found.id, now=now)
    key = f"due:{row.id}:{ledger.entries_in(session, pot_id)}"
    owed = min(left, row.owed)
    if owed > 0:
        _return(session, row, pot_id, owed, key=key, now=now, by=None)
    if left > owed:  # returned before, from its own credit: the rest is its own now
        own = the_balance(ledger.lock(session, [row.borrower], now=now)[row.borrower])
        source, target = (pot_id, row.borrower), (own.id, row.borrower)
        _move(
            session,
            EntryKind.RETURN,
            left - owed,
            source,
            target,
            key=f"return:{key}:own",
            now=now,
            person_id=None,
        )


def _return(
    session: "Session",
    row: LoanRow,
    pot_id: int,
    amount: int,
    *,
    key: str,
    now: datetime,
    by: int | None,
) -> None:
    pots = ledger.lock(session, [row.lender], now=now)[row.lender]
    _move(
        session,
        EntryKind.RETURN,
        amount,
        (pot_id, row.borrower),
        (the_balance(pots).id, row.lender),
        key=f"return:{key}",
        now=now,
        person_id=by,
    )
    credit.returned(session, row.id, amount)


def _locked(session: "Session", loan_id: int, *, now: datetime) -> LoanRow:
    found = credit.loan(session, loan_id)
    if found is None:
        raise NotFound("loan")
    ledger.lock(session, [found.lender, found.borrower], now=now)
    row = credit.loan(session, loan_id)
    assert row is not None, "loans are never deleted"
    return row


def _move(
    session: "Session",
    kind: EntryKind,
    amount: int,
    source: tuple[int, str],
    target: tuple[int, str],
    *,
    key: str,
    now: datetime,
    person_id: int | None,
) -> None:
    """Both sides, or none: no credit is made or lost between two groups."""
    ledger.post(
        session,
        [
            NewEntry(now, source[0], source[1], kind, -amount, key, person_id=person_id),
            NewEntry(now, target[0], target[1], kind, amount, key, person_id=person_id),
        ],
    )
