"""What must hold between the ledger's tables, as queries that list what does not."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, String, and_, case, cast, exists, func, literal, or_, select
from sqlalchemy.orm import Session

from gateway.store import money_models as mm
from gateway.store.models import Run, Submission

_MOST = 1000
_HOLDING = ("hold", "release")
_CHARGING = ("charge", "correction")
_GIVING = ("refund", "refund_undone")


@dataclass(frozen=True, slots=True)
class Broken:
    """One thing that does not hold. `rule` is a code; `what` names the row."""

    rule: str
    what: str
    expected: int | None = None
    found: int | None = None


def broken(session: Session) -> list[Broken]:
    """Everything that is wrong, at most 1,000 of each kind."""
    found: list[Broken] = []
    for rule, query in _rules():
        found += [Broken(rule, *row) for row in session.execute(query.limit(_MOST))]
    return found


def totals(session: Session) -> dict[str, int]:
    """How much was looked at."""
    return {
        "entries": _count(session, mm.Entry.id),
        "pots": _count(session, mm.Pot.id),
        "holds": _count(session, mm.Hold.id),
        "charges": _count(session, mm.Charge.id),
        "sum": int(session.scalar(select(func.coalesce(func.sum(mm.Entry.amount), 0))) or 0),
    }


def _count(session: Session, column: Any) -> int:
    return int(session.scalar(select(func.count(column))) or 0)


def _rules() -> Iterator[tuple[str, Select[Any]]]:
    yield "pot_is_not_its_entries", _sums(mm.Pot, mm.Pot.left, mm.Entry.pot_id, None, 1)
    yield "hold_is_not_its_entries", _sums(mm.Hold, mm.Hold.amount, mm.Entry.hold_id, _HOLDING, -1)
    yield (
        "charge_is_not_its_entries",
        _sums(mm.Charge, mm.Charge.amount, mm.Entry.charge_id, _CHARGING, -1),
    )
    yield "refund_is_not_its_entries", _refunds()
    yield "entry_of_another_group", _strangers()
    yield "charge_paid_by_another_group", _paid_by_others()
    yield "closed_hold_holds", _closed_holds()
    yield "hold_without_open_submission", _idle_holds()
    yield "charge_without_record", _charges_without_record()
    yield "run_without_charge", _runs_without_charge()
    yield "pot_below_zero", _below_zero()


def _sums(model: Any, column: Any, key: Any, kinds: tuple[str, ...] | None, sign: int) -> Any:
    """Rows whose own sum differs from that of their entries."""
    sums = select(key.label("of"), func.sum(mm.Entry.amount).label("total")).group_by(key)
    if kinds is not None:
        sums = sums.where(mm.Entry.kind.in_(kinds))
    total = sums.where(key.is_not(None)).subquery()
    there = sign * func.coalesce(total.c.total, 0)
    return (
        select(_name(model), there, column)
        .outerjoin(total, total.c.of == model.id)
        .where(column != there)
        .order_by(model.id)
    )


def _refunds() -> Any:
    sums = (
        select(mm.Entry.charge_id.label("of"), func.sum(mm.Entry.amount).label("total"))
        .where(mm.Entry.kind.in_(_GIVING))
        .group_by(mm.Entry.charge_id)
        .subquery()
    )
    wanted = case((mm.Refund.undone_at.is_(None), mm.Refund.amount), else_=0)
    there = func.coalesce(sums.c.total, 0)
    return (
        select(_name(mm.Refund), there, wanted)
        .outerjoin(sums, sums.c.of == mm.Refund.charge_id)
        .where(wanted != there)
    )


def _strangers() -> Any:
    return (
        select(_name(mm.Entry), mm.Entry.amount, mm.Entry.amount)
        .join(mm.Pot, mm.Pot.id == mm.Entry.pot_id)
        .where(mm.Pot.group != mm.Entry.group)
    )


def _paid_by_others() -> Any:
    """A charge's lines in a group that is not its own must come to nothing."""
    total = func.sum(mm.Entry.amount)
    return (
        select(_name(mm.Charge), 0 * mm.Charge.id, total)
        .join(mm.Entry, mm.Entry.charge_id == mm.Charge.id)
        .where(mm.Entry.group != mm.Charge.group)
        .group_by(mm.Charge.id, mm.Entry.group)
        .having(total != 0)
    )


def _closed_holds() -> Any:
    return select(_name(mm.Hold), 0 * mm.Hold.id, mm.Hold.amount).where(
        mm.Hold.closed_at.is_not(None), mm.Hold.amount != 0
    )


def _idle_holds() -> Any:
    """An open hold whose submission ended without a job: the worker gives it back in the same
    transaction, so that there is never one."""
    return (
        select(_name(mm.Hold), 0 * mm.Hold.id, mm.Hold.amount)
        .join(Submission, Submission.id == mm.Hold.submission_id)
        .where(mm.Hold.closed_at.is_(None))
        .where(Submission.state.in_(("refused", "withdrawn")), Submission.job_id.is_(None))
    )


def _charges_without_record() -> Any:
    """Posted, yet accounting has no end for the run, or none of the run at all."""
    return (
        select(_name(mm.Charge), 0 * mm.Charge.id, mm.Charge.amount)
        .outerjoin(Run, Run.id == mm.Charge.run_id)
        .where(mm.Charge.state == "posted", or_(Run.id.is_(None), Run.end_time.is_(None)))
    )


def _runs_without_charge() -> Any:
    """Ended since charging began, not waiting to be settled, and neither charged nor reviewed."""
    begins = select(func.min(mm.Price.starts)).where(mm.Price.list_name == "site").scalar_subquery()
    charged = exists().where(mm.Charge.run_id == Run.id)
    return select(_name(Run), Run.slurm_id, 0 * Run.id).where(
        and_(Run.end_time.is_not(None), ~Run.to_settle, Run.start_time >= begins, ~charged)
    )


def _below_zero() -> Any:
    """Only a balance may be overdrawn."""
    return select(_name(mm.Pot), 0 * mm.Pot.id, mm.Pot.left).where(
        mm.Pot.kind != "balance", mm.Pot.left < 0
    )


def _name(model: Any) -> Any:
    return literal(f"{model.__tablename__} ", String) + cast(model.id, String)
