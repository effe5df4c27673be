"""The runs of a month beside their charges, and months that were closed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from gateway.core.closing import Line
from gateway.core.elsewhere import Used
from gateway.store import charges
from gateway.store import money_models as mm
from gateway.store.models import HeldRow, Job, Run

_PAGE = 5_000
_CHANGES = ("charge", "correction", "refund", "refund_undone")


@dataclass(frozen=True, slots=True)
class ClosedRow:
    """A closed month as it was then."""

    month: str
    at: datetime
    totals: dict[str, Any]
    differences: list[Any]


@dataclass(frozen=True, slots=True)
class Correction:
    """A line that came after the month was closed, for a run that ended in it."""

    at: datetime
    kind: str
    amount: int
    group: str
    run_id: int
    slurm_id: int
    user: str
    end: datetime
    note: str | None


def lines(session: Session, *, since: datetime, until: datetime, suspended: bool) -> Iterator[Line]:
    """Every run that ended with `since <= end < until`. `suspended`: the site bills the cards
    that a suspended job keeps."""
    after = 0
    while page := session.execute(_runs(since, until).where(Run.id > after).limit(_PAGE)).all():
        after = page[-1][0]
        drawn = charges.drawn(session, [row[12] for row in page if row[12] is not None])
        for row in page:
            posted = sum(drawn.get(row[12], {}).values())
            yield _line(tuple(row), posted, suspended=suspended)


def used(
    session: Session, *, since: datetime, until: datetime, group: str | None = None
) -> Iterator[Used]:
    """What was charged for the runs that ended then, resource by resource."""
    query = (
        select(mm.Charge.items, Run.start_time)
        .join(Run, Run.id == mm.Charge.run_id)
        .where(mm.Charge.state == "posted", Run.end_time >= since, Run.end_time < until)
        .order_by(mm.Charge.id)
        .execution_options(yield_per=_PAGE)
    )
    if group is not None:
        query = query.where(mm.Charge.group == group)
    for items, start in session.execute(query):
        for item in items:
            yield Used(item["resource"], start, item["unit_seconds"], item["amount"])


def refunded(
    session: Session, *, since: datetime, until: datetime, group: str | None = None
) -> int:
    """What was given back for runs that ended then."""
    query = (
        select(func.coalesce(func.sum(mm.Refund.amount), 0))
        .join(mm.Charge, mm.Charge.id == mm.Refund.charge_id)
        .join(Run, Run.id == mm.Charge.run_id)
        .where(mm.Refund.undone_at.is_(None), Run.end_time >= since, Run.end_time < until)
    )
    if group is not None:
        query = query.where(mm.Charge.group == group)
    return int(session.scalar(query) or 0)


def charging_began(session: Session) -> datetime | None:
    return session.scalar(select(func.min(mm.Price.starts)).where(mm.Price.list_name == "site"))


def not_told(session: Session, *, until: datetime) -> dict[str, int]:
    """What may still belong to a time before `until`: jobs that left the queue and whose end
    accounting has not told, and rows of accounting that nobody could read."""
    gone = select(func.count()).where(Job.left_queue_at.is_not(None), Job.left_queue_at < until)
    held = select(func.count(HeldRow.id)).where(
        HeldRow.settled_at.is_(None), HeldRow.first_seen_at < until
    )
    return {
        "jobs_without_end": int(session.scalar(gone) or 0),
        "held_rows": int(session.scalar(held) or 0),
    }


def closed(session: Session, month: str) -> ClosedRow | None:
    columns = [getattr(mm.ClosedMonth, name) for name in ClosedRow.__slots__]
    query = select(*columns).where(mm.ClosedMonth.month == month)
    found = session.execute(query).one_or_none()
    return ClosedRow(*found) if found else None


def closed_months(session: Session) -> list[tuple[str, datetime]]:
    """Each with when it was closed, the newest first."""
    query = select(mm.ClosedMonth.month, mm.ClosedMonth.at).order_by(mm.ClosedMonth.month.desc())
    return [(row[0], row[1]) for row in session.execute(query)]


def corrections(
    session: Session, *, since: datetime, until: datetime, after: datetime
) -> list[Correction]:
    """Lines posted after that moment for runs that ended in the window."""
    entry = mm.Entry
    query = (
        select(
            entry.at,
            entry.kind,
            func.sum(entry.amount),
            entry.group,
            Run.id,
            Run.slurm_id,
            Run.user,
            Run.end_time,
            func.max(entry.note),
        )
        .join(mm.Charge, mm.Charge.id == entry.charge_id)
        .join(Run, Run.id == mm.Charge.run_id)
        .where(entry.at > after, entry.kind.in_(_CHANGES))
        .where(Run.end_time >= since, Run.end_time < until)
        .group_by(
            entry.at,
            entry.kind,
            entry.key,
            entry.group,
            Run.id,
            Run.slurm_id,
            Run.user,
            Run.end_time,
        )
        .order_by(entry.at, Run.id)
    )
    return [_correction(tuple(row)) for row in session.execute(query)]


def _correction(row: tuple[Any, ...]) -> Correction:
    values: list[Any] = [*row[:2], int(row[2]), *row[3:]]
    return Correction(*values)


def _runs(since: datetime, until: datetime) -> Any:
    given = case((mm.Refund.undone_at.is_(None), mm.Refund.amount), else_=0)
    return (
        select(
            Run.id,
            Run.slurm_id,
            Run.cluster,
            Run.user,
            Run.group,
            Run.start_time,
            Run.end_time,
            Run.elapsed_seconds,
            Run.suspended_seconds,
            Run.gpus,
            Run.to_settle,
            mm.Charge.group,
            mm.Charge.id,
            mm.Charge.state,
            mm.Charge.amount,
            mm.Charge.card_seconds,
            mm.Charge.pending,
            mm.Charge.decision,
            func.coalesce(given, 0),
        )
        .outerjoin(mm.Charge, mm.Charge.run_id == Run.id)
        .outerjoin(mm.Refund, mm.Refund.charge_id == mm.Charge.id)
        .where(Run.end_time >= since, Run.end_time < until)
        .order_by(Run.id)
    )


def _line(row: tuple[Any, ...], posted: int, *, suspended: bool) -> Line:
    run_id, slurm_id, cluster, user, group, start, end = row[:7]
    elapsed, paused, gpus, to_settle, charge_group, _id, state, amount, seconds = row[7:16]
    pending, decision, given = row[16:]
    held = elapsed + (paused if suspended else 0)
    return Line(
        run_id=run_id,
        slurm_id=slurm_id,
        cluster=cluster,
        user=user,
        group=group,
        start=start,
        end=end,
        card_seconds=None if gpus is None else gpus * held,
        to_settle=to_settle,
        charge_group=charge_group,
        state=state,
        amount=amount or 0,
        charged_card_seconds=seconds or 0,
        pending=(pending or 0) if state == "review" else 0,
        refunded=int(given),
        posted=posted,
        decided=bool(decision),
    )
