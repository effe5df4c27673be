"""The words of the ledger: what kinds of entries there are, and the keys that make each unique."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class EntryKind(StrEnum):
    """A positive amount adds to a pot, a negative one takes from it."""

    TOP_UP = "top_up"
    GRANT = "grant"
    PACKAGE = "package"  # both sides of a purchase
    HOLD = "hold"
    RELEASE = "release"
    CHARGE = "charge"
    CORRECTION = "correction"
    REFUND = "refund"
    REFUND_UNDONE = "refund_undone"
    EXPIRE = "expire"
    CARRY_OVER = "carry_over"
    LEND = "lend"  # both sides
    RETURN = "return"  # both sides
    STORAGE = "storage"  # a month of a volume


class AtZero(StrEnum):
    """What running and waiting jobs get when a group has no credit left."""

    FINISH = "finish"  # running jobs end as planned, overdrawn up to a limit
    HOLD = "hold"  # the same, and what waits is held
    STOP = "stop"  # running jobs are warned, then end


@dataclass(frozen=True, slots=True)
class NewEntry:
    """One line to be. `key` and pot together are unique for ever."""

    at: datetime
    pot_id: int
    group: str
    kind: EntryKind
    amount: int
    key: str
    hold_id: int | None = None
    charge_id: int | None = None
    person_id: int | None = None
    note: str | None = None
