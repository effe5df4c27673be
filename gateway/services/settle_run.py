"""One ended run against the books: review, charge, correction, refund, and its hold."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from gateway.core import pots as laying
from gateway.core.billing import (
    Doubt,
    RefundReason,
    RunFacts,
    decided,
    refund_reason,
    usage_of,
)
from gateway.core.ledger import EntryKind
from gateway.core.pots import Cover, Line
from gateway.core.pricing import Bill, NoPrice, Preempted, Usage, bill
from gateway.core.states import parse_state
from gateway.services.settle_books import Books, back_into, hold_again, release
from gateway.store.charges import ChargeRow, DueRun


@dataclass(frozen=True, slots=True)
class Review:
    doubt: Doubt
    pending: int | None


def settle_run(books: Books, run: DueRun) -> None:
    """Bring what is charged for the run into step with what accounting says of it."""
    before = books.before.get(run.id)
    begins = books.prices.begins
    if before is None and (begins is None or run.start < begins):
        return  # from before there was a price list
    waived = bool(before and before.decision and before.decision.get("waive"))
    found = Bill(()), Usage(0)
    if not waived:
        judged = _judge(books, run, before)
        if isinstance(judged, Review):
            _review(books, run, before, judged)
            return
        found = judged
    if before is not None and before.version:
        _correct(books, run, before, *found, waived=waived)
    else:
        _charge(books, run, before, *found, waived=waived)


def facts_of(run: DueRun) -> RunFacts:
    return RunFacts(
        state=run.state,
        group=run.group,
        partition=run.partition,
        start=run.start,
        end=run.end,
        elapsed_seconds=run.elapsed_seconds,
        suspended_seconds=run.suspended_seconds,
        cpus=run.cpus,
        gpus=run.gpus,
        alloc_tres=run.alloc_tres,
        node_list=run.node_list,
        seen_until=run.seen_until,
    )


def _judge(books: Books, run: DueRun, before: ChargeRow | None) -> tuple[Bill, Usage] | Review:
    facts = facts_of(run)
    usage = usage_of(facts, type_of=books.type_of, suspended=books.suspended)
    if before and before.decision:
        usage = decided(usage, facts, before.decision)
    elif isinstance(usage, Usage) and _is_repaired(run, before):
        usage = Doubt.END_BEFORE_LAST_SEEN
    elif isinstance(usage, Usage) and _is_uncounted(books, run, usage):
        usage = Doubt.GPUS_NOT_TRACKED
    if isinstance(usage, Doubt):
        return Review(usage, _pending(books, run))
    found = bill(usage, qos=run.qos, at=run.start, prices=books.prices)
    if isinstance(found, NoPrice):
        return Review(Doubt.NO_PRICE, None)
    return found, usage


def _is_repaired(run: DueRun, before: ChargeRow | None) -> bool:
    """Nobody knew an end, and now it is said to have ended as it started: sacctmgr's repair of
    runaway jobs writes that, whatever the job did."""
    return bool(before and before.reason == Doubt.NO_END.value and run.elapsed_seconds == 0)


def _is_uncounted(books: Books, run: DueRun, usage: Usage) -> bool:
    """No GPU on record, from nodes that have some, where accounting does not count them."""
    if books.tracked or usage.gpus:
        return False
    return books.type_of(run.node_list, run.partition) is not None


def _pending(books: Books, run: DueRun) -> int | None:
    """What the run may cost, by its limit and the last sight of it; None when nobody knows."""
    until = max(run.end, run.seen_until or run.end)
    seconds = (until - run.start).total_seconds()
    if run.time_limit_minutes:
        seconds = min(seconds, timedelta(minutes=run.time_limit_minutes).total_seconds())
    whole = max(0, int(seconds))
    guess = replace(
        facts_of(run),
        end=run.start + timedelta(seconds=whole),
        elapsed_seconds=whole,
        suspended_seconds=0,
        seen_until=None,
    )
    usage = usage_of(guess, type_of=books.type_of, suspended=books.suspended)
    if isinstance(usage, Doubt):
        return None
    found = bill(usage, qos=run.qos, at=run.start, prices=books.prices)
    return None if isinstance(found, NoPrice) else found.total


def _review(books: Books, run: DueRun, before: ChargeRow | None, review: Review) -> None:
    """Nothing is charged yet. What was charged before stays, with the doubt written on it."""
    books.counts["review"] += 1
    if before is not None and before.version:
        _write(books, run, before, {"reason": review.doubt.value})
        return
    row = {"state": "review", "reason": review.doubt.value, "pending": review.pending}
    _write(books, run, before, row)


def _charge(
    books: Books,
    run: DueRun,
    before: ChargeRow | None,
    found: Bill,
    usage: Usage,
    *,
    waived: bool,
) -> None:
    """The first and only charge of the run; its hold gives back what it kept for it."""
    released = release(books, run)
    cover = laying.lay(found, books.usable(run.group, run.start, released))
    charge_id = _write(books, run, before, _posted(cover, usage, version=1, waived=waived))
    drawn = cover.by_pot()
    taken = {pot: -amount for pot, amount in drawn.items()}
    books.post(run.group, EntryKind.CHARGE, taken, key=f"run:{run.id}:1", charge_id=charge_id)
    books.counts["posted"] += not waived
    _refund(books, run, charge_id, drawn)
    if released and run.job_active and parse_state(run.state)[0].may_return:
        hold_again(books, run, released)


def _correct(
    books: Books,
    run: DueRun,
    before: ChargeRow,
    found: Bill,
    usage: Usage,
    *,
    waived: bool,
) -> None:
    """Accounting changed its mind: one more entry for the difference, the first one is kept."""
    if _same_usage(before, found) and waived == (before.state == "waived"):
        _write(books, run, before, {"reason": None})
        return
    version, drawn = before.version + 1, books.drawn.get(before.id, {})
    key = f"run:{run.id}:{version}"
    if before.group != run.group:
        _leave_group(books, before, drawn, key=key)
        drawn = {}
    pots = laying.after(books.pots[run.group].values(), drawn)
    usable = laying.usable(pots, now=books.now, started=run.start, held=drawn)
    cover = laying.lay(found, usable)
    fresh = cover.by_pot()
    change = {pot: drawn.get(pot, 0) - fresh.get(pot, 0) for pot in {*drawn, *fresh}}
    _write(books, run, before, _posted(cover, usage, version=version, waived=waived))
    books.post(run.group, EntryKind.CORRECTION, change, key=key, charge_id=before.id)
    books.counts["corrected"] += 1
    refund = books.refunds.get(before.id)
    if refund is not None and refund.undone_at is None:
        back = {pot: -amount for pot, amount in change.items()}
        key = f"refund:{before.id}:{version}"
        books.post(run.group, EntryKind.REFUND, back, key=key, charge_id=before.id)
        books.refund_changes[refund.id] = cover.total


def _leave_group(books: Books, before: ChargeRow, drawn: Mapping[int, int], *, key: str) -> None:
    """The record was another group's after all: that one gets back all it paid."""
    books.post(before.group, EntryKind.CORRECTION, drawn, key=key, charge_id=before.id)
    refund = books.refunds.get(before.id)
    if refund is not None and refund.undone_at is None:
        again = {pot: -amount for pot, amount in drawn.items()}
        key = f"refund:{key}"
        books.post(before.group, EntryKind.REFUND, again, key=key, charge_id=before.id)


