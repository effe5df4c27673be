"""A batch of settling in memory, and what is done to pots and holds in it."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from gateway.core import pots as laying
from gateway.core.billing import Suspended, TypeOfNodes
from gateway.core.ledger import EntryKind, NewEntry
from gateway.core.pots import Pot, PotKind
from gateway.core.pricing import PriceList
from gateway.store.charges import ChargeRow, DueRun, Kill, RefundRow
from gateway.store.holds import HoldRow

_NOTHING: Mapping[int, int] = {}


@dataclass(slots=True)
class Books:
    """A batch in memory: what was read under the lock, and what is to be written."""

    now: datetime
    prices: PriceList
    suspended: Suspended
    tracked: bool
    type_of: TypeOfNodes
    pots: dict[str, dict[int, Pot]]
    holds: dict[int, HoldRow]
    parts: dict[int, dict[int, int]]
    before: dict[int, ChargeRow]
    drawn: dict[int, dict[int, int]]
    refunds: dict[int, RefundRow]
    given: dict[int, dict[int, int]]
    kills: dict[int, list[Kill]]
    lost_data: dict[int, list[str]]  # by run: the datasets that kept it from beginning
    next_charge: int
    entries: list[NewEntry] = field(default_factory=list)
    new_charges: list[dict[str, Any]] = field(default_factory=list)
    changed_charges: list[dict[str, Any]] = field(default_factory=list)
    new_refunds: list[dict[str, Any]] = field(default_factory=list)
    refund_changes: dict[int, dict[str, Any]] = field(default_factory=dict)
    hold_changes: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def usable(self, group: str, started: datetime, held: Mapping[int, int]) -> list[Pot]:
        pots = self.pots[group].values()
        return laying.usable(pots, now=self.now, started=started, held=held)

    def post(self, group: str, kind: EntryKind, amounts: Mapping[int, int], **more: Any) -> None:
        """Signed amounts by pot, into the entries and into the pots as the batch sees them."""
        for pot_id, amount in amounts.items():
            if not amount:
                continue
            self.entries.append(NewEntry(self.now, pot_id, group, kind, amount, **more))
            pot = self.pots[group][pot_id]
            self.pots[group][pot_id] = replace(pot, left=pot.left + amount)


def release(books: Books, run: DueRun) -> Mapping[int, int]:
    """Give back what the hold kept for one task; answers how much of it in each pot."""
    hold = books.holds.get(run.hold_id) if run.hold_id is not None else None
    parts = books.parts.get(hold.id, {}) if hold else {}
    if hold is None or hold.closed_at is not None or not parts:
        return _NOTHING
    held = [replace(books.pots[hold.group][pot], left=left) for pot, left in parts.items()]
    ordered = laying.usable(held, now=books.now, started=run.start, held=parts)
    # All of it for the only task: what it was extended by lies there too.
    back = dict(parts) if hold.tasks == 1 else laying.take(hold.per_task, ordered)
    books.parts[hold.id] = {p: left - back.get(p, 0) for p, left in parts.items()}
    books.hold_changes[hold.id] -= sum(back.values())
    key = f"hold:{hold.id}:run:{run.id}"
    books.post(hold.group, EntryKind.RELEASE, back, key=key, hold_id=hold.id)
    return back


def hold_again(books: Books, run: DueRun, released: Mapping[int, int]) -> None:
    """A requeued job may run its whole limit again; what there is of it is held."""
    hold = books.holds[run.hold_id or 0]
    usable = books.usable(hold.group, run.start, released)
    again = laying.take(
        max(hold.per_task, sum(released.values())), [p for p in usable if _may_hold(p, released)]
    )
    kept = {pot: -amount for pot, amount in again.items()}
    key = f"hold:{hold.id}:again:{run.id}"
    books.post(hold.group, EntryKind.HOLD, kept, key=key, hold_id=hold.id)
    books.hold_changes[hold.id] += sum(again.values())
    parts = books.parts.setdefault(hold.id, {})
    for pot, amount in again.items():
        parts[pot] = parts.get(pot, 0) + amount


def _may_hold(pot: Pot, released: Mapping[int, int]) -> bool:
    """Money, and the packages that were held before: others may be of another type."""
    return pot.kind is not PotKind.PACKAGE or pot.id in released


def back_into(
    pots: Mapping[int, Pot], drawn: Mapping[int, int], *, now: datetime
) -> dict[int, int]:
    """Each amount into its own pot; what has expired since goes to the balance."""
    balance = laying.the_balance(pots.values()).id
    back: dict[int, int] = defaultdict(int)
    for pot_id, amount in drawn.items():
        pot = pots.get(pot_id)
        back[pot_id if pot is not None and pot.is_open(now) else balance] += amount
    return dict(back)


def taken_back(pots: Mapping[int, Pot], given: Mapping[int, int]) -> dict[int, int]:
    """What a refund gave, out of the pots that got it as far as it is still there; the rest is
    taken from the balance, which may be overdrawn. Positive amounts."""
    balance = laying.the_balance(pots.values()).id
    back = {
        p: min(max(0, amount), max(0, pots[p].left)) for p, amount in given.items() if p in pots
    }
    back[balance] = back.get(balance, 0) + sum(given.values()) - sum(back.values())
    return back
