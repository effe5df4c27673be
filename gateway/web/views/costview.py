"""What a job costs, as its page and the job list show it: exact where it is charged, marked as
an estimate where it is not."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup

from gateway.core.billing import Doubt, RefundReason
from gateway.core.credits import MILLION
from gateway.core.ledger import EntryKind
from gateway.core.pots import PotKind
from gateway.core.pricing import CPU
from gateway.services.costs import JobCost, JobMoney
from gateway.store.queries.costs import GivenBack, Held, JobBill, RunCharge
from gateway.web.doubt_texts import MEANS
from gateway.web.money import card_hours, money, money_text
from gateway.web.money_texts import CHARGE_STATES, DOUBTS, ENTRY_KINDS, POT_KINDS, REFUND_REASONS
from gateway.web.texts import format_datetime, gettext
from gateway.web.views.quotebox import factor_words


@dataclass(frozen=True, slots=True)
class PartView:
    """Card-hours at a price, and which pot paid them."""

    what: str
    pot: str
    amount: int


@dataclass(frozen=True, slots=True)
class MoveView:
    """What became of a charge. Only what is taken off the run's amount has one of its own: a
    correction is in that already."""

    word: str
    note: str
    at: datetime
    amount: int | None


@dataclass(frozen=True, slots=True)
class DoubtView:
    happened: str
    means: str
    do: str
    pending: int | None


@dataclass(frozen=True, slots=True)
class RunCostView:
    number: int
    start: datetime
    state: str
    word: str
    amount: int
    parts: tuple[PartView, ...]
    moves: tuple[MoveView, ...]
    doubt: DoubtView | None
    unsure: bool


@dataclass(frozen=True, slots=True)
class HoldView:
    """`now` is what is held still."""

    now: int
    placed: int
    tasks: int
    each: int
    at: datetime
    closed: datetime | None


@dataclass(frozen=True, slots=True)
class CostView:
    total: int | None
    is_final: bool
    in_review: bool
    accrued: int | None
    hold: HoldView | None
    runs: tuple[RunCostView, ...]
    cheaper: str


def build(found: JobMoney | None) -> CostView | None:
    """None on a site that charges nothing: then there is no section."""
    if found is None:
        return None
    bill = found.bill
    there = found.cheaper
    return CostView(
        total=found.cost.total,
        is_final=found.cost.is_final,
        in_review=_only_review(found.cost),
        accrued=found.cost.accrued,
        hold=hold(bill.hold),
        runs=tuple(_run(n, charge, bill) for n, charge in enumerate(bill.charges, start=1)),
        cheaper=gettext(
            "The same card-hours in QoS %(qos)s: %(total)s by the price list, %(saves)s less.",
            qos=there.qos,
            total=money_text(there.total),
            saves=money_text(there.saves),
        )
        if there
        else "",
    )


def hold(found: Held | None) -> HoldView | None:
    if found is None:
        return None
    return HoldView(
        now=found.amount,
        placed=found.tasks * found.per_task,
        tasks=found.tasks,
        each=found.per_task,
        at=found.opened_at,
        closed=found.closed_at,
    )


def cell(cost: JobCost | None) -> Markup | str:
    """A job list's cell: charged, or ≈ what has accrued so far. Empty: nothing yet."""
    if cost is None or cost.total is None:
        return ""
    if _only_review(cost):
        return gettext("in review")
    shown = money(cost.total)
    if cost.is_final:
        return shown
    said = gettext("An estimate: the charge comes at the end")
    return Markup('<span title="{}">≈\xa0{}</span>').format(said, money_text(cost.total))


def _only_review(cost: JobCost) -> bool:
    """Nothing is known but that a person will decide: a sum of 0 would mislead."""
    return bool(cost.reviews and not cost.total)


def _run(number: int, charge: RunCharge, bill: JobBill) -> RunCostView:
    moves = [
        MoveView(_word(one.kind), _corrected(one.amount), one.at, None)
        for one in bill.moves
        if one.charge_id == charge.id and one.kind == EntryKind.CORRECTION
    ]
    moves += [_refund(one) for one in bill.refunds if one.charge_id == charge.id]
    return RunCostView(
        number=number,
        start=charge.start,
        state=charge.run_state,
        word=str(CHARGE_STATES.get(charge.state, charge.state)),
        amount=charge.amount,
        parts=tuple(_part(line, bill) for line in charge.items),
        moves=tuple(moves),
        doubt=_doubt(charge),
        unsure=charge.state == "review",
    )


def _part(line: Mapping[str, Any], bill: JobBill) -> PartView:
    pot = bill.pots.get(int(line["pot_id"]))
    words = str(POT_KINDS[PotKind(pot.kind)]) if pot else ""
    if pot and pot.resource:
        words += f" {pot.resource}"
    if pot and pot.expires:
        words += f" ({gettext('until %(day)s', day=format_datetime(pot.expires, 'yyyy-MM-dd'))})"
    return PartView(_part_words(line), words, int(line["amount"]))


def _part_words(line: Mapping[str, Any]) -> str:
    if not line["unit_seconds"]:
        return gettext("the rest of it")
    facts = {"hours": card_hours(line["unit_seconds"]), "type": line["resource"]}
    words = (
        gettext("%(hours)s CPU-hours", hours=facts["hours"])
        if line["resource"] == CPU
        else gettext("%(hours)s card-hours %(type)s", **facts)
    )
    words += f" × {money_text(line['per_hour'])}"
    factor = line["factor_millionths"]
    return words if factor == MILLION else f"{words} × {factor_words(factor)}"


def _word(kind: str) -> str:
    return str(ENTRY_KINDS[EntryKind(kind)])


def _corrected(change: int) -> str:
    """The amount above is the corrected one; a positive entry gave credit back."""
    if change < 0:
        return gettext(
            "%(amount)s more than at first: the record was changed.", amount=money_text(-change)
        )
    return gettext(
        "%(amount)s less than at first: the record was changed.", amount=money_text(change)
    )


def _refund(one: GivenBack) -> MoveView:
    reason = RefundReason(one.reason)
    # Of a person's refund the note says more than that a person made it.
    words = "" if reason is RefundReason.PORTAL_FAULT else f"{REFUND_REASONS[reason]}. "
    note = words + _evidence(one.evidence)
    if one.undone_at is not None:
        return MoveView(_word(EntryKind.REFUND_UNDONE), note, one.undone_at, None)
    return MoveView(_word(EntryKind.REFUND), note, one.at, -one.amount)


def _evidence(found: Mapping[str, Any]) -> str:
    """What the refund goes by, in words; ids are for the audit."""
    if found.get("note"):
        return str(found["note"])
    if found.get("datasets"):
        return gettext(
            "The job ended with 65, before it began: %(names)s.", names=found["datasets"]
        )
    if found.get("by"):
        return gettext("Cancelled by %(person)s.", person=found["by"])
    if found.get("nodes"):
        return gettext(
            "Slurm says %(state)s on %(nodes)s.", state=found.get("state"), nodes=found["nodes"]
        )
    return gettext("Slurm says %(state)s.", state=found["state"]) if found.get("state") else ""


def _doubt(charge: RunCharge) -> DoubtView | None:
    if charge.reason is None:
        return None
    doubt = Doubt(charge.reason)
    means, do = MEANS[doubt]
    return DoubtView(str(DOUBTS[doubt][0]), str(means), str(do), charge.pending)
