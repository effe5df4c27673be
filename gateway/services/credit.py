"""Credit comes and goes: grants, top-ups, packages, campaigns, and what lapses.

`key` makes a repeat harmless: the same key gives the pot that is there already.
"""

import re
import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gateway.core.credits import MILLION
from gateway.core.ledger import EntryKind, NewEntry
from gateway.core.pots import PotKind, the_balance
from gateway.errors import Refused
from gateway.services import lend
from gateway.store import credit, ledger, prices
from gateway.store.credit import ExpiredPot
from gateway.store.ledger import NewPot
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_REASON = re.compile(r"[a-z][a-z0-9_]{0,31}")
_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{2,31}")
_MOST_DAYS = 3660


def grant(
    group: str,
    amount: int,
    *,
    reason: str,
    begin: Begin,
    now: datetime,
    key: str | None = None,
    starts: datetime | None = None,
    expires: datetime | None = None,
    note: str = "",
    carry_over_millionths: int = 0,
    person_id: int | None = None,
) -> int:
    """A grant with a start and an end; its pot's id. Refused: amount_not_positive, bad_name,
    expires_before_start, carry_over_out_of_range."""
    at = starts or now
    if amount <= 0:
        raise Refused("amount_not_positive", field="amount")
    if not _REASON.fullmatch(reason):
        raise Refused("bad_name", field="reason")
    if expires is not None and (expires <= at or expires <= now):
        raise Refused("expires_before_start", field="expires")
    if not 0 <= carry_over_millionths <= MILLION:
        raise Refused("carry_over_out_of_range", field="carry_over")
    new = NewPot(
        group=group,
        kind=PotKind.GRANT,
        key=f"grant:{key or secrets.token_hex(16)}",
        reason=reason,
        starts=at,
        expires=expires,
        note=note[:2000],
        carry_over_millionths=carry_over_millionths,
        person_id=person_id,
    )
    with begin() as session:
        ledger.lock(session, [group], now=now)
        return fill(session, new, amount, kind=EntryKind.GRANT, now=now)


def top_up(
    group: str,
    amount: int,
    *,
    begin: Begin,
    now: datetime,
    key: str | None = None,
    note: str = "",
    person_id: int | None = None,
) -> None:
    """Add to the balance, or take from it with a negative amount (money paid back)."""
    if amount == 0:
        raise Refused("amount_not_positive", field="amount")
    entry_key = f"top_up:{key or secrets.token_hex(16)}"
    with begin() as session:
        balance = balance_of(session, group, now=now)
        there = ledger.amount_of(session, balance, entry_key)
        if there not in {None, amount} or (there is None and ledger.has_entry(session, entry_key)):
            raise Refused("key_used")
        if there is None:
            entry = NewEntry(
                now,
                balance,
                group,
                EntryKind.TOP_UP,
                amount,
                entry_key,
                person_id=person_id,
                note=note[:2000],
            )
            ledger.post(session, [entry])


def buy_package(
    group: str,
    offer_id: int,
    card_hours: int,
    *,
    begin: Begin,
    now: datetime,
    key: str,
    person_id: int | None = None,
) -> int:
    """Prepay card-hours from the balance; the package's pot. Refused: no_such_offer,
    amount_not_positive, not_enough_credit."""
    if card_hours <= 0:
        raise Refused("amount_not_positive", field="card_hours")
    with begin() as session:
        pots = ledger.lock(session, [group], now=now)[group]
        there = ledger.pot_by_key(session, f"package:{key}", group=group)
        if there is not None:
            return there
        offer = next((o for o in prices.offers(session, now=now) if o.id == offer_id), None)
        if offer is None:
            raise Refused("no_such_offer", field="offer")
        balance = the_balance(pots)
        cost = card_hours * offer.per_hour
        new = NewPot(
            group=group,
            kind=PotKind.PACKAGE,
            key=f"package:{key}",
            reason=offer.name,
            starts=now,
            expires=now + timedelta(days=offer.days),
            resource=offer.resource,
            per_hour=offer.per_hour,
            person_id=person_id,
        )
        account = ledger.account(session, group)
        free = balance.left - (account.committed if account else 0)
        if cost > free:
            raise Refused("not_enough_credit", field="card_hours", need=cost, free=free)
        paid = NewEntry(
            now, balance.id, group, EntryKind.PACKAGE, -cost, new.key, person_id=person_id
        )
        ledger.post(session, [paid])
        return fill(session, new, cost, kind=EntryKind.PACKAGE, now=now)


