"""A longer time limit of a job with a hold: what it may cost more is held before Slurm is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from gateway.core.credits import Credits
from gateway.core.gate_cost import Rates, weigh
from gateway.core.months import month_start
from gateway.core.pots import Cover
from gateway.core.pricing import Bill
from gateway.services import budgets, hold
from gateway.services import gate_facts as facts_of
from gateway.store import gate_facts, holds, prices, snapshot, submissions

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from gateway.wire import messages as m


@dataclass(frozen=True, slots=True)
class More:
    """What was held in addition."""

    hold_id: int
    cover: Cover


def hold_more(
    session: "Session", job_id: int, *, minutes: int, zone: tzinfo, now: datetime
) -> More | None:
    """None when nothing has to be held: no hold, no prices, or no longer than paid for.

    Raises ShortOfCredit, or Refused by a budget. What was held once is not held again.
    """
    found = _dearer(session, job_id, minutes=minutes, now=now)
    if found is None:
        return None
    kept, bill = found
    budgets.check(session, kept.group, bill.total, now)
    month_began = month_start(now, zone)
    return More(kept.id, hold.extend(session, kept, bill, month_began=month_began, now=now))


def price_more(session: "Session", job_id: int, *, minutes: int, now: datetime) -> Credits | None:
    """What `hold_more` would hold; None where it would hold nothing."""
    found = _dearer(session, job_id, minutes=minutes, now=now)
    return None if found is None else found[1].total


def _dearer(
    session: "Session", job_id: int, *, minutes: int, now: datetime
) -> tuple[holds.HoldRow, Bill] | None:
    price_list = prices.load(session)
    submission = submissions.of_job(session, job_id)
    kept = holds.of_submission(session, submission.id) if submission else None
    row = gate_facts.job(session, job_id)
    if kept is None or kept.closed_at is not None or row is None or not price_list.is_on(now):
        return None
    partitions: Mapping[str, m.Partition] = {one.name: one for one in snapshot.partitions(session)}
    paid_for = gate_facts.limits_paid_for(session, [job_id]).get(job_id, 0)
    job = facts_of.open_job(row, partitions, paid_for, now=now)
    if job is None or minutes <= job.covered_minutes:
        return None
    bill = weigh(replace(job, minutes=minutes), rates=Rates(price_list), now=now).bill
    return (kept, bill) if bill is not None and bill.total else None


def give_back(session: "Session", more: More, *, now: datetime) -> None:
    """Slurm refused."""
    hold.give_back(session, more.hold_id, more.cover, now=now)
