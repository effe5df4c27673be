"""Holds: keep credit back for the worst case when a job is asked for, give it back at its end.

Each function works inside its caller's transaction: the hold and the submission are kept
together or not at all.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from gateway.core import pots as laying
from gateway.core.ledger import EntryKind, NewEntry
from gateway.core.pots import Cover, Pot
from gateway.core.pricing import Bill
from gateway.errors import Refused
from gateway.store import holds, ledger
from gateway.store.holds import HoldRow
from gateway.store.uow import Begin

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from gateway.store.ledger import AccountRow


class ShortOfCredit(Refused):
    """Nothing was held. `need` and `free` are millionths."""

    def __init__(self, *, need: int, free: int, code: str = "not_enough_credit") -> None:
        super().__init__(code, field="group", need=need, free=free)


def place(
    session: "Session",
    bill: Bill,
    *,
    submission_id: int,
    group: str,
    user: str,
    month_began: datetime,
    now: datetime,
    tasks: int = 1,
) -> Cover:
    """Hold the worst case of a new submission, or raise ShortOfCredit. Two at the same time see
    each other: the group's account is locked."""
    pots = laying.usable(ledger.lock(session, [group], now=now)[group], now=now, started=now)
    cover = laying.lay(bill, pots)
    account = ledger.account(session, group)
    check(session, cover, pots, account, group=group, user=user, month_began=month_began)
    hold_id = holds.add(
        session,
        submission_id=submission_id,
        group=group,
        user=user,
        tasks=tasks,
        per_task=-(-cover.total // tasks),
        amount=cover.total,
        now=now,
    )
    _post(session, EntryKind.HOLD, cover.by_pot(), hold_id=hold_id, group=group, move=0, now=now)
    return cover


def check(
    session: "Session",
    cover: Cover,
    pots: Sequence[Pot],
    account: "AccountRow | None",
    *,
    group: str,
    user: str,
    month_began: datetime,
) -> None:
    """Raise ShortOfCredit when the group cannot pay, or the member's cap stands against it."""
    resources = {line.resource for line in cover.lines}
    serving = [pot.left for pot in pots if pot.resource is None or pot.resource in resources]
    # What plain sbatch started has no hold; its worst case is as good as spent.
    free = sum(serving) - (account.committed if account else 0)
    if cover.short or (cover.total and cover.total > free):
        raise ShortOfCredit(need=cover.total, free=free)
    cap = ledger.cap(session, group, user)
    if cap is None:
        return
    spent = ledger.spent(session, group, user, since=month_began)
    if spent + cover.total > cap:
        raise ShortOfCredit(need=cover.total, free=cap - spent, code="member_cap_reached")


def extend(
    session: "Session",
    hold: HoldRow,
    more: Bill,
    *,
    month_began: datetime,
    now: datetime,
) -> Cover:
    """Hold more for a job whose limit grows, or raise ShortOfCredit. Nothing for a hold that was
    closed meanwhile: its job has ended."""
    found = ledger.lock(session, [hold.group], now=now)[hold.group]
    pots = laying.usable(found, now=now, started=now)
    fresh = _as_it_is(session, hold)
    if fresh.closed_at is not None:
        return laying.lay(Bill(()), pots)
    cover = laying.lay(more, pots)
    account = ledger.account(session, hold.group)
    check(session, cover, pots, account, group=hold.group, user=hold.user, month_began=month_began)
    _move(session, fresh, EntryKind.HOLD, cover.by_pot(), now=now)
    holds.raise_task(session, hold.id, -(-cover.total // hold.tasks))
    return cover


def give_back(session: "Session", hold_id: int, more: Cover, *, now: datetime) -> None:
    """Undo `extend`: Slurm refused the longer limit. Nothing when the hold is closed by now."""
    (hold,) = holds.by_ids(session, [hold_id])
    ledger.lock(session, [hold.group], now=now)
    hold = _as_it_is(session, hold)
    if hold.closed_at is not None:
        return
    parts = holds.parts(session, [hold_id]).get(hold_id, {})
    back = {pot: min(amount, parts.get(pot, 0)) for pot, amount in more.by_pot().items()}
    _move(session, hold, EntryKind.RELEASE, {p: a for p, a in back.items() if a > 0}, now=now)
    holds.raise_task(session, hold.id, more.total // -hold.tasks)


def release(session: "Session", hold: HoldRow, *, now: datetime) -> None:
    """Give back all that is held, and close it. A repeat changes nothing."""
    ledger.lock(session, [hold.group], now=now)
    fresh = _as_it_is(session, hold)
    if fresh.closed_at is not None:
        return
    parts = holds.parts(session, [hold.id]).get(hold.id, {})
    _move(session, fresh, EntryKind.RELEASE, parts, now=now, closed=now)


def _as_it_is(session: "Session", hold: HoldRow) -> HoldRow:
    """Under the lock: somebody may have moved or closed it since it was read."""
    (fresh,) = holds.by_ids(session, [hold.id])
    return fresh


def release_of(session: "Session", submission_id: int, *, now: datetime) -> None:
    """The same for a submission that ended without a job; nothing when it had no hold."""
    hold = holds.of_submission(session, submission_id)
    if hold is not None:
        release(session, hold, now=now)


def release_due(*, begin: Begin, now: datetime) -> int:
    """Give back what ended without another charge to come. Safe to kill and to run again."""
    with begin() as session:
        found = holds.to_release(session)
        rows = holds.by_ids(session, found)
        ledger.lock(session, {hold.group for hold in rows}, now=now)  # all at once: in one order
        for hold in rows:
            release(session, hold, now=now)
    return len(found)


def _move(
    session: "Session",
    hold: HoldRow,
    kind: EntryKind,
    by_pot: Mapping[int, int],
    *,
    now: datetime,
    closed: datetime | None = None,
) -> None:
    move = holds.moves(session, hold.id)
    _post(session, kind, by_pot, hold_id=hold.id, group=hold.group, move=move, now=now)
    total = sum(by_pot.values())
    holds.change(session, [(hold.id, total if kind is EntryKind.HOLD else -total, closed)])


def _post(
    session: "Session",
    kind: EntryKind,
    by_pot: Mapping[int, int],
    *,
    hold_id: int,
    group: str,
    move: int,
    now: datetime,
) -> None:
    sign = -1 if kind is EntryKind.HOLD else 1
    entries = [
        NewEntry(now, pot, group, kind, sign * amount, f"hold:{hold_id}:{move}", hold_id=hold_id)
        for pot, amount in by_pot.items()
    ]
    ledger.post(session, entries)