def add_campaign(
    code: str,
    amount: int,
    *,
    days: int,
    stock: int,
    begin: Begin,
    now: datetime,
    ends: datetime | None = None,
    person_id: int | None = None,
) -> int:
    """A code that gives `amount` to each group that redeems it, for `days`."""
    if not _CODE.fullmatch(code):
        raise Refused("bad_name", field="code")
    if amount <= 0 or stock <= 0:
        raise Refused("amount_not_positive", field="amount" if amount <= 0 else "stock")
    if not 0 < days <= _MOST_DAYS:
        raise Refused("days_out_of_range", field="days")
    if ends is not None and ends <= now:
        raise Refused("expires_before_start", field="ends")
    row = {"code": code, "amount": amount, "days": days, "stock": stock, "taken": 0}
    row |= {"starts": now, "ends": ends, "person_id": person_id}
    with begin() as session:
        made = credit.add_campaign(session, row)
    if made is None:
        raise Refused("name_taken", field="code")
    return made


def redeem(
    group: str, code: str, *, begin: Begin, now: datetime, person_id: int | None = None
) -> int:
    """The grant of a campaign, once a group. Refused: no_such_code, code_used_up, code_used."""
    with begin() as session:
        ledger.lock(session, [group], now=now)
        found = credit.campaign(session, code.strip())
        if found is None or (found.ends is not None and found.ends <= now):
            raise Refused("no_such_code", field="code")
        key = f"campaign:{found.id}:{group}"
        if ledger.pot_by_key(session, key, group=group) is not None:
            raise Refused("code_used", field="code")
        if not credit.take_one(session, found.id):
            raise Refused("code_used_up", field="code")
        new = NewPot(
            group=group,
            kind=PotKind.GRANT,
            key=key,
            reason="campaign",
            note=found.code,
            starts=now,
            expires=now + timedelta(days=found.days),
            campaign_id=found.id,
            person_id=person_id,
        )
        return fill(session, new, found.amount, kind=EntryKind.GRANT, now=now)


def expire_due(*, begin: Begin, now: datetime) -> int:
    """Let lapse what is past its end and not held; loans go back. Safe to run again."""
    with begin() as session:
        found = ledger.expired(session, now=now)
    for pot_id in found:
        with begin() as session:
            _expire(session, pot_id, now=now)
    return len(found)


def fill(session: "Session", new: NewPot, amount: int, *, kind: EntryKind, now: datetime) -> int:
    """Make the pot and put the amount in, or answer the pot that has this key. The caller holds
    the group's lock."""
    pot_id = ledger.add_pot(session, new, now=now)
    if pot_id is None:
        there = ledger.pot_by_key(session, new.key, group=new.group)
        if there is None or ledger.amount_of(session, there, new.key) != amount:
            raise Refused("key_used")
        return there
    entry = NewEntry(
        now, pot_id, new.group, kind, amount, new.key, person_id=new.person_id, note=new.note
    )
    ledger.post(session, [entry])
    return pot_id


def balance_of(session: "Session", group: str, *, now: datetime) -> int:
    """The id of the group's balance, under its lock."""
    pots = ledger.lock(session, [group], now=now)[group]
    return the_balance(pots).id


def _expire(session: "Session", pot_id: int, *, now: datetime) -> None:
    before = credit.expired_pot(session, pot_id)
    if before is None:
        return
    loan = credit.loan_of_pot(session, pot_id)
    ledger.lock(session, {before.group, *([loan.lender] if loan else [])}, now=now)
    pot = credit.expired_pot(session, pot_id)  # as it is under the lock
    if pot is None or pot.left <= 0:
        return
    if pot.kind == PotKind.LOAN.value:
        lend.give_back_rest(session, pot.id, pot.left, now=now)
        return
    # What a hold released later lapses in a line of its own.
    key = f"expire:{pot.id}:{ledger.entries_in(session, pot.id)}"
    carried = pot.left * pot.carry_over_millionths // MILLION
    entries = [(EntryKind.EXPIRE, carried - pot.left), (EntryKind.CARRY_OVER, -carried)]
    ledger.post(
        session,
        [
            NewEntry(now, pot.id, pot.group, kind, amount, f"{key}:{kind.value}")
            for kind, amount in entries
            if amount
        ],
    )
    if carried:
        _carry_over(session, pot, carried, key=key, now=now)


def _carry_over(
    session: "Session", pot: ExpiredPot, carried: int, *, key: str, now: datetime
) -> None:
    """Once: what was carried over lapses at the end of a second time as long as the first."""
    new = NewPot(
        group=pot.group,
        kind=PotKind.GRANT,
        key=f"carried:{key}",
        reason="carried_over",
        starts=now,
        expires=now + (pot.expires - pot.starts),
    )
    fill(session, new, carried, kind=EntryKind.CARRY_OVER, now=now)
