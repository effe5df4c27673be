"""The review as its pages show it: each run with its evidence and what it would cost."""

from dataclasses import dataclass

from gateway.core.billing import Doubt
from gateway.core.evidence import Evidence, evidence
from gateway.core.pricing import CPU, NoPrice, PriceList, Usage, bill
from gateway.store.reviews import ReviewRow
from gateway.web.money_texts import DOUBTS

HOUR = 3600


@dataclass(frozen=True, slots=True)
class Card:
    """A field of the decision: how many cards of a type."""

    type: str
    count: int


@dataclass(frozen=True, slots=True)
class Case:
    """`cost_*` None: a type has no price, or nobody knows the type."""

    row: ReviewRow
    evidence: Evidence
    reason: str
    advice: str
    cards: list[Card]
    cost_by_clock: int | None
    cost_by_limit: int | None
    decided: str


def case(row: ReviewRow, prices: PriceList) -> Case:
    found = evidence(
        start=row.start,
        end=row.end,
        elapsed_seconds=row.elapsed_seconds,
        last_seen=row.seen_until or (row.last_seen if row.end is None else None),
        limit_minutes=row.time_limit_minutes,
        alloc_tres=row.alloc_tres,
        gpus_asked=row.gpus_asked,
        gpu_type=row.gpu_type,
    )
    reason, advice = DOUBTS[Doubt(row.reason)]
    types = {*found.gpus, *(name for name in prices.resources(row.start) if name != CPU)}
    return Case(
        row=row,
        evidence=found,
        reason=str(reason),
        advice=str(advice),
        cards=[Card(name, found.gpus.get(name, 0)) for name in sorted(types)],
        cost_by_clock=_cost(found, found.by_clock, row, prices),
        cost_by_limit=_cost(found, found.by_limit, row, prices),
        decided=str((row.decision or {}).get("note", "")),
    )


def typed_span(seconds: int) -> str:
    """As the form reads it: whole hours plainly, others as 26:58:00."""
    hours, rest = divmod(seconds, HOUR)
    return str(hours) if not rest else f"{hours}:{rest // 60:02d}:{rest % 60:02d}"


def _cost(found: Evidence, seconds: int, row: ReviewRow, prices: PriceList) -> int | None:
    if not found.gpus:
        return None
    total = bill(Usage(seconds, found.gpus), qos=row.qos, at=row.start, prices=prices)
    return None if isinstance(total, NoPrice) else total.total
