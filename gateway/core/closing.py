"""A month of the ledger against Slurm's accounting, line by line.

A run belongs to the month in which it ended, whole: a run over midnight of the last day is
counted once, in the later month.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum


class Kind(StrEnum):
    """How ledger and accounting differ for a run."""

    NO_CHARGE = "no_charge"  # ended since charging began, and nobody charged it
    NOT_SETTLED = "not_settled"  # accounting told or changed it, and it waits to be settled
    CARD_SECONDS = "card_seconds"  # charged for another time or other cards than it had
    GROUP = "group"  # charged to another group than accounting says
    ENTRIES = "entries"  # the charge is not the sum of its lines


@dataclass(frozen=True, slots=True)
class Line:
    """A run that ended in the month, as accounting has it, with its charge where there is one.

    `card_seconds` None: accounting cannot say. `posted` is what the ledger's lines took for it,
    `decided` says that a person set what is charged.
    """

    run_id: int
    slurm_id: int
    cluster: str
    user: str
    group: str
    start: datetime
    end: datetime
    card_seconds: int | None
    to_settle: bool
    charge_group: str | None = None
    state: str | None = None  # posted, review, waived; None: no charge
    amount: int = 0
    charged_card_seconds: int = 0
    pending: int = 0
    refunded: int = 0
    posted: int = 0
    decided: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """`expected` is accounting's, `found` the ledger's; or the charge's and that of its lines."""

    kind: Kind
    run_id: int
    slurm_id: int
    cluster: str
    group: str
    user: str
    end: datetime
    amount: int
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Sums:
    """Of one group, or of all. `card_seconds` are accounting's, for runs that it counts."""

    group: str
    runs: int = 0
    card_seconds: int = 0
    charged_card_seconds: int = 0
    charged: int = 0
    refunded: int = 0
    reviews: int = 0
    pending: int = 0
    waived: int = 0
    decided: int = 0
    before_charging: int = 0

    @property
    def spent(self) -> int:
        return self.charged - self.refunded


@dataclass(frozen=True, slots=True)
class Compared:
    total: Sums
    groups: tuple[Sums, ...]
    differences: tuple[Difference, ...]


def compare(lines: Iterable[Line], *, charging_began: datetime | None) -> Compared:
    """Sums by the group that accounting names, and every run on which the two differ."""
    groups: dict[str, Sums] = {}
    total = Sums("")
    found: list[Difference] = []
    for line in lines:
        is_before = charging_began is None or line.start < charging_began
        is_before = is_before and line.state is None
        groups[line.group] = _added(groups.get(line.group, Sums(line.group)), line, is_before)
        total = _added(total, line, is_before)
        if not is_before:
            found += _differences(line)
    return Compared(total, tuple(groups[name] for name in sorted(groups)), tuple(found))


def _added(sums: Sums, line: Line, is_before: bool) -> Sums:
    return replace(
        sums,
        runs=sums.runs + 1,
        card_seconds=sums.card_seconds + (line.card_seconds or 0),
        charged_card_seconds=sums.charged_card_seconds + line.charged_card_seconds,
        charged=sums.charged + line.amount,
        refunded=sums.refunded + line.refunded,
        reviews=sums.reviews + (line.state == "review"),
        pending=sums.pending + line.pending,
        waived=sums.waived + (line.state == "waived"),
        decided=sums.decided + (line.decided and line.state == "posted"),
        before_charging=sums.before_charging + is_before,
    )


def _differences(line: Line) -> Iterator[Difference]:
    if line.to_settle:
        yield _difference(line, Kind.NOT_SETTLED, "settled", "waits")
        return
    if line.state is None:
        yield _difference(line, Kind.NO_CHARGE, _seconds(line.card_seconds), "")
        return
    if line.charge_group != line.group:
        yield _difference(line, Kind.GROUP, line.group, line.charge_group or "")
    if line.posted != line.amount:
        yield _difference(line, Kind.ENTRIES, str(line.amount), str(line.posted))
    is_plain = line.state == "posted" and not line.decided
    if is_plain and line.charged_card_seconds != line.card_seconds:
        charged = _seconds(line.charged_card_seconds)
        yield _difference(line, Kind.CARD_SECONDS, _seconds(line.card_seconds), charged)


def _difference(line: Line, kind: Kind, expected: str, found: str) -> Difference:
    return Difference(
        kind=kind,
        run_id=line.run_id,
        slurm_id=line.slurm_id,
        cluster=line.cluster,
        group=line.group,
        user=line.user,
        end=line.end,
        amount=line.amount,
        expected=expected,
        found=found,
    )


def _seconds(card_seconds: int | None) -> str:
    return "unknown" if card_seconds is None else str(card_seconds)
