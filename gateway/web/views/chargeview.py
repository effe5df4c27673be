"""One charge as its page shows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gateway.core.billing import Doubt
from gateway.core.credits import format_credits
from gateway.store.queries.charge import ChargeDetail, ChargeEntry, RefundDetail
from gateway.web.money import kind_word
from gateway.web.money_texts import CHARGE_STATES, DOUBTS, EVIDENCE, REFUND_REASONS
from gateway.web.show import plain
from gateway.web.views.groupview import pot_words


@dataclass(frozen=True, slots=True)
class ItemLine:
    resource: str
    card_seconds: int
    per_hour: int
    factor: str
    amount: int
    pot: str


@dataclass(frozen=True, slots=True)
class EntryLine:
    row: ChargeEntry
    kind: str
    pot: str


@dataclass(frozen=True, slots=True)
class ChargePage:
    """`evidence` are pairs of name and text."""

    charge: ChargeDetail
    state: str
    reason: str
    job: str
    items: list[ItemLine]
    entries: list[EntryLine]
    refund: RefundDetail | None
    refund_reason: str
    evidence: list[tuple[str, str]]
    decision: list[tuple[str, str]]
    can_refund: bool


def page(
    found: ChargeDetail, entries: Sequence[ChargeEntry], refund: RefundDetail | None
) -> ChargePage:
    pots = {row.pot_id: pot_words(row.pot_kind, row.pot_reason) for row in entries}
    is_array = found.array_job_id is not None and found.array_task is not None
    job = f"{found.array_job_id}_{found.array_task}" if is_array else str(found.slurm_id)
    return ChargePage(
        charge=found,
        state=str(CHARGE_STATES[found.state]),
        reason=str(DOUBTS[Doubt(found.reason)][0]) if found.reason else "",
        job=job,
        items=[_item(line, pots) for line in found.items],
        entries=[EntryLine(row, kind_word(row.kind), pots[row.pot_id]) for row in entries],
        refund=refund,
        refund_reason=str(REFUND_REASONS.get(refund.reason, refund.reason)) if refund else "",
        evidence=_pairs(refund.evidence) if refund else [],
        decision=_pairs(found.decision) if found.decision else [],
        can_refund=refund is None and found.amount > 0,
    )


def _item(line: dict[str, Any], pots: dict[int, str]) -> ItemLine:
    return ItemLine(
        resource=str(line["resource"]),
        card_seconds=int(line["unit_seconds"]),
        per_hour=int(line["per_hour"]),
        factor=format_credits(int(line["factor_millionths"])),
        amount=int(line["amount"]),
        pot=pots.get(int(line["pot_id"]), ""),
    )


def _pairs(facts: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (str(EVIDENCE.get(name, plain(name))), plain(value))
        for name, value in facts.items()
        if name not in {"run_id", "event_id"}
    ]