def _posted(cover: Cover, usage: Usage, *, version: int, waived: bool) -> dict[str, Any]:
    return {
        "state": "waived" if waived else "posted",
        "reason": None,
        "amount": cover.total,
        "card_seconds": usage.card_seconds,
        "items": [_stored(line) for line in cover.lines],
        "pending": None,
        "version": version,
    }


def _stored(line: Line) -> dict[str, Any]:
    return {name: getattr(line, name) for name in Line.__slots__}


def _same_usage(before: ChargeRow, found: Bill) -> bool:
    was: dict[str, int] = defaultdict(int)
    for line in before.items:
        was[line["resource"]] += line["unit_seconds"]
    now: dict[str, int] = defaultdict(int)
    for item in found.items:
        now[item.resource] += item.unit_seconds
    return was == now


def _refund(books: Books, run: DueRun, charge_id: int, drawn: Mapping[int, int]) -> None:
    """Give a charge back by rule, with the evidence; once."""
    free = books.prices.preempted(run.qos, run.start) is Preempted.FREE
    reason = refund_reason(run.state, preempted_is_free=free)
    evidence: dict[str, Any] = {"state": run.state, "nodes": run.node_list}
    if reason is None and run.job_id in books.kills:
        reason, evidence = RefundReason.ADMINISTRATOR_KILL, books.kills[run.job_id]
    if reason is None or not drawn:
        return
    key = f"refund:{charge_id}:1"
    back = back_into(books.pots[run.group], drawn, now=books.now)
    books.post(run.group, EntryKind.REFUND, back, key=key, charge_id=charge_id)
    books.new_refunds.append(
        {
            "charge_id": charge_id,
            "reason": reason.value,
            "evidence": evidence | {"run_id": run.id},
            "amount": sum(drawn.values()),
            "at": books.now,
        }
    )
    books.counts["refunded"] += 1


def _write(books: Books, run: DueRun, before: ChargeRow | None, values: Mapping[str, Any]) -> int:
    """The charge's row, new or changed; answers its id."""
    if before is None:
        row = {"amount": 0, "card_seconds": 0, "items": [], "pending": None, "version": 0}
        row |= {"reason": None, "decision": None, "decided_by": None} | dict(values)
        row |= {"id": books.next_charge, "run_id": run.id}
        row |= {"group_name": run.group, "user": run.user, "at": books.now}
        books.new_charges.append(row)
        books.next_charge += 1
        return books.next_charge - 1
    row = {name: getattr(before, name) for name in _KEPT} | dict(values)
    row |= {"id": before.id, "group_name": run.group, "user": run.user}
    row["at"] = books.now if before.version == 0 else before.at
    books.changed_charges.append(row)
    return before.id


_KEPT = ("state", "reason", "amount", "card_seconds", "items", "pending", "version")
