"""Where a group's credit lies, and in which order it is used.

The order, which pages show: packages of the item's GPU type, the one that expires first; then
grants and loans, the one that expires first; then the balance. All pots hold money. A package is
prepaid: its credit draws at the package's own price an hour, so that 100 card-hours stay 100
whatever the price list does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from gateway.core.credits import Credits
from gateway.core.pricing import Bill, Item, affordable, cost

_NEVER = datetime.max.replace(tzinfo=UTC)


class PotKind(StrEnum):
    PACKAGE = "package"
    GRANT = "grant"
    LOAN = "loan"
    BALANCE = "balance"


_RANK = {PotKind.PACKAGE: 0, PotKind.GRANT: 1, PotKind.LOAN: 1, PotKind.BALANCE: 2}


@dataclass(frozen=True, slots=True)
class Pot:
    """`left` is what may be drawn; only the balance may go below zero."""

    id: int
    kind: PotKind
    left: int
    starts: datetime
    expires: datetime | None = None
    resource: str | None = None
    per_hour: int | None = None

    def is_open(self, now: datetime) -> bool:
        return self.starts <= now and (self.expires is None or now < self.expires)


@dataclass(frozen=True, slots=True)
class Line:
    """A part of an item, paid from one pot. `unit_seconds` 0: more money for the line before."""

    resource: str
    pot_id: int
    unit_seconds: int
    per_hour: int
    factor_millionths: int
    amount: Credits


@dataclass(frozen=True, slots=True)
class Cover:
    """A bill laid over the pots. `short` is what the balance lacked and was overdrawn by."""

    lines: tuple[Line, ...]
    short: Credits

    @property
    def total(self) -> Credits:
        return Credits(sum(line.amount for line in self.lines))

    def by_pot(self) -> dict[int, int]:
        """The amount drawn from each pot, without those that give nothing."""
        drawn: dict[int, int] = {}
        for line in self.lines:
            if line.amount:
                drawn[line.pot_id] = drawn.get(line.pot_id, 0) + line.amount
        return drawn


def usable(
    pots: Iterable[Pot], *, now: datetime, started: datetime, held: Iterable[int] = ()
) -> list[Pot]:
    """What may pay for a run, in the order of use. A package must have been there when the run
    started; what a hold already lies on stays usable after its expiry."""
    kept = frozenset(held)
    found = [pot for pot in pots if pot.id in kept or _serves(pot, now, started)]
    return sorted(found, key=lambda pot: (_RANK[pot.kind], pot.expires or _NEVER, pot.id))


def the_balance(pots: Iterable[Pot]) -> Pot:
    """The one balance among a group's pots."""
    return next(pot for pot in pots if pot.kind is PotKind.BALANCE)


def lay(bill: Bill, pots: Sequence[Pot]) -> Cover:
    """Draw the bill from `pots`, which are in the order of use and hold one balance at least.

    What nothing covers is drawn from the balance, below zero if need be.
    """
    left = {pot.id: max(0, pot.left) for pot in pots}
    lines: list[Line] = []
    for item in bill.items:
        rest = item.unit_seconds
        for pot in pots:
            if pot.kind is PotKind.PACKAGE and pot.resource == item.resource and rest:
                rest -= _from_package(item, rest, pot, left, lines)
        if rest:
            _from_money(item, rest, pots, left, lines)
    balance = the_balance(pots)
    drawn = sum(line.amount for line in lines if line.pot_id == balance.id)
    return Cover(tuple(lines), Credits(max(0, drawn - max(0, balance.left))))


def take(amount: int, pots: Sequence[Pot]) -> dict[int, int]:
    """`amount` of plain money from what the pots hold, in the order given; may end up short."""
    drawn: dict[int, int] = {}
    for pot in pots:
        part = min(amount, max(0, pot.left))
        if part:
            drawn[pot.id] = part
            amount -= part
    return drawn


def after(pots: Iterable[Pot], changes: Mapping[int, int]) -> list[Pot]:
    """The pots with these amounts added to what is left in them."""
    return [replace(pot, left=pot.left + changes.get(pot.id, 0)) for pot in pots]


def _serves(pot: Pot, now: datetime, started: datetime) -> bool:
    if pot.kind is PotKind.BALANCE:
        return True
    if pot.kind is PotKind.PACKAGE and not pot.is_open(started):
        return False
    return pot.is_open(now)


def _from_package(item: Item, rest: int, pot: Pot, left: dict[int, int], lines: list[Line]) -> int:
    """Unit-seconds that the package pays for, at its own price."""
    per_hour = pot.per_hour or 0
    most = affordable(left[pot.id], per_hour, item.factor_millionths)
    part = rest if most is None else min(rest, most)
    if not part:
        return 0
    amount = cost(part, per_hour, item.factor_millionths)
    left[pot.id] -= amount
    lines.append(Line(item.resource, pot.id, part, per_hour, item.factor_millionths, amount))
    return part


def _from_money(
    item: Item, rest: int, pots: Sequence[Pot], left: dict[int, int], lines: list[Line]
) -> None:
    """The rest at the list price: one price, rounded once, from as many pots as it takes."""
    need = int(cost(rest, item.per_hour, item.factor_millionths))
    shown = rest
    for pot in pots:
        if pot.kind is PotKind.PACKAGE:
            continue
        part = need if pot.kind is PotKind.BALANCE else min(need, left[pot.id])
        if not part and not (pot.kind is PotKind.BALANCE and shown):
            continue
        left[pot.id] -= part
        need -= part
        lines.append(
            Line(item.resource, pot.id, shown, item.per_hour, item.factor_millionths, Credits(part))
        )
        shown = 0
        if not need:
            return
