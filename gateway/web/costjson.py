"""Money in the API: each amount as an exact decimal text and as whole millionths."""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway.core.credits import MILLION
from gateway.core.pricing import Item
from gateway.services.costs import JobCost, JobMoney
from gateway.services.quote import Quote
from gateway.store.queries.costs import JobBill, RunCharge
from gateway.web.apijson import dump
from gateway.web.deps import deps
from gateway.web.money_texts import DOUBTS


def amount(millionths: int | None) -> dict[str, Any] | None:
    """{"amount": "336.00", "millionths": 336000000}; None stays None."""
    if millionths is None:
        return None
    whole, part = divmod(abs(millionths), MILLION)
    decimals = f"{part:06d}".rstrip("0").ljust(2, "0")
    sign = "-" if millionths < 0 else ""
    return {"amount": f"{sign}{whole}.{decimals}", "millionths": millionths}


def quote(found: Quote) -> dict[str, Any]:
    return {
        "charged": True,
        "currency": deps().settings.currency,
        "group": found.group,
        "items": [_item(item) for item in found.worst.items],
        "tasks": found.shape.tasks,
        "each": amount(found.task.total),
        "total": amount(found.worst.total),
        "paid_by": [
            {
                "kind": one.kind.value,
                "resource": one.resource,
                "expires": dump(one.expires),
                "unit_seconds": one.unit_seconds,
                **(amount(one.amount) or {}),
            }
            for one in found.paid
        ],
        "held": amount(found.held),
        "likely": amount(found.likely),
        "likely_from": dump(found.expected),
        "free": amount(found.free),
        "after": amount(found.after),
        "enough": found.is_enough,
        "missing": amount(found.missing),
        "cap_left": amount(found.cap_left),
        "stopped": found.stop.code if found.stop else None,
        "cheaper": [
            {
                "change": one.change,
                "value": one.value,
                "partition": one.partition,
                "total": amount(one.total),
                "saves": amount(one.saves),
            }
            for one in found.cheaper
        ],
    }


def cost(found: JobCost | None) -> dict[str, Any] | None:
    """For a row of a list. None on a site that charges nothing."""
    if found is None:
        return None
    return {
        "currency": deps().settings.currency,
        "total": amount(found.total),
        "charged": amount(found.charged),
        "accrued": amount(found.accrued),
        "final": found.is_final,
        "reviews": found.reviews,
    }


def job(found: JobMoney | None) -> dict[str, Any] | None:
    """The same with the hold and all charges."""
    short = cost(found.cost if found else None)
    if found is None or short is None:
        return None
    held = found.bill.hold
    hold = None
    if held is not None:
        hold = {
            "now": amount(held.amount),
            "tasks": held.tasks,
            "each": amount(held.per_task),
            "opened_at": dump(held.opened_at),
            "closed_at": dump(held.closed_at),
        }
    charges = [_charge(one, found.bill) for one in found.bill.charges]
    return short | {"hold": hold, "charges": charges}


def _item(item: Item) -> dict[str, Any]:
    return {
        "resource": item.resource,
        "units": item.units,
        "seconds": item.seconds,
        "per_hour": amount(item.per_hour),
        "factor": amount(item.factor_millionths),
        "total": amount(item.amount),
    }


def _charge(one: RunCharge, bill: JobBill) -> dict[str, Any]:
    return {
        "run_id": one.run_id,
        "state": one.state,
        "reason": one.reason,
        "message": _reason(one),
        "amount": amount(one.amount),
        "pending": amount(one.pending),
        "card_seconds": one.card_seconds,
        "at": dump(one.at),
        "lines": [_line(line, bill) for line in one.items],
        "moves": [
            {"kind": move.kind, "at": dump(move.at), **(amount(move.amount) or {})}
            for move in bill.moves
            if move.charge_id == one.id
        ],
        "refund": _refund(one, bill),
    }


def _reason(one: RunCharge) -> str | None:
    found = next((words for doubt, words in DOUBTS.items() if doubt.value == one.reason), None)
    return str(found[0]) if found else None


def _line(line: Mapping[str, Any], bill: JobBill) -> dict[str, Any]:
    pot = bill.pots.get(int(line["pot_id"]))
    return {
        "resource": line["resource"],
        "unit_seconds": line["unit_seconds"],
        "per_hour": amount(line["per_hour"]),
        "factor": amount(line["factor_millionths"]),
        "paid_by": pot.kind if pot else None,
        **(amount(line["amount"]) or {}),
    }


def _refund(one: RunCharge, bill: JobBill) -> dict[str, Any] | None:
    found: Iterable[dict[str, Any]] = (
        {
            "reason": refund.reason,
            "evidence": dump(refund.evidence),
            "at": dump(refund.at),
            "undone_at": dump(refund.undone_at),
            **(amount(refund.amount) or {}),
        }
        for refund in bill.refunds
        if refund.charge_id == one.id
    )
    return next(iter(found), None)
