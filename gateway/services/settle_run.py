"""One ended run against the books: review, charge, correction, refund, and its hold."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
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
from gateway.core.pots import Cover, Line, Pot
from gateway.core.pricing import Bill, NoPrice, Preempted, Usage, bill
from gateway.core.states import parse_state
from gateway.services.settle_books import Books, back_into, hold_again, release, taken_back
from gateway.store.charges import ChargeRow, DueRun

# An act on a job takes a moment to end it.
_ACT_SLACK = timedelta(minutes=5)
_NEVER_ENDED = frozenset({Doubt.NO_END.value, Doubt.END_BEFORE_LAST_SEEN.value})


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
    found = _bill(books, run, usage, before)
    if isinstance(found, NoPrice):
        return Review(Doubt.NO_PRICE, None)
    return found, usage


def _bill(books: Books, run: DueRun, usage: Usage, before: ChargeRow | None) -> Bill | NoPrice:
    """By the prices in force at the start. A correction goes by what was known when the run was
    charged: a price that was backdated since changes nothing that was paid."""
    if before is not None and before.version:
        known = books.prices.known_at(before.at)
        found = bill(usage, qos=run.qos, at=run.start, prices=known)
        if isinstance(found, Bill):
            return found
    return bill(usage, qos=run.qos, at=run.start, prices=books.prices)


def _is_repaired(run: DueRun, before: ChargeRow | None) -> bool:
    """Nobody knew an end, and now it is said to have ended as it started: sacctmgr's repair of
    runaway jobs writes that, whatever the job did."""
    return bool(before and before.reason in _NEVER_ENDED and run.elapsed_seconds == 0)


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
        kept = {"group_name": before.group, "user": before.user}
        _write(books, run, before, {"reason": review.doubt.value} | kept)
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
    same = before.group == run.group and _same_usage(before, found)
    if same and waived == (before.state == "waived"):
        _write(books, run, before, {"reason": None})
        _judge_refund(books, run, before)
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
    change = _change(books.pots[run.group], drawn, fresh, now=books.now)
    _write(books, run, before, _posted(cover, usage, version=version, waived=waived))
    books.post(run.group, EntryKind.CORRECTION, change, key=key, charge_id=before.id)
    books.counts["corrected"] += 1
    refund = books.refunds.get(before.id)
    if refund is not None and refund.undone_at is None:
        back = {pot: -amount for pot, amount in change.items()}
        key = f"refund:{before.id}:{version}"
        books.post(run.group, EntryKind.REFUND, back, key=key, charge_id=before.id)
        books.refund_changes[refund.id] = {"amount": cover.total}
    books.drawn[before.id] = {
        pot: drawn.get(pot, 0) - change.get(pot, 0) for pot in {*drawn, *change}
    }
    _judge_refund(books, run, before)


def _change(
    pots: Mapping[int, Pot], drawn: Mapping[int, int], fresh: Mapping[int, int], *, now: datetime
) -> dict[int, int]:
    """What each pot gets or gives; what would go back into a lapsed one goes to the balance."""
    change = {pot: drawn.get(pot, 0) - fresh.get(pot, 0) for pot in {*drawn, *fresh}}
    back = back_into(pots, {pot: amount for pot, amount in change.items() if amount > 0}, now=now)
    for pot, amount in change.items():
        if amount < 0:
            back[pot] = back.get(pot, 0) + amount
    return back


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
    """The same cards for as long, in a QoS that costs the same."""
    was: dict[tuple[str, int], int] = defaultdict(int)
    for line in before.items:
        was[line["resource"], line["factor_millionths"]] += line["unit_seconds"]
    now: dict[tuple[str, int], int] = defaultdict(int)
    for item in found.items:
        now[item.resource, item.factor_millionths] += item.unit_seconds
    return was == now


def _rule(books: Books, run: DueRun) -> tuple[RefundReason, dict[str, Any]] | None:
    """Which rule gives the run's charge back, and the evidence."""
    free = books.prices.preempted(run.qos, run.start) is Preempted.FREE
    reason = refund_reason(run.state, preempted_is_free=free)
    if reason is not None:
        return reason, {"state": run.state, "nodes": run.node_list}
    for kill in books.kills.get(run.job_id, ()):
        # An act that was refused, or of another run of the job, ended nothing.
        if run.start <= kill.at <= run.end + _ACT_SLACK:
            return RefundReason.ADMINISTRATOR_KILL, kill.evidence()
    if run.id in books.lost_data:
        return RefundReason.DATASET, {"datasets": ", ".join(books.lost_data[run.id])}
    return None


def _judge_refund(books: Books, run: DueRun, before: ChargeRow) -> None:
    """The state was corrected: a rule may give now what it did not, or no longer what it did.
    What a person gave or undid is left alone."""
    refund, rule = books.refunds.get(before.id), _rule(books, run)
    if rule is not None and refund is None and before.state == "posted":
        drawn = {pot: amount for pot, amount in books.drawn.get(before.id, {}).items() if amount}
        _refund(books, run, before.id, drawn)
    elif rule is None and refund is not None and refund.undone_at is None and refund.by_rule:
        given = books.given.get(before.id, {})
        again = {pot: -amount for pot, amount in taken_back(books.pots[run.group], given).items()}
        key = f"refund:{before.id}:not:{before.version}"
        books.post(run.group, EntryKind.REFUND_UNDONE, again, key=key, charge_id=before.id)
        books.refund_changes[refund.id] = {"undone_at": books.now}


def _refund(books: Books, run: DueRun, charge_id: int, drawn: Mapping[int, int]) -> None:
    """Give a charge back by rule, with the evidence; once."""
    rule = _rule(books, run)
    if rule is None or not drawn:
        return
    reason, evidence = rule
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
    row = {name: getattr(before, name) for name in _KEPT}
    row |= {"id": before.id, "group_name": run.group, "user": run.user} | dict(values)
    row["at"] = books.now if before.version == 0 else before.at
    books.changed_charges.append(row)
    return before.id


_KEPT = ("state", "reason", "amount", "card_seconds", "items", "pending", "version")
